//! A Delta table: open, scan, commit, change feed.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Result, ZBatch};

use crate::Storage;

/// What a new table is made with.
#[derive(Debug, Clone, Default)]
pub struct TableOptions {
    /// Delta `name`.
    pub name: Option<String>,
    /// Delta `description`.
    pub description: Option<String>,
    /// Delta `configuration`; change feed and deletion vectors are always on.
    pub properties: BTreeMap<String, String>,
}

/// What to read.
#[derive(Debug, Clone, Default)]
pub struct ScanOptions {
    /// Columns by position in the schema; all when `None`.
    pub columns: Option<Vec<usize>>,
}

/// One version's change as in the change feed.
#[derive(Debug, Clone)]
pub struct Change {
    /// Version that made the change.
    pub version: i64,
    /// Commit time, milliseconds since 1970.
    pub timestamp_ms: i64,
    /// The change: deletes −1, inserts +1.
    pub delta: ZBatch,
}

/// One line of a table's history.
#[derive(Debug, Clone)]
pub struct CommitSummary {
    /// Version.
    pub version: i64,
    /// Commit time, milliseconds since 1970.
    pub timestamp_ms: i64,
    /// `CREATE TABLE`, `WRITE`, `MERGE` …
    pub operation: String,
    /// Rows added.
    pub rows_inserted: u64,
    /// Rows removed.
    pub rows_deleted: u64,
    /// All of `commitInfo`.
    pub info: serde_json::Value,
}

/// A table at one version.
#[derive(Debug, Clone)]
pub struct Table {}

impl Table {
    /// Makes version 0 (protocol and metadata, no data). Fails when there is a table already.
    pub fn create(
        _storage: &Storage,
        _path: &str,
        _schema: SchemaRef,
        _options: &TableOptions,
    ) -> Result<Self> {
        unimplemented!("skeleton")
    }
    /// The newest version; `None` when there is no table.
    pub fn open(_storage: &Storage, _path: &str) -> Result<Option<Self>> {
        unimplemented!("skeleton")
    }
    /// The given version.
    pub fn open_at(_storage: &Storage, _path: &str, _version: i64) -> Result<Option<Self>> {
        unimplemented!("skeleton")
    }
    /// Version of this snapshot.
    pub fn version(&self) -> i64 {
        unimplemented!("skeleton")
    }
    /// Schema of the rows.
    pub fn schema(&self) -> SchemaRef {
        unimplemented!("skeleton")
    }
    /// Delta `configuration`.
    pub fn properties(&self) -> &BTreeMap<String, String> {
        unimplemented!("skeleton")
    }
    /// Number of rows, from statistics and deletion vectors.
    pub fn num_rows(&self) -> Result<u64> {
        unimplemented!("skeleton")
    }
    /// Bytes of the live data files.
    pub fn size_bytes(&self) -> u64 {
        unimplemented!("skeleton")
    }
    /// Last committed `txn` version of an application.
    pub fn txn_version(&self, _app_id: &str) -> Option<i64> {
        unimplemented!("skeleton")
    }
    /// All rows of this version in record batches.
    pub fn scan(
        &self,
        _options: &ScanOptions,
    ) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>> {
        unimplemented!("skeleton")
    }
    /// Changes of the versions `from..=to`, in order. Versions without data change are left out.
    pub fn changes(&self, _from: i64, _to: i64) -> Result<Vec<Change>> {
        unimplemented!("skeleton")
    }
    /// True when every version in `from..=to` only added rows.
    pub fn only_appends(&self, _from: i64, _to: i64) -> Result<bool> {
        unimplemented!("skeleton")
    }
    /// Newest first.
    pub fn history(&self) -> Result<Vec<CommitSummary>> {
        unimplemented!("skeleton")
    }
    /// Starts a commit on top of this version.
    pub fn begin(&self) -> CommitBuilder {
        unimplemented!("skeleton")
    }
}

/// Gathers one atomic commit.
#[derive(Debug)]
pub struct CommitBuilder {}

impl CommitBuilder {
    /// Adds a delta. Positive weights insert, negative ones delete that many copies of a row that
    /// is in the table (or was inserted before in this commit).
    pub fn apply(&mut self, _delta: &ZBatch) -> Result<()> {
        unimplemented!("skeleton")
    }
    /// Removes all rows (they appear as deletes in the change feed); what is applied later stays.
    pub fn truncate(&mut self) -> Result<()> {
        unimplemented!("skeleton")
    }
    /// New schema: columns may be added (old rows read NULL); anything else only after
    /// [`Self::truncate`].
    pub fn set_schema(&mut self, _schema: SchemaRef) -> Result<()> {
        unimplemented!("skeleton")
    }
    /// Application transaction id, committed with the data.
    pub fn set_txn(&mut self, _app_id: &str, _version: i64) {
        unimplemented!("skeleton")
    }
    /// `operation` and further fields of `commitInfo`.
    pub fn set_info(
        &mut self,
        _operation: &str,
        _fields: serde_json::Map<String, serde_json::Value>,
    ) {
        unimplemented!("skeleton")
    }
    /// Writes data files durably and the log entry into memory; nothing is visible yet.
    pub fn prepare(self) -> Result<Prepared> {
        unimplemented!("skeleton")
    }
    /// [`Self::prepare`], then [`Prepared::publish`].
    pub fn commit(self) -> Result<Table> {
        self.prepare()?.publish()
    }
}

/// A commit whose files are written; only the log entry is missing.
#[derive(Debug)]
pub struct Prepared {}

impl Prepared {
    /// Version that publishing makes.
    pub fn version(&self) -> i64 {
        unimplemented!("skeleton")
    }
    /// Rows that the commit inserts and deletes.
    pub fn row_counts(&self) -> (u64, u64) {
        unimplemented!("skeleton")
    }
    /// Writes the log entry if that version is still free (`Storage` error `COMMIT_CONFLICT` else)
    /// and returns the table at the new version.
    pub fn publish(self) -> Result<Table> {
        unimplemented!("skeleton")
    }
}
