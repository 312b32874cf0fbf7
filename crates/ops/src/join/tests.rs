//! Worked examples, and every kind of join against its definition.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Result, ZBatch};
use deltaic_state::Slot;
use proptest::prelude::*;

use super::{Join, JoinKind, JoinSpec};
use crate::{Evaluator, Operator, StepContext};

const KINDS: [JoinKind; 6] = [
    JoinKind::Inner,
    JoinKind::Left,
    JoinKind::Right,
    JoinKind::Full,
    JoinKind::LeftSemi,
    JoinKind::LeftAnti,
];

type Cell = Option<i64>;
/// Columns `k` and `v`.
type Row = (Cell, Cell);
type Table = BTreeMap<Row, i64>;
type View = BTreeMap<Vec<Cell>, i64>;

/// `left.v < right.v`.
#[derive(Debug)]
struct Less;

impl Evaluator for Less {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let column = |i: usize| batch.column(i).as_any().downcast_ref::<Int64Array>().unwrap();
        let less = column(1).iter().zip(column(3)).map(|(l, r)| Some(l? < r?));
        Ok(Arc::new(less.collect::<BooleanArray>()))
    }

    fn cannot_fail(&self) -> bool {
        true
    }
}

#[derive(Debug, Clone, Copy)]
struct Case {
    kind: JoinKind,
    has_key: bool,
    has_residual: bool,
    null_equals_null: bool,
    /// The output has every other column only, the last one first.
    is_narrow: bool,
}

fn schema(names: &[&str]) -> SchemaRef {
    let field = |name: &&str| Field::new(*name, DataType::Int64, true);
    Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()))
}

impl Case {
    /// Which columns the output has.
    fn columns(self) -> Vec<usize> {
        let all = self.kind.columns(&schema(&["k", "v"]), &schema(&["rk", "rv"]));
        if self.is_narrow { all.into_iter().filter(|c| c % 2 == 1).rev().collect() } else { all }
    }

    fn join(self) -> Join {
        let names = ["k", "v", "rk", "rv"];
        let columns = self.columns();
        let output = schema(&columns.iter().map(|&column| names[column]).collect::<Vec<_>>());
        Join::try_new(JoinSpec {
            left: schema(&["k", "v"]),
            right: schema(&["rk", "rv"]),
            kind: self.kind,
            on: if self.has_key { vec![(0, 0)] } else { Vec::new() },
            null_equals_null: self.null_equals_null,
            residual: self.has_residual.then(|| Arc::new(Less) as Arc<dyn Evaluator>),
            columns,
            output,
            detail: String::new(),
        })
        .unwrap()
    }

    fn matches(self, (k, v): Row, (rk, rv): Row) -> bool {
        let both_null = k.is_none() && rk.is_none();
        let key = !self.has_key || if both_null { self.null_equals_null } else { k == rk };
        key && (!self.has_residual || v.zip(rv).is_some_and(|(v, rv)| v < rv))
    }

    /// The join by definition.
    fn naive(self, left: &Table, right: &Table) -> View {
        use JoinKind::{Full, Left, LeftAnti, LeftSemi, Right};
        let mut view = View::new();
        let columns = self.columns();
        let mut add = |row: Vec<Cell>, w: i64| {
            let row = columns.iter().map(|&column| row[column]).collect();
            *view.entry(row).or_default() += w;
        };
        for (&l, &lw) in left {
            let partners = || right.iter().filter(|(r, _)| self.matches(l, **r));
            let is_matched = partners().next().is_some();
            match self.kind {
                LeftSemi if is_matched => add(vec![l.0, l.1], lw),
                LeftAnti if !is_matched => add(vec![l.0, l.1], lw),
                LeftSemi | LeftAnti => {}
                _ => partners().for_each(|(r, rw)| add(vec![l.0, l.1, r.0, r.1], lw * rw)),
            }
            if !is_matched && matches!(self.kind, Left | Full) {
                add(vec![l.0, l.1, None, None], lw);
            }
        }
        if matches!(self.kind, Right | Full) {
            for (&r, &rw) in right {
                if !left.keys().any(|&l| self.matches(l, r)) {
                    add(vec![None, None, r.0, r.1], rw);
                }
            }
        }
        view.retain(|_, w| *w != 0);
        view
    }
}

/// A join with its state and its integrated input and output.
struct Run {
    case: Case,
    join: Join,
    state: Vec<Slot>,
    tables: [Table; 2],
    view: View,
}

impl Run {
    fn new(case: Case) -> Self {
        let join = case.join();
        let state = join.spec().slots.iter().map(|slot| Slot::try_new(slot).unwrap()).collect();
        Self { case, join, state, tables: Default::default(), view: View::new() }
    }

