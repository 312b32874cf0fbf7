//! Multisets as bytes: framed Arrow IPC streams of one batch, as an arrangement's, of the rows with
//! their group in front. Groups keep their numbers, as they do in a group table's image.

use arrow::array::AsArray;
use arrow::datatypes::UInt32Type;
use deltaic_batch::{Result, ZBatch};

use super::{MultisetSpec, Multisets};
use crate::arrangement::bytes::{ChangeLog, read_rows, write_rows};
use crate::frame::{Kind, corrupt};

const FULL: Kind = *b"MSTF";
const CHANGE: Kind = *b"MSTC";

impl Multisets {
    /// See [`crate::Slot::write_full`].
    pub fn write_full(&mut self) -> Result<Vec<u8>> {
        let rows = self.all()?;
        self.log = Some(ChangeLog::default());
        self.write(FULL, &rows)
    }

    /// See [`crate::Slot::write_changes`]. Before any other write these are all rows.
    pub fn write_changes(&mut self) -> Result<Vec<u8>> {
        let schema = self.schema();
        let changes = match &mut self.log {
            Some(log) => log.take(&schema)?,
            None => self.all()?,
        };
        self.log = Some(ChangeLog::default());
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        self.write(CHANGE, &changes)
    }

    fn all(&self) -> Result<ZBatch> {
        let (groups, columns, weights) = self.store.all()?;
        self.batch(groups, columns, weights)
    }

    fn write(&self, kind: Kind, rows: &ZBatch) -> Result<Vec<u8>> {
        write_rows(kind, &self.schema(), rows.rows().columns(), rows.weights())
    }

    /// See [`crate::Slot::restore`].
    pub fn restore(spec: &MultisetSpec, full: &[u8], changes: &[&[u8]]) -> Result<Self> {
        let mut multisets = Self::try_new(spec)?;
        if !full.is_empty() {
            multisets.read(FULL, full)?;
        }
        for bytes in changes.iter().filter(|bytes| !bytes.is_empty()) {
            multisets.read(CHANGE, bytes)?;
        }
        multisets.log = Some(ChangeLog::default());
        Ok(multisets)
    }

    fn read(&mut self, kind: Kind, bytes: &[u8]) -> Result<()> {
        let (mut columns, weights) = read_rows(kind, &self.schema(), bytes)?;
        let groups = columns.remove(0);
        let groups = groups.as_primitive_opt::<UInt32Type>().ok_or_else(|| corrupt("no groups"))?;
        self.apply(groups.values(), &columns, &weights)
    }
}
