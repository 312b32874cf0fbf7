//! One dataset's turn: its flows by their kind, and what is reported of them.

use std::time::Instant;

use deltaic_batch::{Error, Result};
use deltaic_plan::Decision;

use super::context::{Context, in_flow};
use super::stored::StoredDataset;
use super::{append, cdc, snapshot, view};
use crate::report::{ExpectationCounts, FlowReport, FlowStatus};
use crate::{DatasetNode, FlowKind, FlowNode};

/// What a flow did, before it is known whether the commit went through.
#[derive(Debug)]
pub(crate) struct FlowOutcome {
    pub(crate) flow: String,
    pub(crate) technique: &'static str,
    pub(crate) rows_in: u64,
    pub(crate) rows_inserted: u64,
    pub(crate) rows_deleted: u64,
    pub(crate) expectations: Vec<ExpectationCounts>,
    pub(crate) warnings: Vec<String>,
    pub(crate) reason: Option<String>,
    pub(crate) decision: Option<Planning>,
    pub(crate) version: Option<i64>,
    /// There is something to commit.
    pub(crate) changed: bool,
    error: Option<Error>,
}

/// The refresh decision of a view, for the event log.
#[derive(Debug, Clone)]
pub(crate) struct Planning {
    pub(crate) decision: Decision,
    /// (issue type, operator, reason).
    pub(crate) issues: Vec<(String, String, String)>,
    /// Per source: name, rows of the pending delta, all rows.
    pub(crate) sources: Vec<(String, u64, u64)>,
    pub(crate) view_rows: u64,
}

impl FlowOutcome {
    /// Nothing done yet.
    pub(crate) fn new(flow: &FlowNode) -> Self {
        Self {
            flow: flow.name.clone(),
            technique: "NO_OP",
            rows_in: 0,
            rows_inserted: 0,
            rows_deleted: 0,
            expectations: Vec::new(),
            warnings: Vec::new(),
            reason: None,
            decision: None,
            version: None,
            changed: false,
            error: None,
        }
    }

    /// Ends with an error.
    pub(crate) fn fail(&mut self, error: Error) {
        self.changed = false;
        self.error = Some(error);
    }

    /// True after [`Self::fail`].
    pub(crate) fn failed(&self) -> bool {
        self.error.is_some()
    }

    fn report(self, node: &DatasetNode, started: Instant) -> (FlowReport, Option<Planning>) {
        let status = match self.error {
            Some(error) => FlowStatus::Failed(error),
            None if self.changed => FlowStatus::Done,
            None => FlowStatus::NoOp,
        };
        let report = FlowReport {
            flow: self.flow,
            dataset: node.name.clone(),
            status,
            technique: self.technique.to_string(),
            rows_in: self.rows_in,
            rows_inserted: self.rows_inserted,
            rows_deleted: self.rows_deleted,
            version: self.version,
            duration: started.elapsed(),
            expectations: self.expectations,
            reason: self.reason,
            warnings: self.warnings,
        };
        (report, self.decision)
    }
}

/// What a dataset's turn gave.
#[derive(Debug)]
pub(crate) struct Refreshed {
    pub(crate) outcomes: Vec<FlowOutcome>,
    /// The dataset after its commit; `None` when nothing was committed.
    pub(crate) stored: Option<StoredDataset>,
}

/// A dataset's turn, ended.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) reports: Vec<(FlowReport, Option<Planning>)>,
    pub(crate) failed: bool,
}

/// Brings a dataset up to date. Errors are in the reports.
pub(crate) fn refresh_dataset(cx: &Context<'_>, dataset: usize, reset: bool) -> Turn {
    let started = Instant::now();
    let node = &cx.graph.datasets[dataset];
    let flows: Vec<&FlowNode> = node.flows.iter().map(|&f| &cx.graph.flows[f]).collect();
    for flow in &flows {
        cx.listener.flow_started(&node.name, &flow.name);
    }
    let refreshed = cx.find(dataset).and_then(|stored| {
        let refreshed = by_kind(cx, node, &stored, &flows, reset)?;
        let now = refreshed.stored.clone().unwrap_or(stored);
        // Only this turn sets the cell: readers of the dataset come after it.
        let _ = cx.stored[dataset].set(now);
        Ok(refreshed)
    });
    let outcomes = match refreshed {
        Ok(refreshed) => refreshed.outcomes,
        Err(error) => flows
            .iter()
            .map(|flow| {
                let mut outcome = FlowOutcome::new(flow);
                outcome.fail(in_flow(flow, error.clone()));
                outcome
            })
            .collect(),
    };
    let failed = outcomes.iter().any(FlowOutcome::failed);
    let reports: Vec<_> = outcomes.into_iter().map(|o| o.report(node, started)).collect();
    for (report, _) in &reports {
        cx.listener.flow_finished(report);
    }
    Turn { reports, failed }
}

fn by_kind(
    cx: &Context<'_>,
    node: &DatasetNode,
    stored: &StoredDataset,
    flows: &[&FlowNode],
    reset: bool,
) -> Result<Refreshed> {
    match flows.first().map(|f| &f.kind) {
        None => Ok(Refreshed { outcomes: Vec::new(), stored: None }),
        Some(FlowKind::Append) => append::refresh(cx, node, stored, flows, reset),
        Some(FlowKind::AutoCdc(_)) => cdc::refresh(cx, node, stored, flows, reset),
        Some(FlowKind::View) => view::refresh(cx, node, stored, flows[0], reset),
        Some(FlowKind::AutoCdcSnapshot(_)) => snapshot::refresh(cx, node, stored, flows[0], reset),
    }
}
