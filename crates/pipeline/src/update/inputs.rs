//! Reading a flow's inputs: all of them, or what is new since an epoch.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_table::{ScanOptions, Table};

use super::context::Context;
use super::stored::TableHandle;
use crate::catalog::{ResolvedFiles, external_call, files_key};
use crate::conform::{conform, conform_delta};
use crate::files::{FileEntry, METADATA, read_file};
use crate::progress::{FlowProgress, InputProgress};
use crate::{FlowInput, FlowNode, Graph, InputSource};

/// Rows of an input and how far that is.
#[derive(Debug)]
pub(crate) struct InputRows {
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) after: InputProgress,
    /// There is something that was not read before (files without rows count too).
    pub(crate) fresh: bool,
    pub(crate) warnings: Vec<String>,
}

/// Identity of each input of a flow across runs: placeholders change when SQL files come and go.
pub(crate) fn input_keys(graph: &Graph, flow: &FlowNode) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let key = |input: &FlowInput| match &input.source {
        InputSource::Dataset(d) => format!("table:{}", graph.datasets[*d].key),
        InputSource::Files(call) => files_key(&call.path),
        InputSource::External(path) => files_key(path),
        InputSource::Changes { dataset, .. } => {
            format!("changes:{}", graph.datasets[*dataset].key)
        }
        InputSource::ExternalChanges { path, .. } => format!("changes:{}", files_key(path)),
    };
    flow.inputs
        .iter()
        .map(|input| {
            let key = key(input);
            let count = seen.entry(key.clone()).or_insert(0);
            *count += 1;
            if *count == 1 { key } else { format!("{key}#{count}") }
        })
        .collect()
}

/// Files that inputs have read which the flow no longer has. A flow that was edited to name its
/// files by another path does not read them again: each file is read once.
pub(crate) fn orphaned_files(before: &FlowProgress, keys: &[String]) -> Option<InputProgress> {
    if keys.iter().all(|key| before.inputs.contains_key(key)) {
        return None;
    }
    let mut all = BTreeMap::new();
    for (_, input) in before.inputs.iter().filter(|(key, _)| !keys.contains(key)) {
        if let InputProgress::Files { files, .. } = input {
            all.extend(files.iter().map(|(path, file)| (path.clone(), file.clone())));
        }
    }
    Some(InputProgress::Files { schema: None, files: all })
}

/// The whole content of an input.
pub(crate) fn read_all(cx: &Context<'_>, input: &FlowInput) -> Result<InputRows> {
    match &input.source {
        InputSource::Dataset(d) => {
            let stored = cx.stored(*d)?;
            let Some(handle) = &stored.handle else {
                return Ok(nothing(InputProgress::Table(-1)));
            };
            let batches = scan(handle.table()?, &input.schema)
                .map_err(|e| damaged(e, &cx.graph.datasets[*d].name))?;
            Ok(whole(batches, InputProgress::Table(handle.version())))
        }
        InputSource::Files(call) => {
            let files = cx.files.resolve(call)?;
            let batches = read_files(cx, &files, &files.listing, input)?;
            Ok(whole(batches, all_files(&files)))
        }
        InputSource::External(path) => match cx.files.external_table(path)? {
            Some(table) => {
                let batches = scan(&table, &input.schema)?;
                Ok(whole(batches, InputProgress::Table(table.version())))
            }
            None => {
                let files = cx.files.resolve(&external_call(path, "parquet"))?;
                let batches = read_files(cx, &files, &files.listing, input)?;
                Ok(whole(batches, all_files(&files)))
            }
        },
        InputSource::Changes { .. } | InputSource::ExternalChanges { .. } => {
            let feed = Feed::of(cx, &input.source)?;
            let after = InputProgress::Table(feed.last);
            match feed.last {
                -1 => Ok(nothing(after)),
                _ => Ok(whole(feed.rows(feed.from, &input.schema)?, after)),
            }
        }
    }
}

/// What a streaming input has that was not read up to `since`.
pub(crate) fn read_new(
    cx: &Context<'_>,
    input: &FlowInput,
    since: Option<&InputProgress>,
) -> Result<InputRows> {
    match &input.source {
        InputSource::Dataset(d) => new_table_rows(cx, *d, input, since),
        InputSource::Files(call) => new_file_rows(cx, &*cx.files.resolve(call)?, input, since),
        InputSource::External(path) => match cx.files.external_table(path)? {
            Some(table) => {
                let from = version_of(since);
                let batches = match from {
                    None => scan(&table, &input.schema)?,
                    Some(from) => appended(&table, from, path, &input.schema)?,
                };
                let fresh = from != Some(table.version());
                let after = InputProgress::Table(table.version());
                Ok(InputRows { batches, after, fresh, warnings: Vec::new() })
            }
            None => new_file_rows(
                cx,
                &*cx.files.resolve(&external_call(path, "parquet"))?,
                input,
                since,
            ),
        },
        InputSource::Changes { .. } | InputSource::ExternalChanges { .. } => {
            let feed = Feed::of(cx, &input.source)?;
            let first = version_of(since).map_or(feed.from, |v| (v + 1).max(feed.from));
            if first > feed.last {
                return Ok(nothing(since.cloned().unwrap_or(InputProgress::Table(feed.last))));
            }
            Ok(whole(feed.rows(first, &input.schema)?, InputProgress::Table(feed.last)))
        }
    }
}

