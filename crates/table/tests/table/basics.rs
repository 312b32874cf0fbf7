//! Worked examples.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use deltaic_batch::ZBatch;
use deltaic_table::{ScanOptions, Storage, Table, TableOptions};
use serde_json::json;

use crate::fixture::{Bag, bag, deletes, delta, feed, inserts, rows, schema};

fn create() -> (tempfile::TempDir, Storage, Table) {
    let dir = tempfile::tempdir().unwrap();
    let storage = Storage::local(dir.path()).unwrap();
    let table = Table::create(&storage, "t", schema(), &TableOptions::default()).unwrap();
    (dir, storage, table)
}

fn commit(table: &Table, delta: &ZBatch) -> Table {
    let mut commit = table.begin();
    commit.apply(delta).unwrap();
    commit.commit().unwrap()
}

#[test]
fn a_table_is_made_filled_and_opened_again() {
    let (_dir, storage, empty) = create();
    assert_eq!((empty.version(), empty.num_rows().unwrap()), (0, 0));
    assert_eq!(empty.properties()["delta.enableChangeDataFeed"], "true");
    let again = Table::create(&storage, "t", schema(), &TableOptions::default()).unwrap_err();
    assert_eq!(again.code(), "TABLE_EXISTS");
    let mut commit = empty.begin();
    commit.apply(&inserts(&[(1, Some("a")), (2, None), (2, None)])).unwrap();
    commit.set_txn("flow", 7);
    let info = json!({"update": "u1", "operation": "not this"});
    commit.set_info("STREAMING UPDATE", info.as_object().unwrap().clone());
    let prepared = commit.prepare().unwrap();
    assert_eq!((prepared.version(), prepared.row_counts()), (1, (3, 0)));
    assert_eq!(Table::open(&storage, "t").unwrap().unwrap().version(), 0);
    let table = prepared.publish().unwrap();
    let expected = bag(&[("1|a", 1), ("2|NULL", 2)]);
    assert_eq!(rows(&table), expected);
    let opened = Table::open(&storage, "t").unwrap().unwrap();
    assert_eq!((opened.version(), opened.num_rows().unwrap()), (1, 3));
    assert_eq!(opened.txn_version("flow"), Some(7));
    assert_eq!(opened.txn_version("other"), None);
    assert_eq!(opened.size_bytes(), table.size_bytes());
    assert_eq!((rows(&opened), feed(&opened, 0, 1)), (expected.clone(), expected));
    assert!(opened.only_appends(0, 1).unwrap());
    let history = opened.history().unwrap();
    assert_eq!(history.len(), 2);
    assert_eq!((history[0].version, history[0].rows_inserted), (1, 3));
    assert_eq!(history[0].operation, "STREAMING UPDATE");
    assert_eq!(history[0].info["update"], "u1");
    assert_eq!(history[1].operation, "CREATE TABLE");
    assert!(Table::open(&storage, "nothing").unwrap().is_none());
}

#[test]
fn deletes_take_one_copy_each_and_old_versions_stay() {
    let (_dir, storage, table) = create();
    let table = commit(&table, &inserts(&[(1, Some("a")), (2, None), (2, None), (3, Some("c"))]));
    let table = commit(&table, &inserts(&[(2, None), (4, Some("d"))]));
    let table = commit(&table, &delta(&[((2, None), -2), ((1, Some("a")), -1), ((5, None), 1)]));
    let expected = bag(&[("2|NULL", 1), ("3|c", 1), ("4|d", 1), ("5|NULL", 1)]);
    assert_eq!((rows(&table), table.num_rows().unwrap()), (expected.clone(), 4));
    let opened = Table::open(&storage, "t").unwrap().unwrap();
    assert_eq!(rows(&opened), expected);
    assert_eq!(feed(&opened, 3, 3), bag(&[("1|a", -1), ("2|NULL", -2), ("5|NULL", 1)]));
    assert_eq!(feed(&opened, 0, 3), expected);
    assert!(!opened.only_appends(0, 3).unwrap());
    assert!(opened.only_appends(0, 2).unwrap());
    let old = Table::open_at(&storage, "t", 1).unwrap().unwrap();
    assert_eq!(rows(&old), bag(&[("1|a", 1), ("2|NULL", 2), ("3|c", 1)]));
    let e = Table::open_at(&storage, "t", 4).unwrap_err();
    assert_eq!(e.code(), "VERSION_NOT_FOUND");
    let table = commit(&table, &deletes(&[(2, None), (3, Some("c")), (4, Some("d")), (5, None)]));
    assert_eq!((rows(&table), table.size_bytes()), (Bag::new(), 0));
}

