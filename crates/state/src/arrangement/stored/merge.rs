//! Stored runs read as one: in order, equal rows as one, without those of weight 0.

use deltaic_batch::Result;
use hashbrown::HashTable;

use super::codec::EncodedRows;
use super::cursor::Cursor;
use super::run::StoredRun;
use super::writer::RunWriter;
use crate::Image;
use crate::arrangement::weight_overflow;

/// The sum of some runs, row by row.
pub(super) struct Merge<'a> {
    cursors: Vec<Cursor<'a>>,
    hash: u64,
    row: Vec<u8>,
}

impl<'a> Merge<'a> {
    /// Without the rows of some hashes.
    pub(super) fn new(
        runs: impl IntoIterator<Item = (&'a StoredRun, Option<&'a HashTable<u64>>)>,
    ) -> Result<Self> {
        let cursors = runs.into_iter().map(|(run, without)| Cursor::new(run, without));
        Ok(Self { cursors: cursors.collect::<Result<_>>()?, hash: 0, row: Vec::new() })
    }

    /// The next row: hash, bytes, weight.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &[u8], i64)>> {
        loop {
            let rows = self.cursors.iter().enumerate();
            let rows = rows.filter_map(|(at, cursor)| Some((cursor.current()?, at)));
            let Some(((hash, row), first)) = rows.min() else { return Ok(None) };
            self.hash = hash;
            self.row.clear();
            self.row.extend_from_slice(row);
            let mut weight = 0_i64;
            for cursor in &mut self.cursors[first..] {
                if cursor.current() == Some((self.hash, &self.row)) {
                    weight = weight.checked_add(cursor.weight()).ok_or_else(weight_overflow)?;
                    cursor.advance()?;
                }
            }
            if weight != 0 {
                return Ok(Some((self.hash, &self.row, weight)));
            }
        }
    }

    /// Up to so many of the next rows; none at the end.
    pub(super) fn next_rows(&mut self, rows_max: usize) -> Result<EncodedRows> {
        let mut rows = EncodedRows::default();
        while rows.len() < rows_max {
            let Some((hash, row, weight)) = self.next()? else { break };
            rows.push(hash, row, weight);
        }
        Ok(rows)
    }

    /// All that is left, as one run.
    pub(super) fn write(mut self, types: u32) -> Result<Image> {
        let mut writer = RunWriter::default();
        while let Some((hash, row, weight)) = self.next()? {
            writer.push(hash, row, weight)?;
        }
        writer.finish(types)
    }
}
