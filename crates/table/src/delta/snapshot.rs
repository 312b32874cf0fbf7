//! The state of a table at one version: what replaying its log gives.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use deltaic_batch::{Error, Result};

use super::actions::{Action, Add, Metadata, Protocol, Remove, Txn};
use super::{features, schema};

/// A table at one version.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) version: i64,
    pub(crate) protocol: Arc<Protocol>,
    pub(crate) metadata: Arc<Metadata>,
    /// All columns, those of partitions included.
    pub(crate) schema: SchemaRef,
    /// Live data files by path.
    pub(crate) files: BTreeMap<Arc<str>, Arc<Add>>,
    pub(crate) txns: BTreeMap<String, Txn>,
}

/// Replays actions in the order of their versions.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    pub(crate) protocol: Option<Protocol>,
    pub(crate) metadata: Option<Metadata>,
    pub(crate) files: BTreeMap<Arc<str>, Arc<Add>>,
    pub(crate) txns: BTreeMap<String, Txn>,
    /// Removed logical files, when asked for.
    pub(crate) tombstones: Option<BTreeMap<(String, Option<String>), Remove>>,
}

impl Replay {
    /// A replay that keeps removed files, as a checkpoint needs them.
    pub(crate) fn with_tombstones() -> Self {
        Self { tombstones: Some(BTreeMap::new()), ..Self::default() }
    }

    /// Applies the actions of one version (or of a checkpoint). Their order within a version means
    /// nothing, so removes come first.
    pub(crate) fn apply(&mut self, actions: Vec<Action>) {
        let mut adds = Vec::new();
        for action in actions {
            adds.extend(action.add);
            self.protocol = action.protocol.or(self.protocol.take());
            self.metadata = action.meta_data.or(self.metadata.take());
            if let Some(txn) = action.txn {
                self.txns.insert(txn.app_id.clone(), txn);
            }
            if let Some(remove) = action.remove {
                self.files.remove(remove.path.as_str());
                if let Some(tombstones) = &mut self.tombstones {
                    let dv = remove.deletion_vector.as_ref().map(|dv| dv.unique_id());
                    tombstones.insert((remove.path.clone(), dv), remove);
                }
            }
        }
        for add in adds {
            if let Some(tombstones) = &mut self.tombstones {
                let dv = add.deletion_vector.as_ref().map(|dv| dv.unique_id());
                tombstones.remove(&(add.path.clone(), dv));
            }
            self.files.insert(add.path.as_str().into(), Arc::new(add));
        }
    }

    /// The state reached, if we can read such a table.
    pub(crate) fn finish(self, version: i64) -> Result<Snapshot> {
        let (Some(protocol), Some(metadata)) = (self.protocol, self.metadata) else {
            return Err(Error::storage(
                "LOG_CORRUPT",
                "the table's log lacks its protocol or its metadata",
            ));
        };
        features::check_readable(&protocol, &metadata)?;
        Ok(Snapshot {
            version,
            schema: schema::from_json(&metadata.schema_string)?,
            protocol: Arc::new(protocol),
            metadata: Arc::new(metadata),
            files: self.files,
            txns: self.txns,
        })
    }
}

impl Snapshot {
    /// The state after one more version.
    pub(crate) fn next(&self, actions: Vec<Action>) -> Result<Self> {
        let mut replay =
            Replay { files: self.files.clone(), txns: self.txns.clone(), ..Replay::default() };
        replay.apply(actions);
        let metadata = replay.metadata.map(Arc::new);
        Ok(Self {
            version: self.version + 1,
            schema: match &metadata {
                Some(m) => schema::from_json(&m.schema_string)?,
                None => self.schema.clone(),
            },
            protocol: replay.protocol.map_or_else(|| self.protocol.clone(), Arc::new),
            metadata: metadata.unwrap_or_else(|| self.metadata.clone()),
            files: replay.files,
            txns: replay.txns,
        })
    }

    /// Columns that are in the data files (all but those of partitions).
    pub(crate) fn file_schema(&self) -> SchemaRef {
        let partitions = &self.metadata.partition_columns;
        if partitions.is_empty() {
            return self.schema.clone();
        }
        let fields = self.schema.fields().iter().filter(|f| !partitions.contains(f.name()));
        Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()))
    }
}
