//! AUTO CDC FROM SNAPSHOT: each new snapshot is compared with the rows that hold, and the difference
//! goes as events of the snapshot's version through the SCD merge.
//!
//! Versions only ascend, so that nothing is ever late: the rows that hold are all that the merge has to
//! know, and they stand in the target. No state is kept besides.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int8Array, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, filter_record_batch, is_null, take, take_record_batch};
use arrow::datatypes::{Schema, SchemaRef};
use deltaic_batch::{Error, ErrorClass, Result, ZBatch};
use deltaic_ops::{KIND_DELETE, KIND_UPSERT, ScdType, SnapshotDifference, snapshot_difference};

use super::append::must_truncate;
use super::cdc::circuit;
use super::cdc_events::{EventSpec, drift};
use super::commit::{CommitPlan, FlowCommit, commit};
use super::context::{Context, in_flow};
use super::dataset::{FlowOutcome, Refreshed};
use super::inputs::scan;
use super::quarantine::Quarantine;
use super::snapshot_source::{Snapshot, as_type, pending};
use super::stored::StoredDataset;
use crate::conform::conform;
use crate::expectations::{Diverted, Rules, add_counts};
use crate::progress::FlowProgress;
use crate::{CdcPlan, DatasetNode, FlowKind, FlowNode};

/// Runs the snapshot flow of a target and commits the target's change.
pub(crate) fn refresh(
    cx: &Context<'_>,
    node: &DatasetNode,
    stored: &StoredDataset,
    flow: &FlowNode,
    reset: bool,
) -> Result<Refreshed> {
    let FlowKind::AutoCdcSnapshot(plan) = &flow.kind else {
        return Err(Error::internal("FLOW_KIND", "a snapshot flow is of another kind"));
    };
    let mut outcome = FlowOutcome::new(flow);
    let planned = changes(cx, node, stored, flow, plan, reset, &mut outcome);
    let (delta, flow_commit, diverted) = match planned {
        Ok(Some(planned)) => planned,
        Ok(None) => return Ok(Refreshed { outcomes: vec![outcome], stored: None }),
        Err(error) => {
            outcome.fail(in_flow(flow, error));
            return Ok(Refreshed { outcomes: vec![outcome], stored: None });
        }
    };
    let mut quarantine = Quarantine::new(reset);
    if let Some(commit) = &flow_commit {
        quarantine.add(cx, flow, (&commit.before, &commit.after), &diverted)?;
    }
    let commit_plan = CommitPlan {
        schema: node.schema.clone(),
        truncate: must_truncate(node, stored, reset)?,
        deltas: vec![delta],
        flows: flow_commit.into_iter().collect(),
        state: None,
        quarantine,
        operation: "MERGE",
        technique: "ROW_BASED",
    };
    let committed = commit(cx, node, stored, commit_plan)?;
    outcome.rows_inserted = committed.rows_inserted;
    outcome.rows_deleted = committed.rows_deleted;
    if outcome.changed {
        outcome.version = Some(committed.version);
    }
    Ok(Refreshed { outcomes: vec![outcome], stored: Some(committed.stored) })
}

type Planned = (ZBatch, Option<FlowCommit>, Vec<Diverted>);

