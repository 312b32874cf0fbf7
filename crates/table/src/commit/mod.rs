//! Commits: a delta becomes the next version.
//!
//! Files are written first and durably; the version appears when its log entry does, by one write
//! that fails if the entry exists. Deleted rows are marked in deletion vectors, never by writing a
//! data file again.

mod files;
mod locate;
mod net;

use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{Schema, SchemaRef};
use bytes::Bytes;
use deltaic_batch::{Error, Result, ZBatch};
use serde_json::{Map, Value, json};

use self::files::FileWriter;
use self::net::Net;
use crate::delta::actions::{Action, Add, Cdc, Metadata, Remove, Txn, write_line};
use crate::delta::conform::{Missing, conform};
use crate::delta::deletion_vector::DvWriter;
use crate::delta::{features, log, schema};
use crate::files::widen;
use crate::store::NewObject;
use crate::table::{conflict, now_ms};
use crate::{ScanOptions, Table, table_schema};

/// Name and version in `commitInfo`.
pub(crate) const ENGINE: &str = concat!("deltaic/", env!("CARGO_PKG_VERSION"));

/// Gathers one atomic commit.
#[derive(Debug)]
pub struct CommitBuilder {
    table: Table,
    /// Schema after the commit.
    schema: SchemaRef,
    deltas: Vec<(RecordBatch, ScalarBuffer<i64>)>,
    truncated: bool,
    txns: Vec<Txn>,
    operation: String,
    fields: Map<String, Value>,
}

/// A commit whose files are written; only the log entry is missing.
#[derive(Debug)]
pub struct Prepared {
    table: Table,
    actions: Vec<Action>,
    entry: Bytes,
    counts: (u64, u64),
}

/// File actions of a commit.
#[derive(Debug, Default)]
struct Changes {
    adds: Vec<Add>,
    removes: Vec<Remove>,
    cdc: Vec<Cdc>,
    /// Rows inserted and deleted.
    counts: (u64, u64),
}

impl CommitBuilder {
    pub(crate) fn new(table: Table) -> Self {
        Self {
            schema: table.schema(),
            table,
            deltas: Vec::new(),
            truncated: false,
            txns: Vec::new(),
            operation: "WRITE".into(),
            fields: Map::new(),
        }
    }

    /// Adds a delta. Positive weights insert, negative ones delete that many copies of a row that
    /// is in the table (or is inserted in this commit). Rows are told apart by value: −0.0 is 0.0,
    /// and NaN is NaN. A row to delete that is not there is `DELETE_NOT_FOUND` when the commit is
    /// prepared.
    pub fn apply(&mut self, delta: &ZBatch) -> Result<()> {
        if delta.is_empty() {
            return Ok(());
        }
        let rows = conform(delta.rows(), &self.schema, Missing::Refuse)
            .map_err(|e| e.object(&*self.table.path))?;
        self.deltas.push((rows, delta.weights().clone()));
        Ok(())
    }

    /// Removes all rows (they appear as deletes in the change feed); what is applied later stays.
    pub fn truncate(&mut self) -> Result<()> {
        self.deltas.clear();
        self.truncated = true;
        Ok(())
    }

    /// New schema: columns may be added (old rows read NULL); anything else only after
    /// [`Self::truncate`].
    pub fn set_schema(&mut self, schema: SchemaRef) -> Result<()> {
        let schema = table_schema(&schema)?;
        if !self.truncated {
            check_additive(&self.table.schema(), &schema)?;
        }
        for (rows, _) in &mut self.deltas {
            *rows = conform(rows, &schema, Missing::Null)?;
        }
        self.schema = schema;
        Ok(())
    }

    /// Application transaction id, committed with the data.
    pub fn set_txn(&mut self, app_id: &str, version: i64) {
        self.txns.retain(|txn| txn.app_id != app_id);
        self.txns.push(Txn { app_id: app_id.into(), version, last_updated: Some(now_ms()) });
    }

    /// `operation` and further fields of `commitInfo`.
    pub fn set_info(&mut self, operation: &str, fields: Map<String, Value>) {
        self.operation = operation.into();
        self.fields = fields;
    }

