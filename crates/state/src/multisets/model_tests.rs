//! The multisets against a plain map, over random deltas with hot groups, NULLs from some step on,
//! retractions that come first, repeated rows and restores; blocks are short here.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Int64Type};
use proptest::prelude::*;

use super::*;

/// A row in the order that is wanted: descending number, then ascending text, NULL last in both.
pub(super) type Row = (std::cmp::Reverse<Option<i64>>, (bool, Option<String>));
pub(super) type Model = BTreeMap<(u32, Row), i64>;

/// Group, number, text, weight.
pub(super) type Change = (u32, Option<i64>, Option<i64>, i64);

pub(super) fn spec(text: bool) -> MultisetSpec {
    let number = MultisetColumn {
        data_type: DataType::Int64,
        options: SortOptions { descending: true, nulls_first: false },
    };
    let options = SortOptions { descending: false, nulls_first: false };
    let data_type = if text { DataType::Utf8 } else { DataType::Int64 };
    MultisetSpec { columns: vec![number, MultisetColumn { data_type, options }] }
}

/// The second column is text or, for rows of words, a number that sorts alike.
fn text_of(number: i64) -> String {
    format!("{:020}", i128::from(number) - i128::from(i64::MIN))
}

pub(super) fn number_of(text: &str) -> i64 {
    i64::try_from(text.parse::<i128>().unwrap() + i128::from(i64::MIN)).unwrap()
}

pub(super) fn columns(changes: &[Change], text: bool) -> Vec<ArrayRef> {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter(changes.iter().map(|c| c.1)));
    let seconds = changes.iter().map(|c| c.2);
    let second: ArrayRef = if text {
        Arc::new(StringArray::from_iter(seconds.map(|n| n.map(text_of))))
    } else {
        Arc::new(Int64Array::from_iter(seconds))
    };
    vec![numbers, second]
}

pub(super) fn row(number: Option<i64>, text: Option<i64>) -> Row {
    (std::cmp::Reverse(number), (text.is_none(), text.map(text_of)))
}

pub(super) fn rows_of(found: &GroupRows, text: bool) -> Vec<(Row, i64)> {
    let numbers = found.columns[0].as_primitive::<Int64Type>();
    let second = &found.columns[1];
    (0..found.weights.len())
        .map(|at| {
            let number = numbers.is_valid(at).then(|| numbers.value(at));
            let shown = second.is_valid(at).then(|| {
                if text {
                    second.as_string::<i32>().value(at).to_owned()
                } else {
                    text_of(second.as_primitive::<Int64Type>().value(at))
                }
            });
            ((std::cmp::Reverse(number), (shown.is_none(), shown)), found.weights[at])
        })
        .collect()
}

/// The first or last rows of a group.
fn expected(model: &Model, group: u32, places: i64, reverse: bool) -> Vec<(Row, i64)> {
    let of_group = model.iter().filter(|((g, _), w)| *g == group && **w > 0);
    let mut rows: Vec<(Row, i64)> = of_group.map(|((_, row), &w)| (row.clone(), w)).collect();
    if reverse {
        rows.reverse();
    }
    let mut free = places;
    rows.into_iter()
        .take_while(|(_, weight)| {
            let fits = free > 0;
            free -= weight;
            fits
        })
        .collect()
}

fn check(multisets: &Multisets, model: &Model, text: bool) {
    assert_eq!(multisets.len(), model.len());
    let groups: Vec<u32> = (0..12).collect();
    let (first, last) = multisets.ends(&groups).unwrap();
    for (found, places, reverse) in [
        (first, 1, false),
        (last, 1, true),
        (multisets.last(&groups).unwrap(), 1, true),
        (multisets.first(&groups, 1).unwrap(), 1, false),
        (multisets.first(&groups, 3).unwrap(), 3, false),
        (multisets.first(&groups, 1000).unwrap(), 1000, false),
    ] {
        let rows = rows_of(&found, text);
        let mut start = 0;
        for (&group, &end) in groups.iter().zip(&found.ends) {
            let end = usize::try_from(end).unwrap();
            assert_eq!(&rows[start..end], expected(model, group, places, reverse), "{group}");
            start = end;
        }
    }
    for group in groups {
        let is_empty = !model.keys().any(|(g, _)| *g == group);
        assert_eq!(multisets.is_group_empty(group), is_empty);
    }
}

