//! Encoded rows: their order is that of their words or bytes.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::ops::Range;

use super::packed::{PackedWords, insert_tight};
use super::segments::Segments;
use super::tiers::{NoSmallGroups, SmallGroups};

/// Bytes of a block of rows of any length, unless it is a single row.
pub(super) const BLOCK_BYTES_MAX: usize = if cfg!(test) { 64 } else { 1 << 20 };

/// A list of encoded rows, and the form that a block stores them in.
pub(super) trait Rows: Default + Debug + Clone + Send + Sync {
    /// Rows as a block stores them.
    type Packed: Debug + Send + Sync;

    /// Where the rows of small groups are.
    type Small: SmallGroups<Self>;

    /// Where row `j` is or belongs among some packed rows in order, and whether it is there.
    fn find_packed(
        packed: &Self::Packed,
        range: Range<usize>,
        other: &Self,
        j: usize,
    ) -> (usize, bool);

    /// Some bits of a packed row, for the sake of the reading.
    fn peek_packed(packed: &Self::Packed, at: usize) -> u64;

    /// True when row `j` can be inserted without packing all rows anew.
    fn fits(packed: &Self::Packed, other: &Self, j: usize) -> bool;

    /// Inserts row `j`, which fits.
    fn insert_packed(packed: &mut Self::Packed, at: usize, other: &Self, j: usize);

    fn remove_packed(packed: &mut Self::Packed, at: usize);

    fn clear(&mut self);

    /// Appends rows of `other`.
    fn extend(&mut self, other: &Self, range: Range<usize>);

    /// Appends one row of `other`.
    fn push(&mut self, other: &Self, at: usize);

    /// Puts the rows of `other` in the place of one.
    fn replace(&mut self, at: usize, other: &Self);

    fn compare(&self, i: usize, other: &Self, j: usize) -> Ordering;

    /// Whether row `at` begins with row `j` of `leading`, which is encoded leading columns: so many
    /// words, or all of its bytes.
    fn begins_with(&self, at: usize, leading: &Self, j: usize, words: usize) -> bool;

    fn pack(&self, range: Range<usize>) -> Self::Packed;

    /// Appends packed rows.
    fn unpack(&mut self, packed: &Self::Packed, range: Range<usize>);

    /// Sorts positions of rows within each run, whose ends are given, by their rows, equal rows by
    /// position; and fills `gathered` with the rows in that order.
    fn sort_runs(&self, positions: &mut [u32], ends: &[usize], gathered: &mut Self);

    /// Bytes that rows take beside their number, if they are of any length.
    fn long_bytes(&self, range: Range<usize>) -> usize;

    /// Bytes of packed rows on the heap.
    fn packed_bytes(packed: &Self::Packed) -> usize;

    fn heap_bytes(&self) -> usize;
}

/// Rows of `W` words.
#[derive(Debug, Clone)]
pub(super) struct WordRows<const W: usize>(pub(super) Vec<[u64; W]>);

impl<const W: usize> Default for WordRows<W> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<const W: usize> Rows for WordRows<W> {
    type Packed = [PackedWords; W];
    type Small = Segments<W>;

    #[inline]
    fn find_packed(
        packed: &Self::Packed,
        mut range: Range<usize>,
        other: &Self,
        j: usize,
    ) -> (usize, bool) {
        for (words, &word) in packed.iter().zip(&other.0[j]) {
            range = words.find(range, word);
        }
        (range.start, !range.is_empty())
    }

    #[inline]
    fn peek_packed(packed: &Self::Packed, at: usize) -> u64 {
        packed.iter().fold(0, |all, words| all ^ words.get(at))
    }

    fn fits(packed: &Self::Packed, other: &Self, j: usize) -> bool {
        packed.iter().zip(&other.0[j]).all(|(words, &word)| words.fits(word))
    }

    fn insert_packed(packed: &mut Self::Packed, at: usize, other: &Self, j: usize) {
        packed.iter_mut().zip(&other.0[j]).for_each(|(words, &word)| words.insert(at, word));
    }

