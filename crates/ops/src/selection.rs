//! Selecting rows of a batch by a predicate.

use arrow::array::{Array, BooleanArray, Int64Array, RecordBatch};
use arrow::compute::{FilterBuilder, prep_null_mask_filter};
use deltaic_batch::{Error, Result, ZBatch};

use crate::Evaluator;

/// Values of a predicate; NULL has become FALSE.
pub(crate) fn evaluate(predicate: &dyn Evaluator, rows: &RecordBatch) -> Result<BooleanArray> {
    let values = predicate.evaluate(rows)?;
    let Some(values) = values.as_any().downcast_ref::<BooleanArray>() else {
        return Err(Error::internal(
            "PREDICATE_TYPE",
            format!("a predicate evaluated to {}, not to a boolean", values.data_type()),
        ));
    };
    if values.len() != rows.num_rows() {
        return Err(crate::evaluated_length(values.len(), rows.num_rows()));
    }
    Ok(if values.null_count() == 0 { values.clone() } else { prep_null_mask_filter(values) })
}

/// The rows of `batch` where `keep` is true, with their weights. `keep` has no NULL.
pub(crate) fn filter(batch: &ZBatch, keep: &BooleanArray) -> Result<ZBatch> {
    let kept = keep.true_count();
    if kept == batch.num_rows() {
        return Ok(batch.clone());
    }
    if kept == 0 {
        return Ok(ZBatch::empty(batch.schema()));
    }
    let mut filter = FilterBuilder::new(keep);
    if batch.rows().num_columns() > 1 {
        filter = filter.optimize();
    }
    let filter = filter.build();
    let rows = filter.filter_record_batch(batch.rows())?;
    let weights = filter.filter(&batch.weight_array())?;
    let Some(weights) = weights.as_any().downcast_ref::<Int64Array>() else {
        return Err(Error::internal("WEIGHT_TYPE", "filtered weights are no 64-bit integers"));
    };
    ZBatch::try_new(rows, weights.values().clone())
}
