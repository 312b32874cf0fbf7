//! Operator state of a dataset on disk: full images and changes, one checksummed file per epoch.
//!
//! File `<epoch>-full.bin` holds all slots, `<epoch>-changes.bin` what changed since the epoch
//! before. State of an epoch is the newest full image at or below it and the changes after that.
//! Layout: magic, length of the meta JSON, meta JSON, images (node, slot, shard, length, bytes),
//! CRC-32 of all before it; integers little-endian.

use bytes::Bytes;
use deltaic_batch::{Error, Result};
use deltaic_exec::{SlotImage, SlotImages};
use deltaic_table::Storage;
use serde::{Deserialize, Serialize};

const MAGIC: &[u8; 8] = b"DLTSTAT1";

/// What a state file says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StateMeta {
    /// Identity of plan, types and settings that the state fits.
    pub(crate) fingerprint: String,
    /// Epoch of the dataset.
    pub(crate) epoch: i64,
    /// Changes: epoch of the file that they follow.
    pub(crate) previous: i64,
    /// Epochs that the circuit has done.
    pub(crate) circuit_epoch: u64,
    /// Shards of the circuit.
    pub(crate) shards: usize,
}

/// State as it was stored.
#[derive(Debug)]
pub(crate) struct StoredState {
    /// Full image.
    pub(crate) full: SlotImages,
    /// Later changes in order.
    pub(crate) changes: Vec<SlotImages>,
    /// Bytes of the full image.
    pub(crate) full_bytes: usize,
    /// Bytes of all changes.
    pub(crate) changes_bytes: usize,
}

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

    /// State of an epoch, if it is whole and fits.
    pub(crate) fn load(
        &self,
        epoch: i64,
        fingerprint: &str,
    ) -> Result<Result<StoredState, NoState>> {
        let mut changes = Vec::new();
        let mut changes_bytes = 0;
        let mut at = epoch;
        loop {
            if at <= 0 {
                return Ok(Err(NoState::Damaged("the state file is missing".to_string())));
            }
            let (full, bytes) = match self.storage.get(&self.path(at, true))? {
                Some(bytes) => (true, bytes),
                None => match self.storage.get(&self.path(at, false))? {
                    Some(bytes) => (false, bytes),
                    None => {
                        let path = self.path(at, false);
                        return Ok(Err(NoState::Damaged(format!("{path} is missing"))));
                    }
                },
            };
            let (meta, images) = match decode(&bytes) {
                Ok(decoded) => decoded,
                Err(why) => {
                    return Ok(Err(NoState::Damaged(format!("{}: {why}", self.path(at, full)))));
                }
            };
            if meta.fingerprint != fingerprint {
                return Ok(Err(NoState::None));
            }
            if full {
                changes.reverse();
                let full_bytes = bytes.len();
                return Ok(Ok(StoredState { full: images, changes, full_bytes, changes_bytes }));
            }
            changes_bytes += bytes.len();
            changes.push(images);
            at = meta.previous;
        }
    }

    /// Writes one file; returns its size.
    pub(crate) fn write(&self, meta: &StateMeta, images: &SlotImages, full: bool) -> Result<usize> {
        let bytes = encode(meta, images)?;
        let size = bytes.len();
        // A leftover of the other kind from a crash must not be taken for this epoch.
        self.storage.delete(&self.path(meta.epoch, !full))?;
        self.storage.put(&self.path(meta.epoch, full), Bytes::from(bytes))?;
        Ok(size)
    }

    /// Removes files that the state of `epoch` does not need.
    pub(crate) fn clean(&self, epoch: i64) -> Result<()> {
        let names = self.storage.list(&self.folder)?;
        let number = |name: &str| {
            name.split_once('-')
                .and_then(|(n, rest)| Some((n.parse::<i64>().ok()?, rest == "full.bin")))
        };
        let newest_full = names
            .iter()
            .filter_map(|n| number(n))
            .filter(|(n, full)| *full && *n <= epoch)
            .map(|(n, _)| n)
            .max();
        for name in &names {
            let obsolete = number(name)
                .is_some_and(|(n, _)| n > epoch || newest_full.is_some_and(|full| n < full));
            if obsolete {
                self.storage.delete(&format!("{}/{name}", self.folder))?;
            }
        }
        Ok(())
    }
}