    fn remove_packed(packed: &mut Self::Packed, at: usize) {
        packed.iter_mut().for_each(|words| words.remove(at));
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    #[inline]
    fn extend(&mut self, other: &Self, range: Range<usize>) {
        self.0.extend_from_slice(&other.0[range]);
    }

    #[inline]
    fn push(&mut self, other: &Self, at: usize) {
        self.0.push(other.0[at]);
    }

    fn replace(&mut self, at: usize, other: &Self) {
        self.0.splice(at..=at, other.0.iter().copied());
    }

    #[inline]
    fn compare(&self, i: usize, other: &Self, j: usize) -> Ordering {
        self.0[i].cmp(&other.0[j])
    }

    fn begins_with(&self, at: usize, leading: &Self, j: usize, words: usize) -> bool {
        self.0[at][..words] == leading.0[j][..words]
    }

    fn pack(&self, range: Range<usize>) -> Self::Packed {
        let rows = &self.0[range];
        std::array::from_fn(|w| PackedWords::new(rows.iter().map(move |row| row[w])))
    }

    fn unpack(&mut self, packed: &Self::Packed, range: Range<usize>) {
        let start = self.0.len();
        self.0.resize(start + range.len(), [0; W]);
        let rows = &mut self.0[start..];
        for (w, words) in packed.iter().enumerate() {
            words.for_each(range.clone(), |i, word| rows[i][w] = word);
        }
    }

    fn sort_runs(&self, positions: &mut [u32], ends: &[usize], gathered: &mut Self) {
        // One pass loads the rows from all over, so that their cache misses overlap.
        let mut entries: Vec<([u64; W], u32)> =
            positions.iter().map(|&at| (self.0[at as usize], at)).collect();
        let mut start = 0;
        for &end in ends {
            entries[start..end].sort_unstable();
            start = end;
        }
        positions.iter_mut().zip(&entries).for_each(|(at, (_, position))| *at = *position);
        gathered.0.clear();
        gathered.0.extend(entries.iter().map(|(row, _)| row));
    }

    fn long_bytes(&self, _range: Range<usize>) -> usize {
        0
    }

    fn packed_bytes(packed: &Self::Packed) -> usize {
        packed.iter().map(PackedWords::heap_bytes).sum()
    }

    fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<[u64; W]>()
    }
}

/// Rows of any length.
#[derive(Debug, Default, Clone)]
pub(super) struct ByteRows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl ByteRows {
    #[inline]
    pub(super) fn row(&self, at: usize) -> &[u8] {
        &self.bytes[self.start(at)..self.ends[at]]
    }

    fn start(&self, at: usize) -> usize {
        if at == 0 { 0 } else { self.ends[at - 1] }
    }

    pub(super) fn push_row(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn reserve(&mut self, rows: usize, bytes: usize) {
        self.ends.reserve(rows);
        self.bytes.reserve(bytes);
    }
}

impl Rows for ByteRows {
    /// All bytes, and where each row ends.
    type Packed = (Vec<u8>, Vec<u32>);
    type Small = NoSmallGroups;

    fn find_packed(
        (bytes, ends): &Self::Packed,
        range: Range<usize>,
        other: &Self,
        j: usize,
    ) -> (usize, bool) {
        let (row, Range { mut start, end }) = (other.row(j), range);
        let mut high = end;
        while start < high {
            let middle = start.midpoint(high);
            if &bytes[packed_range(ends, middle)] < row {
                start = middle + 1
            } else {
                high = middle
            }
        }
        (start, start < end && &bytes[packed_range(ends, start)] == row)
    }

    #[inline]
    fn peek_packed((bytes, ends): &Self::Packed, at: usize) -> u64 {
        let range = packed_range(ends, at);
        bytes.get(range.start).copied().map_or(0, u64::from)
    }

    fn fits((bytes, _): &Self::Packed, other: &Self, j: usize) -> bool {
        bytes.len() + other.row(j).len() <= BLOCK_BYTES_MAX
    }

    fn insert_packed((bytes, ends): &mut Self::Packed, at: usize, other: &Self, j: usize) {
        let row = other.row(j);
        let start = if at == 0 { 0 } else { ends[at - 1] };
        let length = offset(row.len());
        bytes.reserve_exact(row.len());
        bytes.splice(start as usize..start as usize, row.iter().copied());
        insert_tight(ends, at, start);
        ends[at..].iter_mut().for_each(|end| *end += length);
    }

