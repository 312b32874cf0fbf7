//! A block: some thousand rows at most, sorted and packed; each group's number is stored once.

use std::ops::Range;

use deltaic_batch::Result;

use super::packed::{PackedWords, insert_tight};
use super::rows::Rows;
use super::sorted::Sorted;
use crate::arrangement::weight_overflow;

/// Rows in the order of group and row.
#[derive(Debug)]
pub(super) struct Block<R: Rows> {
    len: u32,
    groups: PackedWords,
    /// End of each group's rows.
    ends: Vec<u16>,
    pub(super) rows: R::Packed,
    pub(super) weights: PackedWords,
}

impl<R: Rows> Block<R> {
    /// Packs part of a list; the part must not be empty.
    pub(super) fn new(sorted: &Sorted<R>, range: Range<usize>) -> Self {
        let numbers = &sorted.groups[range.clone()];
        let (mut groups, mut ends) = (Vec::new(), Vec::new());
        for (at, &group) in numbers.iter().enumerate() {
            if numbers.get(at + 1) != Some(&group) {
                groups.push(u64::from(group));
                ends.push(place(at + 1));
            }
        }
        let weights = sorted.weights[range.clone()].iter().map(|&w| ordered(w));
        Self {
            len: row_count(numbers.len()),
            groups: PackedWords::new(groups.iter().copied()),
            ends,
            rows: sorted.rows.pack(range),
            weights: PackedWords::new(weights),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// The rows of a group, empty where there are none.
    #[inline]
    pub(super) fn group(&self, group: u32) -> Range<usize> {
        let at = self.position(group);
        if self.has_group(at, group) { self.span(at) } else { 0..0 }
    }

    /// The first group that is not before `group`. Numbers of groups are dense, so that a guess by
    /// proportion is near.
    #[inline]
    fn position(&self, group: u32) -> usize {
        let (group, count) = (u64::from(group), self.ends.len());
        let (first, last) = (self.groups.get(0), self.groups.get(count - 1));
        if group <= first {
            return 0;
        }
        if group > last {
            return count;
        }
        let guess = guess(group, first..last, count);
        // The number is found between two that lie ever farther from the guess.
        let (mut low, mut high, mut step) = (guess, guess, 1);
        while self.groups.get(low) >= group && low > 0 {
            high = low;
            low = low.saturating_sub(step);
            step *= 2;
        }
        while self.groups.get(high) < group {
            low = high;
            high = (high + step).min(count - 1);
            step *= 2;
        }
        lower_bound(low..high, |at| self.groups.get(at) < group)
    }

    /// Some bits of what a search for `group` reads, for the sake of the reading.
    #[inline]
    pub(super) fn peek(&self, group: u32) -> u64 {
        let count = self.ends.len();
        let (first, last) = (self.groups.get(0), self.groups.get(count - 1));
        let guess = guess(u64::from(group).clamp(first, last), first..last, count);
        let row = self.start(guess);
        self.groups.get(guess) ^ R::peek_packed(&self.rows, row) ^ self.weights.get(row)
    }

    #[inline]
    fn has_group(&self, at: usize, group: u32) -> bool {
        at < self.ends.len() && self.groups.get(at) == u64::from(group)
    }

    /// Where the rows of the `at`-th group start.
    #[inline]
    fn start(&self, at: usize) -> usize {
        if at == 0 { 0 } else { self.ends[at - 1].into() }
    }

    /// The rows of the `at`-th group.
    #[inline]
    fn span(&self, at: usize) -> Range<usize> {
        self.start(at)..self.ends[at].into()
    }

    /// Adds rows of a delta in place, one after another, until one would fill or empty the block or
    /// does not fit into its widths. Returns the position of that row, or the end of the part.
    pub(super) fn edit(
        &mut self,
        delta: &Sorted<R>,
        part: Range<usize>,
        len_max: usize,
        tell: &mut impl FnMut(usize, i64, i64),
    ) -> Result<usize> {
        for at in part.clone() {
            let group = delta.groups[at];
            let position = self.position(group);
            let is_known = self.has_group(position, group);
            let rows = if is_known {
                self.span(position)
            } else {
                self.start(position)..self.start(position)
            };
            let (row, is_there) = R::find_packed(&self.rows, rows, &delta.rows, at);
            let before = if is_there { self.weight(row) } else { 0 };
            let after = before.checked_add(delta.weights[at]).ok_or_else(weight_overflow)?;
            let fits = match (is_there, after) {
                (true, 0) => self.len > 1,
                (true, after) => self.weights.fits(ordered(after)),
                (false, after) => {
                    self.len() < len_max
                        && R::fits(&self.rows, &delta.rows, at)
                        && self.weights.fits(ordered(after))
                        && (is_known || self.groups.fits(group.into()))
                }
            };
            if !fits {
                return Ok(at);
            }
            tell(at, before, after);
            if !is_there {
                self.insert(position, is_known, row, (delta, at));
            } else if after == 0 {
                self.remove(position, row);
            } else {
                self.weights.set(row, ordered(after));
            }
        }
        Ok(part.end)
    }

    fn insert(
        &mut self,
        position: usize,
        is_known: bool,
        row: usize,
        (delta, at): (&Sorted<R>, usize),
    ) {
        if !is_known {
            self.groups.insert(position, delta.groups[at].into());
            insert_tight(&mut self.ends, position, place(row));
        }
        self.ends[position..].iter_mut().for_each(|end| *end += 1);
        R::insert_packed(&mut self.rows, row, &delta.rows, at);
        self.weights.insert(row, ordered(delta.weights[at]));
        self.len += 1;
    }

    fn remove(&mut self, position: usize, row: usize) {
        self.ends[position..].iter_mut().for_each(|end| *end -= 1);
        if self.span(position).is_empty() {
            self.groups.remove(position);
            self.ends.remove(position);
        }
        R::remove_packed(&mut self.rows, row);
        self.weights.remove(row);
        self.len -= 1;
    }

    #[inline]
    pub(super) fn weight(&self, at: usize) -> i64 {
        weight_of(self.weights.get(at))
    }

    /// Appends all rows.
    pub(super) fn unpack(&self, into: &mut Sorted<R>) {
        let start = into.groups.len();
        into.groups.resize(start + self.len(), 0);
        into.weights.resize(start + self.len(), 0);
        let (groups, weights) = (&mut into.groups[start..], &mut into.weights[start..]);
        for at in 0..self.ends.len() {
            #[expect(clippy::cast_possible_truncation, reason = "groups are of 32 bits")]
            let group = self.groups.get(at) as u32;
            groups[self.span(at)].fill(group);
        }
        self.weights.for_each(0..self.len(), |i, word| weights[i] = weight_of(word));
        into.rows.unpack(&self.rows, 0..self.len());
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.groups.heap_bytes()
            + self.ends.capacity() * size_of::<u16>()
            + R::packed_bytes(&self.rows)
            + self.weights.heap_bytes()
    }
}

/// The sign bit flipped, so that the order of words is that of the numbers.
fn ordered(weight: i64) -> u64 {
    weight.cast_unsigned() ^ 1 << 63
}

fn weight_of(word: u64) -> i64 {
    (word ^ 1 << 63).cast_signed()
}

#[expect(clippy::cast_possible_truncation, reason = "a block has fewer than 2^16 rows")]
fn row_count(len: usize) -> u32 {
    len as u32
}

#[expect(clippy::cast_possible_truncation, reason = "a block has fewer than 2^16 rows")]
fn place(row: usize) -> u16 {
    row as u16
}

/// Where a group lies among `count` if they are spread evenly from the first to the last.
#[inline]
fn guess(group: u64, range: Range<u64>, count: usize) -> usize {
    let share = (group - range.start) * (count as u64 - 1) / (range.end - range.start).max(1);
    usize::try_from(share).unwrap_or(0)
}

/// The first of some rows that is not before.
fn lower_bound(rows: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let Range { mut start, mut end } = rows;
    while start < end {
        let middle = start.midpoint(end);
        if is_before(middle) { start = middle + 1 } else { end = middle }
    }
    start
}