/// The change feed that an input reads.
pub(crate) struct Feed {
    /// First version.
    pub(crate) from: i64,
    /// Last version now; −1 where there is no table yet.
    pub(crate) last: i64,
    table: Option<TableHandle>,
}

impl Feed {
    pub(crate) fn of(cx: &Context<'_>, source: &InputSource) -> Result<Self> {
        let (table, from, to) = match source {
            InputSource::Changes { dataset, from, to } => {
                (cx.stored(*dataset)?.handle.clone(), *from, *to)
            }
            InputSource::ExternalChanges { path, from, to } => {
                let table = cx.files.delta_table(path)?;
                (Some(TableHandle::of(cx.storage, path, table)), *from, *to)
            }
            _ => return Err(Error::internal("CHANGE_FEED", "this is no change feed")),
        };
        let newest = table.as_ref().map_or(-1, TableHandle::version);
        Ok(Self { from, last: to.unwrap_or(newest).min(newest), table })
    }

    /// Its rows from a version on.
    pub(crate) fn rows(&self, first: i64, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
        match &self.table {
            Some(table) => change_rows(table.table()?, first, self.last, schema),
            None => Ok(Vec::new()),
        }
    }
}

fn nothing(after: InputProgress) -> InputRows {
    InputRows { batches: Vec::new(), after, fresh: false, warnings: Vec::new() }
}

fn whole(batches: Vec<RecordBatch>, after: InputProgress) -> InputRows {
    InputRows { batches, after, fresh: true, warnings: Vec::new() }
}

fn version_of(since: Option<&InputProgress>) -> Option<i64> {
    match since {
        Some(InputProgress::Table(version)) if *version >= 0 => Some(*version),
        _ => None,
    }
}

/// What helps when a table's files are damaged.
fn damaged(error: Error, table: &str) -> Error {
    match error.code() {
        "DATA_FILE_CORRUPT" | "DELETION_VECTOR_CORRUPT" => {
            error.hint(format!("restore the file, or fill the table again: --full-refresh {table}"))
        }
        _ => error,
    }
}

/// All rows of a table in the columns of `schema`.
pub(crate) fn scan(table: &Table, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
    table.scan(&ScanOptions::default())?.map(|batch| conform(&batch?, schema)).collect()
}

fn new_table_rows(
    cx: &Context<'_>,
    dataset: usize,
    input: &FlowInput,
    since: Option<&InputProgress>,
) -> Result<InputRows> {
    let stored = cx.stored(dataset)?;
    let Some(handle) = &stored.handle else {
        return Ok(nothing(since.cloned().unwrap_or(InputProgress::Table(-1))));
    };
    let after = InputProgress::Table(handle.version());
    let Some(from) = version_of(since) else {
        return Ok(whole(scan(handle.table()?, &input.schema)?, after));
    };
    let name = &cx.graph.datasets[dataset].name;
    if from == handle.version() {
        return Ok(nothing(after));
    }
    if from > handle.version() {
        return Err(Error::storage(
            "SOURCE_WENT_BACK",
            format!("version {from} was read before, but the table is at {}", handle.version()),
        )
        .object(name)
        .hint("run with --full-refresh for what reads this table"));
    }
    let batches = match &stored.memory {
        Some((before, deltas)) if *before == from => deltas
            .iter()
            .map(|delta| only_inserts(delta, name).and_then(|rows| conform(rows, &input.schema)))
            .collect::<Result<Vec<_>>>()?,
        _ => appended(handle.table()?, from, name, &input.schema)?,
    };
    let fresh = batches.iter().any(|b| b.num_rows() > 0);
    Ok(InputRows { batches, after, fresh, warnings: Vec::new() })
}

fn not_append_only(name: &str) -> Error {
    Error::user(
        "STREAM_SOURCE_CHANGED",
        "a streaming read needs a table that only grows, but rows were updated or deleted \
         (DELTA_SOURCE_TABLE_IGNORE_CHANGES)",
    )
    .object(name)
    .hint(format!(
        "read its change feed: AUTO CDC … FROM STREAM table_changes('{name}', 0), or read it in a \
         materialized view"
    ))
}

fn only_inserts<'z>(delta: &'z ZBatch, name: &str) -> Result<&'z RecordBatch> {
    if delta.weights().iter().all(|w| *w == 1) {
        return Ok(delta.rows());
    }
    Err(not_append_only(name))
}

fn appended(table: &Table, from: i64, name: &str, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
    let to = table.version();
    if from >= to {
        return Ok(Vec::new());
    }
    if !table.only_appends(from + 1, to)? {
        return Err(not_append_only(name));
    }
    let changes = table.changes(from + 1, to)?;
    changes.iter().map(|c| conform(only_inserts(&c.delta, name)?, schema)).collect()
}

