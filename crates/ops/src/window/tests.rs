//! Windows against their definition, over random deltas with a large partition, ties and repeated
//! rows; checkpoints are near each other here.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, BooleanArray, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, SchemaRef, UInt64Type};
use deltaic_state::SortKey;
use proptest::prelude::*;

use super::*;
use crate::AggregateFunction as A;

/// Partition, sort column, value.
type Row = (i64, Option<i64>, Option<i64>);

fn schema() -> SchemaRef {
    let field = |name| Field::new(name, DataType::Int64, true);
    Arc::new(Schema::new(vec![
        field("value"),
        field("partition"),
        field("at"),
        Field::new("float", DataType::Float64, true),
        Field::new("is_even", DataType::Boolean, true),
    ]))
}

#[derive(Debug, Clone)]
struct Shape {
    grouped: bool,
    ordered: bool,
    descending: bool,
    calls: Vec<(u8, i64, WindowFrame)>,
}

fn call((function, number, frame): (u8, i64, WindowFrame)) -> WindowCall {
    use WindowFunction as F;
    // Aggregates of numbers see even values only if the number is odd.
    let filter = ((8..14).contains(&function) && number % 2 != 0).then_some(4);
    let (function, input, data_type) = match function {
        0 => (F::RowNumber, None, DataType::UInt64),
        1 => (F::Rank, None, DataType::UInt64),
        2 => (F::DenseRank, None, DataType::UInt64),
        3 => (F::Offset { rows: number, default: None }, Some(0), DataType::Int64),
        4 => {
            let default: ArrayRef = Arc::new(Int64Array::from(vec![99]));
            (F::Offset { rows: number, default: Some(default) }, Some(0), DataType::Int64)
        }
        5 => (F::First, Some(0), DataType::Int64),
        6 => (F::Last, Some(0), DataType::Int64),
        7 => (F::Nth(number.unsigned_abs().max(1)), Some(0), DataType::Int64),
        8 => (F::Aggregate(A::CountStar), None, DataType::Int64),
        9 => (F::Aggregate(A::Count), Some(0), DataType::Int64),
        10 => (F::Aggregate(A::Sum), Some(0), DataType::Int64),
        11 => (F::Aggregate(A::Avg), Some(0), DataType::Float64),
        12 => (F::Aggregate(A::Min), Some(0), DataType::Int64),
        13 => (F::Aggregate(A::Max), Some(0), DataType::Int64),
        15 => (F::PercentRank, None, DataType::Float64),
        16 => (F::CumeDist, None, DataType::Float64),
        17 => (F::Ntile(number.unsigned_abs().max(1)), None, DataType::UInt64),
        _ => (F::Aggregate(A::Sum), Some(3), DataType::Float64),
    };
    WindowCall { function, input, filter, frame, output: Field::new("call", data_type, true) }
}

/// The rows of a partition in order, each as often as it is there.
fn sorted(all: &BTreeMap<Row, i64>, shape: &Shape) -> Vec<Vec<Row>> {
    let mut partitions: BTreeMap<i64, Vec<Row>> = BTreeMap::new();
    for (&row, &weight) in all {
        let of = partitions.entry(if shape.grouped { row.0 } else { 0 }).or_default();
        (0..weight).for_each(|_| of.push(row));
    }
    for rows in partitions.values_mut() {
        rows.sort_by_key(|row| {
            let at = row.1.map(|at| if shape.descending { -at } else { at });
            let order = shape.ordered.then_some((at.is_none(), at));
            // Ties: value, partition, sort column, NULL first.
            (order, row.2, row.0, row.1)
        });
    }
    partitions.into_values().collect()
}

