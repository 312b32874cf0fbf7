//! What each version did.

use deltaic_batch::Result;
use serde_json::Value;

use crate::Table;
use crate::delta::actions::{InfoLine, parse_lines};
use crate::delta::log;

/// Names that writers have for the number of rows added, ours first.
const INSERTED: [&str; 4] =
    ["numInsertedRows", "numTargetRowsInserted", "numOutputRows", "num_added_rows"];
/// The same for rows removed.
const DELETED: [&str; 3] = ["numDeletedRows", "numTargetRowsDeleted", "num_deleted_rows"];

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
    pub info: Value,
}

impl Table {
    /// Newest first; versions whose log entry is gone are left out.
    pub fn history(&self) -> Result<Vec<CommitSummary>> {
        let mut versions = log::versions(&self.root)?;
        versions.retain(|&v| v <= self.version());
        versions.iter().rev().map(|&version| self.summary(version)).collect()
    }

    fn summary(&self, version: i64) -> Result<CommitSummary> {
        let name = log::entry_path(version);
        let lines = parse_lines::<InfoLine>(&log::entry(&self.root, version)?, &name)?;
        let info = lines.into_iter().find_map(|line| line.commit_info).unwrap_or_default();
        let metric = |names: &[&str]| {
            let metrics = &info["operationMetrics"];
            names.iter().find_map(|&name| number(&metrics[name])).unwrap_or(0)
        };
        Ok(CommitSummary {
            version,
            timestamp_ms: info["timestamp"].as_i64().unwrap_or(0),
            operation: info["operation"].as_str().unwrap_or("UNKNOWN").into(),
            rows_inserted: metric(&INSERTED),
            rows_deleted: metric(&DELETED),
            info,
        })
    }
}

/// Metrics are numbers written as text, or numbers.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