/// Deltas of a table since a version; `None` when this run's own deltas are at hand.
pub(crate) fn table_deltas(
    cx: &Context<'_>,
    dataset: usize,
    from: i64,
    schema: &SchemaRef,
) -> Result<Vec<ZBatch>> {
    let stored = cx.stored(dataset)?;
    let Some(handle) = &stored.handle else { return Ok(Vec::new()) };
    if from >= handle.version() {
        return Ok(Vec::new());
    }
    if let Some((before, deltas)) = &stored.memory
        && *before == from
    {
        return deltas.iter().map(|delta| conform_delta(delta, schema)).collect();
    }
    let changes = handle.table()?.changes(from + 1, handle.version())?;
    changes.iter().map(|c| conform_delta(&c.delta, schema)).collect()
}

pub(crate) fn all_files(files: &ResolvedFiles) -> InputProgress {
    InputProgress::Files {
        schema: files.schema.stored.clone(),
        files: files.listing.iter().map(|f| (f.path.clone(), f.clone())).collect(),
    }
}

/// Rows of the given files.
pub(crate) fn read_files(
    cx: &Context<'_>,
    files: &ResolvedFiles,
    list: &[FileEntry],
    input: &FlowInput,
) -> Result<Vec<RecordBatch>> {
    let with_metadata = input.schema.index_of(METADATA).is_ok();
    let mut out = Vec::new();
    for file in list {
        let root = cx.files.root();
        let batches = read_file(root, file, &files.options, &files.schema, with_metadata)?;
        for batch in batches {
            out.push(conform(&batch, &input.schema)?);
        }
    }
    Ok(out)
}

fn new_file_rows(
    cx: &Context<'_>,
    files: &ResolvedFiles,
    input: &FlowInput,
    since: Option<&InputProgress>,
) -> Result<InputRows> {
    let before = match since {
        Some(InputProgress::Files { files, .. }) => files.clone(),
        Some(InputProgress::Table(_)) | None => BTreeMap::new(),
    };
    let mut warnings = Vec::new();
    let mut new = Vec::new();
    for file in &files.listing {
        match before.get(&file.path) {
            None => new.push(file.clone()),
            Some(old) if old == file => {}
            Some(_) if files.options.allow_overwrites => new.push(file.clone()),
            Some(_) => warnings.push(format!(
                "{} changed after it was read; it is not read again (set allowOverwrites => true \
                 to read it again)",
                file.path
            )),
        }
    }
    let batches = read_files(cx, files, &new, input)?;
    let mut read = before;
    let fresh = !new.is_empty();
    read.extend(new.into_iter().map(|f| (f.path.clone(), f)));
    let after = InputProgress::Files { schema: files.schema.stored.clone(), files: read };
    Ok(InputRows { batches, after, fresh, warnings })
}

/// Schema of `table_changes`: the table's columns, then what happened and when.
pub(crate) fn change_schema(table: &Schema) -> SchemaRef {
    let mut fields = table.fields().to_vec();
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    fields.push(Arc::new(Field::new("_change_type", DataType::Utf8, false)));
    fields.push(Arc::new(Field::new("_commit_version", DataType::Int64, false)));
    fields.push(Arc::new(Field::new("_commit_timestamp", time, false)));
    Arc::new(Schema::new(fields))
}

/// Rows of `table_changes`: a row with weight n stands there n times.
pub(crate) fn change_rows(
    table: &Table,
    from: i64,
    to: i64,
    schema: &SchemaRef,
) -> Result<Vec<RecordBatch>> {
    if from > to {
        return Ok(Vec::new());
    }
    let mut out = Vec::new();
    for change in table.changes(from, to)? {
        let (rows, weights) = repeated(&change.delta)?;
        let kinds: Vec<&str> =
            weights.iter().map(|w| if *w > 0 { "insert" } else { "delete" }).collect();
        let count = rows.num_rows();
        let time = TimestampMicrosecondArray::from(vec![change.timestamp_ms * 1000; count]);
        let mut columns = rows.columns().to_vec();
        let added: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(kinds)),
            Arc::new(Int64Array::from(vec![change.version; count])),
            Arc::new(time.with_timezone("UTC")),
        ];
        columns.extend(added);
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let with_kind =
            RecordBatch::try_new_with_options(change_schema(rows.schema_ref()), columns, &options)?;
        out.push(conform(&with_kind, schema)?);
    }
    Ok(out)
}

/// Each row as often as its weight says, with the sign of its weight.
fn repeated(delta: &ZBatch) -> Result<(RecordBatch, Vec<i64>)> {
    let (mut indices, mut signs) = (Vec::new(), Vec::new());
    for (i, weight) in (0_u32..).zip(delta.weights().iter()) {
        for _ in 0..weight.unsigned_abs() {
            indices.push(i);
            signs.push(weight.signum());
        }
    }
    let indices = arrow::array::UInt32Array::from(indices);
    Ok((arrow::compute::take_record_batch(delta.rows(), &indices)?, signs))
}