    fn step(&mut self, left: &[(Row, i64)], right: &[(Row, i64)]) -> Vec<ZBatch> {
        let names = [["k", "v"], ["rk", "rv"]];
        let mut inputs = Vec::new();
        for (i, rows) in [left, right].into_iter().enumerate() {
            for (row, w) in rows {
                *self.tables[i].entry(*row).or_default() += w;
            }
            self.tables[i].retain(|_, w| *w != 0);
            inputs.push(delta(&schema(&names[i]), rows));
        }
        let mut out: Vec<ZBatch> = Vec::new();
        let cx = StepContext { epoch: 1, shard: 0, shards: 1 };
        self.join.step(&inputs, &mut self.state, &mut out, &cx).unwrap();
        for piece in &out {
            assert!(!piece.weights().contains(&0));
            assert_eq!(piece.schema(), self.join.spec().output);
            integrate(&mut self.view, piece);
        }
        out
    }

    fn is_right(&self) -> bool {
        self.view == self.case.naive(&self.tables[0], &self.tables[1])
    }
}

/// Not consolidated, since a join does not ask for that.
fn delta(schema: &SchemaRef, rows: &[(Row, i64)]) -> ZBatch {
    let column = |f: fn(&Row) -> Cell| -> ArrayRef {
        Arc::new(rows.iter().map(|(row, _)| f(row)).collect::<Int64Array>())
    };
    let columns = vec![column(|r| r.0), column(|r| r.1)];
    let weights: Vec<i64> = rows.iter().map(|(_, w)| *w).collect();
    let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
    ZBatch::try_new(batch, weights).unwrap()
}

fn integrate(view: &mut View, piece: &ZBatch) {
    let columns: Vec<&Int64Array> = (piece.rows().columns().iter())
        .map(|c| c.as_any().downcast_ref::<Int64Array>().unwrap())
        .collect();
    for (i, w) in piece.weights().iter().enumerate() {
        let row = columns.iter().map(|c| c.is_valid(i).then(|| c.value(i))).collect();
        *view.entry(row).or_default() += w;
    }
    view.retain(|_, w| *w != 0);
}

fn keyed(kind: JoinKind) -> Case {
    let (has_residual, null_equals_null, is_narrow) = (false, false, false);
    Case { kind, has_key: true, has_residual, null_equals_null, is_narrow }
}

fn r(k: i64, v: i64) -> Row {
    (Some(k), Some(v))
}

#[test]
fn a_left_join_pads_until_the_first_match_and_again_after_the_last() {
    let mut run = Run::new(keyed(JoinKind::Left));
    run.step(&[(r(1, 10), 2), ((None, Some(5)), 1)], &[]);
    let padded = View::from([
        (vec![Some(1), Some(10), None, None], 2),
        (vec![None, Some(5), None, None], 1),
    ]);
    assert_eq!(run.view, padded);
    run.step(&[], &[(r(1, 7), 1), (r(1, 8), 3)]);
    assert_eq!(run.view.get(&vec![Some(1), Some(10), Some(1), Some(8)]), Some(&6));
    assert_eq!(run.view.get(&vec![Some(1), Some(10), None, None]), None);
    let out = run.step(&[], &[(r(1, 7), -1), (r(1, 9), 1)]);
    assert!(out.iter().all(|p| p.rows().column(2).null_count() == 0), "no padded row flips");
    run.step(&[], &[(r(1, 8), -3), (r(1, 9), -1)]);
    assert_eq!(run.view, padded);
}

#[test]
fn a_semi_join_emits_nothing_while_the_key_stays_matched() {
    let mut run = Run::new(keyed(JoinKind::LeftSemi));
    run.step(&[(r(1, 10), 1)], &[(r(1, 7), 1)]);
    assert_eq!(run.view, View::from([(vec![Some(1), Some(10)], 1)]));
    assert!(run.step(&[], &[(r(1, 7), -1), (r(1, 8), 1)]).is_empty());
    run.step(&[], &[(r(1, 8), -1)]);
    assert!(run.view.is_empty());
}

#[test]
fn a_delta_that_inserts_and_deletes_the_same_key_counts_once() {
    for kind in KINDS {
        let mut run = Run::new(keyed(kind));
        run.step(&[(r(1, 1), 1), (r(2, 2), 1)], &[(r(2, 5), 1)]);
        run.step(&[(r(1, 1), -1), (r(1, 3), 1)], &[(r(1, 4), 1), (r(1, 6), 1), (r(2, 5), -1)]);
        assert!(run.is_right(), "{kind:?}: {:?}", run.view);
    }
}

#[test]
fn many_matches_come_in_bounded_pieces() {
    let mut run = Run::new(keyed(JoinKind::Inner));
    let side = |n: i64| (0..n).map(|i| (r(1, i), 1)).collect::<Vec<_>>();
    let out = run.step(&side(600), &side(500));
    assert_eq!(out.iter().map(ZBatch::num_rows).sum::<usize>(), 300_000);
    assert!(out.len() > 1 && out.iter().all(|p| p.num_rows() <= 1 << 16));
    assert!(run.is_right());
}