fn expected(all: &BTreeMap<Row, i64>, shape: &Shape) -> BTreeMap<(Row, Vec<String>), i64> {
    let mut rows = BTreeMap::new();
    for partition in sorted(all, shape) {
        let are_peers = |i: usize, j: usize| !shape.ordered || partition[i].1 == partition[j].1;
        let count = partition.len();
        for at in 0..count {
            let peers_start = (0..=at).find(|&i| are_peers(i, at)).unwrap();
            let peers_end = (at..count).rfind(|&i| are_peers(i, at)).unwrap();
            let values = shape.calls.iter().map(|&(function, number, frame)| {
                let (first, last) = if frame.peers { (peers_start, peers_end) } else { (at, at) };
                let bound = |bound, from: usize, otherwise| match bound {
                    FrameBound::Unbounded => otherwise,
                    FrameBound::Rows(rows) => i64::try_from(from).unwrap() + rows,
                };
                let low = bound(frame.start, first, 0).max(0);
                let high = bound(frame.end, last, i64::MAX - 1)
                    .saturating_add(1)
                    .min(i64::try_from(count).unwrap());
                let seen: Vec<Option<i64>> =
                    (low..high).map(|i| partition[usize::try_from(i).unwrap()].2).collect();
                let seen: Vec<Option<i64>> = match (8..14).contains(&function) && number % 2 != 0 {
                    true => seen.into_iter().filter(|v| v.is_some_and(|v| v % 2 == 0)).collect(),
                    false => seen,
                };
                let numbers: Vec<i64> = seen.iter().flatten().copied().collect();
                let sum = || (!numbers.is_empty()).then(|| numbers.iter().sum::<i64>());
                let shown =
                    |number: Option<i64>| number.map_or("NULL".to_owned(), |n| n.to_string());
                let float =
                    |number: Option<f64>| number.map_or("NULL".to_owned(), |n| n.to_string());
                let other = || {
                    let other = i64::try_from(at).unwrap() + number;
                    usize::try_from(other).ok().and_then(|i| partition.get(i))
                };
                match function {
                    0 => (at + 1).to_string(),
                    1 => (peers_start + 1).to_string(),
                    2 => {
                        let starts = (1..=peers_start).filter(|&i| !are_peers(i - 1, i));
                        (starts.count() + 1).to_string()
                    }
                    3 => shown(other().and_then(|row| row.2)),
                    4 => shown(other().map_or(Some(99), |row| row.2)),
                    5 => shown(seen.first().copied().flatten()),
                    6 => shown(seen.last().copied().flatten()),
                    7 => {
                        let nth = usize::try_from(number.unsigned_abs().max(1)).unwrap() - 1;
                        shown(seen.get(nth).copied().flatten())
                    }
                    8 => seen.len().to_string(),
                    9 => numbers.len().to_string(),
                    10 => shown(sum()),
                    11 => float(sum().map(|sum| sum as f64 / numbers.len() as f64)),
                    12 => shown(numbers.iter().min().copied()),
                    13 => shown(numbers.iter().max().copied()),
                    15 => (peers_start as f64 / (count - 1).max(1) as f64).to_string(),
                    16 => ((peers_end + 1) as f64 / count as f64).to_string(),
                    17 => {
                        // Rows go to the buckets in turn; which one is asked for follows from the sizes.
                        let buckets = usize::try_from(number.unsigned_abs().max(1)).unwrap();
                        let sizes = (0..buckets).map(|b| (b..count).step_by(buckets).count());
                        let ends = sizes.scan(0, |end, size| {
                            *end += size;
                            Some(*end)
                        });
                        (ends.take_while(|&end| end <= at).count() + 1).to_string()
                    }
                    _ => float(sum().map(|sum| sum as f64 / 2.0)),
                }
            });
            *rows.entry((partition[at], values.collect())).or_insert(0) += 1;
        }
    }
    rows
}

fn batch(rows: &[(Row, i64)]) -> ZBatch {
    let ints = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let floats = rows.iter().map(|(row, _)| row.2.map(|value| value as f64 / 2.0));
    let columns = vec![
        ints(rows.iter().map(|(row, _)| row.2).collect()),
        ints(rows.iter().map(|(row, _)| Some(row.0)).collect()),
        ints(rows.iter().map(|(row, _)| row.1).collect()),
        Arc::new(Float64Array::from_iter(floats)),
        Arc::new(BooleanArray::from_iter(rows.iter().map(|(row, _)| row.2.map(|v| v % 2 == 0)))),
    ];
    let batch = RecordBatch::try_new(schema(), columns).unwrap();
    ZBatch::try_new(batch, rows.iter().map(|(_, weight)| *weight).collect::<Vec<i64>>()).unwrap()
}

fn shown(column: &ArrayRef, row: usize) -> String {
    if column.is_null(row) {
        return "NULL".to_owned();
    }
    match column.data_type() {
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        _ => column.as_primitive::<Float64Type>().value(row).to_string(),
    }
}

fn window(shape: &Shape) -> Window {
    let order = SortKey { column: 2, descending: shape.descending, nulls_first: false };
    Window::try_new(WindowSpec {
        input: schema(),
        partition: if shape.grouped { vec![1] } else { Vec::new() },
        order: if shape.ordered { vec![order] } else { Vec::new() },
        calls: shape.calls.iter().map(|&c| call(c)).collect(),
    })
    .unwrap()
}

