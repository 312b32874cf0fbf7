//! The graph as the rest of the crate sees it.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, SchemaRef, TimeUnit};
use deltaic_batch::{Location, Result};
use deltaic_plan::{RefreshPolicy, TypedExpression};
use deltaic_sql::{DatasetKind, Expectation, ReadFiles, ScdType};

use crate::files::{FileVersions, VersionPattern};

/// Tells the schema of files (declared, or inferred from what lies there now or was read before).
pub trait FileSchemas {
    /// Schema of `read_files`; the error names the call.
    fn schema(&self, call: &ReadFiles) -> Result<SchemaRef>;
    /// What tells the versions of files that are snapshots, if the call says it.
    fn versions(&self, call: &ReadFiles) -> Result<Option<FileVersions>>;
    /// Schema of an external Delta table or Parquet file or folder that a query names by path.
    fn external(&self, path: &str) -> Result<SchemaRef>;
    /// Schema of an external Delta table.
    fn external_delta(&self, path: &str) -> Result<SchemaRef>;
}

/// Where a flow reads.
#[derive(Debug, Clone)]
pub enum InputSource {
    /// A stored dataset of the pipeline: index into [`Graph::datasets`].
    Dataset(usize),
    /// Files.
    Files(ReadFiles),
    /// External table or files, by path.
    External(String),
    /// `table_changes` of an external Delta table.
    ExternalChanges {
        /// Its path.
        path: String,
        /// First version.
        from: i64,
        /// Last version.
        to: Option<i64>,
    },
    /// `table_changes` of a dataset.
    Changes {
        /// Index into [`Graph::datasets`].
        dataset: usize,
        /// First version.
        from: i64,
        /// Last version.
        to: Option<i64>,
    },
}

/// One leaf input of a flow (temporary views are already followed).
#[derive(Debug, Clone)]
pub struct FlowInput {
    /// Name by which the flow's query (or a view that it inlines) knows the input.
    pub name: String,
    /// What is read.
    pub source: InputSource,
    /// Read as a stream: only rows that are new since the flow's last update.
    pub streaming: bool,
    /// Schema of the rows.
    pub schema: SchemaRef,
}

/// AUTO CDC, bound to its source's schema.
#[derive(Debug, Clone)]
pub struct CdcPlan {
    /// Key columns, by position in the source's rows.
    pub keys: Vec<usize>,
    /// `SEQUENCE BY` (events) over the source's rows.
    pub sequence: Option<TypedExpression>,
    /// Delete condition.
    pub delete_when: Option<TypedExpression>,
    /// Truncate condition.
    pub truncate_when: Option<TypedExpression>,
    /// Columns of the target, by position in the source's rows, in source order.
    pub columns: Vec<usize>,
    /// Tracked columns (type 2), by position in the source's rows.
    pub tracked: Vec<usize>,
    /// Columns whose NULL keeps the older value, by position in the source's rows.
    pub ignore_null: Vec<usize>,
    /// 1 or 2.
    pub scd_type: ScdType,
    /// The source is a change feed, whose `_change_type` tells what is deleted.
    pub change_feed: bool,
    /// What orders snapshots; `None` for events.
    pub snapshots: Option<SnapshotVersion>,
}

impl CdcPlan {
    /// Type of what orders events or snapshots.
    #[must_use]
    pub fn sequence_type(&self) -> DataType {
        match (&self.sequence, &self.snapshots) {
            (Some(sequence), _) => sequence.field.data_type().clone(),
            (None, Some(version)) => version.data_type(),
            (None, None) => DataType::Null,
        }
    }
}

/// The version of a snapshot, which takes the place of the sequence.
#[derive(Debug, Clone)]
pub enum SnapshotVersion {
    /// The time of the update.
    Update,
    /// What a pattern finds in the paths of files.
    Path {
        /// The input whose files these are, by position.
        input: usize,
        /// The pattern.
        pattern: VersionPattern,
    },
    /// A column of the query's rows, which is no column of the target.
    Column {
        /// The input whose files are read once each, by position.
        input: usize,
        /// Position of the column.
        column: usize,
        /// Type of the versions.
        data_type: DataType,
    },
}

