//! Rows of words as one integer each, in the same order: each word's offset from a base, side by
//! side, in as many bits as its range takes and some to spare.

use crate::multisets::rows::WordRows;

/// Bits of the longest integer.
const BITS_MAX: u32 = 128;

/// How rows lie in integers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Code<const W: usize> {
    base: [u64; W],
    /// Bits of each word, and how far to the left they lie.
    bits: [u32; W],
    shifts: [u32; W],
    /// Bytes of an integer, at least one.
    pub(super) stride: usize,
}

/// The least and the greatest of each word.
pub(super) type Bounds<const W: usize> = ([u64; W], [u64; W]);

impl<const W: usize> Code<W> {
    /// For rows within bounds; `None` if they take too many bits.
    pub(super) fn try_new((least, greatest): Bounds<W>) -> Option<Self> {
        let mut bits: [u32; W] =
            std::array::from_fn(|w| u64::BITS - (greatest[w] - least[w]).leading_zeros());
        let needed: u32 = bits.iter().sum();
        if needed > BITS_MAX {
            return None;
        }
        let stride = needed.div_ceil(8).max(1);
        // The rest of the last byte, and one more where no word has got a bit of it.
        let mut spare = stride * 8 - needed;
        if spare == 0 && stride < BITS_MAX / 8 {
            spare = 8;
        }
        while spare > 0 && bits.iter().any(|&b| (1..u64::BITS).contains(&b)) {
            for bits in bits.iter_mut().filter(|b| (1..u64::BITS).contains(*b)) {
                if spare > 0 {
                    *bits += 1;
                    spare -= 1;
                }
            }
        }
        // The spare room lies to both sides.
        let base = std::array::from_fn(|w| {
            let widest = widest(bits[w]);
            let room = widest - (greatest[w] - least[w]);
            least[w].saturating_sub(room / 2).min(u64::MAX - widest)
        });
        let mut shifts = [0; W];
        let mut total = 0;
        for w in (0..W).rev() {
            shifts[w] = total;
            total += bits[w];
        }
        Some(Self { base, bits, shifts, stride: total.div_ceil(8).max(1) as usize })
    }

    /// The bounds within which rows have an integer.
    pub(super) fn bounds(&self) -> Bounds<W> {
        (self.base, std::array::from_fn(|w| self.base[w] + widest(self.bits[w])))
    }

    /// True when a row has an integer.
    #[inline]
    pub(super) fn holds(&self, row: &[u64; W]) -> bool {
        (0..W).all(|w| row[w].checked_sub(self.base[w]).is_some_and(|o| o <= widest(self.bits[w])))
    }

    #[inline]
    pub(super) fn encode(&self, row: &[u64; W]) -> u128 {
        // Only a word without bits is ever shifted by all 128.
        (0..W).fold(0, |all, w| all | u128::from(row[w] - self.base[w]) << (self.shifts[w] & 127))
    }

    #[inline]
    pub(super) fn decode(&self, code: u128) -> [u64; W] {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
        std::array::from_fn(|w| {
            self.base[w] + ((code >> (self.shifts[w] & 127)) as u64 & widest(self.bits[w]))
        })
    }
}

/// The bounds of some rows; `None` without any.
pub(super) fn bounds_of<const W: usize>(rows: &WordRows<W>) -> Option<Bounds<W>> {
    let first = *rows.0.first()?;
    Some(rows.0.iter().fold((first, first), |(least, greatest), row| {
        (
            std::array::from_fn(|w| least[w].min(row[w])),
            std::array::from_fn(|w| greatest[w].max(row[w])),
        )
    }))
}

/// The bounds of two lists of rows together.
pub(super) fn union<const W: usize>(one: Bounds<W>, other: Bounds<W>) -> Bounds<W> {
    (
        std::array::from_fn(|w| one.0[w].min(other.0[w])),
        std::array::from_fn(|w| one.1[w].max(other.1[w])),
    )
}

/// The greatest number of so many bits.
#[inline]
fn widest(bits: u32) -> u64 {
    u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_in_the_order_of_rows_and_give_them_back() {
        let top = u64::MAX;
        for (least, greatest) in [
            ([0, 0], [0, 0]),
            ([5, 7], [5, 9]),
            ([top, top - 1], [top, top]),
            ([0, 1 << 40], [300, 1 << 41]),
            ([0, 0], [top, top]),
            ([0, 3], [top, 3]),
            ([1, 0], [1, top]),
        ] {
            let code = Code::try_new((least, greatest)).unwrap();
            assert!(code.holds(&least) && code.holds(&greatest));
            let (low, high) = code.bounds();
            assert!(low[1] == 0 || !code.holds(&[low[0], low[1] - 1]));
            assert!(high[0] == top || !code.holds(&[high[0] + 1, high[1]]));
            let mut rows = vec![least, [least[0], greatest[1]], [greatest[0], least[1]], greatest];
            let (low, high) = code.bounds();
            rows.extend([low, high]);
            rows.sort_unstable();
            let codes: Vec<u128> = rows.iter().map(|row| code.encode(row)).collect();
            assert!(codes.is_sorted());
            assert!(codes.iter().all(|c| code.stride == 16 || *c < 1 << (code.stride * 8)));
            assert_eq!(codes.iter().map(|&c| code.decode(c)).collect::<Vec<_>>(), rows);
        }
    }

    #[test]
    fn more_bits_than_fit_are_refused() {
        assert!(Code::try_new(([0; 3], [u64::MAX, u64::MAX, 1])).is_none());
        assert_eq!(Code::try_new(([0; 3], [u64::MAX, u64::MAX, 0])).unwrap().stride, 16);
    }
}
