//! Group table: columnar accumulators by key, updated in place.
//!
//! A step goes: [`GroupTable::upsert`] gives every row of a delta its group, a dense number; typed
//! loops add to [`GroupTable::accumulators_mut`] at those numbers; then
//! [`GroupTable::settle`] drops the groups whose accumulators are all back at zero. In between,
//! [`GroupTable::touched`] lists each touched group once, so that the caller can read results
//! before and after.
//!
//! State: one key and one accumulator per group and column, and the hash and the number in a hash
//! table. Numbers of dropped groups are used again. A dropped group that is part
//! of the last image written keeps its number until the next one, which says that it is gone.

mod accumulators;
mod exact_sum;
mod index;
mod keys;
mod snapshot;
mod sums;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use deltaic_batch::{Error, Result, hash_columns, hash_is_exact, null_hash};

use crate::frame::corrupt;
use crate::radix::sort_by_number;
pub use accumulators::{AccumulatorColumn, AccumulatorType};
pub use exact_sum::ExactSum;
use index::GroupIndex;
use keys::KeyColumn;
pub use sums::Sums;

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
    index: GroupIndex,
    /// Equal hashes are equal keys, unless they are that of NULL.
    hash_is_exact: bool,
    /// How many different hashes there are, if not all of them.
    #[cfg(test)]
    different_hashes: u64,
    /// By number of group, as are all columns.
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

/// Rows that are looked up at a time: their hashes stay in the cache.
const UPSERT_ROWS: usize = 4096;
/// Stands for a group that is not there yet.
const NEW: u32 = u32::MAX;

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

