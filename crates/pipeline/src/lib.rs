//! Projects: datasets, flows, graph, update execution, event log.

mod catalog;
mod conform;
mod events;
mod expectations;
mod fault;
mod files;
mod graph;
mod lock;
mod marker;
mod near;
mod paths;
mod pipeline;
mod progress;
mod project;
mod query;
mod report;
mod state_store;
mod supported;
mod update;

pub use deltaic_plan::type_name;
pub use files::{FileVersions, VersionPattern};
pub use graph::{
    CdcPlan, DatasetNode, FileSchemas, FlowInput, FlowKind, FlowNode, Graph, InputSource,
    SnapshotVersion, resolve,
};
pub use pipeline::Pipeline;
pub use project::{Project, SqlFile};
pub use report::{
    DatasetSummary, DryRun, Errors, ExpectationCounts, FlowReport, FlowStatus, PipelineOptions,
    Progress, QueryResult, RunOptions, UpdateReport,
};