#[test]
fn what_is_not_there_cannot_be_deleted() {
    let (_dir, _storage, table) = create();
    let table = commit(&table, &inserts(&[(1, Some("a"))]));
    let mut commit = table.begin();
    commit.apply(&deletes(&[(1, Some("a")), (1, Some("a"))])).unwrap();
    let e = commit.prepare().unwrap_err();
    assert_eq!(e.code(), "DELETE_NOT_FOUND");
    assert!(e.message().contains("(k=1, v=a)"), "{e}");
    let mut commit = table.begin();
    commit.truncate().unwrap();
    commit.apply(&deletes(&[(1, Some("a"))])).unwrap();
    assert_eq!(commit.prepare().unwrap_err().code(), "DELETE_NOT_FOUND");
}

#[test]
fn rows_that_come_and_go_leave_no_trace() {
    let (_dir, _storage, table) = create();
    let mut commit = table.begin();
    commit.apply(&deletes(&[(1, None)])).unwrap();
    commit.apply(&inserts(&[(1, None)])).unwrap();
    let table = commit.commit().unwrap();
    assert_eq!((table.version(), table.size_bytes()), (1, 0));
    assert!(table.changes(0, 1).unwrap().is_empty());
}

#[test]
fn floats_are_told_apart_by_value() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Storage::local(dir.path()).unwrap();
    let batch = |values: Vec<f64>| {
        let column: ArrayRef = Arc::new(Float64Array::from(values));
        RecordBatch::try_from_iter([("x", column)]).unwrap()
    };
    let first = batch(vec![-0.0, f64::NAN, 1.0]);
    let table = Table::create(&storage, "", first.schema(), &TableOptions::default()).unwrap();
    let table = commit(&table, &ZBatch::inserts(first));
    let table = commit(&table, &ZBatch::deletes(batch(vec![-f64::NAN, 0.0])));
    assert_eq!(rows(&table), bag(&[("1.0", 1)]));
}

#[test]
fn truncation_is_a_change_like_any_other() {
    let (_dir, storage, table) = create();
    let table = commit(&table, &inserts(&[(1, Some("a")), (2, None)]));
    let mut replaced = table.begin();
    replaced.apply(&inserts(&[(9, None)])).unwrap();
    replaced.truncate().unwrap();
    replaced.apply(&inserts(&[(2, None), (3, None)])).unwrap();
    let table = replaced.commit().unwrap();
    assert_eq!(rows(&table), bag(&[("2|NULL", 1), ("3|NULL", 1)]));
    assert_eq!(feed(&table, 2, 2), bag(&[("1|a", -1), ("3|NULL", 1)]));
    let table = commit(&table, &deletes(&[(3, None)]));
    let mut emptied = table.begin();
    emptied.truncate().unwrap();
    let table = emptied.commit().unwrap();
    assert_eq!(feed(&table, 4, 4), bag(&[("2|NULL", -1)]));
    assert_eq!(feed(&Table::open(&storage, "t").unwrap().unwrap(), 0, 4), Bag::new());
    assert_eq!(table.history().unwrap()[0].rows_deleted, 1);
}

