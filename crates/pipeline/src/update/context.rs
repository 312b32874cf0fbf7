//! What all flows of a run share.

use std::sync::OnceLock;

use deltaic_batch::{Error, Result};
use deltaic_plan::{Session, Source, SourceTable, Sources};
use deltaic_table::Storage;

use super::stored::StoredDataset;
use crate::catalog::{FileCatalog, ProgressIndex};
use crate::fault::Steps;
use crate::marker::Marker;
use crate::progress::FlowProgress;
use crate::report::Progress;
use crate::{DatasetNode, FlowNode, Graph, InputSource, Project};

/// One run's surroundings.
pub(crate) struct Context<'a> {
    pub(crate) project: &'a Project,
    pub(crate) session: &'a Session,
    pub(crate) storage: &'a Storage,
    pub(crate) graph: &'a Graph,
    pub(crate) files: &'a FileCatalog<'a>,
    pub(crate) progress_index: &'a ProgressIndex,
    pub(crate) marker: &'a Marker,
    pub(crate) steps: &'a Steps,
    pub(crate) listener: &'a dyn Progress,
    /// Number of this update.
    pub(crate) update: u64,
    /// Time of this update.
    pub(crate) now_us: i64,
    /// Shards of new circuits.
    pub(crate) shards: usize,
    /// Datasets by index, as they are after their turn.
    pub(crate) stored: Vec<OnceLock<StoredDataset>>,
}

impl Context<'_> {
    /// A dataset as it is now; looked up when it did not have its turn.
    pub(crate) fn stored(&self, dataset: usize) -> Result<&StoredDataset> {
        let cell = &self.stored[dataset];
        if let Some(stored) = cell.get() {
            return Ok(stored);
        }
        let found = self.find(dataset)?;
        Ok(cell.get_or_init(|| found))
    }

    /// A dataset as it was before its turn.
    pub(crate) fn find(&self, dataset: usize) -> Result<StoredDataset> {
        let node = &self.graph.datasets[dataset];
        let flows: Vec<&str> =
            node.flows.iter().map(|&f| self.graph.flows[f].name.as_str()).collect();
        let marked = self.marker.datasets.get(&node.key);
        StoredDataset::find(self.storage, &self.project.name, &node.key, &flows, marked)
    }

    /// The dataset that a flow writes.
    pub(crate) fn target(&self, flow: &FlowNode) -> &DatasetNode {
        &self.graph.datasets[flow.target]
    }

    /// Progress of a flow at its last epoch.
    pub(crate) fn progress(&self, flow: &FlowNode, stored: &StoredDataset) -> Result<FlowProgress> {
        let dataset = &self.target(flow).key;
        self.progress_index.of(self.storage, dataset, &flow.name, stored.epoch(&flow.name))
    }

    /// The names that a flow's query may use.
    pub(crate) fn sources(&self, flow: &FlowNode) -> Sources {
        let mut sources = Sources::new();
        for input in &flow.inputs {
            let append_only = match &input.source {
                InputSource::Dataset(d) => input.streaming || self.graph.datasets[*d].append_only,
                InputSource::Files(_) => true,
                InputSource::External(_)
                | InputSource::ExternalChanges { .. }
                | InputSource::Changes { .. } => false,
            };
            let table = SourceTable { schema: input.schema.clone(), append_only, rows: None };
            sources.insert(input.name.clone(), Source::Table(table));
        }
        for (name, sql) in &flow.views {
            sources.insert(name.clone(), Source::View { sql: sql.clone() });
        }
        sources
    }
}

/// Names the flow in an error that has neither object nor place yet.
pub(crate) fn in_flow(flow: &FlowNode, error: Error) -> Error {
    error.object(&flow.name).at(flow.location.clone())
}
