//! Projects: datasets, flows, graph, update execution, event log.

mod graph;
mod project;

pub use graph::{
    CdcPlan, DatasetNode, FileSchemas, FlowInput, FlowKind, FlowNode, Graph, InputSource, resolve,
};
pub use project::{Project, SqlFile};
