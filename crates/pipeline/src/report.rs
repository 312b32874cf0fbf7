//! What the user is told: options of a run, progress while it goes, and the report at its end.

use std::fmt;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, ErrorClass};
use deltaic_sql::OnViolation;

/// One or more errors found together (validation reports all that it finds).
#[derive(Debug, Clone)]
pub struct Errors(pub Vec<Error>);

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

impl From<Error> for Errors {
    fn from(error: Error) -> Self {
        Self(vec![error])
    }
}

impl From<Vec<Error>> for Errors {
    fn from(errors: Vec<Error>) -> Self {
        Self(errors)
    }
}

/// How a pipeline is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct PipelineOptions {
    /// Fixed clock of all runs and queries, microseconds since 1970; the wall clock when `None`.
    pub now_us: Option<i64>,
    /// Number of state partitions of new circuits and of flows that run at once; the machine's
    /// cores when `None`.
    pub threads: Option<usize>,
}

/// What a run refreshes.
///
/// ```
/// use deltaic_pipeline::RunOptions;
///
/// let one = RunOptions { refresh: vec!["orders".to_string()], ..RunOptions::default() };
/// assert!(!one.full_refresh_all);
/// ```
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Refresh these datasets and nothing else; all when both lists are empty.
    pub refresh: Vec<String>,
    /// Reset these datasets (content and progress), then refresh them.
    pub full_refresh: Vec<String>,
    /// Reset and refresh everything.
    pub full_refresh_all: bool,
    /// Remove the tables of datasets that are no longer defined.
    pub drop_inactive: bool,
}

/// How a flow ended.
#[derive(Debug, Clone)]
pub enum FlowStatus {
    /// It ran and its result is committed.
    Done,
    /// Nothing to do; nothing was written.
    NoOp,
    /// It failed; its dataset is as it was.
    Failed(Error),
    /// It did not run since this dataset before it failed.
    Skipped {
        /// Name of the dataset that failed.
        because_of: String,
    },
}

/// Counts of one expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectationCounts {
    /// Name of the constraint.
    pub name: String,
    /// What happens to violating rows.
    pub action: OnViolation,
    /// Rows for which the condition is TRUE.
    pub passed: u64,
    /// All other rows.
    pub failed: u64,
}

/// What a flow did in an update.
#[derive(Debug, Clone)]
pub struct FlowReport {
    /// Name of the flow.
    pub flow: String,
    /// Name of the dataset it writes.
    pub dataset: String,
    /// How it ended.
    pub status: FlowStatus,
    /// Technique by its event-log name (`NO_OP`, `APPEND_ONLY`, `GROUP_AGGREGATE` …).
    pub technique: String,
    /// Rows read: new rows of the inputs, or changes of a view's sources.
    pub rows_in: u64,
    /// Rows inserted into the dataset.
    pub rows_inserted: u64,
    /// Rows deleted from the dataset (an update of a row counts in both).
    pub rows_deleted: u64,
    /// Table version that holds the result; `None` without a commit.
    pub version: Option<i64>,
    /// Wall time.
    pub duration: Duration,
    /// Counts of the dataset's expectations: of this update's rows, or of the whole view.
    pub expectations: Vec<ExpectationCounts>,
    /// Why this technique (views).
    pub reason: Option<String>,
    /// Things that the user should know and that are no errors.
    pub warnings: Vec<String>,
}

impl FlowReport {
    /// The error, if the flow failed.
    pub fn error(&self) -> Option<&Error> {
        match &self.status {
            FlowStatus::Failed(error) => Some(error),
            FlowStatus::Done | FlowStatus::NoOp | FlowStatus::Skipped { .. } => None,
        }
    }
}

/// What an update did.
#[derive(Debug, Clone)]
pub struct UpdateReport {
    /// Number of the update; `None` when there was nothing to do and nothing was written.
    pub update: Option<u64>,
    /// One entry per flow, in the order in which they ended.
    pub flows: Vec<FlowReport>,
    /// Things that the user should know and that are no errors.
    pub warnings: Vec<String>,
    /// Wall time.
    pub duration: Duration,
}

impl UpdateReport {
    /// True when no flow failed or was skipped.
    pub fn succeeded(&self) -> bool {
        self.flows.iter().all(|f| matches!(f.status, FlowStatus::Done | FlowStatus::NoOp))
    }

    /// Exit code of `deltaic run`: 0 done, 1 failed, 2 when what failed is wrong input (the user's
    /// SQL or a file that cannot be read as declared).
    pub fn exit_code(&self) -> u8 {
        if self.succeeded() {
            return 0;
        }
        let wrong_input = |e: &Error| {
            e.class() == ErrorClass::User || matches!(e.code(), "MALFORMED_ROW" | "FILE_UNREADABLE")
        };
        let mut failed = self.flows.iter().filter_map(FlowReport::error);
        if failed.all(wrong_input) { 2 } else { 1 }
    }
}

/// Hears of a run while it goes on. All methods do nothing by default; `()` listens to nothing.
///
/// ```
/// use std::sync::Mutex;
/// use deltaic_pipeline::{FlowReport, Progress};
///
/// #[derive(Default)]
/// struct Techniques(Mutex<Vec<String>>);
///
/// impl Progress for Techniques {
///     fn flow_finished(&self, report: &FlowReport) {
///         self.0.lock().unwrap().push(format!("{}: {}", report.flow, report.technique));
///     }
/// }
///
/// let listener = Techniques::default();
/// assert!(listener.0.lock().unwrap().is_empty());
/// ```
pub trait Progress: Sync {
    /// The flows that will be looked at, in order.
    fn update_started(&self, _flows: &[(String, String)]) {}
    /// A flow begins.
    fn flow_started(&self, _dataset: &str, _flow: &str) {}
    /// Rows read so far by a flow.
    fn flow_rows(&self, _dataset: &str, _flow: &str, _rows_in: u64) {}
    /// A flow ended.
    fn flow_finished(&self, _report: &FlowReport) {}
    /// Something to tell at once.
    fn warning(&self, _message: &str) {}
}

impl Progress for () {}

/// A dataset as `dry-run` lists it.
#[derive(Debug, Clone)]
pub struct DatasetSummary {
    /// Name as the user wrote it.
    pub name: String,
    /// `streaming table`, `materialized view`, `temporary view`, `view`.
    pub kind: &'static str,
    /// Schema of its rows.
    pub schema: SchemaRef,
    /// Flows into it.
    pub flows: Vec<String>,
    /// Names of the datasets and files that it reads.
    pub reads: Vec<String>,
}

/// Result of `dry-run`.
#[derive(Debug, Clone)]
pub struct DryRun {
    /// Datasets in topological order.
    pub datasets: Vec<DatasetSummary>,
    /// Things that the user should know and that are no errors.
    pub warnings: Vec<String>,
    /// SQL files under the project that no glob covers.
    pub uncovered: Vec<String>,
    /// Stored datasets that are no longer defined.
    pub inactive: Vec<String>,
}

/// Rows of a query.
#[derive(Debug, Clone)]
pub struct QueryResult {
    /// Schema of the rows.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

impl QueryResult {
    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}