/// The change of the target; `None` where there is nothing to do.
fn changes(
    cx: &Context<'_>,
    node: &DatasetNode,
    stored: &StoredDataset,
    flow: &FlowNode,
    plan: &CdcPlan,
    reset: bool,
    outcome: &mut FlowOutcome,
) -> Result<Option<Planned>> {
    let merge = SnapshotMerge::new(EventSpec::new(flow, plan, false)?)?;
    let before = if reset { FlowProgress::default() } else { cx.progress(flow, stored)? };
    if let Some(identity) = &before.cdc
        && let Some(error) = drift(identity, &merge.spec.identity)
    {
        return Err(error.object(&node.name));
    }
    let is_new = reset || stored.handle.is_none();
    if flow.once && before.epoch > 0 {
        return Ok(None);
    }
    let mut found = pending(cx, flow, plan, &before)?;
    outcome.warnings.append(&mut found.warnings);
    outcome.rows_in = found.rows_in;
    if found.snapshots.is_empty() {
        return Ok(is_new.then(|| (ZBatch::empty(merge.target.clone()), None, Vec::new())));
    }
    cx.listener.flow_rows(&node.name, &flow.name, found.rows_in);
    let rules = Rules::bind(node.expectations.iter().map(|(e, _)| e), cx.session, &flow.schema)?;
    let mut totals = vec![(0, 0); rules.names().count()];
    let (mut samples, mut diverted) = (Vec::new(), Vec::new());
    let mut held = match (&stored.handle, reset) {
        (Some(handle), false) => merge.held(&scan(handle.table()?, &node.schema)?)?,
        _ => RecordBatch::new_empty(merge.held_schema()),
    };
    let mut deltas = Vec::new();
    let last = found.snapshots.len() - 1;
    for (at, snapshot) in found.snapshots.into_iter().enumerate() {
        let Snapshot { version, name, rows } = snapshot;
        let mut kept = Vec::with_capacity(rows.len());
        let (mut counts, mut violating) = (totals.clone(), Vec::new());
        let mut aside = Vec::new();
        for batch in rows {
            let judged = rules.judge(ZBatch::inserts(batch))?;
            add_counts(&mut counts, &judged.counts);
            violating.extend(judged.samples);
            aside.extend(judged.diverted);
            kept.push(merge.spec.columns_of(judged.kept.rows())?);
        }
        match merge.apply(&mut held, &kept, version) {
            Ok(delta) => deltas.push(delta),
            Err(error) if error.class() != ErrorClass::Data => return Err(error),
            // A later snapshot has all of the source, too.
            Err(error) if at < last => {
                outcome.warnings.push(format!("{name} is passed over: {}", error.message()));
                continue;
            }
            Err(error) => {
                let message = format!("{name}: {}", error.message());
                let named = Error::data(error.code(), message);
                return Err(match error.get_hint() {
                    Some(hint) => named.hint(hint),
                    None => named,
                });
            }
        }
        samples.extend(violating);
        diverted.extend(aside);
        totals = counts;
    }
    outcome.expectations = rules.report(&totals);
    if let Some(error) = rules.failure(&totals, &samples) {
        return Err(error);
    }
    outcome.changed = true;
    outcome.technique = "ROW_BASED";
    found.after.cdc = Some(merge.spec.identity.clone());
    let commit = FlowCommit { flow: flow.name.clone(), before, after: found.after };
    let delta = ZBatch::concat(&merge.target, &deltas)?.consolidate()?;
    Ok(Some((delta, Some(commit), diverted)))
}

/// Merges snapshots into the rows that hold.
struct SnapshotMerge {
    spec: EventSpec,
    /// Schema of the target.
    target: SchemaRef,
}

impl SnapshotMerge {
    fn new(spec: EventSpec) -> Result<Self> {
        let target = spec.scd.target_schema()?;
        Ok(Self { spec, target })
    }

    /// The columns that come from the source and, for type 2, the version since when.
    fn held_schema(&self) -> SchemaRef {
        let width = self.spec.scd.columns.len();
        let since = usize::from(self.spec.scd.scd_type == ScdType::Type2);
        Arc::new(Schema::new(self.target.fields()[..width + since].to_vec()))
    }

    /// The target's rows that hold.
    fn held(&self, rows: &[RecordBatch]) -> Result<RecordBatch> {
        let schema = self.held_schema();
        let mut parts = Vec::with_capacity(rows.len());
        for batch in rows {
            let batch = conform(batch, &self.target)?;
            let open = match self.spec.scd.scd_type {
                ScdType::Type1 => batch,
                ScdType::Type2 => {
                    let end = batch.column(self.target.fields().len() - 1);
                    filter_record_batch(&batch, &is_null(end)?)?
                }
            };
            parts.push(conform(&open, &schema)?);
        }
        Ok(concat_batches(&schema, &parts)?)
    }