pub(super) fn change() -> impl Strategy<Value = Change> {
    // Group 5 is hot; numbers spread over several widths.
    let group = prop_oneof![3 => Just(5_u32), 2 => 0..12_u32];
    let number = prop_oneof![4 => 0..30_i64, 1 => any::<i64>()].prop_map(Some);
    let number = prop_oneof![20 => number, 1 => Just(None)];
    let text = prop_oneof![20 => 0..4_i64, 1 => any::<i64>()].prop_map(Some);
    let text = prop_oneof![20 => text, 1 => Just(None)];
    (group, number, text, prop_oneof![5 => Just(1_i64), 2 => -2..3_i64])
}

proptest! {
    #[test]
    fn agrees_with_a_map(
        deltas in prop::collection::vec(
            (prop::collection::vec(change(), 0..60), any::<bool>(), 0..4_u8),
            1..12,
        ),
        text in any::<bool>(),
        without_null in any::<bool>(),
    ) {
        let mut multisets = Multisets::try_new(&spec(text)).unwrap();
        let mut model = Model::new();
        let mut images: (Vec<u8>, Vec<Vec<u8>>) = Default::default();
        for (mut changes, undo, then) in deltas {
            if without_null {
                changes.retain(|c| c.1.is_some() && c.2.is_some());
            }
            if undo {
                // Retracts much of what is there, so that blocks shrink and vanish.
                let there = model.iter().filter(|((g, _), _)| *g % 2 == 1);
                changes.extend(there.map(|((group, row), &w)| {
                    let text = row.1.1.as_deref().map(number_of);
                    (*group, row.0.0, text, -w)
                }));
            }
            let groups: Vec<u32> = changes.iter().map(|c| c.0).collect();
            let weights: Vec<i64> = changes.iter().map(|c| c.3).collect();
            let before = model.clone();
            for &(group, number, text, weight) in &changes {
                let key = (group, row(number, text));
                let sum = model.entry(key.clone()).or_default();
                *sum += weight;
                if *sum == 0 {
                    model.remove(&key);
                }
            }
            let crossings =
                multisets.apply_crossings(&groups, &columns(&changes, text), &weights).unwrap();
            let mut told: Vec<((u32, Row), i64)> = crossings.rows.iter().zip(&crossings.weights)
                .map(|(&at, &w)| {
                    let (group, number, text, _) = changes[usize::try_from(at).unwrap()];
                    ((group, row(number, text)), w)
                })
                .collect();
            told.sort();
            let is_there = |model: &Model, key| model.get(key).is_some_and(|&w| w > 0);
            let keys: std::collections::BTreeSet<_> = before.keys().chain(model.keys()).collect();
            let crossed: Vec<((u32, Row), i64)> = keys.into_iter()
                .map(|key| {
                    let change = i64::from(is_there(&model, key)) - i64::from(is_there(&before, key));
                    (key.clone(), change)
                })
                .filter(|(_, change)| *change != 0)
                .collect();
            prop_assert_eq!(told, crossed);
            check(&multisets, &model, text);
            match then {
                0 => images = (multisets.write_full().unwrap(), Vec::new()),
                1 => images.1.push(multisets.write_changes().unwrap()),
                2 => {
                    images.1.push(multisets.write_changes().unwrap());
                    let changes: Vec<&[u8]> = images.1.iter().map(Vec::as_slice).collect();
                    multisets = Multisets::restore(&spec(text), &images.0, &changes).unwrap();
                    check(&multisets, &model, text);
                }
                _ => {}
            }
        }
    }
}