    fn remove_packed((bytes, ends): &mut Self::Packed, at: usize) {
        let range = packed_range(ends, at);
        ends.remove(at);
        ends[at..].iter_mut().for_each(|end| *end -= offset(range.len()));
        bytes.drain(range);
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn extend(&mut self, other: &Self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let (from, to) = (other.start(range.start), other.ends[range.end - 1]);
        let base = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes[from..to]);
        self.ends.extend(other.ends[range].iter().map(|end| end - from + base));
    }

    fn push(&mut self, other: &Self, at: usize) {
        self.push_row(other.row(at));
    }

    fn replace(&mut self, at: usize, other: &Self) {
        let mut all = Self::default();
        all.extend(self, 0..at);
        all.extend(other, 0..other.ends.len());
        all.extend(self, at + 1..self.ends.len());
        *self = all;
    }

    #[inline]
    fn compare(&self, i: usize, other: &Self, j: usize) -> Ordering {
        self.row(i).cmp(other.row(j))
    }

    fn begins_with(&self, at: usize, leading: &Self, j: usize, _words: usize) -> bool {
        self.row(at).starts_with(leading.row(j))
    }

    fn pack(&self, range: Range<usize>) -> Self::Packed {
        let from = self.start(range.start);
        let ends = self.ends[range.clone()].iter().map(move |&end| offset(end - from));
        let to = range.end.checked_sub(1).map_or(from, |last| self.ends[last].max(from));
        (self.bytes[from..to].into(), ends.collect())
    }

    fn unpack(&mut self, packed: &Self::Packed, range: Range<usize>) {
        let (bytes, ends) = packed;
        if range.is_empty() {
            return;
        }
        let place = |at: usize| ends[at] as usize;
        let from = if range.start == 0 { 0 } else { place(range.start - 1) };
        let base = self.bytes.len();
        self.bytes.extend_from_slice(&bytes[from..place(range.end - 1)]);
        self.ends.extend(range.map(|at| place(at) - from + base));
    }

    fn sort_runs(&self, positions: &mut [u32], ends: &[usize], gathered: &mut Self) {
        let mut start = 0;
        for &end in ends {
            positions[start..end].sort_unstable_by(|&i, &j| {
                self.row(i as usize).cmp(self.row(j as usize)).then(i.cmp(&j))
            });
            start = end;
        }
        gathered.clear();
        positions.iter().for_each(|&at| gathered.push(self, at as usize));
    }

    fn long_bytes(&self, range: Range<usize>) -> usize {
        match range.end.checked_sub(1) {
            Some(last) if last >= range.start => self.ends[last] - self.start(range.start),
            _ => 0,
        }
    }

    fn packed_bytes((bytes, ends): &Self::Packed) -> usize {
        bytes.capacity() + ends.capacity() * size_of::<u32>()
    }

    fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

/// Where a packed row lies.
fn packed_range(ends: &[u32], at: usize) -> Range<usize> {
    let start = if at == 0 { 0 } else { ends[at - 1] };
    start as usize..ends[at] as usize
}

/// A place in a block's bytes, of which there are few unless a single row is longer than 4 GiB.
fn offset(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_bytes_survive_packing() {
        let mut rows = ByteRows::default();
        ["a", "", "bcd", "ef"].iter().for_each(|row| rows.push_row(row.as_bytes()));
        for range in [0..4, 1..3, 2..2, 3..4, 1..2] {
            let packed = rows.pack(range.clone());
            let mut back = ByteRows::default();
            back.push_row(b"first");
            back.unpack(&packed, 0..range.len());
            back.extend(&rows, 2..4);
            let mut expected = vec![b"first".as_slice()];
            expected.extend(range.chain(2..4).map(|at| rows.row(at)));
            let found: Vec<&[u8]> = (0..back.ends.len()).map(|at| back.row(at)).collect();
            assert_eq!(found, expected);
        }
        let packed = rows.pack(0..4);
        let mut part = ByteRows::default();
        part.unpack(&packed, 2..4);
        assert_eq!((part.row(0), part.row(1)), (b"bcd".as_slice(), b"ef".as_slice()));
    }
}