impl GroupTable {
    /// Empty. Fails if a key column's type cannot be grouped by.
    pub fn try_new(spec: &GroupSpec) -> Result<Self> {
        Ok(Self {
            spec: spec.clone(),
            index: GroupIndex::default(),
            hash_is_exact: hash_is_exact(&spec.key),
            #[cfg(test)]
            different_hashes: 0,
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
        self.len() == 0
    }

    /// Bytes held in memory.
    pub fn memory_bytes(&self) -> usize {
        let lists = [&self.free, &self.touched, &self.dirty, &self.buried];
        let keys: usize = self.keys.iter().map(KeyColumn::memory_bytes).sum();
        let accumulators: usize = self.accumulators.iter().map(|a| a.memory_bytes()).sum();
        self.index.memory_bytes()
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

    /// The group of each row, made if there is none yet, and touched. `count` is the number of rows.
    pub fn upsert(&mut self, key: &[ArrayRef], count: usize) -> Result<Vec<u32>> {
        self.upsert_as(key, count, None)
    }

    /// As [`Self::upsert`]; a new group gets the number of its row, if they are given.
    fn upsert_as(
        &mut self,
        key: &[ArrayRef],
        count: usize,
        numbers: Option<&[u32]>,
    ) -> Result<Vec<u32>> {
        if key.len() != self.keys.len() || key.iter().any(|column| column.len() != count) {
            return Err(Error::internal("GROUP_KEY", "a group's key has other columns or rows"));
        }
        let mut groups = Vec::with_capacity(count);
        let touched_before = self.touched.len();
        for start in (0..count).step_by(UPSERT_ROWS) {
            let length = UPSERT_ROWS.min(count - start);
            let part: Vec<ArrayRef> = key.iter().map(|k| k.slice(start, length)).collect();
            let numbers = numbers.map(|numbers| &numbers[start..start + length]);
            self.upsert_part(&part, length, numbers, &mut groups)?;
        }
        groups.iter().for_each(|&group| self.touch(group));
        self.heap_bytes -= self.heap_bytes_of(&self.touched[touched_before..]);
        Ok(groups)
    }

    /// Appends the groups of some rows.
    fn upsert_part(
        &mut self,
        key: &[ArrayRef],
        count: usize,
        numbers: Option<&[u32]>,
        groups: &mut Vec<u32>,
    ) -> Result<()> {
        let wanted = |row: usize| numbers.map(|numbers| numbers[row]);
        let hashes = self.hashes(key, count)?;
        let start = groups.len();
        self.index.find_all(&hashes, NEW, groups);
        let groups = &mut groups[start..];
        let (mut new_rows, mut new_groups) = (Vec::new(), Vec::new());
        for (row, (group, &hash)) in groups.iter_mut().zip(&hashes).enumerate() {
            if *group != NEW {
                continue;
            }
            // An earlier row of these may have made it.
            *group = match self.index.find(hash) {
                Some(group) => group,
                None => {
                    let group = self.insert(hash, wanted(row))?;
                    new_rows.push(row_number(row));
                    new_groups.push(group);
                    group
                }
            };
        }
        self.make_room();
        for (column, array) in self.keys.iter_mut().zip(key) {
            column.store(array, &new_rows, &new_groups)?;
        }
        if self.hash_is_exact && !hashes.contains(&null_hash()) {
            return Ok(());
        }
        self.resolve_collisions(key, &hashes, wanted, groups)
    }

    /// The hash of each key.
    fn hashes(&self, key: &[ArrayRef], count: usize) -> Result<Vec<u64>> {
        let hashes = hash_columns(key, count)?;
        #[cfg(test)]
        if self.different_hashes > 0 {
            return Ok(hashes.into_iter().map(|hash| hash % self.different_hashes).collect());
        }
        Ok(hashes)
    }

    /// Rows whose hash is another group's, though their key is not, get groups of their own.
    fn resolve_collisions(
        &mut self,
        key: &[ArrayRef],
        hashes: &[u64],
        wanted: impl Fn(usize) -> Option<u32>,
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
            let at = row as usize;
            let row_key: Vec<ArrayRef> = key.iter().map(|column| column.slice(at, 1)).collect();
            groups[at] = match self.find_by_key(&row_key, hashes[at])? {
                Some(group) => group,
                None => {
                    let group = self.insert(hashes[at], wanted(at))?;
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
        for candidate in self.index.candidates(hash) {
            let mut differing = Vec::new();
            for (column, array) in self.keys.iter().zip(row_key) {
                column.compare(array, &[candidate], &mut differing)?;
            }
            if differing.is_empty() {
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }

    /// A number for a new group, the one that is wanted or any. The columns may be too short for it
    /// until [`Self::make_room`].
    fn insert(&mut self, hash: u64, wanted: Option<u32>) -> Result<u32> {
        let group = match wanted.or_else(|| self.free.pop()) {
            Some(group) => group,
            None => row_number(self.marks.len()),
        };
        // The greatest number stands for none.
        if group == NEW {
            return Err(Error::data("TOO_MANY_GROUPS", "more than 2^32 groups"));
        }
        let at = group as usize;
        if at >= self.marks.len() {
            self.marks.resize(at + 1, 0);
        }
        if self.marks[at] & mark::LIVE != 0 {
            return Err(corrupt("two groups have one number"));
        }
        self.marks[at] |= mark::LIVE;
        self.index.insert(hash, group);
        Ok(group)
    }

    /// Makes the columns as long as there are numbers.
    fn make_room(&mut self) {
        let len = self.marks.len();
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
    /// of each, unless sorted.
    pub fn touched(&self) -> &[u32] {
        &self.touched
    }

    /// The groups touched since the last [`Self::settle`], but for the first `from`, which are in
    /// ascending order from now on: whoever goes through them goes through memory in order.
    pub fn sort_touched(&mut self, from: usize) -> &[u32] {
        let touched = &mut self.touched[from..];
        sort_by_number(touched, |group| group);
        touched
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
        touched.iter().for_each(|&group| self.marks[group as usize] &= !mark::TOUCHED);
        let is_zero = |&group: &u32| {
            self.accumulators.iter().all(|column| column.is_zero(group as usize)) && is_gone(group)
        };
        let gone: Vec<u32> = touched.into_iter().filter(is_zero).collect();
        self.remove(&gone)
    }

    fn remove(&mut self, groups: &[u32]) -> Result<()> {
        let hashes = self.hashes(&self.keys(groups)?, groups.len())?;
        self.heap_bytes -= self.heap_bytes_of(groups);
        for (&group, hash) in groups.iter().zip(hashes) {
            let at = group as usize;
            if !self.index.remove(hash, group) {
                return Err(Error::internal("GROUP_LOST", "a group is not where its hash says"));
            }
            self.accumulators.iter_mut().for_each(|column| column.reset(group));
            self.marks[at] &= !mark::LIVE;
            if self.marks[at] & mark::STORED == 0 {
                self.release(group);
            } else {
                self.buried.push(group);
            }
        }
        Ok(())
    }

    /// Makes a dropped group's number free to use.
    fn release(&mut self, group: u32) {
        self.keys.iter_mut().for_each(|column| column.forget(group as usize));
        self.free.push(group);
    }
}

/// A row or a group that there are too many of has the greatest number.
fn row_number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
