//! How a stored run is written: block by block, the directory last.

use deltaic_batch::{Error, Result};

use super::run::{ENTRY_BYTES, HEAD_BYTES, KIND};
use crate::frame::{MAGIC, VERSION};

/// Writes a run: rows come in order of hash and bytes.
#[derive(Debug, Default)]
pub(super) struct RunWriter {
    directory: Vec<u8>,
    blocks: Vec<u8>,
    rows: u64,
    hashes: Vec<u64>,
    weights: Vec<i64>,
    ends: Vec<u32>,
    data: Vec<u8>,
}

/// A block is full when its rows have so many bytes.
const BLOCK_BYTES: usize = 4096;

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
        let start = self.blocks.len();
        let count = u32::try_from(self.hashes.len()).map_err(|_| row_too_long())?;
        let has_weights = self.weights.iter().any(|&weight| weight != 1);
        self.blocks.extend_from_slice(&count.to_le_bytes());
        self.blocks.extend_from_slice(&u32::from(has_weights).to_le_bytes());
        self.blocks.extend(self.hashes.iter().flat_map(|hash| hash.to_le_bytes()));
        if has_weights {
            self.blocks.extend(self.weights.iter().flat_map(|weight| weight.to_le_bytes()));
        }
        self.blocks.extend(self.ends.iter().flat_map(|end| end.to_le_bytes()));
        self.blocks.extend_from_slice(&self.data);
        let block = &self.blocks[start..];
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
    pub(super) fn finish(mut self, types: u32) -> Result<Vec<u8>> {
        self.end_block()?;
        if self.rows == 0 {
            return Ok(Vec::new());
        }
        let count = self.directory.len() / ENTRY_BYTES;
        let count = u32::try_from(count).map_err(|_| row_too_long())?;
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.directory.len() + self.blocks.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&KIND);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0, 0]);
        bytes.extend_from_slice(&types.to_le_bytes());
        bytes.extend_from_slice(&self.rows.to_le_bytes());
        bytes.extend_from_slice(&count.to_le_bytes());
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&bytes);
        hasher.update(&self.directory);
        bytes.extend_from_slice(&hasher.finalize().to_le_bytes());
        bytes.extend_from_slice(&self.directory);
        bytes.extend_from_slice(&self.blocks);
        Ok(bytes)
    }
}

fn row_too_long() -> Error {
    Error::user("STATE_TOO_LARGE", "rows of the state exceed 4 GiB in one block or 2^32 blocks")
        .hint("run with more shards")
}
