//! Materialized views: what is pending, the refresh decision, and the refresh by it.

use arrow::datatypes::FieldRef;
use deltaic_batch::Result;
use deltaic_plan::{Decision, RefreshPolicy, Technique, ViewPlan, ViewStats};

use super::commit::same_columns;
use super::context::{Context, in_flow};
use super::dataset::{FlowOutcome, Planning, Refreshed};
use super::inputs::input_keys;
use super::stored::StoredDataset;
use super::view_input::{Pending, full_rows, pending};
use super::view_refresh::{full, incremental, replace};
use crate::conform::nullable;
use crate::expectations::identity;
use crate::progress::FlowProgress;
use crate::state_store::{Chain, NoState, StateStore};
use crate::{DatasetNode, FlowInput, FlowNode};

/// A view whose plan and pending changes are known.
pub(crate) struct Prepared<'a> {
    pub(crate) node: &'a DatasetNode,
    pub(crate) flow: &'a FlowNode,
    pub(crate) plan: ViewPlan,
    /// Of plan and expectations.
    pub(crate) fingerprint: String,
    pub(crate) before: FlowProgress,
    pub(crate) inputs: Vec<PreparedInput<'a>>,
    /// No input has changed since the last refresh of this plan.
    pub(crate) inputs_unchanged: bool,
}

/// One input that the plan reads.
pub(crate) struct PreparedInput<'a> {
    pub(crate) input: &'a FlowInput,
    pub(crate) key: String,
    pub(crate) pending: Pending,
}

/// Plans the view and looks at its inputs.
fn prepare<'a>(
    cx: &Context<'a>,
    node: &'a DatasetNode,
    stored: &StoredDataset,
    flow: &'a FlowNode,
    reset: bool,
    warnings: &mut Vec<String>,
) -> Result<Prepared<'a>> {
    let plan = cx.session.plan_view(&flow.query, &cx.sources(flow))?;
    let before = match cx.progress(flow, stored) {
        _ if reset => FlowProgress::default(),
        Ok(progress) => progress,
        Err(error) => {
            warnings.push(format!("'{}' is recomputed: {}", node.name, error.message()));
            FlowProgress::default()
        }
    };
    let rules = identity(node.expectations.iter().map(|(e, _)| e));
    let fingerprint = format!("{}{rules}{}", plan.fingerprint(), declared(node, &plan));
    let same_plan = before.epoch > 0 && before.fingerprint.as_deref() == Some(&fingerprint);
    let read = plan.sources();
    let keys = input_keys(cx.graph, flow);
    let mut inputs = Vec::new();
    for (input, key) in flow.inputs.iter().zip(keys) {
        if read.iter().any(|name| name == &input.name) {
            let pending = match same_plan {
                true => pending(cx, input, before.inputs.get(&key))?,
                // All of it is read anyway.
                false => Pending::Unknown("the definition changed".to_string()),
            };
            inputs.push(PreparedInput { input, key, pending });
        }
    }
    let inputs_unchanged = same_plan && inputs.iter().all(|i| i.pending.is_nothing());
    Ok(Prepared { node, flow, plan, fingerprint, before, inputs, inputs_unchanged })
}

/// Declared columns, where the table has others than the query yields.
fn declared(node: &DatasetNode, plan: &ViewPlan) -> String {
    if same_columns(&node.schema, &nullable(&plan.schema())) {
        return String::new();
    }
    let column = |f: &FieldRef| format!("|{} {} {}", f.name(), f.data_type(), f.is_nullable());
    node.schema.fields().iter().map(column).collect()
}

