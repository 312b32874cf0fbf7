//! The base run: distinct keys sorted by hash under a directory, the rows of a key contiguous and
//! ordered. Rows do not move; a retraction changes a weight in place.

use arrow::array::ArrayRef;
use deltaic_batch::{Error, Result, equal_pairs};

use super::keys::Keys;
use super::layout::{Layout, SortKeys};
use super::live_set::LiveSet;
use super::run::{Run, row_number};

/// No key, no row.
pub(super) const NONE: u32 = u32::MAX;

/// The immutable rows of an arrangement, with mutable weights.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) columns: Vec<ArrayRef>,
    pub(super) weights: Vec<i64>,
    pub(super) sort: SortKeys,
    pub(super) live: LiveSet,
    keys: Keys,
}

/// The rows of a key, and the weight of the first.
pub(super) struct Span {
    pub(super) rows: std::ops::Range<u32>,
    pub(super) first_weight: i64,
}

impl Base {
    /// Indexes a run sorted by key hash and sort key.
    pub(super) fn try_new(layout: &Layout, run: Run) -> Result<Self> {
        let (run, starts) = match key_starts(layout, &run)? {
            Some(starts) => (run, starts),
            // Keys that share a hash are told apart by their bytes.
            None => {
                let run = run.sorted_by_key(layout)?;
                let starts = key_starts_exact(layout, &run)?;
                (run, starts)
            }
        };
        let keys = Keys::new(&run.hashes, &starts);
        let live = LiveSet::of_weights(&run.weights);
        let Run { columns, weights, sort, .. } = run;
        Ok(Self { columns, weights, sort, live, keys })
    }

    /// Number of rows, those of weight 0 included.
    pub(super) fn len(&self) -> usize {
        self.weights.len()
    }

    /// Number of rows of weight 0.
    pub(super) fn dead_rows(&self) -> usize {
        self.len() - self.live.len()
    }

    /// The rows as a run, those of weight 0 included.
    pub(super) fn into_run(self) -> Run {
        let hashes = self.keys.row_hashes();
        let Self { columns, weights, sort, .. } = self;
        Run { columns, weights, hashes, sort }
    }

