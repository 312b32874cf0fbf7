//! An arrangement as bytes: framed (see [`crate::frame`]) Arrow IPC streams of one batch, the
//! arranged rows with their weights as one more column at the end. A full image holds the rows in
//! base order, so that opening it need not sort; a change holds a consolidated delta.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use deltaic_batch::{Result, ZBatch};

use crate::frame::{Kind, corrupt, open, seal};

/// Frame kind of a full image.
pub(super) const FULL: Kind = *b"ARNF";
/// Frame kind of a change.
pub(super) const CHANGE: Kind = *b"ARNC";

/// Rows with weights, framed.
pub(crate) fn write_rows(
    kind: Kind,
    schema: &SchemaRef,
    columns: &[ArrayRef],
    weights: &[i64],
) -> Result<Vec<u8>> {
    // Constraints of the schema are the table's business; here every column may hold NULL.
    let nullable = |f: &Arc<Field>| Arc::new(f.as_ref().clone().with_nullable(true));
    let mut fields: Vec<Arc<Field>> = schema.fields().iter().map(nullable).collect();
    fields.push(Arc::new(Field::new("weight", DataType::Int64, false)));
    let mut columns = columns.to_vec();
    columns.push(Arc::new(Int64Array::from(weights.to_vec())));
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema.clone(), columns)?;
    let mut payload = Vec::new();
    let mut writer = StreamWriter::try_new(&mut payload, &schema)?;
    writer.write(&batch)?;
    writer.finish()?;
    drop(writer);
    Ok(seal(kind, &payload))
}

/// What [`write_rows`] wrote.
pub(crate) fn read_rows(
    kind: Kind,
    schema: &SchemaRef,
    bytes: &[u8],
) -> Result<(Vec<ArrayRef>, Vec<i64>)> {
    let payload = open(kind, bytes)?;
    let mut batches = StreamReader::try_new(payload, None)
        .map_err(|e| corrupt(&e.to_string()))?
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| corrupt(&e.to_string()))?;
    let (Some(batch), true) = (batches.pop(), batches.is_empty()) else {
        return Err(corrupt("it does not hold one batch"));
    };
    let mut columns = batch.columns().to_vec();
    let weights = columns.pop();
    let types = schema.fields().iter().map(|f| f.data_type());
    if !types.eq(columns.iter().map(|c| c.data_type())) {
        return Err(corrupt("its rows are of other types"));
    }
    match weights.as_ref().and_then(|w| w.as_primitive_opt::<Int64Type>()) {
        Some(weights) if weights.null_count() == 0 => Ok((columns, weights.values().to_vec())),
        _ => Err(corrupt("the weights are missing")),
    }
}

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
