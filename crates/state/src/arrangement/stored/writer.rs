//! How a stored run is written: block by block, the directory last.

use deltaic_batch::{Error, Result};

use super::run::{ENTRY_BYTES, HEAD_BYTES, KIND};
use crate::Image;
use crate::frame::{MAGIC, VERSION};

/// Writes a run: rows come in order of hash and bytes.
#[derive(Debug, Default)]
pub(super) struct RunWriter {
    directory: Vec<u8>,
    /// Blocks in parts of about [`PART_BYTES`].
    parts: Vec<Vec<u8>>,
    rows: u64,
    hashes: Vec<u64>,
    weights: Vec<i64>,
    ends: Vec<u32>,
    data: Vec<u8>,
}

/// A block is full when its rows have so many bytes.
const BLOCK_BYTES: usize = 4096;
/// Memory is taken by so much.
const PART_BYTES: usize = 1 << 20;

impl RunWriter {
    pub(super) fn push(&mut self, hash: u64, row: &[u8], weight: i64) -> Result<()> {
        if !self.data.is_empty() && self.data.len() + row.len() > BLOCK_BYTES
            || self.hashes.len() == BLOCK_BYTES
        {
            self.end_block()?;
        }
        self.data.extend_from_slice(row);
        let end = u32::try_from(self.data.len()).map_err(|_| row_too_long())?;
        self.ends.push(end);
        self.hashes.push(hash);
        self.weights.push(weight);
        self.rows += 1;
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        let Some(least_hash) = self.hashes.first() else { return Ok(()) };
        let is_full = |part: &Vec<u8>| part.len() + 2 * BLOCK_BYTES > part.capacity();
        if self.parts.last().is_none_or(is_full) {
            // A run of few rows is small.
            let first = self.parts.is_empty() && self.rows < 1000;
            let bytes = if first { self.data.len() + 32 * self.hashes.len() } else { PART_BYTES };
            self.parts.push(Vec::with_capacity(bytes));
        }
        let Some(blocks) = self.parts.last_mut() else { return Ok(()) };
        let start = blocks.len();
        let count = u32::try_from(self.hashes.len()).map_err(|_| row_too_long())?;
        let has_weights = self.weights.iter().any(|&weight| weight != 1);
        blocks.extend_from_slice(&count.to_le_bytes());
        blocks.extend_from_slice(&u32::from(has_weights).to_le_bytes());
        self.hashes.iter().for_each(|hash| blocks.extend_from_slice(&hash.to_le_bytes()));
        if has_weights {
            self.weights.iter().for_each(|weight| blocks.extend_from_slice(&weight.to_le_bytes()));
        }
        self.ends.iter().for_each(|end| blocks.extend_from_slice(&end.to_le_bytes()));
        blocks.extend_from_slice(&self.data);
        let block = &blocks[start..];
        let length = u32::try_from(block.len()).map_err(|_| row_too_long())?;
        self.directory.extend_from_slice(&least_hash.to_le_bytes());
        self.directory.extend_from_slice(&length.to_le_bytes());
        self.directory.extend_from_slice(&crc32fast::hash(block).to_le_bytes());
        self.hashes.clear();
        self.weights.clear();
        self.ends.clear();
        self.data.clear();
        Ok(())
    }

    /// The whole run; no bytes when it has no rows.
    pub(super) fn finish(mut self, types: u32) -> Result<Image> {
        self.end_block()?;
        if self.rows == 0 {
            return Ok(Image::from(Vec::<u8>::new()));
        }
        let count = self.directory.len() / ENTRY_BYTES;
        let count = u32::try_from(count).map_err(|_| row_too_long())?;
        let mut head = Vec::with_capacity(HEAD_BYTES + self.directory.len());
        head.extend_from_slice(&MAGIC);
        head.extend_from_slice(&KIND);
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&[0, 0]);
        head.extend_from_slice(&types.to_le_bytes());
        head.extend_from_slice(&self.rows.to_le_bytes());
        head.extend_from_slice(&count.to_le_bytes());
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&head);
        hasher.update(&self.directory);
        head.extend_from_slice(&hasher.finalize().to_le_bytes());
        head.extend_from_slice(&self.directory);
        Ok(Image::from(std::iter::once(head).chain(self.parts).collect::<Vec<_>>()))
    }
}

fn row_too_long() -> Error {
    Error::user("STATE_TOO_LARGE", "rows of the state exceed 4 GiB in one block or 2^32 blocks")
        .hint("run with more shards")
}
