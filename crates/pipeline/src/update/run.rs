//! A whole update: datasets level by level, then event log and marker.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use deltaic_batch::{ErrorClass, Result};
use rayon::prelude::*;

use super::context::Context;
use super::dataset::{Planning, Turn, refresh_dataset};
use super::selection::{Selection, inactive, is_stored};
use crate::events::EventLog;
use crate::marker::{Marked, Marker};
use crate::report::{FlowReport, FlowStatus, RunOptions, UpdateReport};
use crate::{Graph, InputSource};

/// Reports with the decisions behind them, in the order in which the flows ended.
type Reports = Vec<(FlowReport, Option<Planning>)>;

/// Runs the update.
pub(crate) fn run(
    cx: &Context<'_>,
    selection: &Selection,
    options: &RunOptions,
    parallel: bool,
) -> Result<UpdateReport> {
    let started = Instant::now();
    let flows: Vec<(String, String)> = selection
        .refresh
        .iter()
        .flat_map(|&d| cx.graph.datasets[d].flows.iter().map(move |&f| (d, f)))
        .map(|(d, f)| (cx.graph.datasets[d].name.clone(), cx.graph.flows[f].name.clone()))
        .collect();
    cx.listener.update_started(&flows);
    let renamed = super::renamed_flows(cx.storage, cx.graph, cx.marker)?;
    super::quarantine::recover(cx)?;
    let reports = all_levels(cx, selection, parallel);
    let dropped = if options.drop_inactive { drop_inactive(cx)? } else { Vec::new() };
    let marker = marker_now(cx, &dropped)?;
    let changed = marker.datasets != cx.marker.datasets;
    let worth = changed || reports.iter().any(|(r, _)| worth_logging(r));
    let mut warnings = cx.graph.warnings.clone();
    warnings.extend(renamed);
    warnings.extend(dropped.iter().map(|key| format!("the inactive dataset '{key}' was removed")));
    let mut report =
        UpdateReport { update: None, flows: Vec::new(), warnings, duration: Duration::ZERO };
    if worth {
        finish(cx, marker, &reports)?;
        report.update = Some(cx.update);
    }
    report.flows = reports.into_iter().map(|(r, _)| r).collect();
    report.duration = started.elapsed();
    Ok(report)
}

/// Wrong input that changed nothing leaves no trace; everything else is logged.
fn worth_logging(report: &FlowReport) -> bool {
    match &report.status {
        FlowStatus::Done => true,
        FlowStatus::NoOp | FlowStatus::Skipped { .. } => false,
        FlowStatus::Failed(e) => {
            e.class() != ErrorClass::User
                && !matches!(e.code(), "MALFORMED_ROW" | "FILE_UNREADABLE")
        }
    }
}

fn finish(cx: &Context<'_>, mut marker: Marker, reports: &Reports) -> Result<()> {
    cx.steps.pass("event log")?;
    let log = EventLog::new(cx.storage);
    let version = log.append(cx.update, cx.now_us, reports)?;
    marker.event_log = Some(version);
    cx.steps.pass("marker")?;
    marker.save(cx.storage)
}

/// Datasets whose sources are all on lower levels.
fn levels(graph: &Graph) -> Vec<Vec<usize>> {
    let mut level = vec![0_usize; graph.datasets.len()];
    let mut out: Vec<Vec<usize>> = Vec::new();
    for d in 0..graph.datasets.len() {
        if !is_stored(&graph.datasets[d]) {
            continue;
        }
        level[d] = sources(graph, d).iter().map(|&s| level[s] + 1).max().unwrap_or(0);
        if out.len() <= level[d] {
            out.resize_with(level[d] + 1, Vec::new);
        }
        out[level[d]].push(d);
    }
    out
}

