//! Operator state of a dataset on disk: full images and changes, one file per epoch.
//!
//! File `<epoch>-full.bin` holds the images of all slots, `<epoch>-changes.bin` what changed since
//! the epoch that it names as the one before. State of an epoch is its chain: the files from the
//! full one on. A new file takes in the changes before it that are not much larger than itself, so
//! that a chain of n changes has about log n files.
//!
//! Layout: magic, length of the meta JSON, meta JSON, CRC-32 of all before it, images; integers
//! little-endian. Images are read when their slot is opened, or in parts, and check themselves.

mod chain;
mod file;

use deltaic_batch::Result;
use deltaic_exec::{Circuit, SlotImages};
use deltaic_table::Storage;

pub(crate) use chain::Chain;
use chain::Changes;
use file::{Meta, StateFile};

/// Why there is no state to use.
#[derive(Debug)]
pub(crate) enum NoState {
    /// It fits another plan.
    None,
    /// It was there and cannot be read.
    Damaged(String),
}

/// Store of one dataset's state.
#[derive(Debug, Clone)]
pub(crate) struct StateStore {
    storage: Storage,
    folder: String,
}

impl StateStore {
    /// Of a dataset.
    pub(crate) fn new(storage: &Storage, dataset: &str) -> Self {
        let folder = format!("state/{}", crate::paths::folder(dataset));
        Self { storage: storage.clone(), folder }
    }

    fn path(&self, epoch: i64, full: bool) -> String {
        format!("{}/{epoch}-{}.bin", self.folder, if full { "full" } else { "changes" })
    }

    /// State of an epoch, if it is there and fits.
    pub(crate) fn load(&self, epoch: i64, fingerprint: &str) -> Result<Result<Chain, NoState>> {
        let mut changes = Vec::new();
        let mut at = epoch;
        loop {
            let damaged = |why: String| Ok(Err(NoState::Damaged(why)));
            if at <= 0 {
                return damaged("the state file is missing".to_string());
            }
            let (full, object) = match self.storage.object(&self.path(at, true))? {
                Some(object) => (true, object),
                None => match self.storage.object(&self.path(at, false))? {
                    Some(object) => (false, object),
                    None => return damaged(format!("{} is missing", self.path(at, false))),
                },
            };
            let file = match StateFile::open(object) {
                Ok(file) => file,
                Err(why) => return damaged(format!("{}: {why}", self.path(at, full))),
            };
            if file.meta.fingerprint != fingerprint {
                return Ok(Err(NoState::None));
            }
            if full {
                changes.reverse();
                let (full_epoch, full_bytes) = (at, file.bytes);
                return Ok(Ok(Chain { full: file.images, full_epoch, full_bytes, changes }));
            }
            changes.push(Changes { epoch: at, bytes: file.bytes, images: file.images });
            at = file.meta.previous;
        }
    }

    /// Writes the state of an epoch: what changed since `chain`, or everything when there is none or
    /// all changes together pass half of the full image. Returns the epochs whose files make it up.
    pub(crate) fn write(
        &self,
        circuit: &mut Circuit,
        fingerprint: &str,
        epoch: i64,
        chain: Option<&Chain>,
    ) -> Result<Vec<i64>> {
        if let Some(chain) = chain {
            let new = circuit.write_changes()?;
            if 2 * (chain.changes_bytes() + bytes_of(&new)) <= chain.full_bytes {
                let (images, kept) = chain.with(new)?;
                let previous = kept.last().copied().unwrap_or(0);
                self.write_file(&images, fingerprint, epoch, previous)?;
                return Ok(kept.into_iter().chain([epoch]).collect());
            }
        }
        self.write_file(&circuit.write_full()?, fingerprint, epoch, 0)?;
        Ok(vec![epoch])
    }

    /// Writes one file, full unless it follows a `previous` one.
    fn write_file(
        &self,
        images: &SlotImages,
        fingerprint: &str,
        epoch: i64,
        previous: i64,
    ) -> Result<()> {
        let full = previous == 0;
        // A leftover of the other kind from a crash must not be taken for this epoch.
        self.storage.delete(&self.path(epoch, !full))?;
        let meta = Meta::new(images, fingerprint, epoch, previous);
        self.storage.put_parts(&self.path(epoch, full), file::encode(&meta, images)?)
    }

    /// Removes all files but those of the given epochs.
    pub(crate) fn clean(&self, kept: &[i64]) -> Result<()> {
        for name in self.storage.list(&self.folder)? {
            let epoch = name.split_once('-').and_then(|(epoch, _)| epoch.parse::<i64>().ok());
            if epoch.is_some_and(|epoch| !kept.contains(&epoch)) {
                self.storage.delete(&format!("{}/{name}", self.folder))?;
            }
        }
        Ok(())
    }
}

fn bytes_of(images: &SlotImages) -> u64 {
    images.images.iter().map(|image| image.image.size()).sum()
}
