//! Tables that deltaic writes, read by delta_kernel: the same rows, the same change feed.

mod kernel;
mod rows;
mod tables;

use deltaic_batch::ZBatch;
use deltaic_table::{Storage, Table, TableOptions};
use rows::{Bag, feed, rows};

/// A table in a folder of its own.
struct Subject {
    dir: tempfile::TempDir,
    table: Table,
}

impl Subject {
    fn new(schema: arrow::datatypes::SchemaRef) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::local(dir.path()).unwrap();
        let table = Table::create(&storage, "", schema, &TableOptions::default()).unwrap();
        Self { dir, table }
    }

    fn commit(&mut self, delta: &ZBatch) {
        let mut commit = self.table.begin();
        commit.apply(delta).unwrap();
        self.table = commit.commit().unwrap();
    }

    /// Kernel and deltaic agree on this version's rows and on the feed since `from`.
    fn agree(&self, from: i64) -> Bag {
        let reader = kernel::Reader::new(self.dir.path());
        let expected = rows(&self.table);
        assert_eq!(reader.rows(None), expected);
        assert_eq!(reader.feed(from), feed(&self.table, from));
        expected
    }
}

#[test]
fn all_types_before_and_after_deletes() {
    let batch = tables::all_types();
    let mut subject = Subject::new(batch.schema());
    subject.commit(&ZBatch::inserts(batch.clone()));
    let before = subject.agree(0);
    assert_eq!(before.values().sum::<i64>(), 4);
    subject.commit(&ZBatch::deletes(batch.slice(1, 2)));
    subject.commit(&ZBatch::try_new(batch.slice(1, 2), vec![2, 1]).unwrap());
    let after = subject.agree(0);
    assert_eq!(after.values().sum::<i64>(), 5);
    let reader = kernel::Reader::new(subject.dir.path());
    assert_eq!(reader.rows(Some(1)), before);
}

#[test]
fn large_deletion_vectors_and_several_files() {
    let mut subject = Subject::new(tables::numbers(0..1).schema());
    subject.commit(&ZBatch::inserts(tables::numbers(0..4_000)));
    subject.commit(&ZBatch::inserts(tables::numbers(2_000..6_000)));
    let scattered: Vec<u32> = (0..4_000).filter(|k| k * k % 7 == 1).collect();
    let gone = tables::take(&tables::numbers(1_000..5_000), scattered);
    let deleted = i64::try_from(gone.num_rows()).unwrap();
    subject.commit(&ZBatch::deletes(gone));
    subject.commit(&ZBatch::deletes(tables::numbers(0..1)));
    assert_eq!(subject.agree(0).values().sum::<i64>(), 8_000 - deleted - 1);
}

#[test]
fn truncation_and_rows_written_anew() {
    let mut subject = Subject::new(tables::numbers(0..1).schema());
    subject.commit(&ZBatch::inserts(tables::numbers(0..100)));
    for round in 0..2 {
        let mut commit = subject.table.begin();
        commit.truncate().unwrap();
        commit.apply(&ZBatch::inserts(tables::numbers(50..150 + round))).unwrap();
        subject.table = commit.commit().unwrap();
        subject.agree(0);
        subject.commit(&ZBatch::deletes(tables::numbers(60..70)));
    }
    let mut commit = subject.table.begin();
    commit.truncate().unwrap();
    subject.table = commit.commit().unwrap();
    assert!(subject.agree(0).is_empty());
}

#[test]
fn added_columns() {
    let mut subject = Subject::new(tables::numbers(0..1).schema());
    subject.commit(&ZBatch::inserts(tables::numbers(0..10)));
    let wide = tables::wide_numbers(5..15);
    let mut commit = subject.table.begin();
    commit.set_schema(wide.schema()).unwrap();
    commit.apply(&ZBatch::inserts(wide.clone())).unwrap();
    subject.table = commit.commit().unwrap();
    subject.agree(2);
    subject.commit(&ZBatch::deletes(wide.slice(0, 3)));
    assert_eq!(subject.agree(2).values().sum::<i64>(), 17);
}

#[test]
fn a_checkpoint_without_the_log_before_it() {
    let mut subject = Subject::new(tables::numbers(0..1).schema());
    for k in 0..60 {
        let mut commit = subject.table.begin();
        commit.apply(&ZBatch::inserts(tables::numbers(k..k + 3))).unwrap();
        if k > 0 {
            commit.apply(&ZBatch::deletes(tables::numbers(k..k + 1))).unwrap();
        }
        commit.set_txn("flow", k);
        subject.table = commit.commit().unwrap();
    }
    let expected = subject.agree(0);
    for version in 0..50 {
        let name = format!("_delta_log/{version:020}.json");
        std::fs::remove_file(subject.dir.path().join(name)).unwrap();
    }
    assert_eq!(kernel::Reader::new(subject.dir.path()).rows(None), expected);
    subject.agree(51);
}
