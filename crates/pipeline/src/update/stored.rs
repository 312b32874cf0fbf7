//! A stored dataset as a run knows it: its table, opened when needed, and its flows' epochs.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use deltaic_batch::{Error, Result, ZBatch};
use deltaic_table::{Storage, Table};

use crate::marker::Marked;
use crate::paths;

/// Transaction id of a flow, or of a dataset's operator state when `flow` is empty.
pub(crate) fn app_id(pipeline: &str, dataset: &str, flow: &str) -> String {
    if flow.is_empty() {
        format!("deltaic/{pipeline}/{dataset}#state")
    } else {
        format!("deltaic/{pipeline}/{flow}")
    }
}

/// A table at a known version, opened at first use.
#[derive(Debug, Clone)]
pub(crate) struct TableHandle {
    storage: Storage,
    path: String,
    version: i64,
    cell: Arc<OnceLock<Table>>,
}

impl TableHandle {
    /// At a version that is known to be there.
    pub(crate) fn at(storage: &Storage, path: &str, version: i64) -> Self {
        Self { storage: storage.clone(), path: path.to_string(), version, cell: Arc::default() }
    }

    /// Of an open table.
    pub(crate) fn of(storage: &Storage, path: &str, table: Table) -> Self {
        let handle = Self::at(storage, path, table.version());
        // The cell is new, so it is empty.
        let _ = handle.cell.set(table);
        handle
    }

    /// Version.
    pub(crate) fn version(&self) -> i64 {
        self.version
    }

    /// The table.
    pub(crate) fn table(&self) -> Result<&Table> {
        if let Some(table) = self.cell.get() {
            return Ok(table);
        }
        let table = Table::open_at(&self.storage, &self.path, self.version)?.ok_or_else(|| {
            Error::storage("TABLE_MISSING", format!("version {} is not there", self.version))
                .object(&self.path)
                .hint("restore the storage folder, or delete it and run again")
        })?;
        Ok(self.cell.get_or_init(|| table))
    }
}

/// A stored dataset.
#[derive(Debug, Clone)]
pub(crate) struct StoredDataset {
    /// Its table; `None` before the first update.
    pub(crate) handle: Option<TableHandle>,
    /// Last epoch of each flow that counts, and of the state under the empty name.
    pub(crate) epochs: BTreeMap<String, i64>,
    /// What this run changed: version before, and the deltas since.
    pub(crate) memory: Option<(i64, Arc<Vec<ZBatch>>)>,
}

impl StoredDataset {
    /// As the newest table version has it. The marker saves opening the table when nothing was
    /// written since.
    pub(crate) fn find(
        storage: &Storage,
        pipeline: &str,
        key: &str,
        flows: &[&str],
        marked: Option<&Marked>,
    ) -> Result<Self> {
        let path = paths::table(key);
        if let Some(marked) = marked {
            let next = format!("{path}/_delta_log/{:020}.json", marked.version + 1);
            if storage.get(&next)?.is_none() {
                return Ok(Self {
                    handle: Some(TableHandle::at(storage, &path, marked.version)),
                    epochs: marked.epochs.clone(),
                    memory: None,
                });
            }
        }
        let Some(table) = Table::open(storage, &path)? else {
            return Ok(Self { handle: None, epochs: BTreeMap::new(), memory: None });
        };
        let mut epochs = marked.map(|m| m.epochs.clone()).unwrap_or_default();
        for flow in flows.iter().copied().chain([""]) {
            if let Some(epoch) = table.txn_version(&app_id(pipeline, key, flow)) {
                epochs.insert(flow.to_string(), epoch);
            }
        }
        let handle = Some(TableHandle::of(storage, &path, table));
        Ok(Self { handle, epochs, memory: None })
    }

    /// Last epoch of a flow; 0 before its first.
    pub(crate) fn epoch(&self, flow: &str) -> i64 {
        self.epochs.get(flow).copied().unwrap_or(0)
    }

    /// Epoch of the next commit: above all before it.
    pub(crate) fn next_epoch(&self) -> i64 {
        self.epochs.values().copied().max().unwrap_or(0) + 1
    }
}
