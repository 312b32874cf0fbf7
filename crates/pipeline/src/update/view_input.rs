//! What changed in a view's inputs since the versions that it reflects.

use std::collections::BTreeMap;

use deltaic_batch::{Result, ZBatch};

use super::context::Context;
use super::inputs::{Feed, InputRows, read_all, read_files, table_deltas};
use crate::catalog::{ResolvedFiles, external_call};
use crate::files::FileEntry;
use crate::progress::InputProgress;
use crate::{FlowInput, InputSource};

/// An input's change.
#[derive(Debug)]
pub(crate) enum Pending {
    /// The same as before.
    Unchanged,
    /// These deltas.
    Deltas(Vec<ZBatch>),
    /// Not known as a change: the whole input must be read. With the reason.
    Unknown(String),
}

impl Pending {
    /// Physical rows of the change.
    pub(crate) fn rows(&self) -> u64 {
        match self {
            Pending::Deltas(deltas) => deltas.iter().map(|d| d.num_rows() as u64).sum(),
            Pending::Unchanged | Pending::Unknown(_) => 0,
        }
    }

    /// True when the view's result cannot differ on its account.
    pub(crate) fn is_nothing(&self) -> bool {
        match self {
            Pending::Unchanged => true,
            Pending::Deltas(deltas) => deltas.iter().all(ZBatch::is_empty),
            Pending::Unknown(_) => false,
        }
    }
}

/// Change of an input since `since`. A change that cannot be read (the table's columns have other
/// types since, or a file of its feed is gone) is unknown: the whole input can still be read.
pub(crate) fn pending(
    cx: &Context<'_>,
    input: &FlowInput,
    since: Option<&InputProgress>,
) -> Result<Pending> {
    const UNREADABLE: &[&str] = &[
        "CHANGES_INCOMPATIBLE_SCHEMA",
        "CHANGE_FILE_CORRUPT",
        "DATA_FILE_CORRUPT",
        "DELETION_VECTOR_CORRUPT",
        "NOT_NULL_VIOLATED",
        "NOT_NULL_VIOLATION",
    ];
    match change(cx, input, since) {
        Err(e) if UNREADABLE.contains(&e.code()) => {
            Ok(Pending::Unknown(format!("the change feed cannot be read: {}", e.message())))
        }
        pending => pending,
    }
}

fn change(cx: &Context<'_>, input: &FlowInput, since: Option<&InputProgress>) -> Result<Pending> {
    match &input.source {
        InputSource::Dataset(d) => table_change(cx, *d, input, since),
        InputSource::Files(call) => file_change(cx, &*cx.files.resolve(call)?, input, since),
        InputSource::External(path) => match cx.files.external_table(path)? {
            Some(table) => Ok(match since {
                Some(InputProgress::Table(version)) if *version == table.version() => {
                    Pending::Unchanged
                }
                _ => Pending::Unknown(format!("the external table {path} has another version")),
            }),
            None => {
                file_change(cx, &*cx.files.resolve(&external_call(path, "parquet"))?, input, since)
            }
        },
        InputSource::Changes { .. } | InputSource::ExternalChanges { .. } => {
            let feed = Feed::of(cx, &input.source)?;
            match since {
                Some(InputProgress::Table(before)) if *before == feed.last => {
                    Ok(Pending::Unchanged)
                }
                Some(InputProgress::Table(before)) => {
                    let rows = feed.rows((before + 1).max(feed.from), &input.schema)?;
                    Ok(Pending::Deltas(rows.into_iter().map(ZBatch::inserts).collect()))
                }
                _ => Ok(Pending::Unknown("it was not read before".to_string())),
            }
        }
    }
}

fn table_change(
    cx: &Context<'_>,
    dataset: usize,
    input: &FlowInput,
    since: Option<&InputProgress>,
) -> Result<Pending> {
    let now = cx.stored(dataset)?.handle.as_ref().map_or(-1, |h| h.version());
    match since {
        Some(InputProgress::Table(before)) if *before == now => Ok(Pending::Unchanged),
        Some(InputProgress::Table(before)) if *before >= 0 && *before < now => {
            Ok(Pending::Deltas(table_deltas(cx, dataset, *before, &input.schema)?))
        }
        Some(InputProgress::Table(before)) if *before < 0 => {
            // The table was not there: all of it is new.
            let rows = read_all(cx, input)?.batches;
            Ok(Pending::Deltas(rows.into_iter().map(ZBatch::inserts).collect()))
        }
        Some(_) => Ok(Pending::Unknown("its table is another one than before".to_string())),
        None => Ok(Pending::Unknown("it was not read before".to_string())),
    }
}

/// New files are inserts; anything else that happened to files is not known as a change.
fn file_change(
    cx: &Context<'_>,
    files: &ResolvedFiles,
    input: &FlowInput,
    since: Option<&InputProgress>,
) -> Result<Pending> {
    let Some(InputProgress::Files { files: before, .. }) = since else {
        return Ok(Pending::Unknown("it was not read before".to_string()));
    };
    let now: BTreeMap<&str, &FileEntry> =
        files.listing.iter().map(|f| (f.path.as_str(), f)).collect();
    for (path, old) in before {
        match now.get(path.as_str()) {
            Some(file) if *file == old => {}
            Some(_) => return Ok(Pending::Unknown(format!("the file {path} changed"))),
            None => return Ok(Pending::Unknown(format!("the file {path} is gone"))),
        }
    }
    let new: Vec<FileEntry> =
        files.listing.iter().filter(|f| !before.contains_key(&f.path)).cloned().collect();
    if new.is_empty() {
        return Ok(Pending::Unchanged);
    }
    let rows = read_files(cx, files, &new, input)?;
    Ok(Pending::Deltas(rows.into_iter().map(ZBatch::inserts).collect()))
}

/// How far an input is now, without reading it.
pub(crate) fn now(cx: &Context<'_>, input: &FlowInput) -> Result<InputProgress> {
    let of_files = |files: &ResolvedFiles| InputProgress::Files {
        schema: files.schema.stored.clone(),
        files: files.listing.iter().map(|f| (f.path.clone(), f.clone())).collect(),
    };
    Ok(match &input.source {
        InputSource::Dataset(d) => {
            InputProgress::Table(cx.stored(*d)?.handle.as_ref().map_or(-1, |h| h.version()))
        }
        InputSource::Changes { .. } | InputSource::ExternalChanges { .. } => {
            InputProgress::Table(Feed::of(cx, &input.source)?.last)
        }
        InputSource::Files(call) => of_files(&*cx.files.resolve(call)?),
        InputSource::External(path) => match cx.files.external_table(path)? {
            Some(table) => InputProgress::Table(table.version()),
            None => of_files(&*cx.files.resolve(&external_call(path, "parquet"))?),
        },
    })
}

/// Rows of an input now, without reading them all where a table's statistics say.
pub(crate) fn full_rows(cx: &Context<'_>, input: &FlowInput) -> Result<u64> {
    match &input.source {
        InputSource::Dataset(d) => match &cx.stored(*d)?.handle {
            Some(handle) => handle.table()?.num_rows(),
            None => Ok(0),
        },
        InputSource::Files(_)
        | InputSource::External(_)
        | InputSource::ExternalChanges { .. }
        | InputSource::Changes { .. } => Ok(0),
    }
}

/// An input as one insert of everything.
pub(crate) fn whole(cx: &Context<'_>, input: &FlowInput) -> Result<Vec<ZBatch>> {
    let InputRows { batches, .. } = read_all(cx, input)?;
    Ok(batches.into_iter().map(ZBatch::inserts).collect())
}
