//! The 64-bit mixing functions under [`crate::hash_columns`].
//!
//! They are part of the file format: state files and delete indexes hold their results. Golden
//! values in this module's and `hash.rs`'s tests hold them still.
//!
//! - [`Lane::word`] is a bijection of 64-bit words (xor with the seed, then two rounds of
//!   shift-xor-multiply), so two different 64-bit values never share a hash.
//! - [`Lane::bytes`] folds the byte string eight little-endian bytes at a time through a widening
//!   multiplication, and finishes with the same rounds.
//! - [`combine`] joins a hash with the next one; it is a bijection of either argument.

/// First odd multiplier: the golden ratio in 64 bits.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Second odd multiplier: the square root of 3 in 64 bits, made odd.
const ROOT_3: u64 = 0xbb67_ae85_84ca_a73b;
/// Third odd multiplier: the square root of 7 in 64 bits, made odd.
const ROOT_7: u64 = 0xa54f_f53a_5f1d_36f1;

/// One independent hash function of the family; a 128-bit hash is two lanes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lane {
    seed: u64,
}

/// The lane of 64-bit hashes, and the high half of 128-bit ones.
pub(crate) const HIGH: Lane = Lane { seed: 0x243f_6a88_85a3_08d3 };
/// The low half of 128-bit hashes.
pub(crate) const LOW: Lane = Lane { seed: 0x1319_8a2e_0370_7344 };

impl Lane {
    /// Hash of NULL, of whatever type.
    pub(crate) fn null(self) -> u64 {
        mix(self.seed ^ ROOT_7)
    }

    /// Hash of a row without columns, and the start of a struct's and a list's hash.
    pub(crate) fn start(self) -> u64 {
        mix(self.seed ^ ROOT_3)
    }

    /// Hash of a 64-bit word.
    #[inline]
    pub(crate) fn word(self, word: u64) -> u64 {
        mix(word ^ self.seed)
    }

    /// Hash of a 128-bit word: low half first.
    #[inline]
    pub(crate) fn wide(self, low: u64, high: u64) -> u64 {
        combine(self.word(low), self.word(high))
    }

    /// Hash of a byte string.
    #[inline]
    pub(crate) fn bytes(self, bytes: &[u8]) -> u64 {
        let mut hash = self.seed ^ (bytes.len() as u64).wrapping_mul(GOLDEN);
        let (words, tail) = bytes.as_chunks::<8>();
        for word in words {
            hash = fold(hash ^ u64::from_le_bytes(*word), ROOT_7);
        }
        if !tail.is_empty() {
            hash = fold(hash ^ tail_word(tail), ROOT_3);
        }
        mix(hash)
    }
}

/// The last one to seven bytes as a little-endian word, zero above.
#[inline]
fn tail_word(tail: &[u8]) -> u64 {
    match tail {
        // Four or more: two overlapping halves, each at its own place.
        [a, b, c, d, ..] => {
            let at = tail.len() - 4;
            let low = u64::from(u32::from_le_bytes([*a, *b, *c, *d]));
            let high = u32::from_le_bytes([tail[at], tail[at + 1], tail[at + 2], tail[at + 3]]);
            low | u64::from(high) << (8 * at)
        }
        [a, b, c] => u64::from(*a) | u64::from(*b) << 8 | u64::from(*c) << 16,
        [a, b] => u64::from(*a) | u64::from(*b) << 8,
        [a] => u64::from(*a),
        [] => 0,
    }
}

/// Joins the hash so far with the next one; order matters.
#[inline]
pub(crate) fn combine(hash: u64, next: u64) -> u64 {
    mix(hash.wrapping_mul(GOLDEN).wrapping_add(next))
}

/// A bijection in which every input bit reaches every output bit.
#[inline]
fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 32).wrapping_mul(ROOT_3);
    let word = (word ^ word >> 29).wrapping_mul(GOLDEN);
    word ^ word >> 32
}

/// The two halves of the 128-bit product, xored.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the halves of the product are wanted")]
fn fold(word: u64, multiplier: u64) -> u64 {
    let product = u128::from(word) * u128::from(multiplier);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_of_all_lengths_are_told_apart() {
        let mut seen = std::collections::BTreeSet::new();
        for length in 0..40 {
            assert!(seen.insert(HIGH.bytes(&vec![0; length])), "length {length}");
            for at in 0..length {
                let mut bytes = vec![0; length];
                bytes[at] = 1;
                assert!(seen.insert(HIGH.bytes(&bytes)), "length {length}, byte {at}");
            }
        }
    }

    #[test]
    fn a_tail_is_its_little_endian_word() {
        for length in 0..8 {
            let bytes: Vec<u8> = (1..=length).collect();
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(&bytes);
            assert_eq!(tail_word(&bytes), u64::from_le_bytes(word));
        }
    }

    /// Small consecutive keys must spread evenly over both the top and the low bits.
    #[test]
    fn top_and_low_bits_spread() {
        for shift in [0, 56] {
            let mut counts = [0_u32; 256];
            (0..65_536_u64).for_each(|k| counts[(HIGH.word(k) >> shift & 255) as usize] += 1);
            let (least, most) = (counts.iter().min(), counts.iter().max());
            assert!(least > Some(&180) && most < Some(&340), "{least:?} {most:?}");
        }
    }
}