    /// The rows that have a weight, in order.
    pub(super) fn live_rows(&self) -> impl Iterator<Item = u32> + '_ {
        (0..row_number(self.len())).filter(|&row| self.weights[row as usize] != 0)
    }

    /// All rows, in ranges of about `length`, none of which ends amid keys of one hash.
    pub(super) fn pieces(&self, length: usize) -> Vec<std::ops::Range<u32>> {
        let mut pieces = Vec::new();
        let (mut start, mut key) = (0, 0);
        while key < self.keys.len() {
            let hash = self.keys.hash(key);
            while key < self.keys.len() && self.keys.hash(key) == hash {
                key += 1;
            }
            let end = self.keys.rows(key - 1).end;
            if (end - start) as usize >= length || key == self.keys.len() {
                pieces.push(start..end);
                start = end;
            }
        }
        pieces
    }

    /// The key hashes of some rows.
    pub(super) fn hashes(&self, rows: &std::ops::Range<u32>) -> Vec<u64> {
        self.keys.hashes_of(rows)
    }

    /// The key that each of `rows` of `key` has, or [`NONE`].
    pub(super) fn find_keys(
        &self,
        layout: &Layout,
        key: &[ArrayRef],
        hashes: &[u64],
        rows: &[u32],
    ) -> Result<Vec<u32>> {
        if self.len() == 0 {
            return Ok(vec![NONE; rows.len()]);
        }
        let mut found = self.keys.find_all(hashes, rows);
        // Phase two: the hashes agree, do the keys?
        let doubtful =
            |&i: &usize| found[i] != NONE && layout.must_compare(hashes[rows[i] as usize]);
        let hits: Vec<usize> = (0..rows.len()).filter(doubtful).collect();
        let left: Vec<u32> = hits.iter().map(|&i| rows[i]).collect();
        let right: Vec<u32> = hits.iter().map(|&i| self.keys.rows(found[i]).start).collect();
        let ours = layout.key_of(&self.columns);
        for hit in layout.different_keys(key, &left, &ours, &right)? {
            let (at, row) = (hits[hit], left[hit]);
            let start = found[at] + 1;
            found[at] = self.find_other_key(&ours, key, row, hashes[row as usize], start)?;
        }
        Ok(found)
    }

    /// The key of that hash, from key `start` on, that equals row `row` of `key`.
    fn find_other_key(
        &self,
        ours: &[ArrayRef],
        key: &[ArrayRef],
        row: u32,
        hash: u64,
        start: u32,
    ) -> Result<u32> {
        for other in start..self.keys.len() {
            if self.keys.hash(other) != hash {
                break;
            }
            let first = self.keys.rows(other).start;
            if equal_pairs(key, &[row], ours, &[first])? == [true] {
                return Ok(other);
            }
        }
        Ok(NONE)
    }

    /// Rows of a key.
    pub(super) fn rows_of(&self, key: u32) -> std::ops::Range<u32> {
        self.keys.rows(key)
    }

    /// Rows of a key; none for [`NONE`].
    #[inline]
    pub(super) fn span(&self, key: u32) -> Span {
        if key == NONE {
            return Span { rows: 0..0, first_weight: 0 };
        }
        let rows = self.rows_of(key);
        let first_weight = self.weights[rows.start as usize];
        Span { rows, first_weight }
    }

    /// The base row that equals each of `rows` of the whole rows `columns`, or [`NONE`].
    pub(super) fn find_rows(
        &self,
        layout: &Layout,
        columns: &[ArrayRef],
        hashes: &[u64],
        sort: &SortKeys,
        rows: &[u32],
    ) -> Result<Vec<u32>> {
        let keys = self.find_keys(layout, &layout.key_of(columns), hashes, rows)?;
        let mut found: Vec<(u32, u32)> = keys
            .into_iter()
            .zip(rows)
            .map(|(key, &row)| (if key == NONE { NONE } else { self.search(key, sort, row) }, key))
            .collect();
        let hits: Vec<usize> = (0..rows.len()).filter(|&i| found[i].0 != NONE).collect();
        let left: Vec<u32> = hits.iter().map(|&i| rows[i]).collect();
        let right: Vec<u32> = hits.iter().map(|&i| found[i].0).collect();
        let (theirs, ours) = (layout.rest_of(columns), layout.rest_of(&self.columns));
        let equal = equal_pairs(&theirs, &left, &ours, &right)?;
        for (hit, &at) in hits.iter().enumerate().filter(|(hit, _)| !equal[*hit]) {
            let (position, key) = found[at];
            found[at].0 = NONE;
            for other in position + 1..self.rows_of(key).end {
                if self.sort.compare(other, sort, left[hit]).is_ne() {
                    break;
                }
                if equal_pairs(&theirs, &[left[hit]], &ours, &[other])? == [true] {
                    found[at].0 = other;
                    break;
                }
            }
        }
        Ok(found.into_iter().map(|(row, _)| row).collect())
    }

    /// The first row of a key that has the sort key of row `row`, or [`NONE`].
    fn search(&self, key: u32, sort: &SortKeys, row: u32) -> u32 {
        let std::ops::Range { mut start, end } = self.rows_of(key);
        let mut length = end - start;
        while length > 0 {
            let half = length / 2;
            if self.sort.compare(start + half, sort, row).is_lt() {
                start += half + 1;
                length -= half + 1;
            } else {
                length = half;
            }
        }
        if start < end && self.sort.compare(start, sort, row).is_eq() { start } else { NONE }
    }

    /// Adds to the weight of a row.
    pub(super) fn add(&mut self, row: u32, weight: i64) -> Result<()> {
        let row = row as usize;
        let before = self.weights[row];
        let after = before.checked_add(weight).ok_or_else(weight_overflow)?;
        self.weights[row] = after;
        match (before, after) {
            (0, 0) => {}
            (0, _) => self.live.insert(row),
            (_, 0) => self.live.remove(row),
            _ => {}
        }
        Ok(())
    }

    /// Bytes held in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(|c| c.get_array_memory_size()).sum();
        columns
            + self.weights.capacity() * 8
            + self.sort.memory_bytes()
            + self.live.memory_bytes()
            + self.keys.memory_bytes()
    }
}

pub(crate) fn weight_overflow() -> Error {
    Error::data("WEIGHT_OVERFLOW", "the sum of a row's weights exceeds 64 bits")
}

/// The first row of each key, if all keys differ in their hashes.
fn key_starts(layout: &Layout, run: &Run) -> Result<Option<Vec<u32>>> {
    let count = row_number(run.len());
    let begins = |row: u32| row == 0 || run.hashes[row as usize - 1] != run.hashes[row as usize];
    let starts = (0..count).filter(|&row| begins(row)).collect();
    let doubtful = |&row: &u32| !begins(row) && layout.must_compare(run.hashes[row as usize]);
    let others: Vec<u32> = (0..count).filter(doubtful).collect();
    let before: Vec<u32> = others.iter().map(|row| row - 1).collect();
    let key = layout.key_of(&run.columns);
    let different = layout.different_keys(&key, &before, &key, &others)?;
    Ok(different.is_empty().then_some(starts))
}

/// The first row of each key of a run sorted by key.
fn key_starts_exact(layout: &Layout, run: &Run) -> Result<Vec<u32>> {
    let count = row_number(run.len());
    let others: Vec<u32> = (1..count).collect();
    let before: Vec<u32> = (0..count.saturating_sub(1)).collect();
    let key = layout.key_of(&run.columns);
    let equal = equal_pairs(&key, &before, &key, &others)?;
    Ok((0..count).filter(|&row| row == 0 || !equal[row as usize - 1]).collect())
}
