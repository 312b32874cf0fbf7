//! Rows as text with multiplicities, and our own reading of a table.

use std::collections::BTreeMap;

use arrow::array::{RecordBatch, StructArray};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use deltaic_table::{ScanOptions, Table};

/// Rows as text with their multiplicities.
pub(super) type Bag = BTreeMap<String, i64>;

/// Adds rows to a bag, each with its weight.
pub(super) fn gather(bag: &mut Bag, rows: &RecordBatch, weight: impl Fn(usize) -> i64) {
    let options = FormatOptions::default().with_null("NULL");
    let whole = StructArray::from(rows.clone());
    let format = ArrayFormatter::try_new(&whole, &options).unwrap();
    for i in 0..rows.num_rows() {
        *bag.entry(format.value(i).to_string()).or_insert(0) += weight(i);
    }
    bag.retain(|_, count| *count != 0);
}

/// All rows of a table.
pub(super) fn rows(table: &Table) -> Bag {
    let mut bag = Bag::new();
    for batch in table.scan(&ScanOptions::default()).unwrap() {
        gather(&mut bag, &batch.unwrap(), |_| 1);
    }
    bag
}

/// The change feed, each row led by its version.
pub(super) fn feed(table: &Table, from: i64) -> Vec<(i64, Bag)> {
    let mut feed = Vec::new();
    for change in table.changes(from, table.version()).unwrap() {
        let mut bag = Bag::new();
        let weights = change.delta.weights().clone();
        gather(&mut bag, change.delta.rows(), |i| weights[i]);
        feed.push((change.version, bag));
    }
    feed
}
