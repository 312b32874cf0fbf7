//! AUTO CDC flows: new change events go through the SCD merge, whose state is stored with the
//! target; its output is exactly the change of the target.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::{and, filter_record_batch};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_exec::{Circuit, CircuitBuilder, CircuitOptions};
use deltaic_ops::{ConflictExample, Operator, ScdMerge};

use super::append::{count, must_truncate, new_rows};
use super::cdc_events::{EventSpec, IS_NULL, drift};
use super::change_feed;
use super::commit::{CommitPlan, Committed, FlowCommit, StateCommit, commit};
use super::context::{Context, in_flow};
use super::dataset::{FlowOutcome, Refreshed};
use super::inputs::scan;
use super::quarantine::Quarantine;
use super::retention::RETENTION;
use super::stored::StoredDataset;
use crate::conform::conform;
use crate::expectations::{Diverted, Rules, add_counts};
use crate::graph::{INVALID_ROWS, QUARANTINE};
use crate::progress::{FlowProgress, InputProgress};
use crate::state_store::{Chain, NoState, StateStore};
use crate::{CdcPlan, DatasetNode, FlowKind, FlowNode};

/// Events of all flows of one update.
#[derive(Debug)]
struct Gathered {
    events: Vec<RecordBatch>,
    commits: Vec<FlowCommit>,
    quarantine: Quarantine,
}

fn cdc_plan(flow: &FlowNode) -> Result<&CdcPlan> {
    match &flow.kind {
        FlowKind::AutoCdc(plan) => Ok(plan),
        _ => Err(Error::user(
            "AUTOCDC_MIXED_FLOWS",
            "a target of AUTO CDC takes AUTO CDC flows only",
        )
        .object(&flow.name)
        .at(flow.location.clone())),
    }
}

/// Runs the AUTO CDC flows of a target and commits the target's change.
pub(crate) fn refresh(
    cx: &Context<'_>,
    node: &DatasetNode,
    stored: &StoredDataset,
    flows: &[&FlowNode],
    reset: bool,
) -> Result<Refreshed> {
    let plans = flows.iter().map(|f| cdc_plan(f)).collect::<Result<Vec<_>>>()?;
    let truncates = plans.iter().any(|p| p.truncate_when.is_some());
    let spec = EventSpec::new(flows[0], plans[0], truncates)?;
    let mut outcomes: Vec<FlowOutcome> = flows.iter().map(|f| FlowOutcome::new(f)).collect();
    let quarantine = Quarantine::new(reset);
    let mut gathered = Gathered { events: Vec::new(), commits: Vec::new(), quarantine };
    for ((flow, plan), outcome) in flows.iter().zip(&plans).zip(&mut outcomes) {
        let start = if reset { Ok(FlowProgress::default()) } else { cx.progress(flow, stored) };
        let done = start.and_then(|before| {
            if let Some(identity) = &before.cdc
                && let Some(error) = drift(identity, &spec.identity)
            {
                return Err(error.object(&node.name));
            }
            if flow.once && before.epoch > 0 {
                return Ok(());
            }
            gather(cx, node, flow, plan, &spec, before, outcome, &mut gathered)
        });
        if let Err(error) = done {
            outcome.fail(in_flow(flow, error));
        }
    }
    let failed = outcomes.iter().any(FlowOutcome::failed);
    let nothing = gathered.commits.is_empty() && !reset && stored.handle.is_some();
    if nothing || (gathered.commits.is_empty() && failed) {
        return Ok(Refreshed { outcomes, stored: None });
    }
    let (spec, fingerprint) = (&spec, spec.fingerprint());
    let merge = Merge { cx, node, stored, flows, spec, fingerprint, reset };
    let (committed, warnings) = merge.run(&gathered)?;
    if let Some(first) = outcomes.iter_mut().find(|o| o.changed) {
        first.rows_inserted = committed.rows_inserted;
        first.rows_deleted = committed.rows_deleted;
        first.warnings.extend(warnings);
    }
    for outcome in outcomes.iter_mut().filter(|o| o.changed) {
        outcome.version = Some(committed.version);
    }
    Ok(Refreshed { outcomes, stored: Some(committed.stored) })
}

