//! [`Pipeline`]: a project opened for running and querying.

use std::path::Path;

use deltaic_batch::Result;
use deltaic_table::CommitSummary;

use crate::report::{
    DryRun, Errors, PipelineOptions, Progress, QueryResult, RunOptions, UpdateReport,
};
use crate::{Graph, Project};

/// A project: its datasets are refreshed by [`Pipeline::run`] and read by [`Pipeline::query`].
#[derive(Debug)]
pub struct Pipeline {}

impl Pipeline {
    /// Loads the project of `folder` or of the nearest parent folder that has one. The SQL is
    /// looked at when it is first needed.
    pub fn open(_folder: impl AsRef<Path>, _options: PipelineOptions) -> Result<Self> {
        unimplemented!("skeleton")
    }
    /// The loaded project.
    pub fn project(&self) -> &Project {
        unimplemented!("skeleton")
    }
    /// The resolved graph; fails with all errors of the project's SQL.
    pub fn graph(&self) -> Result<&Graph, Errors> {
        unimplemented!("skeleton")
    }
    /// Resolves and validates everything; touches no data.
    pub fn dry_run(&self) -> Result<DryRun, Errors> {
        unimplemented!("skeleton")
    }
    /// Refreshes datasets. Fails when the project is invalid or another run is going on; flows
    /// that fail are in the report.
    pub fn run(
        &self,
        _options: &RunOptions,
        _progress: &dyn Progress,
    ) -> Result<UpdateReport, Errors> {
        unimplemented!("skeleton")
    }
    /// Runs a query over the datasets as the newest update left them: `SELECT …`, `DESCRIBE t`,
    /// `SHOW TABLES`; `event_log()` and `table_changes('t', from[, to])` are tables too.
    pub fn query(&self, _sql: &str) -> Result<QueryResult, Errors> {
        unimplemented!("skeleton")
    }
    /// Plan, techniques, state, and the decision that a run would take for a materialized view.
    pub fn explain(&self, _view: &str) -> Result<String, Errors> {
        unimplemented!("skeleton")
    }
    /// Versions of a dataset, newest first.
    pub fn history(&self, _dataset: &str) -> Result<Vec<CommitSummary>, Errors> {
        unimplemented!("skeleton")
    }
    /// The event log, of one update or all, oldest first.
    pub fn events(&self, _update: Option<u64>) -> Result<QueryResult, Errors> {
        unimplemented!("skeleton")
    }
}
