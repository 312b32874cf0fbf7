//! Rows that a table does not take go into its quarantine, exactly once: the quarantine's log entry
//! is prepared and stored before the table's commit, which decides, and published after it. An
//! update that was cut off in between is rolled forward by the next one; an entry whose update did
//! not commit is forgotten.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Int64Array, ListBuilder, RecordBatch, StringArray, StringBuilder,
};
use arrow_json::writer::{LineDelimited, WriterBuilder};
use bytes::Bytes;
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_sql::DatasetKind;
use deltaic_table::{Prepared, Table};
use serde::{Deserialize, Serialize};

use super::commit::open_or_create;
use super::context::Context;
use crate::conform::conform;
use crate::expectations::Diverted;
use crate::progress::{FlowProgress, InputProgress};
use crate::{DatasetNode, FlowNode, paths};

/// Rows that flows of one update divert.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quarantine {
    batches: Vec<RecordBatch>,
    /// The table is read from the beginning: what is there goes.
    reset: bool,
}

impl Quarantine {
    /// Of a table that is read from the beginning, or not.
    pub(crate) fn new(reset: bool) -> Self {
        Self { batches: Vec::new(), reset }
    }

    /// Rows of a flow, which has read what lies between the two states of progress.
    pub(crate) fn add(
        &mut self,
        cx: &Context<'_>,
        flow: &FlowNode,
        (before, after): (&FlowProgress, &FlowProgress),
        diverted: &[Diverted],
    ) -> Result<()> {
        let source = source(flow, before, after);
        for Diverted { rows, rules } in diverted {
            let mut names = ListBuilder::new(StringBuilder::new());
            rules.iter().for_each(|rules| names.append_value(rules.iter().map(Some)));
            let count = rows.num_rows();
            let text = |text: &str| Arc::new(StringArray::from(vec![text; count])) as ArrayRef;
            let update = i64::try_from(cx.update).unwrap_or(i64::MAX);
            self.batches.push(RecordBatch::try_from_iter([
                ("row", Arc::new(as_json(rows)?) as ArrayRef),
                ("rules", Arc::new(names.finish())),
                ("flow", text(&flow.name)),
                ("source", text(&source)),
                ("update_id", Arc::new(Int64Array::from(vec![update; count]))),
            ])?);
        }
        Ok(())
    }
}

/// The file that a flow read, if it was one, or all that it reads.
fn source(flow: &FlowNode, before: &FlowProgress, after: &FlowProgress) -> String {
    let mut files = Vec::new();
    for (key, input) in &after.inputs {
        if let InputProgress::Files { files: read, .. } = input {
            let known = match before.inputs.get(key) {
                Some(InputProgress::Files { files, .. }) => Some(files),
                _ => None,
            };
            let is_new = |path: &&String| known.is_none_or(|known| !known.contains_key(*path));
            files.extend(read.keys().filter(is_new).cloned());
        }
    }
    if let [file] = &files[..] {
        return file.clone();
    }
    let inputs = flow.inputs.iter().filter(|input| input.streaming);
    let name = |input: &crate::FlowInput| match &input.source {
        crate::InputSource::Files(call) => call.path.clone(),
        _ => input.name.clone(),
    };
    inputs.map(name).collect::<Vec<_>>().join(", ")
}

/// Each row as a JSON object.
fn as_json(rows: &RecordBatch) -> Result<StringArray> {
    let mut writer =
        WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
    writer.write(rows)?;
    writer.finish()?;
    let text = String::from_utf8(writer.into_inner())
        .map_err(|e| Error::internal("QUARANTINE", e.to_string()))?;
    let lines = StringArray::from(text.lines().collect::<Vec<_>>());
    if lines.len() == rows.num_rows() {
        return Ok(lines);
    }
    Err(Error::internal("QUARANTINE", "a row is not one line of JSON"))
}

/// A log entry that waits for the commit of the table whose rows it has.
#[derive(Debug, Serialize, Deserialize)]
struct Waiting {
    /// Epoch of that commit.
    epoch: i64,
    /// Path of the quarantine, which the table may have no more when the entry is published.
    table: String,
    /// Its version.
    version: i64,
    entry: String,
}

fn path(node: &DatasetNode) -> String {
    format!("progress/{}/quarantine.json", paths::folder(&node.key))
}

/// Prepares the quarantine's commit, which counts from the table's commit of `epoch` on.
pub(crate) fn prepare(
    cx: &Context<'_>,
    node: &DatasetNode,
    quarantine: &Quarantine,
    epoch: i64,
) -> Result<Option<Prepared>> {
    let stored = node.quarantine.map(|index| cx.find(index)).transpose()?;
    let Some((target, stored)) = node.quarantine.map(|index| &cx.graph.datasets[index]).zip(stored)
    else {
        return forget(cx, node);
    };
    if quarantine.batches.is_empty() && !(quarantine.reset && stored.handle.is_some()) {
        return forget(cx, node);
    }
    cx.steps.pass("quarantine")?;
    let mut builder = open_or_create(cx, target, &stored, &target.schema)?.begin();
    if quarantine.reset {
        builder.truncate()?;
    }
    for batch in &quarantine.batches {
        builder.apply(&ZBatch::inserts(conform(batch, &target.schema)?))?;
    }
    builder.set_info("QUARANTINE", serde_json::Map::new());
    let prepared = builder.prepare()?;
    let waiting = Waiting {
        epoch,
        table: paths::table(&target.key),
        version: prepared.version(),
        entry: String::from_utf8_lossy(prepared.log_entry()).into_owned(),
    };
    let bytes = serde_json::to_vec(&waiting);
    let bytes = bytes.map_err(|e| Error::internal("QUARANTINE", e.to_string()))?;
    cx.storage.put(&path(node), Bytes::from(bytes))?;
    Ok(Some(prepared))
}

/// An entry of an update that did not commit must not be taken for one of this epoch.
fn forget(cx: &Context<'_>, node: &DatasetNode) -> Result<Option<Prepared>> {
    if node.kind == DatasetKind::StreamingTable {
        cx.storage.delete(&path(node))?;
    }
    Ok(None)
}

/// Publishes what an update that was cut off after a table's commit had diverted.
pub(crate) fn recover(cx: &Context<'_>) -> Result<()> {
    let nodes = cx.graph.datasets.iter().enumerate();
    for (dataset, node) in nodes.filter(|(_, node)| node.kind == DatasetKind::StreamingTable) {
        let Some(bytes) = cx.storage.get(&path(node))? else { continue };
        let waiting: Waiting = serde_json::from_slice(&bytes).map_err(|e| {
            Error::storage("PROGRESS_DAMAGED", format!("cannot be read: {e}"))
                .object(path(node))
                .hint("delete this file; rows that the last update diverted may be missing then")
        })?;
        let is_committed = cx.find(dataset)?.next_epoch() > waiting.epoch;
        let version = Table::open(cx.storage, &waiting.table)?.map(|table| table.version());
        if is_committed && version.is_some_and(|version| version < waiting.version) {
            cx.steps.pass("publish of the quarantine")?;
            let entry = Bytes::from(waiting.entry);
            Table::roll_forward(cx.storage, &waiting.table, waiting.version, entry)?;
        }
    }
    Ok(())
}
