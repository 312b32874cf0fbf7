//! One commit of one dataset, by the protocol of the module above.

use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_exec::Circuit;
use deltaic_table::{Table, TableOptions};
use serde_json::{Map, Value};

use super::context::Context;
use super::quarantine::{self, Quarantine};
use super::stored::{StoredDataset, TableHandle, app_id};
use crate::DatasetNode;
use crate::conform::{SchemaChange, conform_delta, same_type, schema_change};
use crate::paths;
use crate::progress::{FlowProgress, ProgressStore};
use crate::state_store::{Chain, StateStore};

/// A flow's share of a commit.
#[derive(Debug, Clone)]
pub(crate) struct FlowCommit {
    pub(crate) flow: String,
    pub(crate) before: FlowProgress,
    /// Progress after it; the epoch is set by the commit.
    pub(crate) after: FlowProgress,
}

/// Operator state to store with a commit.
#[derive(Debug)]
pub(crate) struct StateCommit {
    pub(crate) circuit: Circuit,
    pub(crate) fingerprint: String,
    /// What is stored, when the circuit came from it.
    pub(crate) chain: Option<Chain>,
}

/// What a dataset's table becomes.
#[derive(Debug)]
pub(crate) struct CommitPlan {
    /// Schema that the rows have now.
    pub(crate) schema: SchemaRef,
    /// Everything that was there goes first.
    pub(crate) truncate: bool,
    pub(crate) deltas: Vec<ZBatch>,
    pub(crate) flows: Vec<FlowCommit>,
    pub(crate) state: Option<StateCommit>,
    /// Rows that it does not take.
    pub(crate) quarantine: Quarantine,
    pub(crate) operation: &'static str,
    pub(crate) technique: &'static str,
}

/// What a commit did.
#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) stored: StoredDataset,
    pub(crate) rows_inserted: u64,
    pub(crate) rows_deleted: u64,
    pub(crate) version: i64,
}

/// Commits; nothing counts until the table's log entry is there.
pub(crate) fn commit(
    cx: &Context<'_>,
    node: &DatasetNode,
    stored: &StoredDataset,
    mut plan: CommitPlan,
) -> Result<Committed> {
    let epoch = stored.next_epoch();
    let state_store = StateStore::new(cx.storage, &node.key);
    let mut state_epochs = Vec::new();
    if let Some(state) = &mut plan.state {
        cx.steps.pass("operator state")?;
        let StateCommit { circuit, fingerprint, chain } = state;
        state_epochs = state_store.write(circuit, fingerprint, epoch, chain.as_ref())?;
    }
    let mut obsolete = Vec::new();
    for flow in &mut plan.flows {
        flow.after.epoch = epoch;
        flow.after.update = cx.update;
        cx.steps.pass("progress")?;
        let store = ProgressStore::new(cx.storage, &node.key, &flow.flow);
        if store.save(&flow.before, &flow.after)? {
            obsolete.push(store);
        }
    }
    cx.steps.pass("table")?;
    let before = open_or_create(cx, node, stored, &plan.schema)?;
    cx.steps.pass("commit")?;
    let (table, counts, deltas) = publish(cx, node, &before, &plan, epoch)?;
    let version = table.version();
    let mut epochs = stored.epochs.clone();
    for flow in &plan.flows {
        epochs.insert(flow.flow.clone(), epoch);
    }
    for store in obsolete {
        store.clean(epoch)?;
    }
    if plan.state.is_some() {
        epochs.insert(String::new(), epoch);
        state_store.clean(&state_epochs)?;
    }
    let memory = (!plan.truncate).then(|| (before.version(), Arc::new(deltas)));
    let handle = Some(TableHandle::of(cx.storage, &paths::table(&node.key), table));
    let stored = StoredDataset { handle, epochs, memory };
    Ok(Committed { stored, rows_inserted: counts.0, rows_deleted: counts.1, version })
}

