//! The two ways to refresh a view: a step of its stored circuit, or a fresh circuit over
//! everything whose result is compared with the table. Both commit the true change.

use deltaic_batch::{Error, Result, ZBatch};
use deltaic_exec::{Circuit, CircuitOptions};
use deltaic_plan::Technique;

use super::commit::{CommitPlan, FlowCommit, StateCommit, commit, same_columns};
use super::context::Context;
use super::dataset::FlowOutcome;
use super::inputs::scan;
use super::quarantine::Quarantine;
use super::stored::StoredDataset;
use super::view::{Prepared, damaged};
use super::view_input::{Pending, now, whole};
use crate::conform::conform_delta;
use crate::expectations::Rules;
use crate::progress::FlowProgress;
use crate::report::ExpectationCounts;
use crate::state_store::Chain;

fn rules(cx: &Context<'_>, prepared: &Prepared<'_>) -> Result<Rules> {
    let rules = prepared.node.expectations.iter().map(|(e, _)| e);
    Rules::bind(rules, cx.session, &prepared.plan.schema())
}

/// Counts as the last refresh left them, in the order of the rules.
fn counts_before(rules: &Rules, progress: &FlowProgress) -> Vec<(i64, i64)> {
    rules.names().map(|name| progress.expectations.get(name).copied().unwrap_or((0, 0))).collect()
}

/// Counts of a view that did not change.
pub(crate) fn stored_counts(
    prepared: &Prepared<'_>,
    cx: &Context<'_>,
) -> Result<Vec<ExpectationCounts>> {
    if prepared.node.expectations.is_empty() {
        return Ok(Vec::new());
    }
    let rules = rules(cx, prepared)?;
    Ok(rules.report(&counts_before(&rules, &prepared.before)))
}

/// A step of the stored circuit over the pending deltas.
pub(crate) fn incremental(
    cx: &Context<'_>,
    stored: &StoredDataset,
    mut prepared: Prepared<'_>,
    chain: Chain,
    technique: Technique,
    outcome: &mut FlowOutcome,
) -> Result<Option<StoredDataset>> {
    let options = CircuitOptions { shards: chain.full.shards, ..CircuitOptions::default() };
    let mut circuit = prepared.plan.circuit(options)?;
    if let Err(error) = circuit.restore(&chain.full, &chain.changes()) {
        outcome.warnings.push(damaged(prepared.node, error.message()));
        return full(cx, stored, prepared, outcome);
    }
    let mut inputs = Vec::new();
    for i in &mut prepared.inputs {
        if let Pending::Deltas(deltas) = std::mem::replace(&mut i.pending, Pending::Unchanged) {
            inputs.extend(deltas.into_iter().map(|d| (i.input.name.clone(), d)));
        }
    }
    inputs.extend(prepared.plan.clock_change(prepared.before.clock_us, cx.now_us)?);
    let delta = step(&mut circuit, inputs)?;
    let rules = rules(cx, &prepared)?;
    let judged = rules.judge(delta)?;
    let mut totals = counts_before(&rules, &prepared.before);
    crate::expectations::add_counts(&mut totals, &judged.counts);
    outcome.expectations = rules.report(&totals);
    if let Some(error) = rules.failure(&totals, &judged.samples) {
        return Err(error);
    }
    let result = Output {
        circuit,
        chain: Some(chain),
        deltas: vec![judged.kept],
        truncate: false,
        technique: technique.name(),
    };
    finish(cx, stored, prepared, &rules, &totals, result, outcome)
}

/// A fresh circuit over all inputs; the table gets the difference.
pub(crate) fn full(
    cx: &Context<'_>,
    stored: &StoredDataset,
    prepared: Prepared<'_>,
    outcome: &mut FlowOutcome,
) -> Result<Option<StoredDataset>> {
    recompute(cx, stored, prepared, false, outcome)
}

/// A fresh circuit over all inputs in place of all that the table has, which is not looked at.
pub(crate) fn replace(
    cx: &Context<'_>,
    stored: &StoredDataset,
    prepared: Prepared<'_>,
    outcome: &mut FlowOutcome,
) -> Result<Option<StoredDataset>> {
    recompute(cx, stored, prepared, true, outcome)
}

