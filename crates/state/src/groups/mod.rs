//! Group table: columnar accumulators by key, updated in place.
//!
//! A step goes: [`GroupTable::upsert`] gives every row of a delta the dense number of its group,
//! its *slot*; typed loops add to [`GroupTable::accumulators_mut`] at those slots; then
//! [`GroupTable::settle`] drops the groups whose accumulators are all back at zero. In between,
//! [`GroupTable::touched`] lists each touched group once, so that the caller can read results
//! before and after.
//!
//! State: one key and one accumulator per group and column, a 32-bit fingerprint and slot in a hash
//! table, and the hash. Slots of dropped groups are used again. A dropped group that is part of
//! the last image written keeps its slot until the next one, which says that it is gone.

mod accumulators;
mod exact_sum;
mod keys;
mod snapshot;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use deltaic_batch::{Error, Result};
use hashbrown::HashTable;

pub use accumulators::{AccumulatorColumn, AccumulatorType};
pub use exact_sum::ExactSum;
use keys::KeyColumn;

/// Declares a group table.
#[derive(Debug, Clone)]
pub struct GroupSpec {
    /// Types of the key columns (may be empty: one group).
    pub key: Vec<DataType>,
    /// The accumulators of each group.
    pub accumulators: Vec<AccumulatorType>,
}

/// One shard's groups.
#[derive(Debug)]
pub struct GroupTable {
    spec: GroupSpec,
    index: HashTable<IndexEntry>,
    /// By slot, as are all columns.
    hashes: Vec<u64>,
    marks: Vec<u8>,
    keys: Vec<KeyColumn>,
    accumulators: Vec<AccumulatorColumn>,
    /// Slots without a group.
    free: Vec<u32>,
    /// Groups of the step under way, each once.
    touched: Vec<u32>,
    /// Slots touched since the last image, each once, and groups of that image dropped since.
    dirty: Vec<u32>,
    buried: Vec<u32>,
    /// What accumulators of untouched groups hold on the heap.
    heap_bytes: usize,
}

/// A group in the hash table.
#[derive(Debug, Clone, Copy)]
struct IndexEntry {
    /// Bits of the hash that the table itself does not look at.
    fingerprint: u32,
    slot: u32,
}

/// Marks of a slot.
mod mark {
    /// Holds a group.
    pub(super) const LIVE: u8 = 1;
    /// In the list of the step under way.
    pub(super) const TOUCHED: u8 = 2;
    /// In the list of what the next image must hold.
    pub(super) const DIRTY: u8 = 4;
    /// Part of the last image.
    pub(super) const STORED: u8 = 8;
}

/// The hash as the table uses it. The top bits of the original are alike in all of a shard.
fn spread(hash: u64) -> u64 {
    hash.rotate_left(32)
}

#[expect(clippy::cast_possible_truncation, reason = "the low half of the hash is meant")]
fn fingerprint(hash: u64) -> u32 {
    hash as u32
}

impl GroupTable {
    /// Empty. Fails if a key column's type cannot be grouped by.
    pub fn try_new(spec: &GroupSpec) -> Result<Self> {
        Ok(Self {
            spec: spec.clone(),
            index: HashTable::new(),
            hashes: Vec::new(),
            marks: Vec::new(),
            keys: spec.key.iter().map(KeyColumn::try_new).collect::<Result<_>>()?,
            accumulators: spec.accumulators.iter().map(|&a| AccumulatorColumn::new(a)).collect(),
            free: Vec::new(),
            touched: Vec::new(),
            dirty: Vec::new(),
            buried: Vec::new(),
            heap_bytes: 0,
        })
    }

