//! Files as a run sees them: each path is listed once, and its schema found once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result};
use deltaic_plan::Session;
use deltaic_sql::{ReadFiles, Span};
use deltaic_table::{Storage, Table};

use crate::FileSchemas;
use crate::files::{
    FileEntry, FileOptions, FileSchema, FileVersions, StoredSchema, VersionPattern, list,
    resolve_schema, table_schema,
};
use crate::marker::Marker;
use crate::progress::{FlowProgress, InputProgress, ProgressStore};

/// A `read_files` call looked at: what lies there and how it is read.
#[derive(Debug)]
pub(crate) struct ResolvedFiles {
    pub(crate) options: FileOptions,
    pub(crate) listing: Vec<FileEntry>,
    pub(crate) schema: FileSchema,
}

/// Lists files and finds schemas, once per run.
#[derive(Debug)]
pub(crate) struct FileCatalog<'a> {
    root: &'a Path,
    session: &'a Session,
    known: BTreeMap<String, Known>,
    resolved: Mutex<BTreeMap<String, Arc<ResolvedFiles>>>,
}

/// What earlier updates know of a path.
#[derive(Debug, Default)]
struct Known {
    schema: Option<StoredSchema>,
    files: BTreeMap<String, FileEntry>,
}

/// Progress of all flows that ever committed, by (dataset, flow).
#[derive(Debug, Default)]
pub(crate) struct ProgressIndex(BTreeMap<(String, String), FlowProgress>);

impl ProgressIndex {
    /// Loads what the marker names. Damaged files are left to the flow that needs them.
    pub(crate) fn load(storage: &Storage, marker: &Marker) -> Self {
        let mut index = BTreeMap::new();
        for (dataset, marked) in &marker.datasets {
            for (flow, epoch) in marked.epochs.iter().filter(|(flow, _)| !flow.is_empty()) {
                if let Ok(progress) = ProgressStore::new(storage, dataset, flow).load(*epoch) {
                    index.insert((dataset.clone(), flow.clone()), progress);
                }
            }
        }
        Self(index)
    }

    /// Progress of a flow at an epoch, loaded if it is another one.
    pub(crate) fn of(
        &self,
        storage: &Storage,
        dataset: &str,
        flow: &str,
        epoch: i64,
    ) -> Result<FlowProgress> {
        match self.0.get(&(dataset.to_string(), flow.to_string())) {
            Some(progress) if progress.epoch == epoch => Ok(progress.clone()),
            _ => ProgressStore::new(storage, dataset, flow).load(epoch),
        }
    }
}

/// Start of the keys of inputs that are files.
pub(crate) const FILES: &str = "files:";

/// Identity of a files input in progress files.
pub(crate) fn files_key(path: &str) -> String {
    format!("{FILES}{path}")
}

impl<'a> FileCatalog<'a> {
    /// `reset` names datasets whose progress does not count (they are read from the beginning).
    pub(crate) fn new(
        root: &'a Path,
        session: &'a Session,
        progress: &ProgressIndex,
        reset: &dyn Fn(&str) -> bool,
    ) -> Self {
        let mut known: BTreeMap<String, Known> = BTreeMap::new();
        for ((dataset, _), flow) in &progress.0 {
            if reset(dataset) {
                continue;
            }
            for (key, input) in &flow.inputs {
                if let InputProgress::Files { schema, files } = input {
                    let key = key.split('#').next().unwrap_or(key);
                    let entry = known.entry(key.to_string()).or_default();
                    entry.schema = schema.clone().or(entry.schema.take());
                    entry.files.extend(files.clone());
                }
            }
        }
        Self { root, session, known, resolved: Mutex::default() }
    }

    /// Options, listing and schema of a call.
    pub(crate) fn resolve(&self, call: &ReadFiles) -> Result<Arc<ResolvedFiles>> {
        let key = format!("{}|{:?}", call.path, call.options);
        let cache = || self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = cache().get(&key) {
            return Ok(found.clone());
        }
        let options = FileOptions::parse(call, self.session)?;
        let listing = list(self.root, &options)?;
        let known = self.known.get(&files_key(&call.path));
        let new: Vec<FileEntry> = listing
            .iter()
            .filter(|f| known.is_none_or(|k| k.files.get(&f.path) != Some(f)))
            .cloned()
            .collect();
        let stored = known.and_then(|k| k.schema.as_ref());
        let schema = resolve_schema(self.root, &options, self.session, stored, &new)?;
        let found = Arc::new(ResolvedFiles { options, listing, schema });
        cache().insert(key, found.clone());
        Ok(found)
    }

    /// Project folder.
    pub(crate) fn root(&self) -> &Path {
        self.root
    }

    /// External Delta table at a path, if there is one.
    pub(crate) fn external_table(&self, path: &str) -> Result<Option<Table>> {
        let full = self.root.join(path);
        if !full.join("_delta_log").is_dir() {
            return Ok(None);
        }
        Table::open(&Storage::local(&full)?, "")
    }
}

impl FileCatalog<'_> {
    /// External Delta table at a path that must have one.
    pub(crate) fn delta_table(&self, path: &str) -> Result<Table> {
        self.external_table(path)?.ok_or_else(|| {
            Error::user("PATH_NOT_FOUND", "there is no Delta table in this folder")
                .object(path)
                .hint("the folder of a Delta table has a folder _delta_log")
        })
    }
}

/// External files as a call.
pub(crate) fn external_call(path: &str, format: &str) -> ReadFiles {
    let options = BTreeMap::from([("format".to_string(), format.to_string())]);
    ReadFiles { path: path.to_string(), options, span: Span::default() }
}

impl FileSchemas for FileCatalog<'_> {
    fn schema(&self, call: &ReadFiles) -> Result<SchemaRef> {
        Ok(self.resolve(call)?.schema.rows.clone())
    }

    fn versions(&self, call: &ReadFiles) -> Result<Option<FileVersions>> {
        let files = self.resolve(call)?;
        let pattern = match (&files.options.version_pattern, &files.options.version_column) {
            (None, None) => return Ok(None),
            (None, Some(column)) => return Ok(Some(FileVersions::Column(column.clone()))),
            (Some(pattern), None) => pattern,
            (Some(_), Some(_)) => {
                let message = "a snapshot has one version: versionPattern or versionColumn";
                return Err(Error::user("SNAPSHOT_VERSION", message).hint("leave one of them out"));
            }
        };
        // Files of earlier snapshots may be gone, but their versions are in the target.
        let known = self.known.get(&files_key(&call.path));
        let before = known.into_iter().flat_map(|known| known.files.keys());
        let paths = before.chain(files.listing.iter().map(|file| &file.path));
        let pattern = VersionPattern::infer(pattern, paths.map(String::as_str))?;
        Ok(Some(FileVersions::Pattern(pattern)))
    }

    fn external(&self, path: &str) -> Result<SchemaRef> {
        if let Some(table) = self.external_table(path)? {
            return table_schema(&table.schema(), self.session);
        }
        if !self.root.join(path).exists() {
            return Err(Error::user("PATH_NOT_FOUND", "there is no such table, file or folder")
                .object(path));
        }
        self.schema(&external_call(path, "parquet"))
    }

    fn external_delta(&self, path: &str) -> Result<SchemaRef> {
        table_schema(&self.delta_table(path)?.schema(), self.session)
    }
}
