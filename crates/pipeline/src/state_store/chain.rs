//! The files that make up a state: a full one and the changes after it.

use std::collections::BTreeMap;

use deltaic_batch::Result;
use deltaic_exec::{SlotImage, SlotImages};
use deltaic_state::{Image, merge_changes};

use super::bytes_of;

/// What a file costs to open, in bytes that are read in the same time.
const FILE_BYTES: u64 = 1 << 12;

/// State as it was stored.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) full: SlotImages,
    pub(super) full_epoch: i64,
    pub(super) full_bytes: u64,
    /// In order.
    pub(super) changes: Vec<Changes>,
}

/// One file of changes.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) epoch: i64,
    pub(super) bytes: u64,
    pub(super) images: SlotImages,
}

impl Chain {
    /// The changes after the full image, in order.
    pub(crate) fn changes(&self) -> Vec<SlotImages> {
        self.changes.iter().map(|changes| changes.images.clone()).collect()
    }

    pub(super) fn changes_bytes(&self) -> u64 {
        self.changes.iter().map(|changes| changes.bytes).sum()
    }

    /// What goes into the next file: new changes, with those of the last files that are at most
    /// twice as large as all after them. Also, the epochs of the files that it leaves as they are.
    pub(super) fn with(&self, new: SlotImages) -> Result<(SlotImages, Vec<i64>)> {
        let mut left = self.changes.len();
        let mut bytes = bytes_of(&new) + FILE_BYTES;
        while left > 0 && self.changes[left - 1].bytes + FILE_BYTES <= 2 * bytes {
            left -= 1;
            bytes += self.changes[left].bytes;
        }
        let (kept, taken) = self.changes.split_at(left);
        let epochs = [self.full_epoch].into_iter().chain(kept.iter().map(|c| c.epoch)).collect();
        if taken.is_empty() {
            return Ok((new, epochs));
        }
        let mut by_place: BTreeMap<_, Vec<Image>> = BTreeMap::new();
        let taken = taken.iter().flat_map(|changes| &changes.images.images);
        for image in taken.chain(&new.images) {
            let place = (image.node, image.slot, image.shard);
            by_place.entry(place).or_default().push(image.image.clone());
        }
        let mut images = Vec::new();
        for ((node, slot, shard), changes) in by_place {
            for image in merge_changes(changes)? {
                images.push(SlotImage { node, slot, shard, image });
            }
        }
        Ok((SlotImages { images, ..new }, epochs))
    }
}
