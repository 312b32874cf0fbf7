//! Group table: columnar accumulators by key, updated in place.
//!
//! A step goes: [`GroupTable::upsert`] gives every row of a delta its group, a dense number; typed
//! loops add to [`GroupTable::accumulators_mut`] at those numbers; then
//! [`GroupTable::settle`] drops the groups whose accumulators are all back at zero. In between,
//! [`GroupTable::touched`] lists each touched group once, so that the caller can read results
//! before and after.
//!
//! State: one key and one accumulator per group and column, a 32-bit fingerprint and the number in a
//! hash table, and the hash. Numbers of dropped groups are used again. A dropped group that is part
//! of the last image written keeps its number until the next one, which says that it is gone.

mod accumulators;
mod exact_sum;
mod keys;
mod snapshot;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use deltaic_batch::{Error, Result};
use hashbrown::HashTable;

use crate::frame::corrupt;
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
    /// By number of group, as are all columns.
    hashes: Vec<u64>,
    marks: Vec<u8>,
    keys: Vec<KeyColumn>,
    accumulators: Vec<AccumulatorColumn>,
    /// Numbers without a group.
    free: Vec<u32>,
    /// Groups of the step under way, each once.
    touched: Vec<u32>,
    /// Numbers touched since the last image, each once, and groups of that image dropped since.
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
    group: u32,
}