/// New events of one flow, judged and validated.
#[expect(clippy::too_many_arguments, reason = "one flow's surroundings, passed through once")]
fn gather(
    cx: &Context<'_>,
    node: &DatasetNode,
    flow: &FlowNode,
    plan: &CdcPlan,
    spec: &EventSpec,
    before: FlowProgress,
    outcome: &mut FlowOutcome,
    gathered: &mut Gathered,
) -> Result<()> {
    let (rows, warnings) = new_rows(cx, flow, before)?;
    outcome.warnings.extend(warnings);
    let Some(rows) = rows else { return Ok(()) };
    outcome.rows_in = count(&rows.batches);
    let rules = Rules::bind(node.expectations.iter().map(|(e, _)| e), cx.session, &flow.schema)?;
    let mut totals = vec![(0, 0); rules.names().count()];
    let (mut samples, mut events, mut diverted) = (Vec::new(), Vec::new(), Vec::new());
    for batch in events_of(plan, rows.batches)? {
        let judged = rules.judge(ZBatch::inserts(batch))?;
        add_counts(&mut totals, &judged.counts);
        samples.extend(judged.samples);
        diverted.extend(judged.diverted);
        let (rows, invalid) = valid_rows(flow, plan, spec, judged.kept.rows())?;
        diverted.extend(invalid);
        events.push(spec.events(plan, &rows)?);
    }
    outcome.expectations = rules.report(&totals);
    if let Some(error) = rules.failure(&totals, &samples) {
        return Err(error);
    }
    spec.validate(&events)?;
    outcome.changed = true;
    outcome.technique = "ROW_BASED";
    gathered.events.extend(events);
    gathered.quarantine.add(cx, flow, (&rows.before, &rows.after), &diverted)?;
    outcome.warnings.extend(diverted_warning(cx, node, &diverted));
    let mut after = rows.after;
    after.cdc = Some(spec.identity.clone());
    gathered.commits.push(FlowCommit { flow: flow.name.clone(), before: rows.before, after });
    Ok(())
}

/// The rows that can be merged, and where the flow says so, those that cannot. A flow that does not
/// say so is refused when all its events are known.
fn valid_rows(
    flow: &FlowNode,
    plan: &CdcPlan,
    spec: &EventSpec,
    rows: &RecordBatch,
) -> Result<(RecordBatch, Option<Diverted>)> {
    let diverts = flow.configuration.get(INVALID_ROWS);
    if !diverts.is_some_and(|value| value.eq_ignore_ascii_case(QUARANTINE)) {
        return Ok((rows.clone(), None));
    }
    let rules = spec.validity(&spec.events(plan, rows)?)?;
    let mut valid = BooleanArray::from(vec![true; rows.num_rows()]);
    for (_, passes) in &rules {
        valid = and(&valid, passes)?;
    }
    Ok((filter_record_batch(rows, &valid)?, Diverted::by_rules(rows, &rules)?))
}

/// Events that were invalid are no rule's to count.
fn diverted_warning(cx: &Context<'_>, node: &DatasetNode, diverted: &[Diverted]) -> Option<String> {
    let is_invalid = |rules: &&Vec<String>| rules.iter().any(|rule| rule.ends_with(IS_NULL));
    let count = diverted.iter().flat_map(|d| &d.rules).filter(is_invalid).count();
    let quarantine = &cx.graph.datasets[node.quarantine.filter(|_| count > 0)?].name;
    Some(format!("'{}': {count} events without key or sequence went into {quarantine}", node.name))
}

/// The source rows that are events.
fn events_of(plan: &CdcPlan, rows: Vec<RecordBatch>) -> Result<Vec<RecordBatch>> {
    match plan.change_feed {
        true => change_feed::events(rows, &plan.keys),
        false => Ok(rows),
    }
}

/// A merge circuit with empty state, and the operator to ask about conflicts.
pub(crate) fn circuit(spec: &EventSpec, shards: usize) -> Result<(Circuit, Arc<ScdMerge>)> {
    let mut builder = CircuitBuilder::new();
    let events = builder.source("events", spec.scd.input.clone())?;
    let merge = Arc::new(ScdMerge::try_new(spec.scd.clone())?);
    let target = builder.add(merge.clone() as Arc<dyn Operator>, &[events])?;
    builder.output("target", target)?;
    let options = CircuitOptions { shards, ..CircuitOptions::default() };
    Ok((builder.build(options)?, merge))
}

/// The merge of a target: what its steps have in common.
struct Merge<'a> {
    cx: &'a Context<'a>,
    node: &'a DatasetNode,
    stored: &'a StoredDataset,
    flows: &'a [&'a FlowNode],
    spec: &'a EventSpec,
    fingerprint: String,
    reset: bool,
}

