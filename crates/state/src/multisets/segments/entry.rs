//! Rows of a segment: integers of `stride` bytes each, side by side, in order; least byte first.

use std::ops::Range;

/// An integer that holds a row.
pub(super) trait Entry: Copy + Ord {
    /// The lowest bytes of a longer integer.
    fn new(code: u128) -> Self;

    fn code(self) -> u128;

    /// All bits of so many bytes.
    fn mask(stride: usize) -> Self;

    /// The integer at the start of some bytes, of which there are at least as many as it has.
    fn read(bytes: &[u8], mask: Self) -> Self;

    /// Overwrites the integer at the start of some bytes, and not those after it.
    fn write(self, bytes: &mut [u8], mask: Self);
}

macro_rules! impl_entry {
    ($type:ty, $new:expr, $code:expr) => {
        impl Entry for $type {
            #[inline]
            fn new(code: u128) -> Self {
                $new(code)
            }

            #[inline]
            fn code(self) -> u128 {
                $code(self)
            }

            #[inline]
            fn mask(stride: usize) -> Self {
                let unused = size_of::<$type>().saturating_sub(stride) * 8;
                <$type>::MAX >> unused
            }

            #[inline]
            fn read(bytes: &[u8], mask: Self) -> Self {
                bytes.first_chunk().map_or(0, |bytes| <$type>::from_le_bytes(*bytes)) & mask
            }

            #[inline]
            fn write(self, bytes: &mut [u8], mask: Self) {
                if let Some(bytes) = bytes.first_chunk_mut() {
                    let others = <$type>::from_le_bytes(*bytes) & !mask;
                    *bytes = (others | self).to_le_bytes();
                }
            }
        }
    };
}

impl_entry!(u64, lower_half, u128::from);
impl_entry!(u128, std::convert::identity, std::convert::identity);

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
fn lower_half(code: u128) -> u64 {
    code as u64
}

/// The rows of a group.
#[derive(Clone, Copy)]
pub(super) struct Entries<'a, E> {
    bytes: &'a [u8],
    len: usize,
    stride: usize,
    mask: E,
}

impl<'a, E: Entry> Entries<'a, E> {
    pub(super) fn new(bytes: &'a [u8], len: usize, stride: usize) -> Self {
        Self { bytes, len, stride, mask: E::mask(stride) }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> E {
        E::read(&self.bytes[at * self.stride..], self.mask)
    }

    /// The rows that are equal to one, or where it belongs.
    #[inline]
    pub(super) fn find(&self, entry: E) -> Range<usize> {
        let (mut start, mut end) = (0, self.len);
        while start < end {
            let middle = start.midpoint(end);
            if self.get(middle) < entry { start = middle + 1 } else { end = middle }
        }
        while end < self.len && self.get(end) == entry {
            end += 1;
        }
        start..end
    }

    /// The row at a place, and where those equal to it end.
    #[inline]
    pub(super) fn run(&self, at: usize) -> (E, usize) {
        let entry = self.get(at);
        let end = (at + 1..self.len).find(|&i| self.get(i) != entry);
        (entry, end.unwrap_or(self.len))
    }
}
