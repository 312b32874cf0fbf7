//! Random commits against a naive model: a list of bags, one per version.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::ZBatch;
use deltaic_table::{Storage, Table, TableOptions};
use proptest::prelude::*;

use crate::fixture::{Bag, feed, rows};

/// What a step does before its commit.
#[derive(Debug, Clone)]
enum Step {
    /// Rows as `(key, value, weight)`; what cannot be deleted is left out.
    Apply(Vec<(i64, u8, i64)>),
    /// Deletes this share (in tenths) of the rows that are there.
    DeleteShare(u8),
    /// Removes all rows.
    Truncate,
    /// Adds one more column, in front or behind.
    AddColumn(bool),
    /// Opens the table from its folder.
    Reopen,
    /// Drops all row indexes.
    LoseIndexes,
}

/// The model: rows are lists of optional values, by column name.
type Model = BTreeMap<Vec<Option<i64>>, i64>;

fn step() -> impl Strategy<Value = Step> {
    let row = (0..6_i64, 0..3_u8, prop_oneof![Just(1), Just(1), Just(2), Just(-1), Just(-2)]);
    prop_oneof![
        6 => prop::collection::vec(row, 0..12).prop_map(Step::Apply),
        2 => (1..=10_u8).prop_map(Step::DeleteShare),
        1 => Just(Step::Truncate),
        1 => any::<bool>().prop_map(Step::AddColumn),
        1 => Just(Step::Reopen),
        1 => Just(Step::LoseIndexes),
    ]
}

/// A table and what it should be.
struct Pair {
    dir: tempfile::TempDir,
    storage: Storage,
    table: Table,
    columns: Vec<String>,
    model: Model,
    /// Content and number of columns at each version.
    versions: Vec<(Bag, usize)>,
}

impl Pair {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::local(dir.path()).unwrap();
        let columns = vec!["k".to_string(), "v".to_string()];
        let table =
            Table::create(&storage, "t", schema(&columns), &TableOptions::default()).unwrap();
        let versions = vec![(Bag::new(), 2)];
        Self { dir, storage, table, columns, model: Model::new(), versions }
    }

    fn run(&mut self, steps: &[Step]) {
        let mut commit = self.table.begin();
        for step in steps {
            let delta = match step {
                Step::Apply(rows) => self.applicable(rows),
                Step::DeleteShare(tenths) => self.share(*tenths),
                Step::Truncate => {
                    commit.truncate().unwrap();
                    self.model.clear();
                    continue;
                }
                Step::AddColumn(front) => {
                    self.add_column(*front);
                    commit.set_schema(schema(&self.columns)).unwrap();
                    continue;
                }
                Step::Reopen => {
                    let reopened = Table::open(&self.storage, "t").unwrap().unwrap();
                    assert_eq!(reopened.version(), self.table.version());
                    self.table = reopened;
                    continue;
                }
                Step::LoseIndexes => {
                    let _ = std::fs::remove_dir_all(self.dir.path().join("t/_deltaic"));
                    continue;
                }
            };
            commit.apply(&zbatch(&self.columns, &delta)).unwrap();
            for (row, weight) in delta {
                *self.model.entry(row).or_insert(0) += weight;
            }
            self.model.retain(|_, weight| *weight != 0);
        }
        self.table = commit.commit().unwrap();
        self.versions.push((as_bag(&self.model), self.columns.len()));
        self.check();
    }

    /// Weights that keep every count at zero or above.
    fn applicable(&self, rows: &[(i64, u8, i64)]) -> Vec<(Vec<Option<i64>>, i64)> {
        let mut counts = self.model.clone();
        let mut delta = Vec::new();
        for &(key, value, weight) in rows {
            let mut row = vec![None; self.columns.len()];
            row[self.position("k")] = Some(key);
            row[self.position("v")] = (value > 0).then_some(i64::from(value));
            if self.columns.len() > 2 && key == 1 {
                row[self.columns.len() - 1] = Some(key);
            }
            let count = counts.entry(row.clone()).or_insert(0);
            if *count + weight >= 0 {
                *count += weight;
                delta.push((row, weight));
            }
        }
        delta
    }

    fn share(&self, tenths: u8) -> Vec<(Vec<Option<i64>>, i64)> {
        let chosen = |(i, _): &(usize, _)| i % 10 < usize::from(tenths);
        let rows = self.model.iter().enumerate().filter(chosen);
        rows.map(|(_, (row, weight))| (row.clone(), -weight)).collect()
    }

    fn add_column(&mut self, front: bool) {
        let name = format!("c{}", self.columns.len());
        let at = if front { 0 } else { self.columns.len() };
        self.columns.insert(at, name);
        let old = std::mem::take(&mut self.model);
        self.model = old
            .into_iter()
            .map(|(mut row, weight)| {
                row.insert(at, None);
                (row, weight)
            })
            .collect();
    }

    fn position(&self, name: &str) -> usize {
        self.columns.iter().position(|c| c == name).unwrap()
    }

    fn check(&self) {
        let newest = i64::try_from(self.versions.len() - 1).unwrap();
        assert_eq!(self.table.version(), newest);
        let (expected, _) = &self.versions[self.versions.len() - 1];
        assert_eq!(&rows(&self.table), expected);
        let count: i64 = expected.values().sum();
        assert_eq!(self.table.num_rows().unwrap(), u64::try_from(count).unwrap());
        assert_eq!(&feed(&self.table, 0, newest), expected);
        for (version, (content, width)) in (0_i64..).zip(&self.versions) {
            let old = Table::open_at(&self.storage, "t", version).unwrap().unwrap();
            assert_eq!(&rows(&old), content, "version {version}");
            assert_eq!(&feed(&old, 0, version), content, "feed to version {version}");
            assert_eq!(old.schema().fields().len(), *width);
        }
    }
}

fn schema(columns: &[String]) -> SchemaRef {
    let field = |name: &String| match name.as_str() {
        "v" => Field::new(name, DataType::Utf8, true),
        name => Field::new(name, DataType::Int64, true),
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

fn zbatch(columns: &[String], rows: &[(Vec<Option<i64>>, i64)]) -> ZBatch {
    let arrays = columns.iter().enumerate().map(|(i, name)| -> ArrayRef {
        let values = rows.iter().map(|(row, _)| row[i]);
        match name.as_str() {
            "v" => Arc::new(values.map(|v| v.map(|v| v.to_string())).collect::<StringArray>()),
            _ => Arc::new(values.collect::<Int64Array>()),
        }
    });
    let batch = RecordBatch::try_new(schema(columns), arrays.collect()).unwrap();
    ZBatch::try_new(batch, rows.iter().map(|(_, w)| *w).collect::<Vec<_>>()).unwrap()
}

/// The rows as the fixture prints them. Only the column `v` holds text.
fn as_bag(model: &Model) -> Bag {
    let rows = model.iter().map(|(row, &weight)| {
        let text: Vec<String> =
            row.iter().map(|v| v.map_or("NULL".into(), |v| v.to_string())).collect();
        (text.join("|"), weight)
    });
    rows.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_table_is_what_its_model_is(
        commits in prop::collection::vec(prop::collection::vec(step(), 1..4), 1..10),
    ) {
        let mut pair = Pair::new();
        for steps in &commits {
            pair.run(steps);
        }
    }
}
