//! Finds hashes in a row index.

use std::sync::Arc;

use deltaic_batch::Result;

use super::filter;
use super::format::{
    DIRECTORY_BYTES, HASH_BYTES, Header, MAGIC, PAGE_BLOCKS, PAGE_BYTES, PAGE_ENTRIES,
    PAGE_START_BYTES, POSITION_BYTES, START_BYTES, block_start,
};
use super::pages::{Pages, damaged};
use crate::store::ReadAt;

/// An open row index.
#[derive(Debug)]
pub(crate) struct RowIndex {
    header: Header,
    /// High half of the first hash of each page.
    directory: Vec<u64>,
    filter: Pages,
    entries: Pages,
}

/// A page of entries.
struct Page<'a> {
    bytes: &'a [u8],
    entries: usize,
}

impl RowIndex {
    /// `None` when this is no intact index; pages are checked when they are read.
    pub(crate) fn open(object: Arc<dyn ReadAt>) -> Option<Self> {
        let size = usize::try_from(object.size()).ok()?;
        let mut start = object.read_at(0, size.min(PAGE_BYTES)).ok()?;
        if !start.starts_with(MAGIC) {
            return None;
        }
        let text_end = START_BYTES.checked_add(usize::try_from(u32_at(&start, 8)?).ok()?)?;
        if text_end > start.len() {
            start = object.read_at(0, text_end).ok()?;
        }
        let header: Header = serde_json::from_slice(start.get(START_BYTES..text_end)?).ok()?;
        let pages = header.rows.div_ceil(PAGE_ENTRIES);
        let filter_start = text_end.checked_add(pages.checked_mul(DIRECTORY_BYTES)?)?;
        if filter_start > start.len() {
            start = object.read_at(0, filter_start).ok()?;
        }
        if crc32fast::hash(&start[START_BYTES..filter_start]) != u32_at(&start, 12)? {
            return None;
        }
        let directory = start[text_end..filter_start].as_chunks::<DIRECTORY_BYTES>().0;
        let directory = directory.iter().map(|hash| u64::from_le_bytes(*hash)).collect();
        let filter_bytes = filter::blocks(header.rows).div_ceil(PAGE_BLOCKS) * PAGE_BYTES;
        let entries_start = filter_start.checked_add(filter_bytes)?;
        let last = header.rows.checked_sub(pages.saturating_sub(1).checked_mul(PAGE_ENTRIES)?)?;
        let last_bytes = match pages {
            0 => 0,
            _ => PAGE_START_BYTES + last * (HASH_BYTES + POSITION_BYTES),
        };
        let entries_bytes = pages.saturating_sub(1).checked_mul(PAGE_BYTES)? + last_bytes;
        let part = |start, bytes| Pages::new(object.clone(), start as u64, bytes);
        let filter = part(filter_start, filter_bytes);
        let entries = part(entries_start, entries_bytes);
        let is_whole = entries_start + entries_bytes == size;
        is_whole.then_some(Self { header, directory, filter, entries })
    }

    /// Names of the columns that are hashed, in order.
    pub(crate) fn columns(&self) -> &[String] {
        &self.header.columns
    }

    /// Rows of the data file.
    pub(crate) fn num_rows(&self) -> u64 {
        self.header.rows as u64
    }

    /// Those of some hashes that the file may have. One in a hundred of the others is among them.
    pub(crate) fn candidates<T>(
        &mut self,
        hashes: impl ExactSizeIterator<Item = (u128, T)>,
    ) -> Result<Vec<(u128, T)>> {
        let mut candidates = Vec::new();
        let blocks = filter::blocks(self.header.rows);
        if blocks == 0 {
            return Ok(candidates);
        }
        self.filter.expect(hashes.len())?;
        for (hash, of_hash) in hashes {
            let block = filter::block_of(hash, blocks);
            let start = block_start(block);
            let page = self.filter.page(block / PAGE_BLOCKS)?;
            if filter::may_hold(hash, &page[start..start + filter::BLOCK_BYTES]) {
                candidates.push((hash, of_hash));
            }
        }
        self.entries.expect(candidates.len())?;
        Ok(candidates)
    }

    /// Positions of the rows with this hash, ascending, onto `out`.
    pub(crate) fn find(&mut self, hash: u128, out: &mut Vec<u32>) -> Result<()> {
        let below = self.directory.partition_point(|&first| u128::from(first) < hash >> 64);
        // The last page below may go on with the hash.
        for number in below.saturating_sub(1)..self.entries.len() {
            let page = self.page(number)?;
            let start = page.first_not_less(hash);
            let equal = (start..page.entries).take_while(|&i| page.hash(i) == hash);
            out.extend(equal.map(|i| page.position(i)));
            if page.hash(page.entries - 1) > hash {
                return Ok(());
            }
        }
        Ok(())
    }

    fn page(&mut self, number: usize) -> Result<Page<'_>> {
        let page = Page::new(self.entries.page(number)?);
        page.ok_or_else(|| damaged("a page has another number of entries"))
    }

    #[cfg(test)]
    pub(super) fn pages_read(&self) -> usize {
        self.filter.count_read() + self.entries.count_read()
    }
}

impl<'a> Page<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let entries = usize::try_from(u32_at(bytes, 4)?).ok()?;
        let used = PAGE_START_BYTES + entries.checked_mul(HASH_BYTES + POSITION_BYTES)?;
        (entries > 0 && used <= bytes.len()).then_some(Self { bytes, entries })
    }

    fn hash(&self, i: usize) -> u128 {
        let start = PAGE_START_BYTES + i * HASH_BYTES;
        let mut bytes = [0; HASH_BYTES];
        bytes.copy_from_slice(&self.bytes[start..start + HASH_BYTES]);
        u128::from_le_bytes(bytes)
    }

    fn position(&self, i: usize) -> u32 {
        u32_at(self.bytes, PAGE_START_BYTES + self.entries * HASH_BYTES + i * POSITION_BYTES)
            .unwrap_or(0)
    }

    fn first_not_less(&self, hash: u128) -> usize {
        let (mut low, mut high) = (0, self.entries);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.hash(middle) < hash { low = middle + 1 } else { high = middle }
        }
        low
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}
