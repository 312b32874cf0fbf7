//! Crashes at every write: readers see the old version or the new one, and the next writer goes on.

use deltaic_batch::{Result, ZBatch};
use deltaic_table::{Fault, Storage, Table, TableOptions};

use crate::fixture::{Bag, Row, delta, feed, inserts, rows, schema};

const OLD: [Row; 6] =
    [(1, Some("a")), (1, Some("a")), (2, None), (3, Some("c")), (4, None), (5, None)];

/// A table at version 49, so that the next one also writes a checkpoint.
fn prepare(storage: &Storage) -> Table {
    let mut table = Table::create(storage, "t", schema(), &TableOptions::default()).unwrap();
    for version in 1..50 {
        let mut commit = table.begin();
        if version == 1 {
            commit.apply(&inserts(&OLD)).unwrap();
        }
        table = commit.commit().unwrap();
    }
    table
}

fn change() -> ZBatch {
    delta(&[((1, Some("a")), -1), ((3, Some("c")), -1), ((7, None), 1), ((8, None), 2)])
}

fn commit(storage: &Storage) -> Result<Table> {
    let table = Table::open(storage, "t")?.unwrap();
    let mut commit = table.begin();
    commit.apply(&change())?;
    commit.commit()
}

/// Copies a folder's files.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_crash_shows_the_old_version_or_the_new_one() {
    let origin = tempfile::tempdir().unwrap();
    let before = rows(&prepare(&Storage::local(origin.path()).unwrap()));
    let after: Bag =
        [("1|a", 1), ("2|NULL", 1), ("4|NULL", 1), ("5|NULL", 1), ("7|NULL", 1), ("8|NULL", 2)]
            .into_iter()
            .map(|(row, n)| (row.to_string(), n))
            .collect();
    let (mut old_seen, mut new_seen, mut writes) = (0, 0, 0);
    for fatal in 0.. {
        for after_writing in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            copy(origin.path(), dir.path());
            let storage = Storage::local(dir.path()).unwrap();
            let fault = Fault::new(fatal, after_writing);
            let result = commit(&storage.with_fault(&fault));
            if !fault.happened() {
                writes = fatal;
                break;
            }
            let table = Table::open(&storage, "t").unwrap().unwrap();
            let content = rows(&table);
            match table.version() {
                49 => {
                    assert!(result.is_err());
                    assert_eq!(content, before);
                    old_seen += 1;
                    assert_eq!(rows(&commit(&storage).unwrap()), after);
                }
                50 => {
                    assert_eq!(content, after);
                    new_seen += 1;
                }
                version => panic!("version {version}"),
            }
            let table = Table::open(&storage, "t").unwrap().unwrap();
            assert_eq!((table.version(), rows(&table)), (50, after.clone()));
            assert_eq!(feed(&table, 0, 50), after);
        }
        if writes > 0 {
            break;
        }
    }
    // Data file, its index, change file, log entry, checkpoint, hint.
    assert_eq!(writes, 6);
    assert_eq!((old_seen, new_seen), (7, 5));
}

#[test]
fn a_crash_while_a_table_is_made_leaves_none_or_an_empty_one() {
    for after_writing in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::local(dir.path()).unwrap();
        let fault = Fault::new(0, after_writing);
        let faulty = storage.with_fault(&fault);
        assert!(Table::create(&faulty, "t", schema(), &TableOptions::default()).is_err());
        let table = Table::open(&storage, "t").unwrap();
        assert_eq!(table.is_some(), after_writing);
        assert!(table.is_none_or(|t| rows(&t).is_empty()));
    }
}
