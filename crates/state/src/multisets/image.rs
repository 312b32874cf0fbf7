//! Multisets as bytes: framed (see [`crate::frame`]) Arrow IPC streams of one batch, of the rows
//! with their group in front and their weights as one more column at the end. Groups keep their
//! numbers, as they do in a group table's image.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, UInt32Type};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use deltaic_batch::{Result, ZBatch};

use super::{MultisetSpec, Multisets};
use crate::change_log::ChangeLog;
use crate::frame::{Kind, corrupt, open, seal};

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

/// Rows with weights, framed.
fn write_rows(
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
fn read_rows(kind: Kind, schema: &SchemaRef, bytes: &[u8]) -> Result<(Vec<ArrayRef>, Vec<i64>)> {
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