impl Prepared<'_> {
    /// The plan is that of the last refresh.
    fn same_plan(&self) -> bool {
        self.before.epoch > 0 && self.before.fingerprint.as_deref() == Some(&self.fingerprint)
    }

    /// The view asks for the time, which is another one than at its last refresh.
    fn clock_moved(&self, cx: &Context<'_>) -> bool {
        self.plan.asks_for_time() && self.before.clock_us != Some(cx.now_us)
    }

    fn unknown(&self) -> Option<&str> {
        self.inputs.iter().find_map(|i| match &i.pending {
            Pending::Unknown(why) => Some(why.as_str()),
            Pending::Unchanged | Pending::Deltas(_) => None,
        })
    }

    fn rows_in(&self) -> u64 {
        self.inputs.iter().map(|i| i.pending.rows()).sum()
    }

    fn stats(
        &self,
        cx: &Context<'_>,
        stored: &StoredDataset,
        has_state: bool,
    ) -> Result<ViewStats> {
        let mut stats = ViewStats { has_state, ..ViewStats::default() };
        for i in &self.inputs {
            stats.delta_rows.insert(i.input.name.clone(), i.pending.rows());
            stats.source_rows.insert(i.input.name.clone(), full_rows(cx, i.input)?);
        }
        if self.plan.clock_change(None, cx.now_us)?.is_some() && self.clock_moved(cx) {
            stats.clock_moved = true;
        }
        if let Some(handle) = &stored.handle {
            stats.view_rows = handle.table()?.num_rows()?;
        }
        Ok(stats)
    }
}

/// Brings a view up to date.
pub(crate) fn refresh(
    cx: &Context<'_>,
    node: &DatasetNode,
    stored: &StoredDataset,
    flow: &FlowNode,
    reset: bool,
) -> Result<Refreshed> {
    let mut outcome = FlowOutcome::new(flow);
    let result = refresh_one(cx, node, stored, flow, reset, &mut outcome);
    let stored = match result {
        Ok(stored) => stored,
        Err(error) => {
            outcome.fail(in_flow(flow, error));
            None
        }
    };
    Ok(Refreshed { outcomes: vec![outcome], stored })
}

fn refresh_one(
    cx: &Context<'_>,
    node: &DatasetNode,
    stored: &StoredDataset,
    flow: &FlowNode,
    reset: bool,
    outcome: &mut FlowOutcome,
) -> Result<Option<StoredDataset>> {
    let prepared = prepare(cx, node, stored, flow, reset, &mut outcome.warnings)?;
    if prepared.inputs_unchanged && !prepared.clock_moved(cx) && stored.handle.is_some() {
        outcome.expectations = super::view_refresh::stored_counts(&prepared, cx)?;
        return Ok(None);
    }
    outcome.rows_in = prepared.rows_in();
    cx.listener.flow_rows(&node.name, &flow.name, outcome.rows_in);
    let state = open_state(cx, stored, &prepared, &mut outcome.warnings)?;
    let stats = prepared.stats(cx, stored, state.is_some())?;
    let decision = prepared.plan.decide(node.refresh_policy, &stats)?;
    outcome.reason = Some(reason(&prepared, &decision));
    outcome.technique = decision.chosen.name();
    outcome.decision = Some(Planning {
        issues: issues(&prepared),
        sources: prepared
            .inputs
            .iter()
            .map(|i| {
                let name = &i.input.name;
                let of = |map: &std::collections::BTreeMap<String, u64>| {
                    map.get(name).copied().unwrap_or(0)
                };
                (i.key.clone(), of(&stats.delta_rows), of(&stats.source_rows))
            })
            .collect(),
        view_rows: stats.view_rows,
        decision: decision.clone(),
    });
    let done = match state {
        Some(state) if decision.chosen != Technique::CompleteRecompute => {
            incremental(cx, stored, prepared, state, decision.chosen, outcome)
        }
        _ => full(cx, stored, prepared, outcome),
    };
    match done {
        Err(e) if matches!(e.code(), "DATA_FILE_CORRUPT" | "DELETION_VECTOR_CORRUPT") => {
            // A view can always be computed again; if the file is a source's, this fails as well.
            let again = prepare(cx, node, stored, flow, true, &mut outcome.warnings)?;
            let done = replace(cx, stored, again, outcome)?;
            outcome.warnings.push(format!(
                "stored rows of '{}' are damaged ({}); it is computed again from its sources",
                node.name,
                e.message()
            ));
            Ok(done)
        }
        done => done,
    }
}

