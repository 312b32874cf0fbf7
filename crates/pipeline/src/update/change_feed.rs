//! A change feed as change events: of an update only the row that it leaves.
//!
//! In a change feed an update is a delete and an insert of one key in one version. As events of one
//! sequence the delete would beat the insert; so deletes of keys that have a row in the same version
//! go, as do the rows before an update (`update_preimage`).

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use deltaic_batch::{Error, Result};

use crate::conform::position;
use crate::graph::{CHANGE_TYPE, COMMIT_VERSION};

/// The rows of a change feed that are events; `keys` are columns.
pub(crate) fn events(batches: Vec<RecordBatch>, keys: &[usize]) -> Result<Vec<RecordBatch>> {
    let Some(first) = batches.first() else { return Ok(batches) };
    let column = |name: &str| {
        position(first.schema_ref(), name)
            .ok_or_else(|| Error::internal("CHANGE_FEED", format!("there is no column {name}")))
    };
    let (kind, version) = (column(CHANGE_TYPE)?, column(COMMIT_VERSION)?);
    let by: Vec<usize> = keys.iter().copied().chain([version]).collect();
    let fields = by.iter().map(|&c| SortField::new(first.column(c).data_type().clone()));
    let converter = RowConverter::new(fields.collect())?;
    let codes = |batch: &RecordBatch| -> Result<arrow::row::Rows> {
        let columns: Vec<ArrayRef> = by.iter().map(|&c| batch.column(c).clone()).collect();
        Ok(converter.convert_columns(&columns)?)
    };
    let kinds = |batch: &RecordBatch| Ok::<_, Error>(cast(batch.column(kind), &DataType::Utf8)?);
    let mut there: HashSet<Vec<u8>> = HashSet::new();
    for batch in &batches {
        let (codes, kinds) = (codes(batch)?, kinds(batch)?);
        for (row, kind) in arrow::array::AsArray::as_string::<i32>(&kinds).iter().enumerate() {
            if matches!(kind, Some("insert" | "update_postimage")) {
                there.insert(codes.row(row).data().to_vec());
            }
        }
    }
    let mut out = Vec::with_capacity(batches.len());
    for batch in batches {
        let (codes, kinds) = (codes(&batch)?, kinds(&batch)?);
        let kinds = arrow::array::AsArray::as_string::<i32>(&kinds);
        let is_event = |(row, kind): (usize, Option<&str>)| match kind {
            Some("insert" | "update_postimage") => Ok(true),
            Some("update_preimage") => Ok(false),
            Some("delete") => Ok(!there.contains(codes.row(row).data())),
            other => Err(unknown(other)),
        };
        let keep: Result<Vec<bool>> = kinds.iter().enumerate().map(is_event).collect();
        let keep = BooleanArray::from(keep?);
        out.push(match keep.true_count() == keep.len() {
            true => batch,
            false => filter_record_batch(&batch, &keep)?,
        });
    }
    Ok(out)
}

fn unknown(kind: Option<&str>) -> Error {
    let shown = kind.map_or("NULL".to_owned(), |kind| format!("'{kind}'"));
    Error::data("CHANGE_TYPE", format!("a row of the change feed has the {CHANGE_TYPE} {shown}"))
        .hint("it is insert, update_preimage, update_postimage or delete")
}
