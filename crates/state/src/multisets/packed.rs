//! Words packed as offsets from a base: as wide as their range needs, nothing at all when all are
//! equal. The base leaves the spare room of that width to both sides, so that a word that is added
//! later most often fits.

use std::ops::Range;

/// A column of 64-bit words.
#[derive(Debug, Clone)]
pub(super) struct PackedWords {
    base: u64,
    offsets: Offsets,
}

#[derive(Debug, Clone)]
enum Offsets {
    None,
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
}

impl PackedWords {
    /// The words of an iterator that can be run twice.
    pub(super) fn new(words: impl Iterator<Item = u64> + Clone) -> Self {
        let (mut least, mut greatest) = (u64::MAX, 0);
        for word in words.clone() {
            least = least.min(word);
            greatest = greatest.max(word);
        }
        let range = greatest.saturating_sub(least);
        let widest = match range {
            0 => 0,
            0x1..=0xff => u8::MAX.into(),
            0x100..=0xffff => u16::MAX.into(),
            0x1_0000..=0xffff_ffff => u32::MAX.into(),
            _ => u64::MAX,
        };
        let base = least.min(greatest).saturating_sub((widest - range) / 2);
        let offsets = words.map(|word| word - base);
        #[expect(clippy::cast_possible_truncation, reason = "the offsets are within the width")]
        let offsets = match widest {
            0 => Offsets::None,
            0xff => Offsets::U8(offsets.map(|o| o as u8).collect()),
            0xffff => Offsets::U16(offsets.map(|o| o as u16).collect()),
            0xffff_ffff => Offsets::U32(offsets.map(|o| o as u32).collect()),
            _ => Offsets::U64(offsets.collect()),
        };
        Self { base, offsets }
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> u64 {
        self.base
            + match &self.offsets {
                Offsets::None => 0,
                Offsets::U8(offsets) => offsets[at].into(),
                Offsets::U16(offsets) => offsets[at].into(),
                Offsets::U32(offsets) => offsets[at].into(),
                Offsets::U64(offsets) => offsets[at],
            }
    }

    /// Where a word is, or belongs, among some words in order.
    #[inline]
    pub(super) fn find(&self, range: Range<usize>, word: u64) -> Range<usize> {
        let Some(offset) = word.checked_sub(self.base) else { return range.start..range.start };
        match &self.offsets {
            Offsets::None if offset == 0 => range,
            Offsets::None => range.end..range.end,
            Offsets::U8(offsets) => find(offsets, range, offset),
            Offsets::U16(offsets) => find(offsets, range, offset),
            Offsets::U32(offsets) => find(offsets, range, offset),
            Offsets::U64(offsets) => find(offsets, range, offset),
        }
    }

    /// Calls `each` with the position in the range and the word, for all of the range in order.
    #[inline]
    pub(super) fn for_each(&self, range: Range<usize>, mut each: impl FnMut(usize, u64)) {
        let base = self.base;
        match &self.offsets {
            Offsets::None => (0..range.len()).for_each(|i| each(i, base)),
            Offsets::U8(offsets) => {
                offsets[range].iter().enumerate().for_each(|(i, &o)| each(i, base + u64::from(o)));
            }
            Offsets::U16(offsets) => {
                offsets[range].iter().enumerate().for_each(|(i, &o)| each(i, base + u64::from(o)));
            }
            Offsets::U32(offsets) => {
                offsets[range].iter().enumerate().for_each(|(i, &o)| each(i, base + u64::from(o)));
            }
            Offsets::U64(offsets) => {
                offsets[range].iter().enumerate().for_each(|(i, &o)| each(i, base + o));
            }
        }
    }

    /// True when the word can be stored without packing all of them anew.
    pub(super) fn fits(&self, word: u64) -> bool {
        let greatest = match &self.offsets {
            Offsets::None => 0,
            Offsets::U8(_) => u8::MAX.into(),
            Offsets::U16(_) => u16::MAX.into(),
            Offsets::U32(_) => u32::MAX.into(),
            Offsets::U64(_) => u64::MAX,
        };
        word.checked_sub(self.base).is_some_and(|offset| offset <= greatest)
    }

    /// Inserts a word that fits.
    pub(super) fn insert(&mut self, at: usize, word: u64) {
        let offset = word - self.base;
        #[expect(clippy::cast_possible_truncation, reason = "the word fits")]
        match &mut self.offsets {
            Offsets::None => {}
            Offsets::U8(offsets) => insert_tight(offsets, at, offset as u8),
            Offsets::U16(offsets) => insert_tight(offsets, at, offset as u16),
            Offsets::U32(offsets) => insert_tight(offsets, at, offset as u32),
            Offsets::U64(offsets) => insert_tight(offsets, at, offset),
        }
    }

    /// Overwrites a word by one that fits.
    pub(super) fn set(&mut self, at: usize, word: u64) {
        let offset = word - self.base;
        #[expect(clippy::cast_possible_truncation, reason = "the word fits")]
        match &mut self.offsets {
            Offsets::None => {}
            Offsets::U8(offsets) => offsets[at] = offset as u8,
            Offsets::U16(offsets) => offsets[at] = offset as u16,
            Offsets::U32(offsets) => offsets[at] = offset as u32,
            Offsets::U64(offsets) => offsets[at] = offset,
        }
    }

    pub(super) fn remove(&mut self, at: usize) {
        match &mut self.offsets {
            Offsets::None => {}
            Offsets::U8(offsets) => drop(offsets.remove(at)),
            Offsets::U16(offsets) => drop(offsets.remove(at)),
            Offsets::U32(offsets) => drop(offsets.remove(at)),
            Offsets::U64(offsets) => drop(offsets.remove(at)),
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.offsets {
            Offsets::None => 0,
            Offsets::U8(offsets) => offsets.capacity(),
            Offsets::U16(offsets) => offsets.capacity() * size_of::<u16>(),
            Offsets::U32(offsets) => offsets.capacity() * size_of::<u32>(),
            Offsets::U64(offsets) => offsets.capacity() * size_of::<u64>(),
        }
    }
}

#[inline]
fn find<T: Copy + Into<u64>>(offsets: &[T], range: Range<usize>, offset: u64) -> Range<usize> {
    let part = &offsets[range.clone()];
    let start = part.partition_point(|&o| o.into() < offset);
    let rest = &part[start..];
    // Mostly none or one.
    let equal = match rest.get(1) {
        Some(&next) if next.into() == offset => rest.partition_point(|&o| o.into() == offset),
        _ => usize::from(rest.first().is_some_and(|&first| first.into() == offset)),
    };
    range.start + start..range.start + start + equal
}

/// Inserts with less spare room than a growing vector takes: blocks are short, and many.
pub(super) fn insert_tight<T>(values: &mut Vec<T>, at: usize, value: T) {
    if values.len() == values.capacity() {
        values.reserve_exact(1 + values.len() / 16);
    }
    values.insert(at, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_at_every_width() {
        for step in [0, 1, 200, 30_000, 3_000_000_000, u64::MAX / 5] {
            for base in [0, 7, u64::MAX / 2] {
                let words: Vec<u64> = (0..3).map(|i| (base / 2).saturating_add(i * step)).collect();
                let packed = PackedWords::new(words.iter().copied());
                assert_eq!((0..3).map(|i| packed.get(i)).collect::<Vec<_>>(), words);
                let mut seen = Vec::new();
                packed.for_each(1..3, |i, word| seen.push((i, word)));
                assert_eq!(seen, [(0, words[1]), (1, words[2])]);
                let mut changed = packed.clone();
                let mut model = words.clone();
                for word in [words[2], words[0], words[0].midpoint(words[2])] {
                    assert!(changed.fits(word));
                    changed.insert(1, word);
                    model.insert(1, word);
                }
                changed.remove(2);
                model.remove(2);
                changed.set(0, words[2]);
                model[0] = words[2];
                assert_eq!((0..5).map(|i| changed.get(i)).collect::<Vec<_>>(), model);
            }
        }
        assert_eq!(PackedWords::new(std::iter::empty()).heap_bytes(), 0);
    }

    #[test]
    fn words_are_found_where_they_are_or_belong() {
        for step in [1, 300, 70_000, 1 << 40] {
            let sorted = [5, 7, 7, 7, 9].map(|i| 1000 + i * step);
            let packed = PackedWords::new(sorted.iter().copied());
            for (word, found) in [(4, 1..1), (5, 1..1), (7, 1..4), (8, 4..4), (9, 4..4), (10, 4..4)]
            {
                assert_eq!(packed.find(1..4, 1000 + word * step), found, "{step} {word}");
            }
            assert_eq!(packed.find(0..5, 0), 0..0);
            assert_eq!(packed.find(0..5, u64::MAX), 5..5);
        }
        let equal = PackedWords::new([3, 3, 3].into_iter());
        assert_eq!([2, 3, 4].map(|word| equal.find(0..3, word)), [0..0, 0..3, 3..3]);
    }
}