impl Merge<'_> {
    /// Merges new events and commits. State is read when a key needs it: if it turns out to be
    /// damaged, everything starts again from the flows' sources.
    fn run(&self, gathered: &Gathered) -> Result<(Committed, Vec<String>)> {
        let why = match self.open_state()? {
            Opened::Ready(ready) => match self.merge(*ready, gathered, false) {
                Err(error) if error.code() == "STATE_CORRUPT" => {
                    Some(format!("is damaged ({})", error.message()))
                }
                done => return done,
            },
            Opened::Rebuild(why) => why,
        };
        let (circuit, operator) = circuit(self.spec, self.cx.shards)?;
        let rebuilt = Ready { circuit, operator, chain: None };
        let (committed, mut warnings) = self.merge(rebuilt, gathered, true)?;
        let warning = |why| {
            let name = &self.node.name;
            format!("operator state of '{name}' {why}; it is rebuilt from the flow's source")
        };
        warnings.splice(0..0, why.map(warning));
        Ok((committed, warnings))
    }

    /// A step over the new events, after those of earlier updates if the state is `rebuilt`.
    fn merge(
        &self,
        ready: Ready,
        gathered: &Gathered,
        rebuilt: bool,
    ) -> Result<(Committed, Vec<String>)> {
        let Self { cx, node, stored, .. } = *self;
        let Ready { mut circuit, operator, chain } = ready;
        let mut events = Vec::new();
        if rebuilt {
            events = consumed_events(cx, node, stored, self.flows, self.spec, gathered)?;
        }
        events.extend(gathered.events.iter().cloned());
        let inputs = events.into_iter().map(|e| ("events".to_string(), ZBatch::inserts(e)));
        let mut output = circuit.step(inputs.collect())?;
        let mut delta = output
            .remove("target")
            .ok_or_else(|| Error::internal("CIRCUIT_OUTPUT", "the merge has no output"))?;
        let truncate = must_truncate(node, stored, self.reset)?;
        if rebuilt && !truncate {
            delta = against_table(stored, delta)?;
        }
        let warnings = conflict_warning(node, &operator).into_iter();
        let warnings = warnings.chain(late_warning(node, &operator)).collect();
        let fingerprint = self.fingerprint.clone();
        let plan = CommitPlan {
            schema: node.schema.clone(),
            truncate,
            deltas: vec![delta],
            flows: gathered.commits.clone(),
            state: Some(StateCommit { circuit, fingerprint, chain }),
            quarantine: gathered.quarantine.clone(),
            operation: "MERGE",
            technique: "ROW_BASED",
        };
        Ok((commit(cx, node, stored, plan)?, warnings))
    }

    fn open_state(&self) -> Result<Opened> {
        let epoch = self.stored.epoch("");
        if self.reset || epoch == 0 {
            let (circuit, operator) = circuit(self.spec, self.cx.shards)?;
            return Ok(Opened::Ready(Box::new(Ready { circuit, operator, chain: None })));
        }
        let store = StateStore::new(self.cx.storage, &self.node.key);
        let chain = match store.load(epoch, &self.fingerprint)? {
            Ok(chain) => chain,
            Err(NoState::None) => return Ok(Opened::Rebuild(None)),
            Err(NoState::Damaged(why)) => {
                return Ok(Opened::Rebuild(Some(format!("is damaged ({why})"))));
            }
        };
        let (mut circuit, operator) = circuit(self.spec, chain.full.shards)?;
        match circuit.restore(&chain.full, &chain.changes()) {
            Ok(()) => {
                let chain = Some(chain);
                Ok(Opened::Ready(Box::new(Ready { circuit, operator, chain })))
            }
            Err(error) => {
                Ok(Opened::Rebuild(Some(format!("cannot be read ({})", error.message()))))
            }
        }
    }
}

/// A merge circuit with its state.
struct Ready {
    circuit: Circuit,
    operator: Arc<ScdMerge>,
    /// Where the state was stored.
    chain: Option<Chain>,
}

/// Where the merge's state comes from.
enum Opened {
    Ready(Box<Ready>),
    /// From all events; with the reason when that is worth a warning.
    Rebuild(Option<String>),
}