fn recompute(
    cx: &Context<'_>,
    stored: &StoredDataset,
    mut prepared: Prepared<'_>,
    blindly: bool,
    outcome: &mut FlowOutcome,
) -> Result<Option<StoredDataset>> {
    let technique = Technique::CompleteRecompute.name();
    outcome.technique = technique;
    let options = CircuitOptions { shards: cx.shards, ..CircuitOptions::default() };
    let mut circuit = prepared.plan.circuit(options)?;
    let mut inputs = Vec::new();
    let mut rows_in = 0;
    for i in &mut prepared.inputs {
        i.pending = Pending::Unchanged;
        for piece in whole(cx, i.input)? {
            rows_in += piece.num_rows() as u64;
            inputs.push((i.input.name.clone(), piece));
        }
    }
    inputs.extend(prepared.plan.clock_change(None, cx.now_us)?);
    outcome.rows_in = rows_in;
    cx.listener.flow_rows(&prepared.node.name, &prepared.flow.name, rows_in);
    let new = step(&mut circuit, inputs)?;
    let rules = rules(cx, &prepared)?;
    let judged = rules.judge(new)?;
    outcome.expectations = rules.report(&judged.counts);
    if let Some(error) = rules.failure(&judged.counts, &judged.samples) {
        return Err(error);
    }
    let schema = &prepared.node.schema;
    let mut parts = vec![conform_delta(&judged.kept, schema)?];
    let mut truncate = false;
    if let Some(handle) = &stored.handle {
        let table = handle.table()?;
        if same_columns(&table.schema(), schema) && !blindly {
            for batch in scan(table, schema)? {
                parts.push(ZBatch::deletes(batch));
            }
            parts = vec![ZBatch::concat(schema, &parts)?.consolidate()?];
        } else {
            truncate = true;
        }
    }
    let result = Output { circuit, chain: None, deltas: parts, truncate, technique };
    finish(cx, stored, prepared, &rules, &judged.counts, result, outcome)
}

/// What a refresh computed.
struct Output {
    circuit: Circuit,
    chain: Option<Chain>,
    deltas: Vec<ZBatch>,
    truncate: bool,
    technique: &'static str,
}

fn step(circuit: &mut Circuit, inputs: Vec<(String, ZBatch)>) -> Result<ZBatch> {
    circuit
        .step(inputs)?
        .remove("view")
        .ok_or_else(|| Error::internal("CIRCUIT_OUTPUT", "the view's circuit has no output"))
}

fn finish(
    cx: &Context<'_>,
    stored: &StoredDataset,
    prepared: Prepared<'_>,
    rules: &Rules,
    totals: &[(i64, i64)],
    output: Output,
    outcome: &mut FlowOutcome,
) -> Result<Option<StoredDataset>> {
    let is_same = output.deltas.iter().all(ZBatch::is_empty) && !output.truncate;
    // A circuit with a clock is only left as it was where it was used.
    let is_kept = output.chain.is_some() || prepared.plan.clock_change(None, cx.now_us)?.is_none();
    if is_same && is_kept && stored.handle.is_some() && prepared.inputs_unchanged {
        // Only time has passed, and no row has entered or left: the next refresh starts from the
        // same time as this one.
        outcome.technique = Technique::NoOp.name();
        return Ok(None);
    }
    let mut after = FlowProgress {
        query: prepared.flow.query.clone(),
        fingerprint: Some(prepared.fingerprint.clone()),
        clock_us: prepared.plan.asks_for_time().then_some(cx.now_us),
        ..FlowProgress::default()
    };
    for i in &prepared.inputs {
        after.inputs.insert(i.key.clone(), now(cx, i.input)?);
    }
    after.expectations = rules.names().map(str::to_string).zip(totals.iter().copied()).collect();
    let plan = CommitPlan {
        schema: prepared.node.schema.clone(),
        truncate: output.truncate,
        deltas: output.deltas,
        flows: vec![FlowCommit {
            flow: prepared.flow.name.clone(),
            before: prepared.before,
            after,
        }],
        state: Some(StateCommit {
            circuit: output.circuit,
            fingerprint: prepared.fingerprint,
            chain: output.chain,
        }),
        quarantine: Quarantine::default(),
        operation: "REFRESH",
        technique: output.technique,
    };
    let committed = commit(cx, prepared.node, stored, plan)?;
    outcome.changed = true;
    outcome.rows_inserted = committed.rows_inserted;
    outcome.rows_deleted = committed.rows_deleted;
    outcome.version = Some(committed.version);
    Ok(Some(committed.stored))
}