#[test]
fn columns_are_added_and_old_rows_are_still_found() {
    let (_dir, storage, table) = create();
    let table = commit(&table, &inserts(&[(1, Some("a")), (2, None)]));
    let wide = Arc::new(Schema::new(vec![
        Field::new("n", DataType::Int64, true),
        Field::new("k", DataType::Int64, false),
        Field::new("v", DataType::Utf8, true),
    ]));
    let wide_rows = |n: Vec<Option<i64>>, k: Vec<i64>, v: Vec<Option<&str>>| {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(n)),
            Arc::new(Int64Array::from(k)),
            Arc::new(StringArray::from(v)),
        ];
        RecordBatch::try_new(wide.clone(), columns).unwrap()
    };
    let mut evolve = table.begin();
    evolve.set_schema(wide.clone()).unwrap();
    evolve
        .apply(&ZBatch::inserts(wide_rows(vec![Some(5), None], vec![1, 3], vec![Some("a"), None])))
        .unwrap();
    let table = evolve.commit().unwrap();
    let expected = bag(&[("NULL|1|a", 1), ("NULL|2|NULL", 1), ("5|1|a", 1), ("NULL|3|NULL", 1)]);
    assert_eq!((rows(&table), feed(&table, 0, 2)), (expected.clone(), expected));
    let table = commit(&table, &ZBatch::deletes(wide_rows(vec![None], vec![1], vec![Some("a")])));
    let table =
        commit(&table, &ZBatch::deletes(wide_rows(vec![Some(5)], vec![1], vec![Some("a")])));
    let opened = Table::open(&storage, "t").unwrap().unwrap();
    assert_eq!(rows(&opened), bag(&[("NULL|2|NULL", 1), ("NULL|3|NULL", 1)]));
    assert_eq!(opened.schema(), table.schema());
    let e = table.begin().set_schema(schema()).unwrap_err();
    assert_eq!((e.code(), e.get_object()), ("INCOMPATIBLE_SCHEMA", Some("n")));
    let mut replace = table.begin();
    replace.truncate().unwrap();
    replace.set_schema(schema()).unwrap();
    replace.apply(&inserts(&[(1, None)])).unwrap();
    assert_eq!(rows(&replace.commit().unwrap()), bag(&[("1|NULL", 1)]));
}

#[test]
fn two_writers_conflict() {
    let (_dir, storage, table) = create();
    let mut first = table.begin();
    first.apply(&inserts(&[(1, None)])).unwrap();
    let mut second = table.begin();
    second.apply(&inserts(&[(2, None)])).unwrap();
    let second = second.prepare().unwrap();
    let entry = second.log_entry().clone();
    first.commit().unwrap();
    let e = second.publish().unwrap_err();
    assert_eq!(e.code(), "COMMIT_CONFLICT");
    assert_eq!(Table::roll_forward(&storage, "t", 1, entry).unwrap_err().code(), "COMMIT_CONFLICT");
    assert_eq!(rows(&Table::open(&storage, "t").unwrap().unwrap()), bag(&[("1|NULL", 1)]));
}

#[test]
fn a_prepared_commit_is_rolled_forward_by_another_process() {
    let (_dir, storage, table) = create();
    let mut first = table.begin();
    first.apply(&inserts(&[(1, None)])).unwrap();
    let entry = first.prepare().unwrap().log_entry().clone();
    for _ in 0..2 {
        let table = Table::roll_forward(&storage, "t", 1, entry.clone()).unwrap();
        assert_eq!(rows(&table), bag(&[("1|NULL", 1)]));
    }
}

#[test]
fn a_lost_or_damaged_index_is_made_again() {
    let (dir, _storage, table) = create();
    let table = commit(&table, &inserts(&[(1, None), (2, None), (3, None), (4, None)]));
    let folder = dir.path().join("t/_deltaic/index");
    let only = || std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let intact = std::fs::read(only()).unwrap();
    std::fs::remove_file(only()).unwrap();
    let table = commit(&table, &deletes(&[(1, None)]));
    assert_eq!(std::fs::read(only()).unwrap(), intact);
    let mut damaged = intact.clone();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(only(), damaged).unwrap();
    let table = commit(&table, &deletes(&[(2, None)]));
    assert_eq!(std::fs::read(only()).unwrap(), intact);
    std::fs::write(only(), &intact[..20]).unwrap();
    let table = commit(&table, &deletes(&[(3, None)]));
    assert_eq!(rows(&table), bag(&[("4|NULL", 1)]));
}

