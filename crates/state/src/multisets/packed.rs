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
            Offsets::U8(offsets) => insert_exact(offsets, at, offset as u8),
            Offsets::U16(offsets) => insert_exact(offsets, at, offset as u16),
            Offsets::U32(offsets) => insert_exact(offsets, at, offset as u32),
            Offsets::U64(offsets) => insert_exact(offsets, at, offset),
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

/// Inserts without the spare room that a growing vector takes: blocks are short, and many.
pub(super) fn insert_exact<T>(values: &mut Vec<T>, at: usize, value: T) {
    values.reserve_exact(1);
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
}
