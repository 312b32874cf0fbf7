//! A stored run: rows with weights, sorted by key hash and bytes, in blocks that are read and checked
//! one by one.
//!
//! Head (32 bytes), directory (16 bytes per block), blocks. `docs/state-format.md` has the table.

use std::ops::Range;

use deltaic_batch::Result;

use super::block::Block;
use super::codec::EncodedRows;
use crate::Image;
use crate::frame::{MAGIC, VERSION, corrupt};

/// Kind of frame.
pub(super) const KIND: [u8; 4] = *b"ARNR";
pub(super) const HEAD_BYTES: usize = 32;
pub(super) const ENTRY_BYTES: usize = 16;
/// What is read of an image at first: the head and, of small ones, all of the directory.
const FIRST_READ: usize = 1 << 16;
/// Bytes read at once.
const READ_BYTES: usize = 1 << 20;
/// Blocks that are not wanted are read along when they are so short and lie between wanted ones.
const GAP_BYTES: u64 = 1 << 13;

/// A block in the directory.
#[derive(Debug, Clone, Copy)]
struct Entry {
    least_hash: u64,
    start: u64,
    length: u32,
    crc: u32,
}

/// A run whose directory is in memory and whose blocks are not.
#[derive(Debug, Clone)]
pub(super) struct StoredRun {
    image: Image,
    entries: Vec<Entry>,
    rows: u64,
}

impl StoredRun {
    pub(super) fn open(image: &Image, types: u32) -> Result<Self> {
        let size = image.size();
        let head_read = usize::try_from(size).unwrap_or(usize::MAX).min(FIRST_READ);
        let mut bytes = vec![0; head_read];
        image.read(0, &mut bytes)?;
        let count = blocks_of(&bytes, types)?;
        let start = (HEAD_BYTES + count * ENTRY_BYTES) as u64;
        if start > size {
            return Err(corrupt("the directory is cut short"));
        }
        let length = HEAD_BYTES + count * ENTRY_BYTES;
        if bytes.len() < length {
            let read = bytes.len();
            bytes.resize(length, 0);
            image.read(read as u64, &mut bytes[read..])?;
        }
        bytes.truncate(length);
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&bytes[..28]);
        hasher.update(&bytes[HEAD_BYTES..]);
        if hasher.finalize() != u32_at(&bytes, 28) {
            return Err(corrupt("the checksum of the directory does not match"));
        }
        let mut at = start;
        let mut entries = Vec::with_capacity(count);
        for entry in bytes[HEAD_BYTES..].chunks_exact(ENTRY_BYTES) {
            let length = u32_at(entry, 8);
            let (least_hash, crc) = (u64_at(entry, 0), u32_at(entry, 12));
            entries.push(Entry { least_hash, start: at, length, crc });
            at += u64::from(length);
        }
        if at != size {
            return Err(corrupt("the length is not the one written"));
        }
        Ok(Self { image: image.clone(), entries, rows: u64_at(&bytes, 16) })
    }

    /// True of an image that is marked as a run.
    pub(super) fn is_one(image: &Image) -> Result<bool> {
        let mut head = [0; 8];
        image.read(0, &mut head)?;
        Ok(head[4..] == KIND)
    }

    /// The types that an image says its rows have.
    pub(super) fn types_of(image: &Image) -> Result<u32> {
        let mut head = [0; HEAD_BYTES];
        image.read(0, &mut head)?;
        Ok(u32_at(&head, 12))
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// Appends the rows of some hashes, which are in ascending order; returns how many they are.
    pub(super) fn fetch(&self, hashes: &[u64], into: &mut EncodedRows) -> Result<u64> {
        let before = into.len();
        let blocks = self.blocks_with(hashes);
        let mut buffer = Vec::new();
        let mut at = 0;
        while at < blocks.len() {
            let first = blocks[at];
            let mut end = at + 1;
            while end < blocks.len() {
                let (last, next) = (&self.entries[blocks[end - 1]], &self.entries[blocks[end]]);
                let gap = next.start - last.start - u64::from(last.length);
                let span = next.start + u64::from(next.length) - self.entries[first].start;
                if gap > GAP_BYTES || span > READ_BYTES as u64 {
                    break;
                }
                end += 1;
            }
            self.read(first..blocks[end - 1] + 1, &mut buffer)?;
            for &block in &blocks[at..end] {
                self.block(block, first, &buffer)?.pick(hashes, into);
            }
            at = end;
        }
        Ok((into.len() - before) as u64)
    }

    /// The blocks that may have rows of the hashes.
    fn blocks_with(&self, hashes: &[u64]) -> Vec<usize> {
        let mut blocks = Vec::new();
        let mut from = 0;
        for &hash in hashes {
            let rest = &self.entries[from..];
            let below = rest.partition_point(|entry| entry.least_hash < hash);
            let not_above = below + rest[below..].partition_point(|e| e.least_hash <= hash);
            // The last block below may go on with the hash.
            let first = from + below.saturating_sub(1);
            let start = blocks.last().map_or(first, |&last: &usize| first.max(last + 1));
            blocks.extend(start..from + not_above);
            from = first;
        }
        blocks
    }

    /// Number of blocks.
    pub(super) fn blocks(&self) -> usize {
        self.entries.len()
    }

    /// Reads some blocks from one on; tells which.
    pub(super) fn read_from(&self, first: usize, buffer: &mut Vec<u8>) -> Result<Range<usize>> {
        let end = self.entries[first].start + READ_BYTES as u64;
        let fits = |entry: &Entry| entry.start + u64::from(entry.length) <= end;
        let more = self.entries[first + 1..].partition_point(fits);
        let blocks = first..first + 1 + more;
        self.read(blocks.clone(), buffer)?;
        Ok(blocks)
    }

    /// Reads blocks that follow each other.
    fn read(&self, blocks: Range<usize>, buffer: &mut Vec<u8>) -> Result<()> {
        let (first, last) = (&self.entries[blocks.start], &self.entries[blocks.end - 1]);
        let length = last.start + u64::from(last.length) - first.start;
        buffer.resize(usize::try_from(length).map_err(|_| corrupt("a block is too long"))?, 0);
        self.image.read(first.start, buffer)
    }

    /// A block in a buffer that starts with block `first`.
    pub(super) fn block<'a>(
        &self,
        block: usize,
        first: usize,
        buffer: &'a [u8],
    ) -> Result<Block<'a>> {
        let entry = &self.entries[block];
        let at = usize::try_from(entry.start - self.entries[first].start).unwrap_or(usize::MAX);
        let bytes = buffer.get(at..).and_then(|bytes| bytes.get(..entry.length as usize));
        let bytes = bytes.ok_or_else(|| corrupt("a block is cut short"))?;
        if crc32fast::hash(bytes) != entry.crc {
            return Err(corrupt("the checksum of a block does not match"));
        }
        Block::parse(bytes).ok_or_else(|| corrupt("a block is damaged"))
    }
}

/// Checks the head; the number of blocks.
fn blocks_of(bytes: &[u8], types: u32) -> Result<usize> {
    if bytes.len() < HEAD_BYTES {
        return Err(corrupt("the header is cut short"));
    }
    if bytes[..4] != MAGIC {
        return Err(corrupt("these are not state bytes"));
    }
    if bytes[4..8] != KIND {
        return Err(corrupt("it is of another kind"));
    }
    if bytes[8..12] != [VERSION.to_le_bytes(), [0, 0]].concat() {
        return Err(corrupt("the format is of another version"));
    }
    if u32_at(bytes, 12) != types {
        return Err(corrupt("its rows are of other types"));
    }
    Ok(u32_at(bytes, 24) as usize)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
