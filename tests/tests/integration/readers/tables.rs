//! Rows to write.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::types::Int32Type;
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, Int64Builder, ListArray, MapBuilder,
    RecordBatch, StringArray, StringBuilder, StructArray, TimestampMicrosecondArray, UInt32Array,
    UInt64Array,
};

/// Four rows with a column of each type; every column but the first has a NULL.
pub(super) fn all_types() -> RecordBatch {
    let list: [Option<Vec<Option<i32>>>; 4] =
        [Some(vec![Some(1), None]), None, Some(vec![]), Some(vec![Some(2)])];
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    for row in 0..4 {
        if row != 1 {
            map.keys().append_value("a");
            map.values().append_option((row != 2).then_some(row));
        }
        map.append(row != 1).unwrap();
    }
    let x: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3), Some(4)]));
    let y: ArrayRef = Arc::new(StringArray::from(vec![Some("p"), Some("q"), None, Some("")]));
    let times = vec![Some(-1), Some(1_700_000_000_123_456), None, Some(0)];
    let decimals = Decimal128Array::from(vec![Some(-12_345), Some(99), None, Some(0)]);
    let text =
        vec![Some("ä\"\\\n"), Some(""), None, Some("a text of more than thirty-two characters")];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from(vec![1, 2, 3, i64::MIN]))),
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]))),
        ("i8", Arc::new(Int8Array::from(vec![Some(-128), Some(127), None, Some(0)]))),
        ("i16", Arc::new(Int16Array::from(vec![Some(-32_768), Some(7), None, Some(0)]))),
        ("i32", Arc::new(Int32Array::from(vec![Some(i32::MAX), Some(7), None, Some(0)]))),
        ("u64", Arc::new(UInt64Array::from(vec![Some(u64::MAX), Some(7), None, Some(0)]))),
        ("f32", Arc::new(Float32Array::from(vec![Some(1.5), Some(f32::NAN), None, Some(0.1)]))),
        (
            "f64",
            Arc::new(Float64Array::from(vec![
                Some(f64::NEG_INFINITY),
                Some(1e300),
                None,
                Some(-0.5),
            ])),
        ),
        ("dec", Arc::new(decimals.with_precision_and_scale(12, 3).unwrap())),
        ("text", Arc::new(StringArray::from(text))),
        (
            "bytes",
            Arc::new(BinaryArray::from_opt_vec(vec![Some(b"\0\xff"), Some(b""), None, Some(b"a")])),
        ),
        ("day", Arc::new(Date32Array::from(vec![Some(-1), Some(19_000), None, Some(0)]))),
        ("ts", Arc::new(TimestampMicrosecondArray::from(times.clone()).with_timezone("UTC"))),
        ("ntz", Arc::new(TimestampMicrosecondArray::from(times))),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(list))),
        ("map", Arc::new(map.finish())),
        ("pair", Arc::new(StructArray::try_from(vec![("x", x), ("y", y)]).unwrap())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, n != "id")))
        .unwrap()
}

/// Rows `(k, "v<k>")`.
pub(super) fn numbers(keys: Range<i64>) -> RecordBatch {
    let values: ArrayRef =
        Arc::new(keys.clone().map(|k| Some(format!("v{k}"))).collect::<StringArray>());
    let keys: ArrayRef = Arc::new(keys.collect::<Int64Array>());
    RecordBatch::try_from_iter_with_nullable([("k", keys, true), ("v", values, true)]).unwrap()
}

/// [`numbers`] with one more column.
pub(super) fn wide_numbers(keys: Range<i64>) -> RecordBatch {
    let rows = numbers(keys.clone());
    let more: ArrayRef = Arc::new(keys.map(|k| (k % 2 == 0).then_some(k)).collect::<Int64Array>());
    let columns = vec![
        ("k", rows.column(0).clone(), true),
        ("v", rows.column(1).clone(), true),
        ("more", more, true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Rows by position.
pub(super) fn take(rows: &RecordBatch, positions: Vec<u32>) -> RecordBatch {
    arrow::compute::take_record_batch(rows, &UInt32Array::from(positions)).unwrap()
}
