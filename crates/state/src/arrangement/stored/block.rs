//! A block of a stored run: the rows that are read and checked together.
//!
//! Number of rows, whether there are weights, hashes, weights, where each row ends, rows.

use super::codec::EncodedRows;
use super::run::u32_at;

/// The rows of a block. Each part is as long as the number of rows says.
pub(super) struct Block<'a> {
    hashes: &'a [[u8; 8]],
    /// Empty where all are 1.
    weights: &'a [[u8; 8]],
    ends: &'a [[u8; 4]],
    data: &'a [u8],
}

impl<'a> Block<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(8)?;
        let (count, has_weights) = (u32_at(head, 0) as usize, u32_at(head, 4) != 0);
        let (hashes, rest) = rest.split_at_checked(8 * count)?;
        let (weights, rest) = rest.split_at_checked(if has_weights { 8 * count } else { 0 })?;
        let (ends, data) = rest.split_at_checked(4 * count)?;
        let block = Self {
            hashes: hashes.as_chunks().0,
            weights: weights.as_chunks().0,
            ends: ends.as_chunks().0,
            data,
        };
        let ends = block.ends.iter().map(|end| u32::from_le_bytes(*end));
        (ends.is_sorted() && block.end(count) == data.len()).then_some(block)
    }

    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    pub(super) fn hash(&self, row: usize) -> u64 {
        u64::from_le_bytes(self.hashes[row])
    }

    pub(super) fn weight(&self, row: usize) -> i64 {
        self.weights.get(row).map_or(1, |weight| i64::from_le_bytes(*weight))
    }

    /// Where the first `rows` rows end.
    pub(super) fn end(&self, rows: usize) -> usize {
        match rows {
            0 => 0,
            _ => u32::from_le_bytes(self.ends[rows - 1]) as usize,
        }
    }

    pub(super) fn row(&self, row: usize) -> &'a [u8] {
        &self.data[self.end(row)..self.end(row + 1)]
    }

    /// Appends the rows of some hashes, which are in ascending order.
    pub(super) fn pick(&self, hashes: &[u64], into: &mut EncodedRows) {
        let mut wanted = match self.len() {
            0 => return,
            _ => hashes.partition_point(|&hash| hash < self.hash(0)),
        };
        for row in 0..self.len() {
            let hash = self.hash(row);
            while hashes.get(wanted).is_some_and(|&wanted| wanted < hash) {
                wanted += 1;
            }
            match hashes.get(wanted) {
                None => return,
                Some(&wanted) if wanted == hash => into.push(hash, self.row(row), self.weight(row)),
                Some(_) => {}
            }
        }
    }
}
