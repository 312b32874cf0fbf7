//! However a change is cut into deltas, and whatever the number of shards, the views are the same,
//! also when the circuit is stored and restored on the way.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, Int64Array};
use deltaic_batch::ZBatch;
use deltaic_ops::{ColumnRef, Filter, JoinKind, Project, UnionAll};
use proptest::prelude::*;

use super::{Even, columns, join, pairs, rows};
use crate::{Circuit, CircuitBuilder, CircuitOptions};

/// (k, v, weight)
type Row = (i64, i64, i64);
type View = BTreeMap<Vec<Option<i64>>, i64>;

/// `even(left) ⋈ right` and the left rows without a partner, projected to two columns, one view.
fn circuit(shards: usize) -> Circuit {
    let mut b = CircuitBuilder::new();
    let left = b.source("left", pairs()).unwrap();
    let right = b.source("right", pairs()).unwrap();
    let even = Filter::try_new(pairs(), Arc::new(Even), "v even".into()).unwrap();
    let even = b.add(Arc::new(even), &[left]).unwrap();
    let wide = columns(&["k", "v", "k2", "v2"]);
    let joined = b.add(join(JoinKind::Left, wide.clone()), &[even, right]).unwrap();
    let anti = b.add(join(JoinKind::LeftAnti, pairs()), &[left, right]).unwrap();
    let fields = || pairs().fields().iter().map(|f| f.as_ref().clone()).collect::<Vec<_>>();
    let ends = fields().into_iter().zip([0, 3]);
    let ends = ends.map(|(field, i)| (Arc::new(ColumnRef(i)) as _, field)).collect();
    let project = Project::try_new(wide, ends, "k, v2".into()).unwrap();
    let projected = b.add(Arc::new(project), &[joined]).unwrap();
    let union = UnionAll::try_new(pairs(), 2).unwrap();
    let all = b.add(Arc::new(union), &[projected, anti]).unwrap();
    b.output("view", all).unwrap();
    b.output("joined", joined).unwrap();
    b.build(CircuitOptions { shards, checks: true }).unwrap()
}

/// The same by definition: for each left row its partners, one by one.
fn naive(left: &[Row], right: &[Row]) -> View {
    let mut view = View::new();
    let (left, right) = (net(left), net(right));
    for (&(k, v), &w) in &left {
        let mut add = |v: Option<i64>, w: i64| *view.entry(vec![Some(k), v]).or_default() += w;
        let partners: Vec<_> = right.iter().filter(|((rk, _), _)| *rk == k).collect();
        if partners.is_empty() {
            add(Some(v), w);
        }
        if v % 2 == 0 {
            if partners.is_empty() {
                add(None, w);
            }
            partners.iter().for_each(|((_, rv), rw)| add(Some(*rv), w * **rw));
        }
    }
    view.retain(|_, w| *w != 0);
    view
}

fn net(rows: &[Row]) -> BTreeMap<(i64, i64), i64> {
    let mut net = BTreeMap::new();
    rows.iter().for_each(|&(k, v, w)| *net.entry((k, v)).or_default() += w);
    net.retain(|_, w| *w != 0);
    net
}

fn add(view: &mut View, delta: &ZBatch) {
    let columns: Vec<&Int64Array> = (delta.rows().columns().iter())
        .map(|c| c.as_any().downcast_ref::<Int64Array>().unwrap())
        .collect();
    for (i, &w) in delta.weights().iter().enumerate() {
        let row = columns.iter().map(|c| c.is_valid(i).then(|| c.value(i))).collect();
        *view.entry(row).or_default() += w;
    }
    view.retain(|_, w| *w != 0);
}

/// Inserts, and deletes of some of them later on, so that no prefix holds a row less than no time.
fn history() -> impl Strategy<Value = Vec<(bool, Row)>> {
    let row = (any::<bool>(), 0..6_i64, 0..4_i64, 1..3_i64, any::<prop::sample::Index>());
    prop::collection::vec(row, 0..60).prop_map(|drawn| {
        let mut history: Vec<(bool, Row)> = Vec::new();
        for (is_left, k, v, w, at) in drawn {
            if w == 2 && !history.is_empty() {
                let (side, (k, v, w)) = history[at.index(history.len())];
                let held: i64 = (history.iter())
                    .filter(|(s, (a, b, _))| (*s, *a, *b) == (side, k, v))
                    .map(|(_, (_, _, w))| w)
                    .sum();
                if held >= w.abs() {
                    history.push((side, (k, v, -w.abs())));
                    continue;
                }
            }
            history.push((is_left, (k, v, w)));
        }
        history
    })
}

fn of_side(history: &[(bool, Row)], side: bool) -> Vec<Row> {
    history.iter().filter(|(s, _)| *s == side).map(|(_, row)| *row).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_split_shards_and_restart_give_the_same_view(
        history in history(),
        cuts in prop::collection::vec(1..20_usize, 1..8),
        shards in prop::sample::select(vec![1_usize, 2, 4, 7]),
        restart in 0..8_usize,
    ) {
        let mut circuit = circuit(shards);
        let mut view = View::new();
        let mut full = circuit.write_full().unwrap();
        let mut changes = Vec::new();
        let mut done = 0;
        for (epoch, length) in cuts.iter().cycle().enumerate() {
            let part = &history[done..(done + length).min(history.len())];
            done += part.len();
            let inputs = [("left", true), ("right", false)];
            let inputs = inputs.map(|(n, s)| (n.to_owned(), rows(&of_side(part, s)))).into();
            add(&mut view, &circuit.step(inputs).unwrap()["view"]);
            let (left, right) = (of_side(&history[..done], true), of_side(&history[..done], false));
            prop_assert_eq!(&view, &naive(&left, &right));
            if epoch % 3 == 2 {
                full = circuit.write_full().unwrap();
                changes.clear();
            } else {
                changes.push(circuit.write_changes().unwrap());
            }
            if epoch == restart {
                circuit = self::circuit(shards);
                circuit.restore(&full, &changes).unwrap();
            }
            if done == history.len() {
                break;
            }
        }
        let undo: Vec<_> = history.iter().map(|&(s, (k, v, w))| (s, (k, v, -w))).collect();
        let inputs = [("left", true), ("right", false)];
        let inputs = inputs.map(|(n, s)| (n.to_owned(), rows(&of_side(&undo, s)))).into();
        add(&mut view, &circuit.step(inputs).unwrap()["view"]);
        prop_assert!(view.is_empty());
        prop_assert!(circuit.state_is_empty());
    }
}
