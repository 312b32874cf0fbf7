//! Parquet files: their schema in the types that tables have, and their rows.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::util::display::FormatOptions;
use deltaic_batch::{Error, Result};
use deltaic_plan::Session;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::malformed::wrong_type;

const ROWS_PER_BATCH: usize = 65_536;

fn open(path: &std::path::Path, name: &str) -> Result<ParquetRecordBatchReaderBuilder<File>> {
    let file = File::open(path).map_err(|e| {
        Error::storage("FILE_UNREADABLE", format!("cannot be read: {e}")).object(name)
    })?;
    ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| {
        Error::data("FILE_UNREADABLE", format!("is not a valid Parquet file: {e}")).object(name)
    })
}

/// Schema of a file as it is.
pub(super) fn file_schema(path: &std::path::Path, name: &str) -> Result<SchemaRef> {
    Ok(open(path, name)?.schema().clone())
}

/// The same schema in the types that tables have; all columns nullable.
pub(crate) fn table_schema(schema: &Schema, session: &Session) -> Result<SchemaRef> {
    let names = session.parse_schema("t TIMESTAMP, s STRING, b BINARY")?;
    let types = Types {
        timestamp: names.field(0).data_type().clone(),
        text: names.field(1).data_type().clone(),
        binary: names.field(2).data_type().clone(),
    };
    let fields: Vec<Field> = schema
        .fields()
        .iter()
        .map(|f| Field::new(f.name(), types.table_type(f.data_type()), true))
        .collect();
    Ok(Arc::new(Schema::new(fields)))
}

struct Types {
    timestamp: DataType,
    text: DataType,
    binary: DataType,
}

impl Types {
    fn table_type(&self, t: &DataType) -> DataType {
        let nested =
            |f: &Field| Arc::new(Field::new(f.name(), self.table_type(f.data_type()), true));
        match t {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => self.text.clone(),
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => self.binary.clone(),
            DataType::Timestamp(_, Some(_)) => self.timestamp.clone(),
            DataType::Timestamp(_, None) => DataType::Timestamp(TimeUnit::Microsecond, None),
            DataType::Date64 => DataType::Date32,
            DataType::UInt8 => DataType::Int16,
            DataType::UInt16 => DataType::Int32,
            DataType::UInt32 => DataType::Int64,
            DataType::UInt64 => DataType::Decimal128(20, 0),
            DataType::Float16 => DataType::Float32,
            DataType::Dictionary(_, value) => self.table_type(value),
            DataType::Struct(fields) => {
                DataType::Struct(fields.iter().map(|f| nested(f)).collect())
            }
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => DataType::List(nested(item)),
            other => other.clone(),
        }
    }
}

/// Rows of a file in the columns of `schema`, matched by name without regard to case.
pub(super) fn read(
    path: &std::path::Path,
    name: &str,
    schema: &SchemaRef,
) -> Result<Vec<RecordBatch>> {
    let reader = open(path, name)?
        .with_batch_size(ROWS_PER_BATCH)
        .build()
        .map_err(|e| Error::data("FILE_UNREADABLE", format!("cannot be read: {e}")).object(name))?;
    reader
        .map(|batch| {
            let batch = batch.map_err(|e| {
                Error::data("FILE_UNREADABLE", format!("cannot be read: {e}")).object(name)
            })?;
            conform(&batch, schema, name)
        })
        .collect()
}

fn conform(batch: &RecordBatch, schema: &SchemaRef, name: &str) -> Result<RecordBatch> {
    let columns = schema
        .fields()
        .iter()
        .map(|field| {
            let wanted = field.name();
            let found = batch
                .schema_ref()
                .fields()
                .iter()
                .position(|f| f.name().eq_ignore_ascii_case(wanted));
            match found {
                None => Ok(new_null_array(field.data_type(), batch.num_rows())),
                Some(i) => convert(batch.column(i), field, name),
            }
        })
        .collect::<Result<Vec<ArrayRef>>>()?;
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

fn convert(column: &ArrayRef, field: &Field, name: &str) -> Result<ArrayRef> {
    if column.data_type() == field.data_type() {
        return Ok(column.clone());
    }
    let options = CastOptions { safe: true, format_options: FormatOptions::default() };
    let misfit = |what: String| {
        Error::data("MALFORMED_ROW", format!("column '{}': {what}", field.name())).object(name)
    };
    let cast = cast_with_options(column, field.data_type(), &options).map_err(|_| {
        misfit(format!("is {} in the file, not {}", column.data_type(), field.data_type()))
    })?;
    if cast.null_count() > column.null_count() {
        let row = (0..cast.len()).find(|&i| cast.is_null(i) && column.is_valid(i)).unwrap_or(0);
        let text = arrow::util::display::array_value_to_string(column, row)?;
        return Err(misfit(wrong_type(&text, field.data_type())));
    }
    Ok(cast)
}