/// Datasets that a dataset's flows read, and the one that writes it if it is a quarantine.
fn sources(graph: &Graph, dataset: usize) -> Vec<usize> {
    let flows = graph.datasets[dataset].flows.iter().map(|&f| &graph.flows[f]);
    flows
        .flat_map(|f| &f.inputs)
        .filter_map(|i| match &i.source {
            InputSource::Dataset(d) | InputSource::Changes { dataset: d, .. } => Some(*d),
            InputSource::Files(_)
            | InputSource::External(_)
            | InputSource::ExternalChanges { .. } => None,
        })
        .chain(graph.datasets[dataset].quarantine_of)
        .collect()
}

fn all_levels(cx: &Context<'_>, selection: &Selection, parallel: bool) -> Reports {
    let mut reports = Vec::new();
    // By dataset: the dataset whose failure is to blame.
    let mut failed: BTreeMap<usize, usize> = BTreeMap::new();
    for level in levels(cx.graph) {
        let level: Vec<usize> =
            level.into_iter().filter(|d| selection.refresh.contains(d)).collect();
        let mut ready = Vec::new();
        for d in level {
            let blame = sources(cx.graph, d).iter().find_map(|s| failed.get(s).copied());
            match blame {
                Some(blame) => {
                    failed.insert(d, blame);
                    reports.extend(skipped(cx, d, blame));
                }
                None => ready.push(d),
            }
        }
        let turns: Mutex<Vec<(usize, Turn)>> = Mutex::default();
        let turn = |d: &usize| {
            let turn = refresh_dataset(cx, *d, selection.reset.contains(d));
            turns.lock().unwrap_or_else(PoisonError::into_inner).push((*d, turn));
        };
        if parallel && ready.len() > 1 {
            ready.par_iter().for_each(turn);
        } else {
            ready.iter().for_each(turn);
        }
        for (d, turn) in turns.into_inner().unwrap_or_else(PoisonError::into_inner) {
            if turn.failed {
                failed.insert(d, d);
            }
            reports.extend(turn.reports);
        }
    }
    reports
}

fn skipped(cx: &Context<'_>, dataset: usize, blame: usize) -> Reports {
    let node = &cx.graph.datasets[dataset];
    let because_of = cx.graph.datasets[blame].name.clone();
    let report = |flow: &usize| {
        let report = FlowReport {
            flow: cx.graph.flows[*flow].name.clone(),
            dataset: node.name.clone(),
            status: FlowStatus::Skipped { because_of: because_of.clone() },
            technique: "NO_OP".to_string(),
            rows_in: 0,
            rows_inserted: 0,
            rows_deleted: 0,
            version: None,
            duration: Duration::ZERO,
            expectations: Vec::new(),
            reason: None,
            warnings: Vec::new(),
        };
        cx.listener.flow_finished(&report);
        (report, None)
    };
    node.flows.iter().map(report).collect()
}

/// The marker that this update leads to. Also rolls forward what an update that was cut off
/// committed: its tables count, whether it came to write its marker or not.
fn marker_now(cx: &Context<'_>, dropped: &[String]) -> Result<Marker> {
    let mut marker = cx.marker.clone();
    marker.update = cx.update;
    marker.time_us = cx.now_us;
    for key in dropped {
        marker.datasets.remove(key);
    }
    for (d, node) in cx.graph.datasets.iter().enumerate() {
        if !is_stored(node) {
            continue;
        }
        let stored = cx.stored(d)?;
        let Some(handle) = &stored.handle else { continue };
        let kind = if node.kind == deltaic_sql::DatasetKind::StreamingTable {
            "streaming table"
        } else {
            "materialized view"
        };
        let marked = Marked {
            name: node.name.clone(),
            kind: kind.to_string(),
            version: handle.version(),
            epochs: stored.epochs.clone(),
        };
        marker.datasets.insert(node.key.clone(), marked);
    }
    Ok(marker)
}

fn drop_inactive(cx: &Context<'_>) -> Result<Vec<String>> {
    let keys = inactive(cx.graph, cx.marker);
    for key in &keys {
        cx.steps.pass("drop")?;
        for root in ["tables", "state", "progress"] {
            cx.storage.delete_folder(&format!("{root}/{}", crate::paths::folder(key)))?;
        }
    }
    Ok(keys)
}
