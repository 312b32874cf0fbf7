//! Reads a checkpoint file: its rows as JSON are the same actions as the log's lines.

use deltaic_batch::{Error, Result};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::Storage;
use crate::delta::actions::{Action, parse_lines};

/// Top-level columns that make up the state.
const COLUMNS: [&str; 5] = ["protocol", "metaData", "txn", "add", "remove"];

pub(super) fn read(root: &Storage, path: &str, actions: &mut Vec<Action>) -> Result<()> {
    let bytes = root.get(path)?.ok_or_else(|| corrupt(path, "the file is missing"))?;
    let wrong = |e: &dyn std::fmt::Display| corrupt(path, &e.to_string());
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|e| wrong(&e))?;
    let leaves = builder.parquet_schema().columns().iter().enumerate().filter(|(_, column)| {
        let parts = column.path().parts();
        COLUMNS.contains(&parts[0].as_str()) && !parts.iter().any(|p| p.ends_with("_parsed"))
    });
    let mask = ProjectionMask::leaves(
        builder.parquet_schema(),
        leaves.map(|(i, _)| i).collect::<Vec<_>>(),
    );
    for batch in builder.with_projection(mask).build().map_err(|e| wrong(&e))? {
        let mut json = arrow_json::LineDelimitedWriter::new(Vec::new());
        json.write(&batch?)?;
        json.finish()?;
        actions.append(&mut parse_lines(&json.into_inner(), path)?);
    }
    Ok(())
}

fn corrupt(path: &str, why: &str) -> Error {
    Error::storage("LOG_CORRUPT", format!("cannot read the checkpoint: {why}")).object(path)
}