    /// What it was made from.
    pub fn spec(&self) -> &GroupSpec {
        &self.spec
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// True without groups.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Bytes held in memory.
    pub fn memory_bytes(&self) -> usize {
        let lists = [&self.free, &self.touched, &self.dirty, &self.buried];
        let keys: usize = self.keys.iter().map(KeyColumn::memory_bytes).sum();
        let accumulators: usize = self.accumulators.iter().map(|a| a.memory_bytes()).sum();
        self.index.allocation_size()
            + self.hashes.capacity() * size_of::<u64>()
            + self.marks.capacity()
            + lists.iter().map(|list| list.capacity() * size_of::<u32>()).sum::<usize>()
            + keys
            + accumulators
            + self.heap_bytes
            + self.heap_bytes_of(&self.touched)
    }

    fn heap_bytes_of(&self, slots: &[u32]) -> usize {
        self.accumulators.iter().map(|column| column.heap_bytes(slots)).sum()
    }

    /// The slot of each row's group, made if there is none yet, and touched. `hashes` are
    /// [`deltaic_batch::hash_columns`] of the key columns, one per row.
    pub fn upsert(&mut self, key: &[ArrayRef], hashes: &[u64]) -> Result<Vec<u32>> {
        if key.len() != self.keys.len() || key.iter().any(|column| column.len() != hashes.len()) {
            return Err(Error::internal("GROUP_KEY", "a group's key has other columns or rows"));
        }
        let mut slots = Vec::with_capacity(hashes.len());
        let (mut new_rows, mut new_slots) = (Vec::new(), Vec::new());
        let touched_before = self.touched.len();
        for (row, &hash) in (0_u32..).zip(hashes) {
            let print = fingerprint(hash);
            let found = self.index.find(spread(hash), |entry| entry.fingerprint == print);
            let slot = match found {
                Some(entry) => entry.slot,
                None => {
                    let slot = self.insert(hash)?;
                    new_rows.push(row);
                    new_slots.push(slot);
                    slot
                }
            };
            slots.push(slot);
        }
        self.make_room();
        for (column, array) in self.keys.iter_mut().zip(key) {
            column.store(array, &new_rows, &new_slots)?;
        }
        self.resolve_collisions(key, hashes, &mut slots)?;
        slots.iter().for_each(|&slot| self.touch(slot));
        self.heap_bytes -= self.heap_bytes_of(&self.touched[touched_before..]);
        Ok(slots)
    }

    /// Rows whose hash is another group's, though their key is not, get groups of their own.
    fn resolve_collisions(
        &mut self,
        key: &[ArrayRef],
        hashes: &[u64],
        slots: &mut [u32],
    ) -> Result<()> {
        let mut differing = Vec::new();
        for (column, array) in self.keys.iter().zip(key) {
            column.compare(array, slots, &mut differing)?;
        }
        if differing.is_empty() {
            return Ok(());
        }
        differing.sort_unstable();
        differing.dedup();
        for row in differing {
            let (at, hash) = (row as usize, hashes[row as usize]);
            let row_key: Vec<ArrayRef> = key.iter().map(|column| column.slice(at, 1)).collect();
            slots[at] = match self.find_by_key(&row_key, hash)? {
                Some(slot) => slot,
                None => {
                    let slot = self.insert(hash)?;
                    self.make_room();
                    for (column, array) in self.keys.iter_mut().zip(&row_key) {
                        column.store(array, &[0], &[slot])?;
                    }
                    slot
                }
            };
        }
        Ok(())
    }

    /// The group of one row, by comparing keys.
    fn find_by_key(&self, row_key: &[ArrayRef], hash: u64) -> Result<Option<u32>> {
        let print = fingerprint(hash);
        let candidates = self.index.iter_hash(spread(hash)).filter(|e| e.fingerprint == print);
        for candidate in candidates {
            let mut differing = Vec::new();
            for (column, array) in self.keys.iter().zip(row_key) {
                column.compare(array, &[candidate.slot], &mut differing)?;
            }
            if differing.is_empty() {
                return Ok(Some(candidate.slot));
            }
        }
        Ok(None)
    }

    /// A slot for a new group. The columns may be too short for it until [`Self::make_room`].
    fn insert(&mut self, hash: u64) -> Result<u32> {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.hashes[slot as usize] = hash;
                slot
            }
            None => {
                let slot = u32::try_from(self.hashes.len())
                    .map_err(|_| Error::data("TOO_MANY_GROUPS", "more than 2^32 groups"))?;
                self.hashes.push(hash);
                self.marks.push(0);
                slot
            }
        };
        self.marks[slot as usize] |= mark::LIVE;
        let entry = IndexEntry { fingerprint: fingerprint(hash), slot };
        let hashes = &self.hashes;
        self.index.insert_unique(spread(hash), entry, |e| spread(hashes[e.slot as usize]));
        Ok(slot)
    }

    /// Makes the columns as long as there are slots.
    fn make_room(&mut self) {
        let len = self.hashes.len();
        self.keys.iter_mut().for_each(|column| column.resize(len));
        self.accumulators.iter_mut().for_each(|column| column.resize(len));
    }

    #[inline]
    fn touch(&mut self, slot: u32) {
        let marks = &mut self.marks[slot as usize];
        if *marks & mark::TOUCHED == 0 {
            if *marks & mark::DIRTY == 0 {
                self.dirty.push(slot);
            }
            *marks |= mark::TOUCHED | mark::DIRTY;
            self.touched.push(slot);
        }
    }

    /// The groups touched since the last [`Self::settle`], each once, in the order of the first row
    /// of each.
    pub fn touched(&self) -> &[u32] {
        &self.touched
    }

    /// The accumulators of all slots, in the order of the spec.
    pub fn accumulators(&self) -> &[AccumulatorColumn] {
        &self.accumulators
    }

    /// As [`Self::accumulators`], to be changed at touched slots only.
    pub fn accumulators_mut(&mut self) -> &mut [AccumulatorColumn] {
        &mut self.accumulators
    }

    /// Key columns of the given groups.
    pub fn keys(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        self.keys
            .iter()
            .zip(&self.spec.key)
            .map(|(k, data_type)| k.gather(data_type, slots))
            .collect()
    }

    /// Ends a step: drops the touched groups whose accumulators are all zero.
    pub fn settle(&mut self) -> Result<()> {
        let touched = std::mem::take(&mut self.touched);
        self.heap_bytes += self.heap_bytes_of(&touched);
        for slot in touched {
            self.marks[slot as usize] &= !mark::TOUCHED;
            if self.accumulators.iter().all(|column| column.is_zero(slot as usize)) {
                self.remove(slot)?;
            }
        }
        Ok(())
    }

    fn remove(&mut self, slot: u32) -> Result<()> {
        let at = slot as usize;
        let found = self.index.find_entry(spread(self.hashes[at]), |entry| entry.slot == slot);
        let Ok(entry) = found else {
            return Err(Error::internal("GROUP_LOST", "a group is not where its hash says"));
        };
        entry.remove();
        self.heap_bytes -= self.heap_bytes_of(&[slot]);
        self.accumulators.iter_mut().for_each(|column| column.reset(at));
        self.marks[at] &= !mark::LIVE;
        if self.marks[at] & mark::STORED == 0 {
            self.release(slot);
        } else {
            self.buried.push(slot);
        }
        Ok(())
    }

    /// Makes a dropped group's slot free to use.
    fn release(&mut self, slot: u32) {
        self.keys.iter_mut().for_each(|column| column.forget(slot as usize));
        self.free.push(slot);
    }
}

#[cfg(test)]
mod tests;