    /// Writes data files durably and the log entry into memory; nothing is visible yet.
    pub fn prepare(mut self) -> Result<Prepared> {
        let snapshot = &self.table.snapshot;
        features::check_writable(&snapshot.protocol, &snapshot.metadata)
            .map_err(|e| e.object(&*self.table.path))?;
        let now = now_ms();
        let net = Net::of(&self.schema, &std::mem::take(&mut self.deltas))?;
        let changes = self.write_files(net, now)?;
        let mut entry = Vec::new();
        write_line(&mut entry, &self.info(&changes, now))?;
        let counts = changes.counts;
        let actions = self.actions(changes)?;
        actions.iter().try_for_each(|action| write_line(&mut entry, action))?;
        Ok(Prepared { table: self.table, actions, entry: entry.into(), counts })
    }

    /// [`Self::prepare`], then [`Prepared::publish`].
    pub fn commit(self) -> Result<Table> {
        self.prepare()?.publish()
    }

    fn write_files(&self, net: Net, now: i64) -> Result<Changes> {
        let mut writer = FileWriter {
            root: &self.table.root,
            schema: self.schema.clone(),
            properties: &self.table.snapshot.metadata.configuration,
            now_ms: now,
            objects: Vec::new(),
        };
        let mut changes = Changes { counts: net.counts(), ..Changes::default() };
        let mut deleted = Vec::new();
        if self.truncated {
            self.remove_all(&net, &mut changes, &mut deleted, now)?;
        } else if changes.counts.1 > 0 {
            self.remove_some(&net, &mut changes, &mut writer, now)?;
            deleted.push(net.delete_copies()?);
        }
        let feed = features::is_on(&self.table.snapshot.metadata, features::ENABLE_CHANGE_FEED);
        if feed && !deleted.is_empty() {
            changes.cdc = writer.changes(&deleted, &net.inserts)?;
        }
        if !net.inserts.is_empty() {
            changes.adds.append(&mut writer.data(&net.inserts, net.insert_hashes.as_deref())?);
        }
        writer.flush()?;
        Ok(changes)
    }

    /// Takes all files out. Whole files tell the change feed what was deleted; only where deletion
    /// vectors hide rows of them it is spelled out (in `deleted`), since not all readers look.
    fn remove_all(
        &self,
        net: &Net,
        changes: &mut Changes,
        deleted: &mut Vec<RecordBatch>,
        now: i64,
    ) -> Result<()> {
        // There is nothing left that could be deleted.
        locate::locate(&self.emptied(), net)?;
        let files = &self.table.snapshot.files;
        if !files.is_empty() {
            self.check_deletable()?;
        }
        changes.counts.1 = self.table.num_rows()?;
        changes.removes = files.values().map(|add| add.to_remove(now)).collect();
        let hidden = files.values().any(|add| add.deletion_vector.is_some());
        if hidden && check_additive(&self.table.schema(), &self.schema).is_ok() {
            for rows in self.table.scan(&ScanOptions::default())? {
                deleted.push(conform(&rows?, &self.schema, Missing::Null)?);
            }
        }
        Ok(())
    }

    fn emptied(&self) -> Table {
        let mut table = self.table.clone();
        std::sync::Arc::make_mut(&mut table.snapshot).files.clear();
        table
    }

    /// Marks rows as deleted; a file that loses its last row is removed.
    fn remove_some(
        &self,
        net: &Net,
        changes: &mut Changes,
        writer: &mut FileWriter<'_>,
        now: i64,
    ) -> Result<()> {
        self.check_deletable()?;
        let mut vectors = DvWriter::new();
        for hit in locate::locate(&self.table, net)? {
            changes.removes.push(hit.add.to_remove(now));
            if hit.deleted.len() == hit.num_rows {
                continue;
            }
            let mut add = Add::clone(&hit.add);
            add.stats = Some(widen(add.stats.as_deref().unwrap_or_default(), hit.num_rows));
            add.deletion_vector = Some(vectors.add(hit.deleted)?);
            add.data_change = true;
            changes.adds.push(add);
        }
        if let Some((path, bytes)) = vectors.finish() {
            writer.objects.push(NewObject { path, bytes: vec![bytes.into()], durable: true });
        }
        Ok(())
    }

