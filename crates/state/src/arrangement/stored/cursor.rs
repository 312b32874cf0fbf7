//! A stored run from its first row to its last.

use deltaic_batch::Result;
use hashbrown::HashTable;

use super::codec::EncodedRows;
use super::run::StoredRun;

/// Goes through the rows of a run in order, without those of some hashes.
pub(super) struct Cursor<'a> {
    run: &'a StoredRun,
    without: Option<&'a HashTable<u64>>,
    next_block: usize,
    buffer: Vec<u8>,
    rows: EncodedRows,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(run: &'a StoredRun, without: Option<&'a HashTable<u64>>) -> Result<Self> {
        let rows = EncodedRows::default();
        let mut cursor = Self { run, without, next_block: 0, buffer: Vec::new(), rows, at: 0 };
        cursor.fill()?;
        Ok(cursor)
    }

    /// Hash and bytes of the row under the cursor; `None` at the end.
    pub(super) fn current(&self) -> Option<(u64, &[u8])> {
        (self.at < self.rows.len()).then(|| (self.rows.hashes[self.at], self.rows.row(self.at)))
    }

    /// Weight of the row under the cursor.
    pub(super) fn weight(&self) -> i64 {
        self.rows.weights.get(self.at).copied().unwrap_or(0)
    }

    pub(super) fn advance(&mut self) -> Result<()> {
        self.at += 1;
        if self.at < self.rows.len() { Ok(()) } else { self.fill() }
    }

    /// Reads on until there are rows, or no more blocks.
    fn fill(&mut self) -> Result<()> {
        self.rows = EncodedRows::default();
        self.at = 0;
        while self.rows.len() == 0 && self.next_block < self.run.blocks() {
            let blocks = self.run.read_from(self.next_block, &mut self.buffer)?;
            self.next_block = blocks.end;
            for block in blocks.clone() {
                let block = self.run.block(block, blocks.start, &self.buffer)?;
                for row in 0..block.len() {
                    let hash = block.hash(row);
                    if self.without.is_none_or(|w| w.find(hash, |&h| h == hash).is_none()) {
                        self.rows.push(hash, block.row(row), block.weight(row));
                    }
                }
            }
        }
        Ok(())
    }
}
