//! Tables of other writers, made by hand: their logs are all that differs.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use deltaic_batch::ZBatch;
use deltaic_table::{Storage, Table, TableOptions};
use serde_json::{Value, json};

use crate::fixture::{Bag, bag, deletes, feed, inserts, rows, schema};

/// Lets our writer make a data file with these numbers in a column `n`, and gives its name.
fn data_file(folder: &Path, numbers: Vec<i64>) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let storage = Storage::local(scratch.path()).unwrap();
    let column: ArrayRef = Arc::new(Int64Array::from(numbers));
    let rows = RecordBatch::try_from_iter([("n", column)]).unwrap();
    let table = Table::create(&storage, "", rows.schema(), &TableOptions::default()).unwrap();
    let mut commit = table.begin();
    commit.apply(&ZBatch::inserts(rows)).unwrap();
    commit.commit().unwrap();
    let files = std::fs::read_dir(scratch.path()).unwrap().map(|e| e.unwrap().path());
    let file = files.into_iter().find(|p| p.extension().is_some_and(|e| e == "parquet")).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap().to_string();
    std::fs::create_dir_all(folder).unwrap();
    std::fs::copy(&file, folder.join(&name)).unwrap();
    name
}

fn write_entry(root: &Path, version: i64, actions: &[Value]) {
    let lines: Vec<String> = actions.iter().map(Value::to_string).collect();
    std::fs::create_dir_all(root.join("_delta_log")).unwrap();
    let path = root.join(format!("_delta_log/{version:020}.json"));
    std::fs::write(path, lines.join("\n")).unwrap();
}

fn metadata(partitions: &[&str], configuration: &Value) -> Value {
    let field = |name: &str, kind: &str| json!({"name": name, "type": kind, "nullable": true, "metadata": {}});
    let fields = vec![field("day", "date"), field("n", "long"), field("who", "string")];
    let schema = json!({"type": "struct", "fields": fields}).to_string();
    json!({"metaData": {
        "id": "x", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
        "partitionColumns": partitions, "configuration": configuration,
    }})
}

fn add(path: &str, day: Option<&str>, who: &str) -> Value {
    json!({"add": {
        "path": path, "partitionValues": {"day": day, "who": who}, "size": 1,
        "modificationTime": 1, "dataChange": true, "unknownField": {"a": 1},
    }})
}

fn protocol(reader: i32, writer: i32) -> Value {
    json!({"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}})
}

#[test]
fn partition_columns_come_from_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let first = data_file(&dir.path().join("who=a b/day=2024-02-29"), vec![1, 2]);
    let second = data_file(dir.path(), vec![3]);
    let first = add(&format!("who=a%20b/day=2024-02-29/{first}"), Some("2024-02-29"), "a b");
    let second = add(&second, None, "c");
    let start = [protocol(1, 2), metadata(&["day", "who"], &json!({})), first.clone()];
    write_entry(dir.path(), 0, &start);
    write_entry(dir.path(), 1, &[second, json!({"somethingNew": {"x": 1}})]);
    let path = first["add"]["path"].clone();
    let remove = json!({"remove": {"path": path, "dataChange": true, "deletionTimestamp": 5,
        "partitionValues": first["add"]["partitionValues"]}});
    write_entry(dir.path(), 2, &[remove]);
    let storage = Storage::local(dir.path()).unwrap();
    let table = Table::open_at(&storage, "", 1).unwrap().unwrap();
    let all = bag(&[("2024-02-29|1|a b", 1), ("2024-02-29|2|a b", 1), ("NULL|3|c", 1)]);
    assert_eq!((rows(&table), table.num_rows().unwrap()), (all.clone(), 3));
    assert_eq!(feed(&table, 0, 1), all);
    let newest = Table::open(&storage, "").unwrap().unwrap();
    assert_eq!(
        (rows(&newest), feed(&newest, 0, 2)),
        (bag(&[("NULL|3|c", 1)]), bag(&[("NULL|3|c", 1)]))
    );
    assert_eq!(newest.history().unwrap()[0].operation, "UNKNOWN");
    let e = newest.begin().commit().unwrap_err();
    assert_eq!(e.code(), "UNSUPPORTED_TABLE");
}

#[test]
fn what_we_cannot_read_is_named() {
    let code = |protocol: Value, configuration: Value| {
        let dir = tempfile::tempdir().unwrap();
        write_entry(dir.path(), 0, &[protocol, metadata(&[], &configuration)]);
        let e = Table::open(&Storage::local(dir.path()).unwrap(), "").unwrap_err();
        assert_eq!(e.code(), "UNSUPPORTED_TABLE");
        e.message().to_string()
    };
    let features = json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
        "readerFeatures": ["typeWidening", "deletionVectors"], "writerFeatures": []}});
    assert!(code(features, json!({})).contains("typeWidening"));
    let mapping = json!({"delta.columnMapping.mode": "name"});
    assert!(code(protocol(2, 5), mapping).contains("column mapping"));
    let dir = tempfile::tempdir().unwrap();
    let outside = add("file:///elsewhere/x.parquet", None, "");
    write_entry(dir.path(), 0, &[protocol(1, 2), metadata(&[], &json!({})), outside]);
    let table = Table::open(&Storage::local(dir.path()).unwrap(), "").unwrap().unwrap();
    let e = table.changes(0, 0).unwrap_err();
    assert_eq!(e.code(), "UNSUPPORTED_TABLE");
    std::fs::write(dir.path().join("_delta_log/00000000000000000001.json"), "{\"add\":{").unwrap();
    let e = Table::open(&Storage::local(dir.path()).unwrap(), "").unwrap_err();
    assert_eq!(e.code(), "LOG_CORRUPT");
}

#[test]
fn tables_without_deletion_vectors_are_appended_to_only() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Storage::local(dir.path()).unwrap();
    Table::create(&storage, "t", schema(), &TableOptions::default()).unwrap();
    let entry = dir.path().join("t/_delta_log/00000000000000000000.json");
    let text = std::fs::read_to_string(&entry).unwrap();
    let lines: Vec<String> = text
        .lines()
        .map(|line| match line.starts_with("{\"protocol\"") {
            true => protocol(1, 2).to_string(),
            false => line.replace("\"delta.enableChangeDataFeed\":\"true\"", "\"x\":\"y\""),
        })
        .collect();
    std::fs::write(&entry, lines.join("\n")).unwrap();
    let table = Table::open(&storage, "t").unwrap().unwrap();
    let mut commit = table.begin();
    commit.apply(&inserts(&[(1, None)])).unwrap();
    let table = commit.commit().unwrap();
    let mut commit = table.begin();
    commit.apply(&deletes(&[(1, None)])).unwrap();
    let e = commit.commit().unwrap_err();
    assert_eq!((e.code(), e.get_object()), ("UNSUPPORTED_TABLE", Some("t")));
    assert_ne!(rows(&table), Bag::new());
}
