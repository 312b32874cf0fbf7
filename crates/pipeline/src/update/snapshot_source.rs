//! The snapshots that a flow has not applied yet, in ascending order of their versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::{cast, take_record_batch};
use arrow::datatypes::{DataType, Int64Type};
use deltaic_batch::{Error, Result};

use super::append::{count, query_text};
use super::context::Context;
use super::inputs::{Feed, all_files, input_keys, read_all, read_files};
use crate::catalog::ResolvedFiles;
use crate::conform::conform;
use crate::files::FileEntry;
use crate::progress::{FlowProgress, InputProgress};
use crate::{CdcPlan, FlowInput, FlowNode, InputSource, SnapshotVersion};

/// One snapshot: its version (a number, days or microseconds since 1970), what it is called in
/// messages, and its rows.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) version: i64,
    pub(crate) name: String,
    pub(crate) rows: Vec<RecordBatch>,
}

/// What a flow has to apply, and its progress thereafter.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) after: FlowProgress,
    pub(crate) rows_in: u64,
    pub(crate) warnings: Vec<String>,
}

/// New snapshots; those that are not there leave `snapshots` empty.
pub(crate) fn pending(
    cx: &Context<'_>,
    flow: &FlowNode,
    plan: &CdcPlan,
    before: &FlowProgress,
) -> Result<Pending> {
    let mut after = FlowProgress { query: query_text(&flow.query), ..before.clone() };
    after.inputs = BTreeMap::new();
    let mut out = Pending { snapshots: Vec::new(), after, rows_in: 0, warnings: Vec::new() };
    match &plan.snapshots {
        None | Some(SnapshotVersion::Update) => whole(cx, flow, before, &mut out)?,
        Some(SnapshotVersion::Path { input, pattern }) => {
            let Some(mut files) = new_files(cx, flow, *input, before, &mut out)? else {
                return Ok(out);
            };
            let mut by_version: BTreeMap<i64, Vec<FileEntry>> = BTreeMap::new();
            for file in std::mem::take(&mut files.new) {
                by_version.entry(pattern.version(&file.path)?).or_default().push(file);
            }
            for (version, list) in by_version {
                let paths: Vec<&str> = list.iter().map(|file| file.path.as_str()).collect();
                let (name, rows) = (paths.join(", "), files.rows(cx, &list, &mut out)?);
                out.snapshots.push(Snapshot { version, name, rows });
            }
        }
        Some(SnapshotVersion::Column { input, column, data_type }) => {
            let Some(mut files) = new_files(cx, flow, *input, before, &mut out)? else {
                return Ok(out);
            };
            let new = std::mem::take(&mut files.new);
            let rows = files.rows(cx, &new, &mut out)?;
            for (version, rows) in by_column(&rows, *column)? {
                let name = format!("the snapshot of {}", shown(version, data_type));
                out.snapshots.push(Snapshot { version, name, rows });
            }
        }
    }
    if let Some(last) = before.snapshot {
        let data_type = plan.sequence_type();
        if let Some(late) = out.snapshots.iter().find(|snapshot| snapshot.version <= last) {
            let message = format!(
                "{} has version {}, but version {} was applied already",
                late.name,
                shown(late.version, &data_type),
                shown(last, &data_type)
            );
            return Err(Error::data("SNAPSHOT_VERSION_OLD", message).hint(
                "snapshots are applied in ascending order: take it away, or run with --full-refresh",
            ));
        }
    }
    if let Some(last) = out.snapshots.last() {
        out.after.snapshot = Some(last.version);
    }
    Ok(out)
}

/// A version as text.
fn shown(version: i64, data_type: &DataType) -> String {
    let one: ArrayRef = Arc::new(Int64Array::from(vec![version]));
    let typed = as_type(&one, data_type);
    let text = typed.and_then(|typed| Ok(arrow::util::display::array_value_to_string(&typed, 0)?));
    text.unwrap_or_else(|_| version.to_string())
}

/// Numbers as versions of a type.
pub(crate) fn as_type(versions: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    match data_type {
        DataType::Date32 => Ok(cast(&cast(versions, &DataType::Int32)?, data_type)?),
        _ => Ok(cast(versions, data_type)?),
    }
}

/// All of the inputs, as they are at this update; nothing where they are as at the last one.
fn whole(
    cx: &Context<'_>,
    flow: &FlowNode,
    before: &FlowProgress,
    out: &mut Pending,
) -> Result<()> {
    let keys = input_keys(cx.graph, flow);
    for (input, key) in flow.inputs.iter().zip(&keys) {
        out.after.inputs.insert(key.clone(), position(cx, input)?);
    }
    let is_same = before.inputs == out.after.inputs && before.query == out.after.query;
    if before.epoch > 0 && is_same {
        return Ok(());
    }
    let mut tables = BTreeMap::new();
    for input in &flow.inputs {
        let read = read_all(cx, input)?;
        out.rows_in += count(&read.batches);
        tables.insert(input.name.clone(), read.batches);
    }
    let rows = run(cx, flow, tables)?;
    let name = "the snapshot of this update".to_owned();
    out.snapshots.push(Snapshot { version: cx.now_us, name, rows });
    Ok(())
}

