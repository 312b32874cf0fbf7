//! Windows over a partition of thousands of rows, many blocks and checkpoints: small deltas give what
//! one load of all rows gives.
#![expect(clippy::unwrap_used, reason = "a test that fails")]

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::ZBatch;
use deltaic_ops::{
    AggregateFunction as A, FrameBound, Operator, StepContext, Window, WindowCall, WindowFrame,
    WindowFunction as F, WindowSpec,
};
use deltaic_state::{Slot, SortKey};

/// Partition, sort column, value, text.
type Row = (i64, i64, Option<i64>, u8);

fn schema() -> SchemaRef {
    let field = |name, data_type| Field::new(name, data_type, true);
    Arc::new(Schema::new(vec![
        field("partition", DataType::Int64),
        field("at", DataType::Int64),
        field("value", DataType::Int64),
        field("float", DataType::Float64),
        field("text", DataType::Utf8),
    ]))
}

fn batch(rows: &[(Row, i64)]) -> ZBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|(row, _)| row.0))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|(row, _)| row.1))),
        Arc::new(Int64Array::from_iter(rows.iter().map(|(row, _)| row.2))),
        Arc::new(Float64Array::from_iter(
            rows.iter().map(|(row, _)| row.2.map(|v| v as f64 / 8.0)),
        )),
        Arc::new(StringArray::from_iter_values(
            rows.iter().map(|(row, _)| "x".repeat(row.3.into())),
        )),
    ];
    let weights: Vec<i64> = rows.iter().map(|(_, weight)| *weight).collect();
    ZBatch::try_new(RecordBatch::try_new(schema(), columns).unwrap(), weights).unwrap()
}

fn window(calls: Vec<WindowCall>) -> Window {
    Window::try_new(WindowSpec {
        input: schema(),
        partition: vec![0],
        order: vec![SortKey { column: 1, descending: false, nulls_first: false }],
        calls,
    })
    .unwrap()
}

fn call(function: F, input: Option<usize>, data_type: DataType, frame: WindowFrame) -> WindowCall {
    WindowCall { function, input, filter: None, frame, output: Field::new("call", data_type, true) }
}

fn step(
    window: &Window,
    state: &mut [Slot],
    rows: &[(Row, i64)],
    into: &mut BTreeMap<String, i64>,
) {
    let mut out: Vec<ZBatch> = Vec::new();
    let cx = StepContext { epoch: 1, shard: 0, shards: 1 };
    window.step(&[batch(rows)], state, &mut out, &cx).unwrap();
    for line in out
        .iter()
        .flat_map(|piece| piece.to_string().lines().map(str::to_owned).collect::<Vec<_>>())
    {
        let (weight, row) = line.split_once(' ').unwrap();
        let weight = match weight {
            "+" => 1,
            "-" => -1,
            number => number.parse::<i64>().unwrap(),
        };
        *into.entry(row.to_owned()).or_insert(0) += weight;
    }
    into.retain(|_, weight| *weight != 0);
}

fn state(window: &Window) -> Vec<Slot> {
    window.spec().slots.iter().map(|slot| Slot::try_new(slot).unwrap()).collect()
}

#[test]
fn small_deltas_of_a_large_partition_give_what_a_load_gives() {
    use FrameBound::{Rows, Unbounded};
    let frame = |start, end, peers| WindowFrame { start, end, peers };
    let running = frame(Unbounded, Rows(0), false);
    let to_peers = frame(Unbounded, Rows(0), true);
    let around = frame(Rows(-3), Rows(2), false);
    let none = WindowFrame::WHOLE;
    let i64s = DataType::Int64;
    let sets = [
        vec![
            call(F::RowNumber, None, DataType::UInt64, none),
            call(F::Aggregate(A::Sum), Some(2), i64s.clone(), running),
            call(F::Aggregate(A::Sum), Some(3), DataType::Float64, running),
        ],
        vec![
            call(F::Offset { rows: -2, default: None }, Some(4), DataType::Utf8, none),
            call(F::Aggregate(A::Avg), Some(2), DataType::Float64, around),
            call(F::Aggregate(A::Max), Some(4), DataType::Utf8, around),
        ],
        vec![
            call(F::DenseRank, None, DataType::UInt64, none),
            call(F::Aggregate(A::Min), Some(2), i64s.clone(), to_peers),
            call(F::First, Some(4), DataType::Utf8, to_peers),
        ],
        vec![
            call(F::Rank, None, DataType::UInt64, none),
            call(F::Aggregate(A::CountStar), None, i64s.clone(), to_peers),
            call(F::Aggregate(A::Sum), Some(3), DataType::Float64, to_peers),
        ],
        vec![call(F::Aggregate(A::Max), Some(3), DataType::Float64, none)],
    ];
    let mut random = 7_u64;
    let mut draw = move |below: u64| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let row = |draw: &mut dyn FnMut(u64) -> u64| -> Row {
        let number = |n: u64| i64::try_from(n).unwrap();
        let value = (draw(20) > 0).then(|| number(draw(50)) - 10);
        (number(draw(8) / 7), number(draw(1200)), value, u8::try_from(draw(3)).unwrap())
    };
    for calls in sets {
        let window = window(calls);
        let (mut slots, mut emitted, mut all) = (state(&window), BTreeMap::new(), BTreeMap::new());
        for round in 0..25 {
            let mut delta: Vec<(Row, i64)> = Vec::new();
            let count = if round == 0 { 3_000 } else { 1 + draw(4) };
            for _ in 0..count {
                let kind = draw(3);
                let there: Vec<Row> =
                    if round == 0 { Vec::new() } else { all.keys().copied().collect() };
                let some = |draw: &mut dyn FnMut(u64) -> u64| {
                    there[usize::try_from(draw(there.len() as u64)).unwrap()]
                };
                let changes = match kind {
                    _ if there.is_empty() => vec![(row(&mut draw), 1)],
                    0 => vec![(row(&mut draw), 1)],
                    1 => vec![(some(&mut draw), -1)],
                    // Moved to another place without a change of any sum.
                    _ => {
                        let old = some(&mut draw);
                        vec![(old, -1), ((old.0, old.1 + 3, old.2, old.3), 1)]
                    }
                };
                for (row, weight) in changes {
                    *all.entry(row).or_insert(0) += weight;
                    delta.push((row, weight));
                }
                all.retain(|_, weight: &mut i64| *weight != 0);
            }
            step(&window, &mut slots, &delta, &mut emitted);
            let rows: Vec<(Row, i64)> = all.iter().map(|(&row, &weight)| (row, weight)).collect();
            let (mut fresh, mut expected) = (state(&window), BTreeMap::new());
            step(&window, &mut fresh, &rows, &mut expected);
            assert!(emitted == expected, "round {round} of {}", window.spec().detail);
        }
    }
}
