//! Small tables of `(k, v)` rows, and rows as text.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use deltaic_batch::ZBatch;
use deltaic_table::{ScanOptions, Table};

/// Rows as text with their multiplicities.
pub(crate) type Bag = BTreeMap<String, i64>;

/// A row of [`schema`].
pub(crate) type Row = (i64, Option<&'static str>);

pub(crate) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, false),
        Field::new("v", DataType::Utf8, true),
    ]))
}

/// Rows with weights.
pub(crate) fn delta(rows: &[(Row, i64)]) -> ZBatch {
    let keys: ArrayRef = Arc::new(rows.iter().map(|((k, _), _)| *k).collect::<Int64Array>());
    let values: ArrayRef = Arc::new(rows.iter().map(|((_, v), _)| *v).collect::<StringArray>());
    let batch = RecordBatch::try_new(schema(), vec![keys, values]).unwrap();
    ZBatch::try_new(batch, rows.iter().map(|(_, w)| *w).collect::<Vec<_>>()).unwrap()
}

pub(crate) fn inserts(rows: &[Row]) -> ZBatch {
    delta(&rows.iter().map(|&row| (row, 1)).collect::<Vec<_>>())
}

pub(crate) fn deletes(rows: &[Row]) -> ZBatch {
    delta(&rows.iter().map(|&row| (row, -1)).collect::<Vec<_>>())
}

/// Adds weighted rows to a bag.
pub(crate) fn gather(bag: &mut Bag, rows: &RecordBatch, weight: impl Fn(usize) -> i64) {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> =
        rows.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
    for i in 0..rows.num_rows() {
        let text: Vec<String> = columns.iter().map(|c| c.value(i).to_string()).collect();
        let entry = bag.entry(text.join("|")).or_insert(0);
        *entry += weight(i);
    }
    bag.retain(|_, weight| *weight != 0);
}

/// All rows of a table.
pub(crate) fn rows(table: &Table) -> Bag {
    let mut bag = Bag::new();
    for batch in table.scan(&ScanOptions::default()).unwrap() {
        let batch = batch.unwrap();
        assert_eq!(batch.schema(), table.schema());
        gather(&mut bag, &batch, |_| 1);
    }
    bag
}

/// The sum of the change feed over some versions.
pub(crate) fn feed(table: &Table, from: i64, to: i64) -> Bag {
    let mut bag = Bag::new();
    for change in table.changes(from, to).unwrap() {
        let weights = change.delta.weights().clone();
        gather(&mut bag, change.delta.rows(), |i| weights[i]);
    }
    bag
}

pub(crate) fn bag(rows: &[(&str, i64)]) -> Bag {
    rows.iter().map(|&(row, n)| (row.to_string(), n)).collect()
}