/// How far an input is, without reading it.
fn position(cx: &Context<'_>, input: &FlowInput) -> Result<InputProgress> {
    let of_dataset = |dataset: usize| -> Result<InputProgress> {
        let stored = cx.stored(dataset)?;
        Ok(InputProgress::Table(stored.handle.as_ref().map_or(-1, |handle| handle.version())))
    };
    match &input.source {
        InputSource::Dataset(dataset) | InputSource::Changes { dataset, .. } => {
            of_dataset(*dataset)
        }
        InputSource::ExternalChanges { .. } => {
            Ok(InputProgress::Table(Feed::of(cx, &input.source)?.last))
        }
        InputSource::Files(call) => Ok(all_files(&*cx.files.resolve(call)?)),
        InputSource::External(path) => match cx.files.external_table(path)? {
            Some(table) => Ok(InputProgress::Table(table.version())),
            None => {
                let call = crate::catalog::external_call(path, "parquet");
                Ok(all_files(&*cx.files.resolve(&call)?))
            }
        },
    }
}

/// Files that were not read yet, and the other inputs.
struct NewFiles<'a> {
    flow: &'a FlowNode,
    input: &'a FlowInput,
    resolved: Arc<ResolvedFiles>,
    new: Vec<FileEntry>,
    tables: BTreeMap<String, Vec<RecordBatch>>,
}

impl NewFiles<'_> {
    /// The query's rows over some of them.
    fn rows(
        &mut self,
        cx: &Context<'_>,
        list: &[FileEntry],
        out: &mut Pending,
    ) -> Result<Vec<RecordBatch>> {
        let batches = read_files(cx, &self.resolved, list, self.input)?;
        out.rows_in += count(&batches);
        self.tables.insert(self.input.name.clone(), batches);
        run(cx, self.flow, self.tables.clone())
    }
}

/// `None` where no file is new.
fn new_files<'a>(
    cx: &Context<'_>,
    flow: &'a FlowNode,
    versioned: usize,
    before: &FlowProgress,
    out: &mut Pending,
) -> Result<Option<NewFiles<'a>>> {
    let keys = input_keys(cx.graph, flow);
    let input = &flow.inputs[versioned];
    let InputSource::Files(call) = &input.source else { return Ok(None) };
    let resolved = cx.files.resolve(call)?;
    let mut read = match before.inputs.get(&keys[versioned]) {
        Some(InputProgress::Files { files, .. }) => files.clone(),
        _ => BTreeMap::new(),
    };
    let mut new: Vec<FileEntry> = Vec::new();
    for file in &resolved.listing {
        match read.get(&file.path) {
            None => new.push(file.clone()),
            Some(old) if old == file => {}
            Some(_) if resolved.options.allow_overwrites => new.push(file.clone()),
            Some(_) => out.warnings.push(format!(
                "{} changed after it was applied; a snapshot that was applied stays as it was",
                file.path
            )),
        }
    }
    if new.is_empty() {
        return Ok(None);
    }
    read.extend(new.iter().map(|file| (file.path.clone(), file.clone())));
    let schema = resolved.schema.stored.clone();
    out.after.inputs.insert(keys[versioned].clone(), InputProgress::Files { schema, files: read });
    let mut tables = BTreeMap::new();
    for (at, other) in flow.inputs.iter().enumerate().filter(|(at, _)| *at != versioned) {
        let others = read_all(cx, other)?;
        out.after.inputs.insert(keys[at].clone(), others.after);
        tables.insert(other.name.clone(), others.batches);
    }
    Ok(Some(NewFiles { flow, input, resolved, new, tables }))
}

/// Rows by their version.
fn by_column(rows: &[RecordBatch], column: usize) -> Result<BTreeMap<i64, Vec<RecordBatch>>> {
    let mut out: BTreeMap<i64, Vec<RecordBatch>> = BTreeMap::new();
    for batch in rows {
        let versions = batch.column(column);
        if versions.null_count() > 0 {
            let name = batch.schema_ref().field(column).name().clone();
            let message = format!("{} rows have a NULL version {name}", versions.null_count());
            return Err(Error::data("AUTOCDC_MICROBATCH_VALIDATION", message)
                .hint("correct the source, or leave such rows out in the flow's source query"));
        }
        let versions = match versions.data_type() {
            DataType::Date32 => cast(&cast(versions, &DataType::Int32)?, &DataType::Int64)?,
            _ => cast(versions, &DataType::Int64)?,
        };
        let mut rows: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
        for (row, version) in (0_u32..).zip(versions.as_primitive::<Int64Type>().values()) {
            rows.entry(*version).or_default().push(row);
        }
        for (version, rows) in rows {
            let part = take_record_batch(batch, &UInt32Array::from(rows))?;
            out.entry(version).or_default().push(part);
        }
    }
    Ok(out)
}

/// The flow's query.
fn run(
    cx: &Context<'_>,
    flow: &FlowNode,
    tables: BTreeMap<String, Vec<RecordBatch>>,
) -> Result<Vec<RecordBatch>> {
    let (_, batches) = cx.session.run_batch(&flow.query, &cx.sources(flow), tables)?;
    batches.iter().map(|batch| conform(batch, &flow.schema)).collect()
}
