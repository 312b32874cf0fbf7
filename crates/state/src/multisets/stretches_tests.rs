//! Stretches against plain lists of the rows of a group.

use std::collections::{BTreeMap, BTreeSet};

use super::model_tests::{Change, Model, Row, change, columns, number_of, row, rows_of, spec};
use super::*;
use proptest::prelude::*;

/// The rows of a group before and after, in order.
fn union(before: &Model, after: &Model, group: u32) -> Vec<(Row, i64, i64)> {
    let of_group = |model: &Model| -> BTreeMap<Row, i64> {
        let rows = model.iter().filter(|((g, _), _)| *g == group);
        rows.map(|((_, row), &weight)| (row.clone(), weight)).collect()
    };
    let (before, after) = (of_group(before), of_group(after));
    let rows: BTreeSet<&Row> = before.keys().chain(after.keys()).collect();
    let weight = |model: &BTreeMap<Row, i64>, row| model.get(row).copied().unwrap_or(0);
    rows.into_iter().map(|row| (row.clone(), weight(&before, row), weight(&after, row))).collect()
}

/// Rows as a delta of one group.
fn shown(rows: &[Row]) -> Vec<Change> {
    let text = |row: &Row| row.1.1.as_deref().map(number_of);
    rows.iter().map(|row| (0, row.0.0, text(row), 0)).collect()
}

fn stretch_rows(found: &Stretches, text: bool) -> Vec<Vec<(Row, i64, i64)>> {
    let rows = GroupRows {
        ends: found.ends.clone(),
        columns: found.columns.clone(),
        weights: found.before.clone(),
    };
    let rows: Vec<(Row, i64, i64)> = (rows_of(&rows, text).into_iter().zip(&found.after))
        .map(|((row, before), &after)| (row, before, after))
        .collect();
    let mut start = 0;
    let stretch = |&end: &u32| {
        let end = usize::try_from(end).unwrap();
        let stretch = rows[start..end].to_vec();
        start = end;
        stretch
    };
    found.ends.iter().map(stretch).collect()
}

/// Where a list of rows lies in a longer one.
fn place(part: &[(Row, i64, i64)], all: &[(Row, i64, i64)]) -> usize {
    let first = all.iter().position(|row| Some(row) == part.first()).unwrap();
    assert_eq!(&all[first..first + part.len()], part);
    first
}

fn is_changed((_, before, after): &(Row, i64, i64)) -> bool {
    before != after
}