/// Marks of a group's number.
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

    fn heap_bytes_of(&self, groups: &[u32]) -> usize {
        self.accumulators.iter().map(|column| column.heap_bytes(groups)).sum()
    }

    /// The group of each row, made if there is none yet, and touched. `hashes` are
    /// [`deltaic_batch::hash_columns`] of the key columns, one per row.
    pub fn upsert(&mut self, key: &[ArrayRef], hashes: &[u64]) -> Result<Vec<u32>> {
        self.upsert_as(key, hashes, None)
    }

    /// As [`Self::upsert`]; a new group gets the number of its row, if they are given.
    fn upsert_as(
        &mut self,
        key: &[ArrayRef],
        hashes: &[u64],
        numbers: Option<&[u32]>,
    ) -> Result<Vec<u32>> {
        let wanted = |row: u32| numbers.map(|numbers| numbers[row as usize]);
        if key.len() != self.keys.len() || key.iter().any(|column| column.len() != hashes.len()) {
            return Err(Error::internal("GROUP_KEY", "a group's key has other columns or rows"));
        }
        let mut groups = Vec::with_capacity(hashes.len());
        let (mut new_rows, mut new_groups) = (Vec::new(), Vec::new());
        let touched_before = self.touched.len();
        for (row, &hash) in (0_u32..).zip(hashes) {
            let print = fingerprint(hash);
            let found = self.index.find(spread(hash), |entry| entry.fingerprint == print);
            let group = match found {
                Some(entry) => entry.group,
                None => {
                    let group = self.insert(hash, wanted(row))?;
                    new_rows.push(row);
                    new_groups.push(group);
                    group
                }
            };
            groups.push(group);
        }
        self.make_room();
        for (column, array) in self.keys.iter_mut().zip(key) {
            column.store(array, &new_rows, &new_groups)?;
        }
        self.resolve_collisions(key, hashes, wanted, &mut groups)?;
        groups.iter().for_each(|&group| self.touch(group));
        self.heap_bytes -= self.heap_bytes_of(&self.touched[touched_before..]);
        Ok(groups)
    }

    /// Rows whose hash is another group's, though their key is not, get groups of their own.
    fn resolve_collisions(
        &mut self,
        key: &[ArrayRef],
        hashes: &[u64],
        wanted: impl Fn(u32) -> Option<u32>,
        groups: &mut [u32],
    ) -> Result<()> {
        let mut differing = Vec::new();
        for (column, array) in self.keys.iter().zip(key) {
            column.compare(array, groups, &mut differing)?;
        }
        if differing.is_empty() {
            return Ok(());
        }
        differing.sort_unstable();
        differing.dedup();
        for row in differing {
            let (at, hash) = (row as usize, hashes[row as usize]);
            let row_key: Vec<ArrayRef> = key.iter().map(|column| column.slice(at, 1)).collect();
            groups[at] = match self.find_by_key(&row_key, hash)? {
                Some(group) => group,
                None => {
                    let group = self.insert(hash, wanted(row))?;
                    self.make_room();
                    for (column, array) in self.keys.iter_mut().zip(&row_key) {
                        column.store(array, &[0], &[group])?;
                    }
                    group
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
                column.compare(array, &[candidate.group], &mut differing)?;
            }
            if differing.is_empty() {
                return Ok(Some(candidate.group));
            }
        }
        Ok(None)
    }

    /// A number for a new group, the one that is wanted or any. The columns may be too short for it
    /// until [`Self::make_room`].
    fn insert(&mut self, hash: u64, wanted: Option<u32>) -> Result<u32> {
        let next = || {
            u32::try_from(self.hashes.len())
                .map_err(|_| Error::data("TOO_MANY_GROUPS", "more than 2^32 groups"))
        };
        let group = match wanted {
            Some(group) => group,
            None => self.free.pop().map_or_else(next, Ok)?,
        };
        let at = group as usize;
        if at >= self.hashes.len() {
            self.hashes.resize(at + 1, 0);
            self.marks.resize(at + 1, 0);
        }
        if self.marks[at] & mark::LIVE != 0 {
            return Err(corrupt("two groups have one number"));
        }
        self.hashes[at] = hash;
        self.marks[group as usize] |= mark::LIVE;
        let entry = IndexEntry { fingerprint: fingerprint(hash), group };
        let hashes = &self.hashes;
        self.index.insert_unique(spread(hash), entry, |e| spread(hashes[e.group as usize]));
        Ok(group)
    }

    /// Makes the columns as long as there are numbers.
    fn make_room(&mut self) {
        let len = self.hashes.len();
        self.keys.iter_mut().for_each(|column| column.resize(len));
        self.accumulators.iter_mut().for_each(|column| column.resize(len));
    }

    #[inline]
    fn touch(&mut self, group: u32) {
        let marks = &mut self.marks[group as usize];
        if *marks & mark::TOUCHED == 0 {
            if *marks & mark::DIRTY == 0 {
                self.dirty.push(group);
            }
            *marks |= mark::TOUCHED | mark::DIRTY;
            self.touched.push(group);
        }
    }

    /// The groups touched since the last [`Self::settle`], each once, in the order of the first row
    /// of each.
    pub fn touched(&self) -> &[u32] {
        &self.touched
    }

    /// The accumulators of all groups, in the order of the spec.
    pub fn accumulators(&self) -> &[AccumulatorColumn] {
        &self.accumulators
    }

    /// As [`Self::accumulators`], to be changed at touched groups only.
    pub fn accumulators_mut(&mut self) -> &mut [AccumulatorColumn] {
        &mut self.accumulators
    }

    /// Key columns of the given groups.
    pub fn keys(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        self.keys
            .iter()
            .zip(&self.spec.key)
            .map(|(k, data_type)| k.gather(data_type, groups))
            .collect()
    }

    /// Ends a step: drops the touched groups whose accumulators are all zero.
    pub fn settle(&mut self) -> Result<()> {
        self.settle_if(|_| true)
    }

    /// As [`Self::settle`], but drops only those of which `is_gone` holds, too: that nothing else is
    /// kept under their number.
    pub fn settle_if(&mut self, is_gone: impl Fn(u32) -> bool) -> Result<()> {
        let touched = std::mem::take(&mut self.touched);
        self.heap_bytes += self.heap_bytes_of(&touched);
        for group in touched {
            self.marks[group as usize] &= !mark::TOUCHED;
            let is_zero = self.accumulators.iter().all(|column| column.is_zero(group as usize));
            if is_zero && is_gone(group) {
                self.remove(group)?;
            }
        }
        Ok(())
    }

    fn remove(&mut self, group: u32) -> Result<()> {
        let at = group as usize;
        let found = self.index.find_entry(spread(self.hashes[at]), |entry| entry.group == group);
        let Ok(entry) = found else {
            return Err(Error::internal("GROUP_LOST", "a group is not where its hash says"));
        };
        entry.remove();
        self.heap_bytes -= self.heap_bytes_of(&[group]);
        self.accumulators.iter_mut().for_each(|column| column.reset(at));
        self.marks[at] &= !mark::LIVE;
        if self.marks[at] & mark::STORED == 0 {
            self.release(group);
        } else {
            self.buried.push(group);
        }
        Ok(())
    }

    /// Makes a dropped group's number free to use.
    fn release(&mut self, group: u32) {
        self.keys.iter_mut().for_each(|column| column.forget(group as usize));
        self.free.push(group);
    }
}

#[cfg(test)]
mod tests;
