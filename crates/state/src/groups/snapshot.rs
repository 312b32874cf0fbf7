//! Images of a group table: an Arrow IPC stream in a frame.
//!
//! The columns are the group's number, which it keeps as other slots refer to it, the key columns,
//! the accumulators, and whether the group lives. A full image holds all groups; an image of changes holds, first, the groups that are gone and then those that
//! are new or touched.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use deltaic_batch::Result;

use super::{GroupSpec, GroupTable, mark};
use crate::frame::{corrupt, open, seal};

const KIND: [u8; 4] = *b"GRPS";
/// Groups in one record batch of an image.
const BATCH_ROWS_MAX: usize = 1 << 14;

impl GroupTable {
    /// See [`crate::Slot::write_full`].
    pub fn write_full(&mut self) -> Result<Vec<u8>> {
        let is_live = |&group: &u32| self.marks[group as usize] & mark::LIVE != 0;
        let groups: Vec<u32> = (0_u32..).take(self.marks.len()).filter(is_live).collect();
        let bytes = self.write(&[], &groups)?;
        self.mark_stored(&groups);
        Ok(bytes)
    }

    /// See [`crate::Slot::write_changes`]. Before the first image, the changes are all there is.
    pub fn write_changes(&mut self) -> Result<Vec<u8>> {
        let is_live = |group: &u32| self.marks[*group as usize] & mark::LIVE != 0;
        let groups: Vec<u32> = self.dirty.iter().copied().filter(is_live).collect();
        if groups.is_empty() && self.buried.is_empty() {
            self.mark_stored(&[]);
            return Ok(Vec::new());
        }
        let bytes = self.write(&self.buried, &groups)?;
        self.mark_stored(&groups);
        Ok(bytes)
    }

    /// See [`crate::Slot::restore`].
    pub fn restore(spec: &GroupSpec, full: &[u8], changes: &[&[u8]]) -> Result<Self> {
        let mut table = Self::try_new(spec)?;
        table.read(full)?;
        for bytes in changes.iter().filter(|bytes| !bytes.is_empty()) {
            table.read(bytes)?;
        }
        let is_live = |&group: &u32| table.marks[group as usize] & mark::LIVE != 0;
        let groups: Vec<u32> = (0_u32..).take(table.marks.len()).filter(is_live).collect();
        table.mark_stored(&groups);
        let is_free = |&group: &u32| table.marks[group as usize] & mark::LIVE == 0;
        table.free = (0_u32..).take(table.marks.len()).filter(is_free).collect();
        Ok(table)
    }

    /// Everything is in an image now; these groups are new in it.
    fn mark_stored(&mut self, groups: &[u32]) {
        for group in std::mem::take(&mut self.dirty) {
            self.marks[group as usize] &= !mark::DIRTY;
        }
        for &group in groups {
            self.marks[group as usize] |= mark::STORED;
        }
        for group in std::mem::take(&mut self.buried) {
            self.marks[group as usize] &= !mark::STORED;
            self.release(group);
        }
    }

    fn write(&self, gone: &[u32], live: &[u32]) -> Result<Vec<u8>> {
        let schema = schema(&self.spec);
        let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
        for (groups, is_live) in [(gone, false), (live, true)] {
            for groups in groups.chunks(BATCH_ROWS_MAX) {
                let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt32Array::from(groups.to_vec()))];
                columns.extend(self.keys(groups)?);
                columns.extend(self.accumulators.iter().map(|column| column.gather(groups)));
                columns.push(Arc::new(BooleanArray::from(vec![is_live; groups.len()])));
                writer.write(&RecordBatch::try_new(schema.clone(), columns)?)?;
            }
        }
        Ok(seal(KIND, &writer.into_inner()?))
    }

    fn read(&mut self, bytes: &[u8]) -> Result<()> {
        let damaged = |e: arrow::error::ArrowError| corrupt(&e.to_string());
        let payload = open(KIND, bytes)?;
        let reader = StreamReader::try_new(payload, None).map_err(damaged)?;
        let expected = schema(&self.spec);
        if reader.schema().fields() != expected.fields() {
            return Err(corrupt("it has other keys or accumulators"));
        }
        for batch in reader {
            self.read_batch(&batch.map_err(damaged)?)?;
        }
        Ok(())
    }

    fn read_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let Some(([numbers, columns @ ..], live)) =
            batch.columns().split_last().map(|(live, columns)| (columns, live))
        else {
            return Err(corrupt("columns are missing"));
        };
        let numbers = numbers.as_primitive_opt::<UInt32Type>();
        let numbers = numbers.ok_or_else(|| corrupt("columns are of other types"))?.values();
        let (key, stored) = columns.split_at(self.keys.len());
        let live = live.as_boolean_opt().ok_or_else(|| corrupt("columns are of other types"))?;
        if live.null_count() > 0 || (live.true_count() > 0 && live.false_count() > 0) {
            return Err(corrupt("dropped and living groups are mixed"));
        }
        let groups = self.upsert_as(key, batch.num_rows(), Some(numbers))?;
        if groups != **numbers {
            return Err(corrupt("a group has two numbers"));
        }
        if self.touched.len() != groups.len() {
            return Err(corrupt("a group is there twice"));
        }
        let touched = std::mem::take(&mut self.touched);
        touched.iter().for_each(|&group| self.marks[group as usize] &= !mark::TOUCHED);
        self.heap_bytes += self.heap_bytes_of(&touched);
        if live.false_count() > 0 {
            return self.remove(&groups);
        }
        self.heap_bytes -= self.heap_bytes_of(&groups);
        for (column, stored) in self.accumulators.iter_mut().zip(stored) {
            column.scatter(stored, &groups)?;
        }
        self.heap_bytes += self.heap_bytes_of(&groups);
        Ok(())
    }
}

fn schema(spec: &GroupSpec) -> SchemaRef {
    let key = spec.key.iter().enumerate();
    let key = key.map(|(i, data_type)| Field::new(format!("key{i}"), data_type.clone(), true));
    let accumulators = spec.accumulators.iter().enumerate();
    let accumulators =
        accumulators.map(|(i, a)| Field::new(format!("accumulator{i}"), a.stored_as(), false));
    let group = Field::new("group", DataType::UInt32, false);
    let live = Field::new("live", DataType::Boolean, false);
    let fields = [group].into_iter().chain(key).chain(accumulators).chain([live]);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