/// The decision's reason; when there was no choice, why.
fn reason(prepared: &Prepared<'_>, decision: &Decision) -> String {
    if prepared.before.epoch == 0 {
        "first refresh".to_string()
    } else if !prepared.same_plan() {
        "the definition changed (QUERY_FINGERPRINT_CHANGED)".to_string()
    } else if let Some(why) = prepared.unknown() {
        format!("{why} (CHANGE_SET_MISSING)")
    } else {
        decision.reason.clone()
    }
}

fn issues(prepared: &Prepared<'_>) -> Vec<(String, String, String)> {
    let mut issues = prepared.plan.issues();
    let mut add = |kind: &str, why: &str| {
        issues.push((kind.to_string(), String::new(), why.to_string()));
    };
    if prepared.before.epoch > 0 && !prepared.same_plan() {
        add("QUERY_FINGERPRINT_CHANGED", "the view's definition or its sources' types changed");
    } else if let Some(why) = prepared.unknown() {
        add("CHANGE_SET_MISSING", why);
    }
    issues
}

/// State that an incremental refresh can start from.
fn open_state(
    cx: &Context<'_>,
    stored: &StoredDataset,
    prepared: &Prepared<'_>,
    warnings: &mut Vec<String>,
) -> Result<Option<Chain>> {
    let full = prepared.node.refresh_policy == RefreshPolicy::Full;
    if full || !prepared.same_plan() || prepared.unknown().is_some() {
        return Ok(None);
    }
    let store = StateStore::new(cx.storage, &prepared.node.key);
    match store.load(stored.epoch(""), &prepared.fingerprint)? {
        Ok(state) => Ok(Some(state)),
        Err(NoState::None) => Ok(None),
        Err(NoState::Damaged(why)) => {
            warnings.push(damaged(prepared.node, &why));
            Ok(None)
        }
    }
}

/// Warning about state that cannot be used.
pub(crate) fn damaged(node: &DatasetNode, why: &str) -> String {
    format!("operator state of '{}' is damaged ({why}); it is rebuilt from the tables", node.name)
}

/// Plan, pending changes and the decision that a run would take.
pub(crate) fn explain(cx: &Context<'_>, dataset: usize) -> Result<String> {
    use std::fmt::Write;
    let node = &cx.graph.datasets[dataset];
    let flow = &cx.graph.flows[node.flows[0]];
    let stored = cx.find(dataset)?;
    let mut warnings = Vec::new();
    let prepared = prepare(cx, node, &stored, flow, false, &mut warnings)?;
    let state = open_state(cx, &stored, &prepared, &mut warnings)?;
    let stats = prepared.stats(cx, &stored, state.is_some())?;
    let decision = prepared.plan.decide(node.refresh_policy, &stats)?;
    let nothing = prepared.inputs_unchanged && !prepared.clock_moved(cx);
    let mut out = prepared.plan.explain();
    if !out.ends_with('\n') {
        out.push('\n');
    }
    // Writing to a String cannot fail.
    let _ = writeln!(out, "\nrefresh policy: {}", node.refresh_policy.name());
    for candidate in &decision.candidates {
        let note = if candidate.applicable { "" } else { " (not applicable now)" };
        let _ = writeln!(
            out,
            "candidate {}: {:.0} µs{note}",
            candidate.technique.name(),
            candidate.cost_us
        );
    }
    if nothing {
        let _ = writeln!(out, "next refresh: NO_OP, no input changed");
    } else {
        let why = reason(&prepared, &decision);
        let _ = writeln!(out, "next refresh: {}, {why}", decision.chosen.name());
    }
    for warning in warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    Ok(out)
}
