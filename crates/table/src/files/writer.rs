//! Rows → the bytes of a Parquet file.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

/// Most rows of a data file, which is also one row group.
const FILE_ROWS_MAX: usize = 1 << 20;
/// A data file holds about this much of Arrow memory at most.
const FILE_MEMORY_BYTES: usize = 512 << 20;

/// How many of these rows fit a data file of good size.
pub(crate) fn rows_per_file(batches: &[RecordBatch]) -> usize {
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let bytes: usize = batches.iter().map(RecordBatch::get_array_memory_size).sum();
    let row_bytes = (bytes / rows.max(1)).max(1);
    (FILE_MEMORY_BYTES / row_bytes).clamp(1, FILE_ROWS_MAX)
}

/// Encodes rows, all in `schema`, as one file; the table's properties may choose the codec.
pub(crate) fn parquet_bytes(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    properties: &BTreeMap<String, String>,
) -> Result<Vec<u8>> {
    let writer_properties = WriterProperties::builder()
        .set_compression(compression(properties)?)
        .set_max_row_group_row_count(Some(FILE_ROWS_MAX))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_created_by(concat!("deltaic ", env!("CARGO_PKG_VERSION")).into())
        .build();
    let encode = || -> parquet::errors::Result<Vec<u8>> {
        let mut writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(writer_properties))?;
        for batch in batches {
            writer.write(batch)?;
        }
        writer.into_inner()
    };
    encode().map_err(|e| Error::internal("PARQUET_ENCODE", format!("cannot write rows: {e}")))
}

fn compression(properties: &BTreeMap<String, String>) -> Result<Compression> {
    let codec = properties.get("delta.parquet.compression.codec");
    match codec.map_or("snappy", String::as_str).to_ascii_lowercase().as_str() {
        "snappy" => Ok(Compression::SNAPPY),
        "none" | "uncompressed" => Ok(Compression::UNCOMPRESSED),
        "lz4_raw" => Ok(Compression::LZ4_RAW),
        "zstd" => {
            let level = ZstdLevel::try_new(1);
            level
                .map(Compression::ZSTD)
                .map_err(|e| Error::internal("PARQUET_ENCODE", e.to_string()))
        }
        other => Err(Error::user(
            "UNSUPPORTED_PROPERTY",
            format!("codec {other:?} in delta.parquet.compression.codec is not supported"),
        )
        .hint("use snappy, zstd, lz4_raw or uncompressed")),
    }
}
