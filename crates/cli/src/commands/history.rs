//! `deltaic history`.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray, UInt64Array,
};
use deltaic_batch::Error;
use deltaic_pipeline::Pipeline;
use deltaic_table::CommitSummary;

use crate::args::RowFormat;
use crate::complaint::{Complaint, Sources};
use crate::output::Out;

/// Lists the versions of a dataset.
pub(super) fn history(
    pipeline: &Pipeline,
    dataset: &str,
    format: RowFormat,
    sources: &Sources,
    out: &mut Out,
) -> Result<(), Complaint> {
    let commits = pipeline.history(dataset).map_err(|e| Complaint::new(e, sources))?;
    let rows = rows(&commits).map_err(|e| Complaint::new(Error::from(e), sources))?;
    let schema = rows.schema();
    out.rows(&schema, &[rows], format)
}

fn rows(commits: &[CommitSummary]) -> Result<RecordBatch, arrow::error::ArrowError> {
    let times = TimestampMillisecondArray::from_iter_values(commits.iter().map(|c| c.timestamp_ms));
    let columns: [(&str, ArrayRef); 5] = [
        ("version", Arc::new(Int64Array::from_iter_values(commits.iter().map(|c| c.version)))),
        ("timestamp", Arc::new(times.with_timezone("UTC"))),
        (
            "operation",
            Arc::new(StringArray::from_iter_values(commits.iter().map(|c| &c.operation))),
        ),
        (
            "inserted",
            Arc::new(UInt64Array::from_iter_values(commits.iter().map(|c| c.rows_inserted))),
        ),
        (
            "deleted",
            Arc::new(UInt64Array::from_iter_values(commits.iter().map(|c| c.rows_deleted))),
        ),
    ];
    RecordBatch::try_from_iter(columns)
}