impl SnapshotVersion {
    /// Type of the version.
    #[must_use]
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Update => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Path { pattern, .. } => pattern.data_type().clone(),
            Self::Column { data_type, .. } => data_type.clone(),
        }
    }
}

/// What a flow does.
#[derive(Debug, Clone)]
pub enum FlowKind {
    /// Appends the query's rows.
    Append,
    /// Keeps a materialized view.
    View,
    /// AUTO CDC from events; the query yields the events.
    AutoCdc(Box<CdcPlan>),
    /// AUTO CDC from snapshots; the query yields a whole snapshot.
    AutoCdcSnapshot(Box<CdcPlan>),
}

/// A flow.
#[derive(Debug, Clone)]
pub struct FlowNode {
    /// Name.
    pub name: String,
    /// Index into [`Graph::datasets`].
    pub target: usize,
    /// What it does.
    pub kind: FlowKind,
    /// The query to plan, over the names of `inputs` and of `views`.
    pub query: String,
    /// Temporary views that the query reaches: name to text, for [`deltaic_plan::Source::View`].
    pub views: BTreeMap<String, String>,
    /// Leaf inputs, each once.
    pub inputs: Vec<FlowInput>,
    /// Datasets that the query itself names, views included: index into [`Graph::datasets`], and
    /// whether it is read as a stream.
    pub reads: Vec<(usize, bool)>,
    /// Schema of the query's rows.
    pub schema: SchemaRef,
    /// `ONCE`.
    pub once: bool,
    /// The project's configuration with the `SET`s before the flow in its file.
    pub configuration: BTreeMap<String, String>,
    /// Where it is written.
    pub location: Location,
}

/// A dataset that is stored (streaming table or materialized view) or a named view.
#[derive(Debug, Clone)]
pub struct DatasetNode {
    /// Key: lower-case; qualified only when it is not in the default schema.
    pub key: String,
    /// As the user wrote it.
    pub name: String,
    /// Kind.
    pub kind: DatasetKind,
    /// Schema of its rows, declared or derived, in the types that tables hold. Columns are nullable
    /// unless declared NOT NULL; flows may yield other orders, narrower types, fewer columns.
    pub schema: SchemaRef,
    /// Expectations on what flows in, bound to `schema`; on an AUTO CDC target, bound to the
    /// events (the schema of its flows).
    pub expectations: Vec<(Expectation, TypedExpression)>,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// `TBLPROPERTIES`.
    pub properties: BTreeMap<String, String>,
    /// `REFRESH POLICY`.
    pub refresh_policy: RefreshPolicy,
    /// Flows into it, by index.
    pub flows: Vec<usize>,
    /// The query's text, for views, temporary or not.
    pub view_query: Option<String>,
    /// Leaf inputs of a view's query, as [`FlowNode::inputs`].
    pub view_inputs: Vec<FlowInput>,
    /// Views that a view's query reaches, as [`FlowNode::views`].
    pub view_views: BTreeMap<String, String>,
    /// Datasets that a view's query itself names, as [`FlowNode::reads`].
    pub reads: Vec<(usize, bool)>,
    /// Rows are only ever added.
    pub append_only: bool,
    /// Where rows go that it does not take: index into [`Graph::datasets`].
    pub quarantine: Option<usize>,
    /// It is the quarantine of that dataset, and has no flows of its own.
    pub quarantine_of: Option<usize>,
    /// Where it is written.
    pub location: Location,
}

/// A resolved, valid pipeline.
#[derive(Debug, Clone)]
pub struct Graph {
    /// Datasets in topological order (what a dataset reads comes before it).
    pub datasets: Vec<DatasetNode>,
    /// Flows in topological order of their targets.
    pub flows: Vec<FlowNode>,
    /// Things to tell the user that are not errors.
    pub warnings: Vec<String>,
}