fn encode(meta: &StateMeta, images: &SlotImages) -> Result<Vec<u8>> {
    let meta = serde_json::to_vec(meta).map_err(|e| Error::internal("STATE", e.to_string()))?;
    let payload: usize = images.images.iter().map(|i| i.bytes.len() + 20).sum();
    let mut out = Vec::with_capacity(payload + meta.len() + 24);
    out.extend_from_slice(MAGIC);
    push_length(&mut out, meta.len())?;
    out.extend_from_slice(&meta);
    push_length(&mut out, images.images.len())?;
    for image in &images.images {
        for number in [image.node, image.slot, image.shard, image.bytes.len()] {
            push_length(&mut out, number)?;
        }
        out.extend_from_slice(&image.bytes);
    }
    let crc = crc32fast::hash(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    Ok(out)
}

fn push_length(out: &mut Vec<u8>, length: usize) -> Result<()> {
    let length = u64::try_from(length).map_err(|e| Error::internal("STATE", e.to_string()))?;
    out.extend_from_slice(&length.to_le_bytes());
    Ok(())
}

fn decode(bytes: &[u8]) -> Result<(StateMeta, SlotImages), String> {
    let Some((body, crc)) = bytes.split_last_chunk::<4>() else {
        return Err("the file is too short".to_string());
    };
    if crc32fast::hash(body) != u32::from_le_bytes(*crc) {
        return Err("the checksum is wrong".to_string());
    }
    let mut rest = body.strip_prefix(MAGIC).ok_or("it has another format version")?;
    let length = take_length(&mut rest)?;
    let meta: StateMeta =
        serde_json::from_slice(take(&mut rest, length)?).map_err(|e| e.to_string())?;
    let count = take_length(&mut rest)?;
    let mut images = Vec::new();
    for _ in 0..count {
        let (node, slot, shard) =
            (take_length(&mut rest)?, take_length(&mut rest)?, take_length(&mut rest)?);
        let length = take_length(&mut rest)?;
        images.push(SlotImage { node, slot, shard, bytes: take(&mut rest, length)?.to_vec() });
    }
    let images = SlotImages { epoch: meta.circuit_epoch, shards: meta.shards, images };
    Ok((meta, images))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (head, tail) = rest.split_at_checked(length).ok_or("the file ends too early")?;
    *rest = tail;
    Ok(head)
}

fn take_length(rest: &mut &[u8]) -> Result<usize, String> {
    let (head, tail) = rest.split_first_chunk::<8>().ok_or("the file ends too early")?;
    *rest = tail;
    usize::try_from(u64::from_le_bytes(*head)).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (StateMeta, SlotImages) {
        let meta = StateMeta {
            fingerprint: "f".into(),
            epoch: 3,
            previous: 0,
            circuit_epoch: 7,
            shards: 2,
        };
        let image = SlotImage { node: 1, slot: 0, shard: 1, bytes: vec![1, 2, 3] };
        (meta, SlotImages { epoch: 7, shards: 2, images: vec![image] })
    }

    #[test]
    fn what_is_written_is_read_back() {
        let (meta, images) = sample();
        let (meta_back, images_back) = decode(&encode(&meta, &images).unwrap()).unwrap();
        assert_eq!(meta_back, meta);
        assert_eq!(images_back.images[0].bytes, [1, 2, 3]);
        assert_eq!((images_back.epoch, images_back.shards), (7, 2));
    }

    #[test]
    fn any_damaged_byte_and_any_cut_is_noticed() {
        let (meta, images) = sample();
        let bytes = encode(&meta, &images).unwrap();
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 0x10;
            assert!(decode(&damaged).is_err(), "byte {i}");
            assert!(decode(&bytes[..i]).is_err(), "cut at {i}");
        }
    }
}
