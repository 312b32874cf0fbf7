//! Projects: datasets, flows, graph, update execution, event log.

mod graph;
mod near;
mod pipeline;
mod project;
mod report;

pub use graph::{
    CdcPlan, DatasetNode, FileSchemas, FlowInput, FlowKind, FlowNode, Graph, InputSource, resolve,
};
pub use pipeline::Pipeline;
pub use project::{Project, SqlFile};
pub use report::{
    DatasetSummary, DryRun, Errors, ExpectationCounts, FlowReport, FlowStatus, PipelineOptions,
    Progress, QueryResult, RunOptions, UpdateReport,
};
