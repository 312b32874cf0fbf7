//! The filter of a row index: a blocked Bloom filter (Putze, Sanders and Singler, 2007) that tells
//! of nearly all hashes that are not in a file that they are not.
//!
//! A block is 64 bytes. The low half of a hash chooses the block, the high half six bits in it.

/// Bytes of a block.
pub(super) const BLOCK_BYTES: usize = 64;
/// Bits of the filter per row: about one hash in a hundred that is not there passes.
const ROW_BITS: usize = 10;
/// Bits of a block that a hash sets.
const HASH_BITS: u32 = 6;

/// Blocks of a filter of so many hashes.
pub(super) fn blocks(rows: usize) -> usize {
    rows.saturating_mul(ROW_BITS).div_ceil(8 * BLOCK_BYTES)
}

/// The block of a hash.
#[expect(clippy::cast_possible_truncation, reason = "the low half is wanted; a block is in range")]
pub(super) fn block_of(hash: u128, blocks: usize) -> usize {
    ((u128::from(hash as u64) * blocks as u128) >> 64) as usize
}

/// The bits of a hash in its block.
fn bits(hash: u128) -> impl Iterator<Item = (usize, u8)> {
    let high = (hash >> 64).to_le_bytes();
    let high = high.first_chunk().map_or(0, |high| u64::from_le_bytes(*high));
    (0..HASH_BITS).map(move |i| {
        let bit = usize::try_from(high >> (9 * i) & 511).unwrap_or(0);
        (bit / 8, 1 << (bit % 8))
    })
}

/// Adds a hash to its block.
pub(super) fn insert(hash: u128, block: &mut [u8]) {
    bits(hash).for_each(|(byte, bit)| block[byte] |= bit);
}

/// False when the hash was surely not added to its block.
pub(super) fn may_hold(hash: u128, block: &[u8]) -> bool {
    bits(hash).all(|(byte, bit)| block[byte] & bit != 0)
}
