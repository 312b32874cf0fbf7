//! What each epoch of a flow consumed. The table's transaction id says which epoch counts; files
//! of later epochs are leftovers of a crash and are overwritten.

use std::collections::BTreeMap;

use bytes::Bytes;
use deltaic_batch::{Error, Result};
use deltaic_table::Storage;
use serde::{Deserialize, Serialize};

use crate::files::{FileEntry, StoredSchema};

/// After so many epochs a file holds the whole list again.
const COMPLETE_EVERY: i64 = 16;

/// Progress of a flow, all epochs taken together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FlowProgress {
    /// Epoch; 0 before the first.
    pub(crate) epoch: i64,
    /// Epoch before this one; 0 when this file holds everything.
    pub(crate) previous: i64,
    /// Update that did it.
    pub(crate) update: u64,
    /// The flow's query, to notice that it was edited.
    pub(crate) query: String,
    /// Inputs by identity (see [`input_key`]).
    pub(crate) inputs: BTreeMap<String, InputProgress>,
    /// Views: identity of plan and expectations.
    #[serde(default)]
    pub(crate) fingerprint: Option<String>,
    /// Views: counts of the expectations over the whole view, by name: (passed, failed).
    #[serde(default)]
    pub(crate) expectations: BTreeMap<String, (i64, i64)>,
    /// Views that ask for the time: that of the refresh, in microseconds since 1970.
    #[serde(default)]
    pub(crate) clock_us: Option<i64>,
    /// AUTO CDC: what must not drift.
    #[serde(default)]
    pub(crate) cdc: Option<serde_json::Value>,
    /// AUTO CDC FROM SNAPSHOT: the last version applied: a number, days or microseconds since 1970.
    #[serde(default)]
    pub(crate) snapshot: Option<i64>,
}

/// How far an input was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InputProgress {
    /// A table, up to a version.
    Table(i64),
    /// Files.
    Files {
        /// Inferred schema.
        schema: Option<StoredSchema>,
        /// Files read: in memory all, in a file of an epoch those of the epoch.
        files: BTreeMap<String, FileEntry>,
    },
}

/// Store of one flow's progress.
#[derive(Debug, Clone)]
pub(crate) struct ProgressStore {
    storage: Storage,
    folder: String,
}

impl ProgressStore {
    /// Of a flow into a dataset.
    pub(crate) fn new(storage: &Storage, dataset: &str, flow: &str) -> Self {
        let folder =
            format!("progress/{}/{}", crate::paths::folder(dataset), crate::paths::folder(flow));
        Self { storage: storage.clone(), folder }
    }

    fn path(&self, epoch: i64) -> String {
        format!("{}/{epoch}.json", self.folder)
    }

    /// Everything up to an epoch that counts.
    pub(crate) fn load(&self, epoch: i64) -> Result<FlowProgress> {
        let mut newest: Option<FlowProgress> = None;
        let mut at = epoch;
        while at > 0 {
            let part = self.read(at)?;
            at = part.previous;
            match &mut newest {
                None => newest = Some(part),
                Some(newest) => absorb(newest, part),
            }
        }
        let mut progress = newest.unwrap_or_default();
        progress.previous = 0;
        Ok(progress)
    }

    fn read(&self, epoch: i64) -> Result<FlowProgress> {
        let path = self.path(epoch);
        let damaged = |why: String| {
            Error::storage("PROGRESS_DAMAGED", why)
                .object(path.clone())
                .hint("run with --full-refresh for this dataset, or restore the file")
        };
        let bytes =
            self.storage.get(&path)?.ok_or_else(|| damaged("the file is missing".to_string()))?;
        serde_json::from_slice(&bytes).map_err(|e| damaged(format!("cannot be read: {e}")))
    }

    /// Writes the file of `now.epoch`, as the change since `before` where that is shorter. True
    /// when the file holds everything, so that older ones are no longer needed once it counts.
    pub(crate) fn save(&self, before: &FlowProgress, now: &FlowProgress) -> Result<bool> {
        let mut part = now.clone();
        let due = now.epoch / COMPLETE_EVERY > before.epoch / COMPLETE_EVERY;
        let complete = before.epoch == 0 || due || !only_grew(before, now);
        if !complete {
            part.previous = before.epoch;
            for (key, input) in &mut part.inputs {
                if let (
                    InputProgress::Files { files, .. },
                    Some(InputProgress::Files { files: old, .. }),
                ) = (input, before.inputs.get(key))
                {
                    files.retain(|path, entry| old.get(path) != Some(entry));
                }
            }
        }
        let bytes =
            serde_json::to_vec(&part).map_err(|e| Error::internal("PROGRESS", e.to_string()))?;
        self.storage.put(&self.path(now.epoch), Bytes::from(bytes))?;
        Ok(complete)
    }

    /// Removes files of epochs before one that holds everything.
    pub(crate) fn clean(&self, epoch: i64) -> Result<()> {
        for name in self.storage.list(&self.folder)? {
            let number = name.strip_suffix(".json").and_then(|n| n.parse::<i64>().ok());
            if number.is_some_and(|n| n < epoch) {
                self.storage.delete(&format!("{}/{name}", self.folder))?;
            }
        }
        Ok(())
    }
}

/// Adds the files of an older epoch.
fn absorb(newest: &mut FlowProgress, older: FlowProgress) {
    for (key, input) in older.inputs {
        if let (Some(InputProgress::Files { files, .. }), InputProgress::Files { files: old, .. }) =
            (newest.inputs.get_mut(&key), input)
        {
            for (path, entry) in old {
                files.entry(path).or_insert(entry);
            }
        }
    }
}

fn only_grew(before: &FlowProgress, now: &FlowProgress) -> bool {
    before.inputs.iter().all(|(key, old)| match (old, now.inputs.get(key)) {
        (InputProgress::Files { files: old, .. }, Some(InputProgress::Files { files, .. })) => {
            old.keys().all(|path| files.contains_key(path))
        }
        (InputProgress::Files { files, .. }, _) => files.is_empty(),
        (InputProgress::Table(_), _) => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, size: u64) -> FileEntry {
        FileEntry { path: path.to_string(), size, mtime_us: 1 }
    }

    fn with_files(epoch: i64, count: u64) -> FlowProgress {
        let files = (0..count).map(|i| (format!("f{i}"), entry(&format!("f{i}"), i))).collect();
        let input = InputProgress::Files { schema: None, files };
        let inputs = BTreeMap::from([("files:landing".to_string(), input)]);
        FlowProgress { epoch, inputs, ..FlowProgress::default() }
    }

    #[test]
    fn epochs_add_up_and_old_files_go() {
        let folder = tempfile::tempdir().unwrap();
        let store = ProgressStore::new(&Storage::local(folder.path()).unwrap(), "d", "f");
        let mut before = FlowProgress::default();
        for epoch in 1..40 {
            let now = with_files(epoch, u64::try_from(epoch).unwrap());
            if store.save(&before, &now).unwrap() {
                store.clean(epoch).unwrap();
            }
            assert_eq!(store.load(epoch).unwrap(), now, "epoch {epoch}");
            before = now;
        }
        let files = std::fs::read_dir(folder.path().join("progress/d/f")).unwrap().count();
        assert!(files <= 16, "{files}");
    }

    #[test]
    fn a_missing_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let store = ProgressStore::new(&Storage::local(folder.path()).unwrap(), "d", "f");
        assert_eq!(store.load(0).unwrap(), FlowProgress::default());
        assert_eq!(store.load(3).unwrap_err().code(), "PROGRESS_DAMAGED");
    }
}
