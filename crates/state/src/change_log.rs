//! What has changed in a slot since its last image: deltas of rows with weights.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Result, ZBatch};

/// The deltas since the last write. Consolidated now and then, so that it never holds much more
/// than the state before and after them.
#[derive(Debug, Default)]
pub(crate) struct ChangeLog {
    deltas: Vec<ZBatch>,
    rows: usize,
    bytes: usize,
    consolidate_at: usize,
}

impl ChangeLog {
    const ROWS_MIN: usize = 16_384;

    pub(crate) fn push(&mut self, delta: &ZBatch) -> Result<()> {
        self.rows += delta.num_rows();
        self.bytes += shown_bytes(delta);
        self.deltas.push(delta.clone());
        if self.rows > self.consolidate_at.max(Self::ROWS_MIN) {
            let all = self.take(&delta.schema())?;
            self.rows = all.num_rows();
            self.bytes = shown_bytes(&all);
            self.consolidate_at = 2 * self.rows;
            self.deltas.push(all);
        }
        Ok(())
    }

    /// The sum of the deltas; the log is empty then.
    pub(crate) fn take(&mut self, schema: &SchemaRef) -> Result<ZBatch> {
        let all = ZBatch::concat(schema, &self.deltas)?.consolidate()?;
        *self = Self::default();
        Ok(all)
    }

    /// Bytes held in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

/// Bytes of what a delta shows; its buffers may be those of a larger one.
fn shown_bytes(delta: &ZBatch) -> usize {
    let shown = |c: &ArrayRef| c.to_data().get_slice_memory_size().unwrap_or(0);
    delta.rows().columns().iter().map(shown).sum::<usize>() + delta.num_rows() * 8
}
