//! A block: some thousand rows at most, sorted and packed; each group's number is stored once.

use std::ops::Range;

use super::packed::PackedWords;
use super::rows::Rows;
use super::sorted::Sorted;

/// Rows in the order of group and row.
#[derive(Debug)]
pub(super) struct Block<R: Rows> {
    len: u32,
    /// Number of different groups.
    group_count: u32,
    groups: PackedWords,
    /// End of each group's rows.
    ends: PackedWords,
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
                ends.push(at as u64 + 1);
            }
        }
        let weights = sorted.weights[range.clone()].iter().map(|&w| ordered(w));
        Self {
            len: row_count(numbers.len()),
            group_count: row_count(groups.len()),
            groups: PackedWords::new(groups.iter().copied()),
            ends: PackedWords::new(ends.iter().copied()),
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
        let count = self.group_count as usize;
        let at = self.groups.lower_bound(count, group.into());
        if at == count || self.groups.get(at) != u64::from(group) {
            return 0..0;
        }
        self.span(at)
    }

    /// The rows of the `at`-th group.
    #[inline]
    fn span(&self, at: usize) -> Range<usize> {
        let end = |at| usize::try_from(self.ends.get(at)).unwrap_or(usize::MAX);
        (if at == 0 { 0 } else { end(at - 1) })..end(at)
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
        for at in 0..self.group_count as usize {
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
            + self.ends.heap_bytes()
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

#[expect(clippy::cast_possible_truncation, reason = "a block has fewer than 2^32 rows")]
fn row_count(len: usize) -> u32 {
    len as u32
}