#[test]
fn a_large_delta_is_probed_in_parts() {
    for (kind, has_residual) in KINDS.into_iter().zip([false, true].into_iter().cycle()) {
        let mut run = Run::new(Case { has_residual, ..keyed(kind) });
        let left = (0..30_000).map(|i| (r(i % 9_000, i % 7), 1)).collect::<Vec<_>>();
        let right = (0..12_000).map(|i| (r(i, i % 5), 1)).collect::<Vec<_>>();
        run.step(&left[..10], &right[..6_000]);
        run.step(&left[10..], &right[6_000..]);
        assert!(run.view.values().all(|&w| w > 0));
        if !has_residual && kind == JoinKind::Inner {
            assert_eq!(run.view.values().sum::<i64>(), 30_000, "every left row has one partner");
        }
        let gone = |rows: &[(Row, i64)]| rows.iter().map(|&(row, w)| (row, -w)).collect::<Vec<_>>();
        run.step(&gone(&left), &gone(&right));
        assert!(run.view.is_empty() && run.state.iter().all(Slot::is_empty), "{kind:?}");
    }
}

#[test]
fn weights_that_overflow_are_an_error() {
    let join = keyed(JoinKind::Inner).join();
    let mut state: Vec<Slot> =
        join.spec().slots.iter().map(|slot| Slot::try_new(slot).unwrap()).collect();
    let side = |names: [&str; 2]| delta(&schema(&names), &[(r(1, 1), 1 << 40)]);
    let inputs = [side(["k", "v"]), side(["rk", "rv"])];
    let cx = StepContext { epoch: 0, shard: 0, shards: 1 };
    let error = join.step(&inputs, &mut state, &mut Vec::new(), &cx).unwrap_err();
    assert_eq!(error.code(), "WEIGHT_OVERFLOW");
}

#[test]
fn requests_that_do_not_fit_are_refused() {
    let spec = |on: Vec<(usize, usize)>, output: SchemaRef| JoinSpec {
        left: schema(&["k", "v"]),
        right: Arc::new(Schema::new(vec![Field::new("k", DataType::Utf8, true)])),
        kind: JoinKind::LeftSemi,
        on,
        null_equals_null: false,
        residual: None,
        columns: vec![0, 1],
        output,
        detail: String::new(),
    };
    let code = |spec| Join::try_new(spec).unwrap_err().code();
    assert_eq!(code(spec(vec![(0, 3)], schema(&["k", "v"]))), "JOIN_KEY");
    assert_eq!(code(spec(vec![(0, 0)], schema(&["k", "v"]))), "JOIN_KEY");
    assert_eq!(code(spec(Vec::new(), schema(&["k"]))), "JOIN_OUTPUT");
    let beyond = JoinSpec { columns: vec![0, 2], ..spec(Vec::new(), schema(&["k", "v"])) };
    assert_eq!(code(beyond), "JOIN_OUTPUT");
}

fn case() -> impl Strategy<Value = Case> {
    let kind = prop::sample::select(KINDS.to_vec());
    (kind, prop::bool::weighted(0.8), any::<[bool; 3]>()).prop_map(
        |(kind, has_key, [has_residual, null_equals_null, is_narrow])| Case {
            kind,
            has_key,
            has_residual,
            null_equals_null,
            is_narrow,
        },
    )
}

/// Deltas of both sides: a row, and whether to insert it or to delete one that is there.
fn deltas() -> impl Strategy<Value = Vec<[Vec<(Row, bool)>; 2]>> {
    let cell = || prop::option::weighted(0.85, 0..4_i64);
    let side = move || prop::collection::vec(((cell(), cell()), prop::bool::weighted(0.6)), 0..8);
    prop::collection::vec([side(), side()], 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_join_equals_its_definition_at_every_step(case in case(), deltas in deltas()) {
        let mut run = Run::new(case);
        let mut history = Vec::new();
        for sides in deltas {
            let mut delta: [Vec<(Row, i64)>; 2] = Default::default();
            for (i, rows) in sides.into_iter().enumerate() {
                let mut table = run.tables[i].clone();
                for (row, insert) in rows {
                    let weight = table.entry(row).or_default();
                    let change = if insert || *weight == 0 { 1 } else { -1 };
                    *weight += change;
                    delta[i].push((row, change));
                }
            }
            run.step(&delta[0], &delta[1]);
            prop_assert!(run.is_right(), "{:?}", run.view);
            history.push(delta);
        }
        for [left, right] in history.into_iter().rev() {
            let negated = |rows: Vec<(Row, i64)>| -> Vec<_> {
                rows.into_iter().map(|(row, w)| (row, -w)).collect()
            };
            run.step(&negated(left), &negated(right));
            prop_assert!(run.is_right());
        }
        prop_assert!(run.view.is_empty());
        prop_assert!(run.state.iter().all(Slot::is_empty));
        prop_assert!(run.step(&[], &[]).is_empty());
    }
}