proptest! {
    #[test]
    fn stretches_hold_what_they_should(
        first in prop::collection::vec(change(), 0..150),
        second in prop::collection::vec((change(), prop::option::of(any::<prop::sample::Index>())), 1..12),
        text in any::<bool>(),
        reach in 0..4_usize,
    ) {
        let mut multisets = Multisets::try_new(&spec(text)).unwrap();
        let apply = |multisets: &mut Multisets, model: &mut Model, delta: &[Change]| {
            let groups: Vec<u32> = delta.iter().map(|c| c.0).collect();
            let weights: Vec<i64> = delta.iter().map(|c| c.3).collect();
            for &(group, number, text, weight) in delta {
                *model.entry((group, row(number, text))).or_default() += weight;
            }
            model.retain(|_, weight| *weight != 0);
            let values = columns(delta, text);
            let order = order_by_group(&groups);
            (multisets.apply_changes(&groups, order, &values, &weights).unwrap(), values)
        };
        let mut model = Model::new();
        apply(&mut multisets, &mut model, &first);
        let before = model.clone();
        // Some of the second delta takes back what is there.
        let there: Vec<(&(u32, Row), &i64)> = before.iter().collect();
        let second: Vec<Change> = second.into_iter().map(|(new, old)| match old {
            Some(index) if !there.is_empty() => {
                let ((group, row), &weight) = *index.get(&there);
                (*group, row.0.0, row.1.1.as_deref().map(number_of), -weight)
            }
            _ => new,
        }).collect();
        let (changes, values) = apply(&mut multisets, &mut model, &second);
        let groups: BTreeSet<u32> = before.keys().chain(model.keys()).map(|(g, _)| *g).collect();
        let lists: BTreeMap<u32, _> =
            groups.iter().map(|&group| (group, union(&before, &model, group))).collect();
        let told: Vec<(u32, i64, i64)> = (0..changes.rows.len())
            .map(|i| (changes.groups[i], changes.before[i], changes.after[i]))
            .collect();
        let expected = lists.iter().flat_map(|(&group, rows)| {
            rows.iter().filter(|row| is_changed(row)).map(move |row| (group, row.1, row.2))
        });
        prop_assert_eq!(told, expected.collect::<Vec<_>>());

        let mut at = 0;
        while at < changes.groups.len() {
            let group = changes.groups[at];
            let end = at + changes.groups[at..].iter().take_while(|&&g| g == group).count();
            let list = &lists[&group];
            let new: Vec<_> = list.iter().filter(|row| row.2 != 0).cloned().collect();
            let first = list.iter().position(is_changed).unwrap();
            let shown_first = columns(&shown(&[list[first].0.clone()]), text);
            let peers = (reach % 2 == 1).then_some(1);
            let (of, starts) =
                multisets.starts(&[group], &shown_first, reach, peers).unwrap();
            let position = new.iter().take_while(|row| row.0 < list[first].0).count();
            let first_peer = new.iter().take_while(|row| row.0.0 < list[first].0.0).count();
            let is_there = new.get(position).is_some_and(|row| row.0 == list[first].0);
            let wanted = position.saturating_sub(reach + usize::from(!is_there));
            let wanted = if peers.is_some() { wanted.min(first_peer) } else { wanted };
            if let [_] = of.as_slice() {
                let found = GroupRows { ends: vec![1], columns: starts.clone(), weights: vec![0] };
                prop_assert_eq!(&rows_of(&found, text)[0].0, &new[wanted].0);
                prop_assert!(wanted > 0);
            } else {
                prop_assert!(wanted == 0 || new.len() < 64);
            }
            for extent in [Extent::ToEnd, Extent::Until(reach, 1), Extent::Around(reach)] {
                let whole = StretchOf { changes: at..end, after: None, extent };
                let no_starts: Vec<ArrayRef> = starts.iter().map(|s| s.slice(0, 0)).collect();
                let no_starts = if of.is_empty() {
                    values.iter().map(|v| v.slice(0, 0)).collect()
                } else {
                    no_starts
                };
                let found = multisets.stretches(&changes, &values, &no_starts, &[whole]).unwrap();
                let found = stretch_rows(&found, text);
                let mut changed = 0;
                for stretch in &found {
                    let from = place(stretch, list);
                    let to = from + stretch.len();
                    changed += stretch.iter().filter(|row| is_changed(row)).count();
                    let calm_before = stretch.iter().take_while(|row| !is_changed(row)).count();
                    let last = stretch.iter().rposition(is_changed).unwrap();
                    let calm_after = stretch.len() - 1 - last;
                    if matches!(extent, Extent::Around(_)) {
                        prop_assert!(from == 0 || calm_before >= reach, "{found:?} of {list:?}");
                    } else {
                        prop_assert_eq!((from, found.len()), (0, 1));
                    }
                    prop_assert!(to == list.len() || calm_after >= reach);
                    match extent {
                        Extent::ToEnd => prop_assert_eq!(to, list.len()),
                        Extent::Until(..) if to < list.len() => {
                            prop_assert!(list[to].0.0 > stretch[last].0.0
                                || stretch[stretch.len() - 1].0.0 > stretch[last].0.0);
                        }
                        _ => {}
                    }
                }
                prop_assert_eq!(changed, list.iter().filter(|row| is_changed(row)).count());
                if let ([_], false) = (of.as_slice(), matches!(extent, Extent::Around(_))) {
                    // From behind the start on.
                    let after = StretchOf { changes: at..end, after: Some(0), extent };
                    let later = multisets.stretches(&changes, &values, &starts, &[after]).unwrap();
                    let later = stretch_rows(&later, text);
                    let skipped = list.iter().take_while(|row| row.0 <= new[wanted].0).count();
                    if skipped <= first {
                        prop_assert_eq!(&later[0], &found[0][skipped..]);
                    }
                }
            }
            let leading: Vec<ArrayRef> = shown_first[..1].to_vec();
            let earlier = multisets.before(&[group], &leading).unwrap();
            let earlier: Vec<Row> = rows_of(&earlier, text).into_iter().map(|(r, _)| r).collect();
            let expected = new[..first_peer].last().map(|row| row.0.clone());
            prop_assert_eq!(earlier, expected.into_iter().collect::<Vec<_>>());
            let rest = multisets.from(&[group], &leading).unwrap();
            let rest: Vec<Row> = rows_of(&rest, text).into_iter().map(|(r, _)| r).collect();
            let expected: Vec<Row> = new[first_peer..].iter().map(|row| row.0.clone()).collect();
            prop_assert_eq!(rest, expected);
            at = end;
        }
    }
}
