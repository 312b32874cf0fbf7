//! Probes: rows and their weights by key.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;
use deltaic_batch::{Error, Result};

use super::base::{NONE, Span};
use super::{Arrangement, Matches, RowRef};

/// Probing rows that are matched at once: what one pass loads, the next finds in the cache.
const BLOCK: usize = 512;

/// The keys of the probing rows, found.
struct Found {
    /// Probing rows that may match.
    rows: Vec<u32>,
    /// For each, its key in the base or [`NONE`].
    base: Vec<u32>,
    /// For each, its group in the overlay or [`NONE`].
    overlay: Vec<u32>,
}

impl Arrangement {
    pub(super) fn matches(
        &self,
        key: &[ArrayRef],
        hashes: &[u64],
        null_equals_null: bool,
    ) -> Result<Matches> {
        let found = self.find(key, hashes, null_equals_null)?;
        let mut matches = Matches::default();
        if self.overlay.len() == 0 {
            matches.reserve(found.rows.len());
        }
        let mut spans = Vec::with_capacity(BLOCK);
        for start in (0..found.rows.len()).step_by(BLOCK) {
            let block = start..(start + BLOCK).min(found.rows.len());
            spans.clear();
            spans.extend(found.base[block.clone()].iter().map(|&key| self.base.span(key)));
            for (i, span) in block.zip(&spans) {
                self.match_row(&mut matches, found.rows[i], span, found.overlay[i]);
            }
        }
        Ok(matches)
    }

    /// The matches of one probing row.
    #[inline]
    fn match_row(&self, matches: &mut Matches, probe: u32, base: &Span, group: u32) {
        match (base.rows.len(), group) {
            (0, NONE) => {}
            (1, NONE) => {
                if base.first_weight != 0 {
                    matches.push(probe, RowRef(base.rows.start), base.first_weight);
                }
            }
            (_, NONE) => self.match_base(matches, probe, base),
            (_, group) => self.match_both(matches, probe, base, group),
        }
    }

    fn find(&self, key: &[ArrayRef], hashes: &[u64], null_equals_null: bool) -> Result<Found> {
        let rows = probing_rows(key, hashes.len(), null_equals_null)?;
        let base = self.base.find_keys(&self.layout, key, hashes, &rows)?;
        let overlay = self.overlay.find_keys(&self.layout, key, hashes, &rows)?;
        Ok(Found { rows, base, overlay })
    }

    fn match_base(&self, matches: &mut Matches, probe: u32, base: &Span) {
        let mut cursor = BaseRows::new(base);
        while let Some(row) = cursor.next(self) {
            matches.push(probe, RowRef(row), self.base.weights[row as usize]);
        }
    }

    /// Rows of a key that the overlay has, and perhaps the base, merged in order.
    fn match_both(&self, matches: &mut Matches, probe: u32, base: &Span, group: u32) {
        let mut cursor = BaseRows::new(base);
        let mut overlay = self.overlay.group(group).rows.iter().peekable();
        let mut base = cursor.next(self);
        loop {
            let from_base = match (base, overlay.peek()) {
                (None, None) => return,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some(ours), Some(&theirs)) => {
                    let order = self.base.sort.compare(ours, &self.overlay.sort, theirs);
                    order != Ordering::Greater
                }
            };
            if from_base {
                if let Some(row) = base {
                    matches.push(probe, RowRef(row), self.base.weights[row as usize]);
                }
                base = cursor.next(self);
            } else if let Some(row) = overlay.next() {
                matches.push(probe, RowRef::overlay(row), self.overlay.weights[row as usize]);
            }
        }
    }
}

/// Walks the live rows of a key in the base.
struct BaseRows {
    at: u32,
    end: u32,
}

impl BaseRows {
    fn new(base: &Span) -> Self {
        Self { at: base.rows.start, end: base.rows.end }
    }

    #[inline]
    fn next(&mut self, arrangement: &Arrangement) -> Option<u32> {
        if self.at >= self.end {
            return None;
        }
        let mut row = self.at;
        if arrangement.base.weights[row as usize] == 0 {
            // A hot key may have many dead rows in a row.
            let live = arrangement.base.live.next(row as usize)?;
            row = u32::try_from(live).ok().filter(|&live| live < self.end).unwrap_or(self.end);
        }
        self.at = row.saturating_add(1);
        (row < self.end).then_some(row)
    }
}

impl Matches {
    fn reserve(&mut self, count: usize) {
        self.probe.reserve(count);
        self.rows.reserve(count);
        self.weights.reserve(count);
    }

    #[inline]
    fn push(&mut self, probe: u32, row: RowRef, weight: i64) {
        self.probe.push(probe);
        self.rows.push(row);
        self.weights.push(weight);
    }
}

/// All rows, or those without a NULL in the key.
fn probing_rows(key: &[ArrayRef], count: usize, null_equals_null: bool) -> Result<Vec<u32>> {
    let count = u32::try_from(count)
        .map_err(|_| Error::internal("BATCH_LENGTH", "a batch of more than 2^32 rows"))?;
    let nulls = key.iter().fold(None, |nulls, column| {
        NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
    });
    Ok(match nulls.filter(|nulls| !null_equals_null && nulls.null_count() > 0) {
        None => (0..count).collect(),
        Some(nulls) => (0..count).zip(&nulls).filter(|(_, valid)| *valid).map(|(r, _)| r).collect(),
    })
}
