//! Finds hashes in a row index.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use deltaic_batch::{Error, Result};

use super::format::{
    HASH_BYTES, Header, MAGIC, PAGE_BYTES, PAGE_ENTRIES, PAGE_START_BYTES, POSITION_BYTES,
    START_BYTES,
};
use crate::store::ReadAt;

/// Guesses by value before falling back to halving (a row with very many copies makes hashes
/// anything but uniform).
const GUESSES_MAX: u32 = 4;
/// Pages that are kept while searching.
const PAGES_KEPT: usize = 1_024;

/// An open row index.
#[derive(Debug)]
pub(crate) struct RowIndex {
    object: Arc<dyn ReadAt>,
    header: Header,
    pages_start: usize,
    pages: HashMap<usize, Page>,
    /// The whole object, when much of it will be read.
    loaded: Option<Bytes>,
}

/// A page that passed its checksum.
#[derive(Debug, Clone)]
struct Page {
    bytes: Bytes,
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
        let pages_start = START_BYTES.checked_add(usize::try_from(u32_at(&start, 8)?).ok()?)?;
        if pages_start > start.len() {
            start = object.read_at(0, pages_start).ok()?;
        }
        let text = start.get(START_BYTES..pages_start)?;
        if crc32fast::hash(text) != u32_at(&start, 12)? {
            return None;
        }
        let header: Header = serde_json::from_slice(text).ok()?;
        let pages = header.rows.div_ceil(PAGE_ENTRIES);
        let last = header.rows.checked_sub(pages.saturating_sub(1).checked_mul(PAGE_ENTRIES)?)?;
        let last_bytes = match pages {
            0 => 0,
            _ => PAGE_START_BYTES + last * (HASH_BYTES + POSITION_BYTES),
        };
        let whole = pages.saturating_sub(1).checked_mul(PAGE_BYTES)?;
        (pages_start + whole + last_bytes == size).then(|| Self {
            object,
            header,
            pages_start,
            pages: HashMap::new(),
            loaded: (start.len() == size).then_some(start),
        })
    }

    /// Names of the columns that are hashed, in order.
    pub(crate) fn columns(&self) -> &[String] {
        &self.header.columns
    }

    /// Reads everything at once if `searches` lookups would touch much of it anyway.
    pub(crate) fn expect(&mut self, searches: usize) -> Result<()> {
        if self.loaded.is_none() && searches.saturating_mul(4) > self.num_pages() {
            let size = usize::try_from(self.object.size()).unwrap_or(usize::MAX);
            self.loaded = Some(self.object.read_at(0, size).map_err(|e| damaged(&e.to_string()))?);
        }
        Ok(())
    }

    /// Positions of the rows with this hash, ascending, onto `out`.
    pub(crate) fn find(&mut self, hash: u128, out: &mut Vec<u32>) -> Result<()> {
        let Some(mut number) = self.first_page(hash)? else { return Ok(()) };
        loop {
            let page = self.page(number)?;
            let start = page.first_not_less(hash);
            let equal = (start..page.entries).take_while(|&i| page.hash(i) == hash);
            out.extend(equal.map(|i| page.position(i)));
            number += 1;
            if page.hash(page.entries - 1) > hash || number == self.num_pages() {
                return Ok(());
            }
        }
    }

    /// The first page whose last hash is not less than `hash`.
    ///
    /// Pages before `low` are less; page `high` (or the end) is not. Guesses start at the page where
    /// a uniform hash would lie and go on by the distance to what was found there.
    fn first_page(&mut self, hash: u128) -> Result<Option<usize>> {
        let (mut low, mut high) = (0, self.num_pages());
        let mut guess = self.pages_between(0, hash);
        let mut guesses = 0;
        while low < high {
            let middle = if guesses < GUESSES_MAX { guess } else { low + (high - low) / 2 };
            let number = middle.clamp(low, high - 1);
            guesses += 1;
            let page = self.page(number)?;
            let (first, last) = (page.hash(0), page.hash(page.entries - 1));
            if last < hash {
                low = number + 1;
                guess = low + self.pages_between(last, hash);
            } else if first < hash {
                return Ok(Some(number));
            } else {
                high = number;
                guess = number.saturating_sub(1 + self.pages_between(hash, first));
            }
        }
        Ok((low < self.num_pages()).then_some(low))
    }

    /// About how many pages lie between two hashes.
    fn pages_between(&self, from: u128, to: u128) -> usize {
        let distance = to.saturating_sub(from) >> 64;
        usize::try_from((distance * self.num_pages() as u128) >> 64).unwrap_or(0)
    }

    #[cfg(test)]
    pub(super) fn pages_read(&self) -> usize {
        self.pages.len()
    }

    /// Rows of the data file.
    pub(crate) fn num_rows(&self) -> u64 {
        self.header.rows as u64
    }

    fn num_pages(&self) -> usize {
        self.header.rows.div_ceil(PAGE_ENTRIES)
    }

    fn page(&mut self, number: usize) -> Result<Page> {
        if let Some(page) = self.pages.get(&number) {
            return Ok(page.clone());
        }
        let start = self.pages_start + number * PAGE_BYTES;
        let size = usize::try_from(self.object.size()).unwrap_or(usize::MAX);
        let end = size.min(start + PAGE_BYTES);
        let bytes = match &self.loaded {
            Some(all) => all.slice(start..end),
            None => {
                let offset = start as u64;
                self.object.read_at(offset, end - start).map_err(|e| damaged(&e.to_string()))?
            }
        };
        let page = Page::check(bytes).ok_or_else(|| damaged("a checksum does not match"))?;
        if self.loaded.is_none() && self.pages.len() >= PAGES_KEPT {
            self.pages.clear();
        }
        self.pages.insert(number, page.clone());
        Ok(page)
    }
}

impl Page {
    fn check(bytes: Bytes) -> Option<Self> {
        let entries = usize::try_from(u32_at(&bytes, 4)?).ok()?;
        let used = PAGE_START_BYTES + entries.checked_mul(HASH_BYTES + POSITION_BYTES)?;
        let intact = crc32fast::hash(bytes.get(4..)?) == u32_at(&bytes, 0)?;
        (intact && entries > 0 && used <= bytes.len()).then_some(Self { bytes, entries })
    }

    fn hash(&self, i: usize) -> u128 {
        let start = PAGE_START_BYTES + i * HASH_BYTES;
        let mut bytes = [0; HASH_BYTES];
        bytes.copy_from_slice(&self.bytes[start..start + HASH_BYTES]);
        u128::from_le_bytes(bytes)
    }

    fn position(&self, i: usize) -> u32 {
        u32_at(&self.bytes, PAGE_START_BYTES + self.entries * HASH_BYTES + i * POSITION_BYTES)
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

/// Tells the caller to make the index again.
pub(crate) const DAMAGED: &str = "ROW_INDEX_DAMAGED";

fn damaged(why: &str) -> Error {
    Error::storage(DAMAGED, format!("a row index is damaged: {why}"))
}