/// All events of earlier updates, read again from the flows' sources.
fn consumed_events(
    cx: &Context<'_>,
    node: &DatasetNode,
    stored: &StoredDataset,
    flows: &[&FlowNode],
    spec: &EventSpec,
    gathered: &Gathered,
) -> Result<Vec<RecordBatch>> {
    let mut out = Vec::new();
    for flow in flows {
        let before = match gathered.commits.iter().find(|c| c.flow == flow.name) {
            Some(commit) => commit.before.clone(),
            None => cx.progress(flow, stored)?,
        };
        if before.epoch == 0 {
            continue;
        }
        let plan = cdc_plan(flow)?;
        let rows = consumed_rows(cx, flow, &before)?;
        let rules =
            Rules::bind(node.expectations.iter().map(|(e, _)| e), cx.session, &flow.schema)?;
        for batch in events_of(plan, rows)? {
            let judged = rules.judge(ZBatch::inserts(batch))?;
            let (rows, _) = valid_rows(flow, plan, spec, judged.kept.rows())?;
            out.push(spec.events(plan, &rows)?);
        }
    }
    Ok(out)
}

/// The flow's query over exactly what its progress says was consumed.
fn consumed_rows(
    cx: &Context<'_>,
    flow: &FlowNode,
    progress: &FlowProgress,
) -> Result<Vec<RecordBatch>> {
    let keys = super::inputs::input_keys(cx.graph, flow);
    if let Some(gone) = progress.inputs.keys().find(|key| !keys.contains(key)) {
        return Err(lost(&flow.name, &format!("it no longer reads {gone}")));
    }
    let mut tables = std::collections::BTreeMap::new();
    for (input, key) in flow.inputs.iter().zip(&keys) {
        let batches = match (&input.source, progress.inputs.get(key)) {
            (_, None) if input.streaming => Vec::new(),
            (crate::InputSource::Dataset(d), Some(InputProgress::Table(version)))
                if input.streaming =>
            {
                let key = crate::paths::table(&cx.graph.datasets[*d].key);
                match deltaic_table::Table::open_at(cx.storage, &key, *version)? {
                    Some(table) => scan(&table, &input.schema)?,
                    None => return Err(lost(&flow.name, "a version of its source is gone")),
                }
            }
            (crate::InputSource::Files(call), Some(InputProgress::Files { files, .. }))
                if input.streaming =>
            {
                let resolved = cx.files.resolve(call)?;
                let there = |path: &String| resolved.listing.iter().any(|f| &f.path == path);
                if let Some(gone) = files.keys().find(|path| !there(path)) {
                    return Err(lost(&flow.name, &format!("the file {gone} is gone")));
                }
                let list: Vec<_> = files.values().cloned().collect();
                super::inputs::read_files(cx, &resolved, &list, input)?
            }
            _ => super::inputs::read_all(cx, input)?.batches,
        };
        tables.insert(input.name.clone(), batches);
    }
    let (_, batches) = cx.session.run_batch(&flow.query, &cx.sources(flow), tables)?;
    batches.iter().map(|b| conform(b, &flow.schema)).collect()
}

fn lost(flow: &str, why: &str) -> Error {
    Error::storage(
        "STATE_LOST",
        format!("the operator state cannot be used and cannot be rebuilt: {why}"),
    )
    .object(flow)
    .hint("restore the storage folder or the source; --full-refresh starts from what is there")
}

/// The change from the table's rows to a target that was computed from nothing.
fn against_table(stored: &StoredDataset, target: ZBatch) -> Result<ZBatch> {
    let Some(handle) = &stored.handle else { return Ok(target) };
    let schema = target.schema();
    let mut parts = vec![target];
    for batch in scan(handle.table()?, &schema)? {
        parts.push(ZBatch::deletes(batch));
    }
    ZBatch::concat(&schema, &parts)?.consolidate()
}

fn late_warning(node: &DatasetNode, operator: &ScdMerge) -> Option<String> {
    let late = operator.take_late();
    (late > 0).then(|| {
        format!(
            "'{}': {late} events came later than {RETENTION} allows and were dropped",
            node.name
        )
    })
}

fn conflict_warning(node: &DatasetNode, operator: &ScdMerge) -> Option<String> {
    let conflicts = operator.take_conflicts();
    (conflicts.count > 0).then(|| {
        let example =
            |example: &ConflictExample| format!("{} at sequence {}", example.key, example.sequence);
        let examples: Vec<String> = conflicts.examples.iter().map(example).collect();
        format!(
            "'{}': {} events have the key and the sequence of another one but other values, and \
             the greater row wins: {}",
            node.name,
            conflicts.count,
            examples.join("; ")
        )
    })
}
