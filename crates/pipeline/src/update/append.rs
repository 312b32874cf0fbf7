//! Append flows: the query over the new rows of the streaming inputs, appended to the target.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use deltaic_batch::{Result, ZBatch};

use super::commit::{CommitPlan, FlowCommit, commit};
use super::context::{Context, in_flow};
use super::dataset::{FlowOutcome, Refreshed};
use super::inputs::{input_keys, orphaned_files, read_all, read_new};
use super::quarantine::Quarantine;
use super::stored::StoredDataset;
use crate::catalog::FILES;
use crate::conform::conform;
use crate::expectations::{Diverted, Rules, add_counts};
use crate::progress::{FlowProgress, InputProgress};
use crate::{DatasetNode, FlowNode};

/// New rows of a streaming flow's query.
#[derive(Debug)]
pub(crate) struct NewRows {
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) rows_in: u64,
    pub(crate) before: FlowProgress,
    pub(crate) after: FlowProgress,
}

/// Runs a streaming flow's query over what is new; `None` when nothing is (with warnings).
pub(crate) fn new_rows(
    cx: &Context<'_>,
    flow: &FlowNode,
    before: FlowProgress,
) -> Result<(Option<NewRows>, Vec<String>)> {
    let keys = input_keys(cx.graph, flow);
    let mut after = FlowProgress { query: query_text(&flow.query), ..before.clone() };
    after.inputs = BTreeMap::new();
    let mut tables = BTreeMap::new();
    // A ONCE flow reads everything, once.
    let (mut rows_in, mut fresh, mut warnings) = (0_u64, flow.once, Vec::new());
    let adopted = orphaned_files(&before, &keys);
    for (input, key) in flow.inputs.iter().zip(&keys).filter(|(input, _)| input.streaming) {
        let since = match before.inputs.get(key) {
            None if key.starts_with(FILES) => adopted.as_ref(),
            since => since,
        };
        let read = read_new(cx, input, since).map_err(|e| in_flow(flow, e))?;
        fresh |= read.fresh;
        warnings.extend(read.warnings);
        rows_in += count(&read.batches);
        after.inputs.insert(key.clone(), read.after);
        tables.insert(input.name.clone(), read.batches);
    }
    if !fresh {
        return Ok((None, warnings));
    }
    cx.listener.flow_rows(&cx.target(flow).name, &flow.name, rows_in);
    for (input, key) in flow.inputs.iter().zip(&keys).filter(|(input, _)| !input.streaming) {
        let read = read_all(cx, input).map_err(|e| in_flow(flow, e))?;
        if let InputProgress::Table(_) = read.after {
            after.inputs.insert(key.clone(), read.after);
        }
        tables.insert(input.name.clone(), read.batches);
    }
    if before.epoch > 0 && before.query != after.query {
        warnings.push(format!(
            "the query of flow '{}' was edited: it applies to new rows only, from this update on",
            flow.name
        ));
    }
    let (_, batches) = cx
        .session
        .run_batch(&flow.query, &cx.sources(flow), tables)
        .map_err(|e| in_flow(flow, e))?;
    // The flow's columns only: `*` may have brought `_metadata` along.
    let batches = batches.iter().map(|b| conform(b, &flow.schema)).collect::<Result<Vec<_>>>()?;
    let rows = NewRows { batches, rows_in, before, after };
    Ok((Some(rows), warnings))
}

/// A query's text without the numbers of its placeholders (`__source_<file>_<n>`), which are others
/// when SQL files come and go.
pub(crate) fn query_text(query: &str) -> String {
    let mut pieces = query.split("__source_");
    let mut text = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        text.push_str("__source");
        text.push_str(piece.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_'));
    }
    text
}

/// Rows of batches.
pub(crate) fn count(batches: &[RecordBatch]) -> u64 {
    batches.iter().map(|b| b.num_rows() as u64).sum()
}

