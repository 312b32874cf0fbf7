//! Bytes of a row index. All numbers are little-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `DLTCIDX2` |
//! | 4 | length of the header text |
//! | 4 | CRC-32 of header text and directory |
//! | … | header text, JSON: `rows`, and `columns` (names, in the order in which they are hashed) |
//! | … | directory: the high half of the first hash of each page of entries |
//! | … | pages of the filter, of 4,096 bytes |
//! | … | pages of entries, of 4,096 bytes; the last one ends with its last entry |
//!
//! | page of the filter | content |
//! |---|---|
//! | 4 | CRC-32 of the rest of the page |
//! | 4 | zero |
//! | 4032 | 63 blocks of the filter; zeros after the last |
//! | … | zeros up to the page's end |
//!
//! | page of entries | content |
//! |---|---|
//! | 4 | CRC-32 of the rest of the page |
//! | 4 | number of entries, n ≤ 204 |
//! | 16 n | hashes, ascending |
//! | 4 n | positions, ascending among equal hashes |
//! | … | zeros up to the page's end |

use std::io;

use bytes::Bytes;
use deltaic_batch::{Error, Result};
use serde::{Deserialize, Serialize};

use super::filter;
use crate::store::ReadAt;

pub(super) const MAGIC: &[u8; 8] = b"DLTCIDX2";
/// Bytes before the header text.
pub(super) const START_BYTES: usize = 16;
pub(super) const PAGE_BYTES: usize = 4_096;
/// Entries of a page.
pub(super) const PAGE_ENTRIES: usize = 204;
/// Blocks of the filter in a page.
pub(super) const PAGE_BLOCKS: usize = (PAGE_BYTES - PAGE_START_BYTES) / filter::BLOCK_BYTES;
/// Bytes of an entry of the directory.
pub(super) const DIRECTORY_BYTES: usize = 8;
/// Bytes of a page before its hashes or blocks.
pub(super) const PAGE_START_BYTES: usize = 8;
pub(super) const HASH_BYTES: usize = 16;
pub(super) const POSITION_BYTES: usize = 4;

/// The header text.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) rows: usize,
    pub(super) columns: Vec<String>,
}

/// Encodes the index of a file whose rows have these hashes, in the order of the file.
pub(crate) fn encode(columns: &[String], hashes: Vec<u128>) -> Result<Vec<u8>> {
    let header = Header { rows: hashes.len(), columns: columns.to_vec() };
    let header = serde_json::to_vec(&header).map_err(|e| encode_error(&e.to_string()))?;
    let length = u32::try_from(header.len()).map_err(|e| encode_error(&e.to_string()))?;
    let filter = filter_pages(&hashes);
    let entries = sorted(hashes)?;
    let pages = entries.len().div_ceil(PAGE_ENTRIES);
    let mut out = Vec::with_capacity(
        START_BYTES + header.len() + pages * (DIRECTORY_BYTES + PAGE_BYTES) + filter.len(),
    );
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&header);
    for page in entries.chunks(PAGE_ENTRIES) {
        out.extend_from_slice(&page[0].0.to_le_bytes()[8..]);
    }
    let checksum = crc32fast::hash(&out[START_BYTES..]);
    out[START_BYTES - 4..START_BYTES].copy_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(&filter);
    for (number, page) in entries.chunks(PAGE_ENTRIES).enumerate() {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        // At most PAGE_ENTRIES, which fits.
        out.extend_from_slice(&u32::try_from(page.len()).unwrap_or(0).to_le_bytes());
        page.iter().for_each(|(hash, _)| out.extend_from_slice(&hash.to_le_bytes()));
        page.iter().for_each(|(_, position)| out.extend_from_slice(&position.to_le_bytes()));
        if number + 1 < pages {
            out.resize(start + PAGE_BYTES, 0);
        }
        let checksum = crc32fast::hash(&out[start + 4..]);
        out[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
    }
    Ok(out)
}

fn filter_pages(hashes: &[u128]) -> Vec<u8> {
    let blocks = filter::blocks(hashes.len());
    let mut pages = vec![0; blocks.div_ceil(PAGE_BLOCKS) * PAGE_BYTES];
    for &hash in hashes {
        let block = filter::block_of(hash, blocks);
        let start = block / PAGE_BLOCKS * PAGE_BYTES + block_start(block);
        filter::insert(hash, &mut pages[start..start + filter::BLOCK_BYTES]);
    }
    for page in pages.chunks_exact_mut(PAGE_BYTES) {
        let checksum = crc32fast::hash(&page[4..]);
        page[..4].copy_from_slice(&checksum.to_le_bytes());
    }
    pages
}

/// Where a block of the filter starts in its page.
pub(super) fn block_start(block: usize) -> usize {
    PAGE_START_BYTES + block % PAGE_BLOCKS * filter::BLOCK_BYTES
}

/// Entries in order. Hashes are uniform: a pass over their top bits leaves runs that fit the cache.
fn sorted(hashes: Vec<u128>) -> Result<Vec<(u128, u32)>> {
    let too_many = |_| encode_error("a data file of more than 2^32 rows");
    let num_rows = u32::try_from(hashes.len()).map_err(too_many)?;
    let bits = (hashes.len() / 64).max(1).ilog2().min(16);
    let bucket = |hash: u128| usize::try_from(hash >> 64 >> (64 - bits)).unwrap_or(0);
    let mut ends = vec![0_usize; 1 << bits];
    hashes.iter().for_each(|&hash| ends[bucket(hash)] += 1);
    let mut sum = 0;
    for end in &mut ends {
        sum += std::mem::replace(end, sum);
    }
    let mut entries = vec![(0_u128, 0_u32); hashes.len()];
    for (hash, position) in hashes.into_iter().zip(0..num_rows) {
        let end = &mut ends[bucket(hash)];
        entries[*end] = (hash, position);
        *end += 1;
    }
    let mut start = 0;
    for end in ends {
        entries[start..end].sort_unstable();
        start = end;
    }
    Ok(entries)
}

fn encode_error(why: &str) -> Error {
    Error::internal("ROW_INDEX_ENCODE", format!("cannot write a row index: {why}"))
}

/// An index that was just made.
#[derive(Debug)]
pub(super) struct InMemory(pub(super) Bytes);

impl ReadAt for InMemory {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn modified_ms(&self) -> i64 {
        0
    }

    fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let range = start.checked_add(length).filter(|&end| end <= self.0.len());
        let end = range.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        Ok(self.0.slice(start..end))
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        buffer.copy_from_slice(&self.read_at(offset, buffer.len())?);
        Ok(())
    }
}