#[test]
fn lazy_indexes_are_made_at_the_first_delete() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Storage::local(dir.path()).unwrap();
    let properties = [("deltaic.rowIndex".to_string(), "lazy".to_string())].into();
    let options = TableOptions { properties, ..TableOptions::default() };
    let table = Table::create(&storage, "t", schema(), &options).unwrap();
    let table = commit(&table, &inserts(&[(1, None), (2, None)]));
    assert!(!dir.path().join("t/_deltaic").exists());
    let table = commit(&table, &deletes(&[(1, None)]));
    assert_eq!(rows(&table), bag(&[("2|NULL", 1)]));
}

#[test]
fn many_rows_many_files_and_projection() {
    let (_dir, storage, table) = create();
    let keys = |range: std::ops::Range<i64>| {
        let keys: ArrayRef = Arc::new(range.clone().collect::<Int64Array>());
        let values: ArrayRef =
            Arc::new(range.map(|k| Some(format!("v{k}"))).collect::<StringArray>());
        RecordBatch::try_new(schema(), vec![keys, values]).unwrap()
    };
    let table = commit(&table, &ZBatch::inserts(keys(0..1_200_000)));
    let odd: Vec<u32> = (0..1_200_000).filter(|k| k % 7 == 3).collect();
    let odd = arrow::array::UInt32Array::from(odd);
    let gone = arrow::compute::take_record_batch(&keys(0..1_200_000), &odd).unwrap();
    let table = commit(&table, &ZBatch::deletes(gone.clone()));
    let table = commit(&table, &ZBatch::deletes(keys(0..1)));
    let left = 1_200_000 - gone.num_rows() - 1;
    assert_eq!(table.num_rows().unwrap(), left as u64);
    let opened = Table::open(&storage, "t").unwrap().unwrap();
    let only_values = ScanOptions { columns: Some(vec![1]) };
    let batches = opened.scan(&only_values).unwrap();
    let scanned: usize = batches
        .map(|b| b.unwrap())
        .inspect(|b| assert_eq!(b.num_columns(), 1))
        .map(|b| b.num_rows())
        .sum();
    assert_eq!(scanned, left);
    let none = opened.scan(&ScanOptions { columns: Some(vec![]) }).unwrap();
    assert_eq!(none.map(|b| b.unwrap().num_rows()).sum::<usize>(), left);
}

#[test]
fn a_long_log_is_read_from_its_checkpoint() {
    let (dir, storage, mut table) = create();
    for k in 0..60 {
        let mut commit = table.begin();
        commit.apply(&inserts(&[(k, None), (k, Some("x"))])).unwrap();
        if k > 0 {
            commit.apply(&deletes(&[(k - 1, None)])).unwrap();
        }
        commit.set_txn("flow", k);
        table = commit.commit().unwrap();
    }
    assert!(dir.path().join("t/_delta_log/_last_checkpoint").exists());
    let expected = rows(&table);
    assert_eq!(expected.len(), 61);
    for version in 0..50 {
        std::fs::remove_file(dir.path().join(format!("t/_delta_log/{version:020}.json"))).unwrap();
    }
    let opened = Table::open(&storage, "t").unwrap().unwrap();
    assert_eq!((rows(&opened), opened.txn_version("flow")), (expected, Some(59)));
    assert_eq!(opened.num_rows().unwrap(), 61);
    let at = Table::open_at(&storage, "t", 55).unwrap().unwrap();
    assert_eq!(rows(&at).len(), 56);
    assert_eq!(opened.changes(3, 60).unwrap_err().code(), "VERSION_NOT_FOUND");
    assert_eq!(opened.history().unwrap().len(), 11);
    std::fs::remove_file(dir.path().join("t/_delta_log/_last_checkpoint")).unwrap();
    assert_eq!(rows(&Table::open(&storage, "t").unwrap().unwrap()), rows(&opened));
}
