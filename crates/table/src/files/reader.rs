//! Reads the rows of a data file in the table's schema, without those that a deletion vector hides.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, StringArray};
use arrow::compute::{CastOptions, cast_with_options, filter_record_batch};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use bytes::Bytes;
use deltaic_batch::{Error, Result};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::reader::{ChunkReader, Length};
use roaring::RoaringTreemap;
use roaring::treemap::IntoIter;

use crate::Storage;
use crate::delta::actions::Add;
use crate::delta::conform::{Missing, conform};
use crate::delta::deletion_vector;
use crate::store::ReadAt;

/// Rows per batch that readers hand out.
const BATCH_ROWS: usize = 8_192;

/// The rows of one file, batch by batch.
pub(crate) struct FileReader {
    path: String,
    batches: ParquetRecordBatchReader,
    /// Schema of what comes out, columns of partitions left out.
    schema: SchemaRef,
    deleted: Deleted,
    offset: u64,
    /// Names of the columns of `schema` that the file has.
    pub(crate) present: Vec<String>,
}

/// Deleted positions, ascending, consumed while reading.
struct Deleted(std::iter::Peekable<IntoIter>);

impl FileReader {
    /// Opens the file at the (encoded) path of an action; `schema` names the columns wanted.
    pub(crate) fn open(
        root: &Storage,
        encoded_path: &str,
        schema: &SchemaRef,
        deleted: RoaringTreemap,
    ) -> Result<Self> {
        let path = decode_path(encoded_path)?;
        let object = root
            .open(&path)?
            .ok_or_else(|| corrupt("the file is missing").object(root.full(&path)))?;
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let wrong = |e: &dyn std::fmt::Display| corrupt(&e.to_string()).object(root.full(&path));
        let builder =
            ParquetRecordBatchReaderBuilder::try_new_with_options(Chunks(object), options)
                .map_err(|e| wrong(&e))?;
        let file_schema = builder.schema().clone();
        let wanted = |name: &str| schema.index_of(name).is_ok();
        let roots: Vec<usize> = file_schema
            .fields()
            .iter()
            .enumerate()
            .filter(|(_, f)| wanted(f.name()))
            .map(|(i, _)| i)
            .collect();
        let has = |name: &str| file_schema.index_of(name).is_ok();
        let present =
            schema.fields().iter().map(|f| f.name()).filter(|n| has(n)).cloned().collect();
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
        let batches = builder
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS)
            .build()
            .map_err(|e| wrong(&e))?;
        Ok(Self {
            path,
            batches,
            schema: schema.clone(),
            deleted: Deleted(deleted.into_iter().peekable()),
            offset: 0,
            present,
        })
    }

    fn convert(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let end = self.offset + batch.num_rows() as u64;
        let kept = self.deleted.filter(self.offset, end, batch.num_rows());
        self.offset = end;
        let rows = conform(batch, &self.schema, Missing::Null)?;
        match kept {
            None => Ok(rows),
            Some(kept) => Ok(filter_record_batch(&rows, &kept)?),
        }
    }
}

impl Iterator for FileReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = match self.batches.next()? {
            Ok(batch) => self.convert(&batch),
            Err(e) => Err(corrupt(&e.to_string())),
        };
        Some(batch.map_err(|e| e.object(&self.path)))
    }
}

impl Deleted {
    /// Which rows of `start..end` stay; `None` when all do.
    fn filter(&mut self, start: u64, end: u64, num_rows: usize) -> Option<BooleanArray> {
        if self.0.peek().is_none_or(|&position| position >= end) {
            return None;
        }
        let mut kept = vec![true; num_rows];
        while let Some(position) = self.0.next_if(|&position| position < end) {
            if let Some(row) = usize::try_from(position - start).ok().and_then(|i| kept.get_mut(i))
            {
                *row = false;
            }
        }
        Some(kept.into())
    }
}

/// Physical rows of a data file.
pub(crate) fn count_rows(root: &Storage, add: &Add) -> Result<u64> {
    let path = decode_path(&add.path)?;
    let object = root.open(&path)?.ok_or_else(|| corrupt("the file is missing").object(&path))?;
    let footer = parquet::file::metadata::ParquetMetaDataReader::new()
        .parse_and_finish(&Chunks(object))
        .map_err(|e| corrupt(&e.to_string()).object(&path))?;
    u64::try_from(footer.file_metadata().num_rows())
        .map_err(|_| corrupt("negative number of rows").object(&path))
}