/// Runs the append flows of a streaming table and commits what they give, together.
pub(crate) fn refresh(
    cx: &Context<'_>,
    node: &DatasetNode,
    stored: &StoredDataset,
    flows: &[&FlowNode],
    reset: bool,
) -> Result<Refreshed> {
    let mut outcomes = Vec::new();
    let mut deltas = Vec::new();
    let mut commits = Vec::new();
    let mut quarantine = Quarantine::new(reset);
    for flow in flows {
        let mut outcome = FlowOutcome::new(flow);
        let rows = one_flow(cx, node, stored, flow, reset, &mut outcome).and_then(|rows| {
            let Some((rows, diverted, commit)) = rows else { return Ok(None) };
            quarantine.add(cx, flow, (&commit.before, &commit.after), &diverted)?;
            Ok(Some((rows, commit)))
        });
        match rows {
            Ok(Some((rows, commit))) => {
                deltas.extend(rows);
                commits.push(commit);
            }
            Ok(None) => {}
            Err(error) => outcome.fail(in_flow(flow, error)),
        }
        outcomes.push(outcome);
    }
    let failed = outcomes.iter().any(FlowOutcome::failed);
    let nothing = commits.is_empty() && !reset && stored.handle.is_some();
    if nothing || (commits.is_empty() && failed) {
        return Ok(Refreshed { outcomes, stored: None });
    }
    let truncate = must_truncate(node, stored, reset)?;
    let plan = CommitPlan {
        schema: node.schema.clone(),
        truncate,
        deltas,
        flows: commits,
        state: None,
        quarantine,
        operation: "STREAMING UPDATE",
        technique: "APPEND_ONLY",
    };
    let committed = commit(cx, node, stored, plan)?;
    for outcome in &mut outcomes {
        outcome.version = outcome.changed.then_some(committed.version);
    }
    Ok(Refreshed { outcomes, stored: Some(committed.stored) })
}

/// A reset empties the table; an empty table may also take another schema.
pub(crate) fn must_truncate(
    node: &DatasetNode,
    stored: &StoredDataset,
    reset: bool,
) -> Result<bool> {
    let Some(handle) = &stored.handle else { return Ok(false) };
    if reset {
        return Ok(true);
    }
    let table = handle.table()?;
    let change = crate::conform::schema_change(&table.schema(), &node.schema);
    let incompatible = matches!(change, crate::conform::SchemaChange::Incompatible(_));
    Ok(incompatible && table.num_rows()? == 0)
}

type FlowRows = (Vec<ZBatch>, Vec<Diverted>, FlowCommit);

fn one_flow(
    cx: &Context<'_>,
    node: &DatasetNode,
    stored: &StoredDataset,
    flow: &FlowNode,
    reset: bool,
    outcome: &mut FlowOutcome,
) -> Result<Option<FlowRows>> {
    if flow.once && stored.epoch(&flow.name) > 0 && !reset {
        return Ok(None);
    }
    let before = if reset { FlowProgress::default() } else { cx.progress(flow, stored)? };
    let (rows, warnings) = new_rows(cx, flow, before)?;
    outcome.warnings.extend(warnings);
    let Some(rows) = rows else { return Ok(None) };
    let rules = Rules::bind(node.expectations.iter().map(|(e, _)| e), cx.session, &node.schema)?;
    let mut totals = Vec::new();
    let mut samples = Vec::new();
    let (mut deltas, mut diverted) = (Vec::new(), Vec::new());
    for batch in &rows.batches {
        let judged = rules.judge(ZBatch::inserts(conform(batch, &node.schema)?))?;
        add_counts(&mut totals, &judged.counts);
        samples.extend(judged.samples);
        outcome.rows_inserted += judged.kept.num_rows() as u64;
        deltas.push(judged.kept);
        diverted.extend(judged.diverted);
    }
    totals.resize(rules.names().count(), (0, 0));
    outcome.expectations = rules.report(&totals);
    outcome.rows_in = rows.rows_in;
    if let Some(error) = rules.failure(&totals, &samples) {
        return Err(error);
    }
    outcome.changed = true;
    outcome.technique = "APPEND_ONLY";
    let commit = FlowCommit { flow: flow.name.clone(), before: rows.before, after: rows.after };
    Ok(Some((deltas, diverted, commit)))
}
