//! [`Table`]: one version of a table.

mod scan;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use deltaic_batch::{Error, Result};
use serde_json::json;
use uuid::Uuid;

use crate::commit::CommitBuilder;
use crate::delta::actions::{Action, Format, Metadata, parse_lines, write_line};
use crate::delta::snapshot::Snapshot;
use crate::delta::{checkpoint, features, log, schema};
use crate::{Storage, files, table_schema};

/// What a new table is made with.
#[derive(Debug, Clone, Default)]
pub struct TableOptions {
    /// Delta `name`.
    pub name: Option<String>,
    /// Delta `description`.
    pub description: Option<String>,
    /// Delta `configuration`; change feed and deletion vectors are always on.
    ///
    /// `deltaic.rowIndex = lazy` makes row indexes only when rows are first deleted: the right
    /// choice for a table that is only appended to. `delta.parquet.compression.codec` chooses among
    /// `snappy` (default), `zstd`, `lz4_raw` and `uncompressed`.
    pub properties: BTreeMap<String, String>,
}

/// What to read.
#[derive(Debug, Clone, Default)]
pub struct ScanOptions {
    /// Columns by position in the schema; all when `None`.
    pub columns: Option<Vec<usize>>,
}

/// A table at one version.
#[derive(Debug, Clone)]
pub struct Table {
    pub(crate) storage: Storage,
    /// The table's folder.
    pub(crate) root: Storage,
    pub(crate) path: Arc<str>,
    pub(crate) snapshot: Arc<Snapshot>,
}

impl Table {
    /// Makes version 0 (protocol and metadata, no data). Fails when there is a table already.
    pub fn create(
        storage: &Storage,
        path: &str,
        schema: SchemaRef,
        options: &TableOptions,
    ) -> Result<Self> {
        let schema = table_schema(&schema)?;
        let exists = || {
            Error::storage("TABLE_EXISTS", "there is a table in this folder already").object(path)
        };
        if Self::open(storage, path)?.is_some() {
            return Err(exists());
        }
        let now = now_ms();
        let mut configuration = options.properties.clone();
        for property in [features::ENABLE_CHANGE_FEED, features::ENABLE_DELETION_VECTORS] {
            configuration.insert(property.into(), "true".into());
        }
        let metadata = Metadata {
            id: Uuid::new_v4().to_string(),
            name: options.name.clone(),
            description: options.description.clone(),
            format: Format { provider: "parquet".into(), options: BTreeMap::new() },
            schema_string: schema::to_json(&schema)?,
            partition_columns: Vec::new(),
            configuration,
            created_time: Some(now),
        };
        let protocol = features::protocol(schema::has_timestamp_ntz(schema.fields()));
        let info = json!({"commitInfo": {
            "timestamp": now, "operation": "CREATE TABLE", "operationParameters": {},
            "isBlindAppend": true, "engineInfo": crate::commit::ENGINE, "operationMetrics": {},
        }});
        let mut entry = Vec::new();
        write_line(&mut entry, &info)?;
        write_line(&mut entry, &Action { protocol: Some(protocol), ..Action::default() })?;
        write_line(&mut entry, &Action { meta_data: Some(metadata), ..Action::default() })?;
        if !storage.child(path).put_if_absent(&log::entry_path(0), entry.into())? {
            return Err(exists());
        }
        Self::open_at(storage, path, 0)?.ok_or_else(|| {
            Error::storage("LOG_CORRUPT", "the table vanished while it was made").object(path)
        })
    }

    /// The newest version; `None` when there is no table.
    pub fn open(storage: &Storage, path: &str) -> Result<Option<Self>> {
        Self::load(storage, path, None)
    }

    /// The given version; `None` when there is no table.
    pub fn open_at(storage: &Storage, path: &str, version: i64) -> Result<Option<Self>> {
        Self::load(storage, path, Some(version))
    }

    fn load(storage: &Storage, path: &str, version: Option<i64>) -> Result<Option<Self>> {
        let root = storage.child(path);
        let snapshot = log::load(&root, version).map_err(|e| e.object(path))?;
        Ok(snapshot.map(|snapshot| Self {
            storage: storage.clone(),
            root,
            path: path.into(),
            snapshot: Arc::new(snapshot),
        }))
    }

    /// Version of this snapshot.
    pub fn version(&self) -> i64 {
        self.snapshot.version
    }

    /// Schema of the rows.
    pub fn schema(&self) -> SchemaRef {
        self.snapshot.schema.clone()
    }

    /// Delta `configuration`.
    pub fn properties(&self) -> &BTreeMap<String, String> {
        &self.snapshot.metadata.configuration
    }

    /// Number of rows, from statistics and deletion vectors.
    pub fn num_rows(&self) -> Result<u64> {
        let mut rows = 0_u64;
        for add in self.snapshot.files.values() {
            let records = match add.num_records() {
                Some(records) => records,
                None => files::count_rows(&self.root, add)?,
            };
            rows += records.saturating_sub(add.num_deleted());
        }
        Ok(rows)
    }

    /// Bytes of the live data files.
    pub fn size_bytes(&self) -> u64 {
        self.snapshot.files.values().map(|add| add.size).sum()
    }

    /// Last committed `txn` version of an application.
    pub fn txn_version(&self, app_id: &str) -> Option<i64> {
        self.snapshot.txns.get(app_id).map(|txn| txn.version)
    }

    /// All rows of this version in record batches.
    pub fn scan(
        &self,
        options: &ScanOptions,
    ) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>> {
        let schema = match &options.columns {
            None => self.schema(),
            Some(columns) => Arc::new(self.snapshot.schema.project(columns)?),
        };
        let adds: Vec<_> = self.snapshot.files.values().cloned().collect();
        Ok(Box::new(scan::Scan {
            storage: self.storage.clone(),
            root: self.root.clone(),
            schema,
            files: adds.into_iter(),
            current: None,
        }))
    }

    /// Starts a commit on top of this version.
    pub fn begin(&self) -> CommitBuilder {
        CommitBuilder::new(self.clone())
    }

    /// Publishes a log entry that an earlier process prepared ([`crate::Prepared::log_entry`]) and
    /// returns the table at that version. Doing it again changes nothing; an other entry in its
    /// place is `COMMIT_CONFLICT`.
    pub fn roll_forward(storage: &Storage, path: &str, version: i64, entry: Bytes) -> Result<Self> {
        let root = storage.child(path);
        let entry_path = log::entry_path(version);
        parse_lines::<Action>(&entry, &entry_path)?;
        if !root.put_if_absent(&entry_path, entry.clone())?
            && root.get(&entry_path)?.as_ref() != Some(&entry)
        {
            return Err(conflict(path, version));
        }
        Self::open_at(storage, path, version)?
            .ok_or_else(|| Error::storage("LOG_CORRUPT", "the table vanished").object(path))
    }

    /// The table after a version was published.
    pub(crate) fn advance(&self, actions: Vec<Action>) -> Result<Self> {
        let snapshot = self.snapshot.next(actions)?;
        let next = Self { snapshot: Arc::new(snapshot), ..self.clone() };
        if next.version() % checkpoint::INTERVAL == 0 {
            // The version is out, whatever becomes of its checkpoint; without one, opening reads
            // more of the log.
            let _ = checkpoint::write(&next.root, next.version(), now_ms());
        }
        Ok(next)
    }
}

/// Somebody else published this version.
pub(crate) fn conflict(path: &str, version: i64) -> Error {
    Error::storage(
        "COMMIT_CONFLICT",
        format!("version {version} was published by another writer in the meantime"),
    )
    .object(path)
    .hint("run again; nothing of this attempt is visible")
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}
