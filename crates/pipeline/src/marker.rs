//! The marker: which table versions belong together. Written last, so that an update becomes
//! visible to deltaic's own readers all at once.

use std::collections::BTreeMap;

use bytes::Bytes;
use deltaic_batch::{Error, Result};
use deltaic_table::Storage;
use serde::{Deserialize, Serialize};

/// How many markers are kept.
const KEPT: u64 = 8;

/// State of all datasets after an update.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    /// Number of the update.
    pub(crate) update: u64,
    /// Time of the update, microseconds since 1970.
    pub(crate) time_us: i64,
    /// Stored datasets by key.
    pub(crate) datasets: BTreeMap<String, Marked>,
    /// Version of the event log.
    pub(crate) event_log: Option<i64>,
}

/// A dataset in a marker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marked {
    /// Name as the user wrote it.
    pub(crate) name: String,
    /// `streaming table` or `materialized view`.
    pub(crate) kind: String,
    /// Table version.
    pub(crate) version: i64,
    /// Last epoch of each flow, and of the dataset's operator state under the empty name.
    pub(crate) epochs: BTreeMap<String, i64>,
}

impl Marker {
    /// The newest marker; an empty one before the first update.
    pub(crate) fn load(storage: &Storage) -> Result<Self> {
        let mut numbers = numbers(storage)?;
        while let Some(n) = numbers.pop() {
            if let Some(bytes) = storage.get(&path(n))? {
                return serde_json::from_slice(&bytes).map_err(|e| {
                    Error::storage("MARKER_DAMAGED", format!("cannot be read: {e}"))
                        .object(path(n))
                        .hint("delete this file; the next run makes a new one")
                });
            }
        }
        Ok(Self::default())
    }

    /// Writes the marker and removes old ones.
    pub(crate) fn save(&self, storage: &Storage) -> Result<()> {
        let bytes = serde_json::to_vec_pretty(self)
            .map_err(|e| Error::internal("MARKER", e.to_string()))?;
        storage.put(&path(self.update), Bytes::from(bytes))?;
        for n in numbers(storage)? {
            if n + KEPT <= self.update {
                storage.delete(&path(n))?;
            }
        }
        Ok(())
    }
}

fn path(n: u64) -> String {
    format!("updates/{n}.json")
}

fn numbers(storage: &Storage) -> Result<Vec<u64>> {
    let names = storage.list("updates")?;
    let mut numbers: Vec<u64> = names
        .iter()
        .filter_map(|name| name.strip_suffix(".json").and_then(|n| n.parse().ok()))
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_marker_counts_and_old_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::local(folder.path()).unwrap();
        assert_eq!(Marker::load(&storage).unwrap(), Marker::default());
        for update in 1..=30 {
            let marker = Marker { update, time_us: 7, ..Marker::default() };
            marker.save(&storage).unwrap();
            assert_eq!(Marker::load(&storage).unwrap(), marker);
        }
        assert_eq!(numbers(&storage).unwrap().len(), 8);
    }
}
