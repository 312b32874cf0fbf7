//! The `_metadata` column: from which file a row comes.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray, StructArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use deltaic_batch::Result;

use super::listing::FileEntry;

/// Name of the column.
pub(crate) const METADATA: &str = "_metadata";

fn fields() -> Fields {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Fields::from(vec![
        Field::new("file_path", DataType::Utf8, true),
        Field::new("file_name", DataType::Utf8, true),
        Field::new("file_size", DataType::Int64, true),
        Field::new("file_modification_time", time, true),
    ])
}

/// The column's field.
pub(crate) fn metadata_field() -> Field {
    Field::new(METADATA, DataType::Struct(fields()), true)
}

/// The column for `rows` rows of a file.
pub(super) fn metadata_column(file: &FileEntry, rows: usize) -> Result<ArrayRef> {
    let name = file.path.rsplit('/').next().unwrap_or(&file.path);
    let size = i64::try_from(file.size).unwrap_or(i64::MAX);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec![file.path.as_str(); rows])),
        Arc::new(StringArray::from(vec![name; rows])),
        Arc::new(Int64Array::from(vec![size; rows])),
        Arc::new(TimestampMicrosecondArray::from(vec![file.mtime_us; rows]).with_timezone("UTC")),
    ];
    Ok(Arc::new(StructArray::try_new(fields(), columns, None)?))
}