    fn check_deletable(&self) -> Result<()> {
        let snapshot = &self.table.snapshot;
        features::check_deletable(&snapshot.protocol, &snapshot.metadata)
            .map_err(|e| e.object(&*self.table.path))
    }

    fn actions(&self, changes: Changes) -> Result<Vec<Action>> {
        let mut actions = Vec::new();
        let snapshot = &self.table.snapshot;
        if self.schema != snapshot.schema {
            let protocol = features::upgrade(&snapshot.protocol, &self.schema);
            actions.extend(protocol.map(|p| Action { protocol: Some(p), ..Action::default() }));
            let metadata = Metadata {
                schema_string: schema::to_json(&self.schema)?,
                ..Metadata::clone(&snapshot.metadata)
            };
            actions.push(Action { meta_data: Some(metadata), ..Action::default() });
        }
        let Changes { adds, removes, cdc, .. } = changes;
        let txns = self.txns.iter().cloned();
        actions.extend(txns.map(|txn| Action { txn: Some(txn), ..Action::default() }));
        actions
            .extend(removes.into_iter().map(|r| Action { remove: Some(r), ..Action::default() }));
        actions.extend(adds.into_iter().map(|add| Action { add: Some(add), ..Action::default() }));
        actions.extend(cdc.into_iter().map(|cdc| Action { cdc: Some(cdc), ..Action::default() }));
        Ok(actions)
    }

    fn info(&self, changes: &Changes, now: i64) -> Value {
        let (inserted, deleted) = changes.counts;
        let bytes: u64 = changes.adds.iter().map(|add| add.size).sum();
        let mut info = json!({
            "timestamp": now,
            "operation": self.operation,
            "operationParameters": {},
            "readVersion": self.table.version(),
            "isBlindAppend": changes.removes.is_empty(),
            "engineInfo": ENGINE,
            "operationMetrics": {
                "numFiles": changes.adds.len().to_string(),
                "numOutputRows": inserted.to_string(),
                "numOutputBytes": bytes.to_string(),
                "numInsertedRows": inserted.to_string(),
                "numDeletedRows": deleted.to_string(),
                "numRemovedFiles": changes.removes.len().to_string(),
            },
        });
        if let Some(info) = info.as_object_mut() {
            for (name, value) in &self.fields {
                info.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        json!({"commitInfo": info})
    }
}

impl Prepared {
    /// Version that publishing makes.
    pub fn version(&self) -> i64 {
        self.table.version() + 1
    }

    /// Rows that the commit inserts and deletes.
    pub fn row_counts(&self) -> (u64, u64) {
        self.counts
    }

    /// The log entry. With [`Table::roll_forward`] another process can publish it.
    pub fn log_entry(&self) -> &Bytes {
        &self.entry
    }

    /// Writes the log entry if that version is still free (`Storage` error `COMMIT_CONFLICT` else)
    /// and returns the table at the new version.
    pub fn publish(self) -> Result<Table> {
        let version = self.version();
        if !self.table.root.put_if_absent(&log::entry_path(version), self.entry)? {
            return Err(conflict(&self.table.path, version));
        }
        self.table.advance(self.actions)
    }
}

/// Fails unless `new` is `old` with more (nullable) columns.
fn check_additive(old: &Schema, new: &Schema) -> Result<()> {
    let refuse = |what: &str, name: &str| {
        let what = format!("the schema of a table with rows cannot change so: {what}");
        Err(Error::user("INCOMPATIBLE_SCHEMA", what)
            .object(name)
            .hint("refresh the table in full, so that it is written anew"))
    };
    for field in old.fields() {
        match new.field_with_name(field.name()) {
            Err(_) => return refuse("a column is gone", field.name()),
            Ok(f) if f.data_type() != field.data_type() => {
                return refuse("a column has another type", field.name());
            }
            Ok(f) if field.is_nullable() && !f.is_nullable() => {
                return refuse("a column no longer takes NULL", field.name());
            }
            Ok(_) => {}
        }
    }
    let added = new.fields().iter().find(|f| !f.is_nullable() && old.index_of(f.name()).is_err());
    match added {
        Some(field) => refuse("a new column does not take NULL", field.name()),
        None => Ok(()),
    }
}