fn frame() -> impl Strategy<Value = WindowFrame> {
    use FrameBound::{Rows, Unbounded};
    let offset = || prop_oneof![3 => -3..4_i64, 2 => Just(0)];
    prop_oneof![
        3 => offset().prop_map(|end| (Unbounded, Rows(end), false)),
        3 => (offset(), 0..4_i64).prop_map(|(start, more)| (Rows(start), Rows(start + more), false)),
        1 => offset().prop_map(|start| (Rows(start), Unbounded, false)),
        3 => Just((Unbounded, Rows(0), true)),
        1 => Just((Rows(0), Rows(0), true)),
        1 => Just((Rows(0), Unbounded, true)),
        1 => Just((Unbounded, Unbounded, false)),
    ]
    .prop_map(|(start, end, peers)| WindowFrame { start, end, peers })
}

fn shape() -> impl Strategy<Value = Shape> {
    let call = (0..18_u8, -3..4_i64, frame());
    (
        any::<bool>(),
        prop_oneof![4 => Just(true), 1 => Just(false)],
        any::<bool>(),
        prop::collection::vec(call, 1..4),
    )
        .prop_map(|(grouped, ordered, descending, calls)| Shape {
            grouped,
            ordered,
            descending,
            calls,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        ProptestConfig::default().cases.max(512)
    ))]
    #[test]
    fn equals_the_definition(
        shape in shape(),
        deltas in prop::collection::vec(
            (prop::collection::vec(
                (
                    prop_oneof![4 => Just(0_i64), 1 => 1..3_i64],
                    prop_oneof![12 => (0..25_i64).prop_map(Some), 1 => Just(None)],
                    prop_oneof![8 => (0..9_i64).prop_map(Some), 1 => Just(None)],
                    prop_oneof![4 => Just(1_i64), 1 => Just(2), 3 => Just(-1)],
                    any::<prop::sample::Index>(),
                ),
                0..40_usize,
            ), 1..40_usize),
            1..8,
        ),
    ) {
        let window = window(&shape);
        let mut state: Vec<Slot> =
            window.spec().slots.iter().map(|slot| Slot::try_new(slot).unwrap()).collect();
        let mut all: BTreeMap<Row, i64> = BTreeMap::new();
        let mut emitted: BTreeMap<(Row, Vec<String>), i64> = BTreeMap::new();
        let mut deltas: Vec<Vec<(Row, i64)>> = deltas.into_iter().map(|(mut delta, most)| {
            delta.truncate(most);
            let mut rows = Vec::new();
            for (partition, at, value, weight, index) in delta {
                let there: Vec<Row> = all.keys().copied().collect();
                let row = match weight {
                    -1 if there.is_empty() => continue,
                    -1 => *index.get(&there),
                    _ => (partition, at, value),
                };
                *all.entry(row).or_insert(0) += weight;
                all.retain(|_, weight| *weight != 0);
                rows.push((row, weight));
            }
            rows
        }).collect();
        deltas.push(all.iter().map(|(&row, &weight)| (row, -weight)).collect());
        all.clear();
        for (epoch, rows) in deltas.into_iter().enumerate() {
            for &(row, weight) in &rows {
                *all.entry(row).or_insert(0) += weight;
            }
            all.retain(|_, weight| *weight != 0);
            let mut out: Vec<ZBatch> = Vec::new();
            let cx = StepContext { epoch: epoch as u64, shard: 0, shards: 1 };
            window.step(&[batch(&rows)], &mut state, &mut out, &cx).unwrap();
            for piece in &out {
                let columns = piece.rows().columns();
                let int = |column: usize, row: usize| {
                    let column = columns[column].as_primitive::<Int64Type>();
                    column.is_valid(row).then(|| column.value(row))
                };
                for row in 0..piece.num_rows() {
                    let values = columns[5..].iter().map(|column| shown(column, row)).collect();
                    let key = ((int(1, row).unwrap(), int(2, row), int(0, row)), values);
                    *emitted.entry(key).or_insert(0) += piece.weights()[row];
                }
            }
            emitted.retain(|_, weight| *weight != 0);
            prop_assert_eq!(&emitted, &expected(&all, &shape));
        }
        prop_assert!(state.iter().all(Slot::is_empty));
    }
}