/// All rows of a logical file, in `schema` (of the whole table).
pub(crate) fn read_rows(
    storage: &Storage,
    root: &Storage,
    add: &Add,
    schema: &SchemaRef,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
    let deleted = match &add.deletion_vector {
        Some(dv) => deletion_vector::read(storage, root, dv)?,
        None => RoaringTreemap::new(),
    };
    read_logical(root, &add.path, &add.partition_values, schema, deleted)
}

/// As [`read_rows`], with the parts of the action one by one.
pub(crate) fn read_logical(
    root: &Storage,
    encoded_path: &str,
    partitions: &BTreeMap<String, Option<String>>,
    schema: &SchemaRef,
    deleted: RoaringTreemap,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
    let partitions = partitions.clone();
    let fields = schema.fields().iter().filter(|f| !partitions.contains_key(f.name()));
    let file_schema = Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()));
    let schema = schema.clone();
    let reader = FileReader::open(root, encoded_path, &file_schema, deleted)?;
    Ok(reader.map(move |rows| partition_columns(rows?, &schema, &partitions)))
}

/// Adds the columns that are constant within a file.
fn partition_columns(
    rows: RecordBatch,
    schema: &SchemaRef,
    values: &BTreeMap<String, Option<String>>,
) -> Result<RecordBatch> {
    if values.is_empty() {
        return Ok(rows);
    }
    let columns = schema.fields().iter().map(|field| match values.get(field.name()) {
        None => Ok(rows.column_by_name(field.name()).cloned().ok_or_else(|| {
            Error::internal("SCHEMA_MISMATCH", "a column got lost").object(field.name())
        })?),
        Some(value) => partition_column(value.as_deref(), field.data_type(), rows.num_rows())
            .map_err(|e| e.object(field.name())),
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

fn partition_column(
    value: Option<&str>,
    data_type: &DataType,
    num_rows: usize,
) -> Result<ArrayRef> {
    let Some(text) = value.filter(|text| !text.is_empty()) else {
        return Ok(arrow::array::new_null_array(data_type, num_rows));
    };
    let one: ArrayRef = Arc::new(StringArray::from(vec![text]));
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let one = cast_with_options(&one, data_type, &options)
        .map_err(|e| corrupt(&format!("malformed partition value {text:?}: {e}")))?;
    let zeros = arrow::array::UInt32Array::from(vec![0; num_rows]);
    Ok(arrow::compute::take(&one, &zeros, None)?)
}

/// Paths in actions are URI-encoded and relative to the table.
pub(crate) fn decode_path(path: &str) -> Result<String> {
    if path.starts_with('/') || path.contains("://") || path.starts_with("file:") {
        return Err(Error::storage(
            "UNSUPPORTED_TABLE",
            "the Delta table is not supported: it refers to files outside its folder",
        )
        .object(path));
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|d| std::str::from_utf8(d).ok());
        match digits.and_then(|d| u8::from_str_radix(d, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| corrupt("malformed path").object(path))
}

fn corrupt(why: &str) -> Error {
    Error::storage("DATA_FILE_CORRUPT", format!("cannot read the data file: {why}"))
}

/// An open object as the Parquet reader wants it.
#[derive(Debug)]
struct Chunks(Arc<dyn ReadAt>);

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.size()
    }
}

impl ChunkReader for Chunks {
    type T = BufReader<Cursor>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::new(Cursor { object: self.0.clone(), position: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        Ok(self.0.read_at(start, length)?)
    }
}

/// Sequential reading on top of positioned reads.
#[derive(Debug)]
struct Cursor {
    object: Arc<dyn ReadAt>,
    position: u64,
}

impl Read for Cursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.object.size().saturating_sub(self.position);
        let length = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.object.read_into(self.position, &mut buffer[..length])?;
        self.position += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Array;

    use super::*;

    #[test]
    fn paths_are_decoded_and_stay_inside() {
        assert_eq!(decode_path("a=1%202/x%25.parquet").unwrap(), "a=1 2/x%.parquet");
        assert_eq!(decode_path("100%").unwrap(), "100%");
        assert_eq!(decode_path("s3://b/x").unwrap_err().code(), "UNSUPPORTED_TABLE");
    }

    #[test]
    fn partition_values_are_parsed() {
        let array = partition_column(Some("2024-02-29"), &DataType::Date32, 3).unwrap();
        assert_eq!((array.len(), array.null_count()), (3, 0));
        assert_eq!(partition_column(Some(""), &DataType::Int32, 2).unwrap().null_count(), 2);
        assert!(partition_column(Some("x"), &DataType::Int32, 2).is_err());
    }
}
