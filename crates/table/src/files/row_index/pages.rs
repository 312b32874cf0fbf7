//! The pages of a part of a row index, each read and checked once.

use std::sync::Arc;

use bytes::Bytes;
use deltaic_batch::{Error, Result};

use super::format::PAGE_BYTES;
use crate::store::ReadAt;

/// Pages that follow each other in an object; all but the last have [`PAGE_BYTES`].
#[derive(Debug)]
pub(super) struct Pages {
    object: Arc<dyn ReadAt>,
    start: u64,
    size: usize,
    /// Those that were read, by number.
    read: Vec<Option<Bytes>>,
    /// All of them, when many will be read; not checked yet.
    loaded: Option<Bytes>,
}

impl Pages {
    pub(super) fn new(object: Arc<dyn ReadAt>, start: u64, size: usize) -> Self {
        let read = vec![None; size.div_ceil(PAGE_BYTES)];
        Self { object, start, size, read, loaded: None }
    }

    pub(super) fn len(&self) -> usize {
        self.read.len()
    }

    /// Reads all pages at once if `searches` lookups would touch many of them anyway.
    pub(super) fn expect(&mut self, searches: usize) -> Result<()> {
        if self.loaded.is_none() && self.len() > 0 && searches.saturating_mul(4) > self.len() {
            self.loaded = Some(self.read_at(0, self.size)?);
        }
        Ok(())
    }

    /// A page that passed its checksum.
    pub(super) fn page(&mut self, number: usize) -> Result<&Bytes> {
        if self.read[number].is_none() {
            let start = number * PAGE_BYTES;
            let end = self.size.min(start + PAGE_BYTES);
            let bytes = match &self.loaded {
                Some(all) => all.slice(start..end),
                None => self.read_at(start, end - start)?,
            };
            if bytes.len() < 8 || crc32fast::hash(&bytes[4..]).to_le_bytes() != bytes[..4] {
                return Err(damaged("a checksum does not match"));
            }
            self.read[number] = Some(bytes);
        }
        self.read[number].as_ref().ok_or_else(|| damaged("a page is missing"))
    }

    fn read_at(&self, start: usize, length: usize) -> Result<Bytes> {
        let offset = self.start + start as u64;
        self.object.read_at(offset, length).map_err(|e| damaged(&e.to_string()))
    }

    #[cfg(test)]
    pub(super) fn count_read(&self) -> usize {
        self.read.iter().flatten().count()
    }
}

/// Tells the caller to make the index again.
pub(crate) const DAMAGED: &str = "ROW_INDEX_DAMAGED";

pub(super) fn damaged(why: &str) -> Error {
    Error::storage(DAMAGED, format!("a row index is damaged: {why}"))
}