    /// The change of the target, and what holds thereafter.
    fn apply(&self, held: &mut RecordBatch, rows: &[RecordBatch], version: i64) -> Result<ZBatch> {
        let scd = &self.spec.scd;
        let width = scd.columns.len();
        let all: Vec<usize> = (0..width).collect();
        let values = held.project(&all)?;
        let snapshot = concat_batches(&self.spec.columns_schema(), rows)?;
        let found = snapshot_difference(&scd.keys, &values, &snapshot)?;
        let (mut circuit, _) = circuit(&self.spec, 1)?;
        let mut step = |events: RecordBatch| -> Result<ZBatch> {
            let mut out = circuit.step(vec![("events".to_owned(), ZBatch::inserts(events))])?;
            out.remove("target")
                .ok_or_else(|| Error::internal("CIRCUIT_OUTPUT", "the merge has no output"))
        };
        let SnapshotDifference { come, gone, missing } = &found;
        step(self.before(held, gone, version)?)?;
        let delta = step(self.events(&values, &snapshot, come, missing, version)?)?;
        let mut stays = vec![true; held.num_rows()];
        gone.iter().for_each(|&row| stays[row as usize] = false);
        let stays = filter_record_batch(held, &BooleanArray::from(stays))?;
        let is_new: BooleanArray = delta.weights().iter().map(|&weight| Some(weight > 0)).collect();
        let new = self.held(&[filter_record_batch(delta.rows(), &is_new)?])?;
        *held = concat_batches(&self.held_schema(), &[stays, new])?;
        Ok(delta)
    }

    /// Rows that held as the events that they came from.
    fn before(&self, held: &RecordBatch, rows: &[u32], version: i64) -> Result<RecordBatch> {
        let rows = take_record_batch(held, &UInt32Array::from(rows.to_vec()))?;
        let width = self.spec.scd.columns.len();
        let since = match self.spec.scd.scd_type {
            ScdType::Type2 => rows.column(width).clone(),
            // Any version before: type 1 does not show it.
            ScdType::Type1 => self.versions(version - 1, rows.num_rows())?,
        };
        let kinds = vec![KIND_UPSERT; rows.num_rows()];
        self.event_batch(rows.columns()[..width].to_vec(), since, kinds)
    }

    /// Rows of the snapshot that are new or others, and keys that it lacks, as events.
    fn events(
        &self,
        held: &RecordBatch,
        snapshot: &RecordBatch,
        come: &[u32],
        missing: &[u32],
        version: i64,
    ) -> Result<RecordBatch> {
        let (come, missing) =
            (UInt32Array::from(come.to_vec()), UInt32Array::from(missing.to_vec()));
        let columns = (held.columns().iter().zip(snapshot.columns()))
            .map(|(old, new)| {
                let (new, old) = (take(new, &come, None)?, take(old, &missing, None)?);
                Ok(arrow::compute::concat(&[new.as_ref(), old.as_ref()])?)
            })
            .collect::<Result<Vec<ArrayRef>>>()?;
        let mut kinds = vec![KIND_UPSERT; come.len()];
        kinds.resize(come.len() + missing.len(), KIND_DELETE);
        let versions = self.versions(version, kinds.len())?;
        self.event_batch(columns, versions, kinds)
    }

    fn versions(&self, version: i64, rows: usize) -> Result<ArrayRef> {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![version; rows]));
        as_type(&numbers, self.spec.scd.input.field(self.spec.scd.sequence).data_type())
    }

    fn event_batch(
        &self,
        mut columns: Vec<ArrayRef>,
        versions: ArrayRef,
        kinds: Vec<i8>,
    ) -> Result<RecordBatch> {
        columns.extend([versions, Arc::new(Int8Array::from(kinds)) as ArrayRef]);
        let columns = columns.iter().map(deltaic_batch::canonicalize).collect();
        Ok(RecordBatch::try_new(self.spec.scd.input.clone(), columns)?)
    }
}