/// The table as it is, made if it is not there.
pub(crate) fn open_or_create(
    cx: &Context<'_>,
    node: &DatasetNode,
    stored: &StoredDataset,
    schema: &SchemaRef,
) -> Result<Table> {
    if let Some(handle) = &stored.handle {
        return Ok(handle.table()?.clone());
    }
    let options = TableOptions {
        name: Some(node.name.clone()),
        description: node.comment.clone(),
        properties: node.properties.clone(),
    };
    Table::create(cx.storage, &paths::table(&node.key), schema.clone(), &options)
        .map_err(|e| e.object(&node.name))
}

type Published = (Table, (u64, u64), Vec<ZBatch>);

fn publish(
    cx: &Context<'_>,
    node: &DatasetNode,
    before: &Table,
    plan: &CommitPlan,
    epoch: i64,
) -> Result<Published> {
    let mut builder = before.begin();
    if plan.truncate {
        builder.truncate()?;
    }
    let target = match table_schema(before, plan)? {
        Some(schema) => {
            builder.set_schema(schema.clone())?;
            schema
        }
        None => before.schema(),
    };
    let mut deltas = Vec::with_capacity(plan.deltas.len());
    for delta in plan.deltas.iter().filter(|d| !d.is_empty()) {
        let delta = conform_delta(delta, &target)?;
        builder.apply(&delta)?;
        deltas.push(delta);
    }
    let pipeline = &cx.project.name;
    for flow in &plan.flows {
        builder.set_txn(&app_id(pipeline, &node.key, &flow.flow), epoch);
    }
    if plan.state.is_some() {
        builder.set_txn(&app_id(pipeline, &node.key, ""), epoch);
    }
    builder.set_info(plan.operation, info(cx, plan));
    let prepared = builder.prepare()?;
    let diverted = quarantine::prepare(cx, node, &plan.quarantine, epoch)?;
    cx.steps.pass("publish")?;
    let counts = prepared.row_counts();
    let table = prepared.publish()?;
    if let Some(diverted) = diverted {
        cx.steps.pass("publish of the quarantine")?;
        diverted.publish()?;
    }
    Ok((table, counts, deltas))
}

/// Schema to set, if the table's must change.
fn table_schema(before: &Table, plan: &CommitPlan) -> Result<Option<SchemaRef>> {
    let old = before.schema();
    if plan.truncate {
        return Ok((!same_columns(&old, &plan.schema)).then(|| plan.schema.clone()));
    }
    match schema_change(&old, &plan.schema) {
        SchemaChange::None => Ok(None),
        SchemaChange::Added(schema) => Ok(Some(schema)),
        SchemaChange::Incompatible(what) => Err(Error::user(
            "SCHEMA_CHANGED",
            format!("{what} (CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE)"),
        )
        .hint("run with --full-refresh for this dataset, or cast the column to its old type")),
    }
}

/// Same names in the same order with the same types, NOT NULL or not.
pub(crate) fn same_columns(a: &Schema, b: &Schema) -> bool {
    let same = |(a, b): (&FieldRef, &FieldRef)| {
        a.name() == b.name() && a.is_nullable() == b.is_nullable() && same_type(a, b)
    };
    a.fields().len() == b.fields().len() && a.fields().iter().zip(b.fields()).all(same)
}

fn info(cx: &Context<'_>, plan: &CommitPlan) -> Map<String, Value> {
    let mut sources = Map::new();
    for flow in &plan.flows {
        for (key, input) in &flow.after.inputs {
            if let crate::progress::InputProgress::Table(version) = input {
                sources.insert(key.clone(), Value::from(*version));
            }
        }
    }
    let flows: Vec<Value> = plan.flows.iter().map(|f| Value::from(f.flow.as_str())).collect();
    Map::from_iter([
        ("deltaicUpdate".to_string(), Value::from(cx.update)),
        ("deltaicFlows".to_string(), Value::from(flows)),
        ("deltaicTechnique".to_string(), Value::from(plan.technique)),
        ("deltaicSources".to_string(), Value::from(sources)),
    ])
}
