//! What frames by distance compute row by row.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use datafusion::common::ScalarValue;
use deltaic_batch::Result;
use deltaic_ops::Evaluator;

use crate::errors;

/// A value lies between two others.
#[derive(Debug)]
pub(super) struct Within {
    pub(super) value: usize,
    pub(super) least: usize,
    pub(super) greatest: usize,
}

impl Evaluator for Within {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        use arrow::compute::kernels::{boolean, cmp};
        let value = batch.column(self.value);
        let from = cmp::gt_eq(value, batch.column(self.least))?;
        let to = cmp::lt_eq(value, batch.column(self.greatest))?;
        Ok(Arc::new(boolean::and_kleene(&from, &to)?))
    }
}

/// A column has no value.
#[derive(Debug)]
pub(super) struct IsNull(pub(super) usize);

impl Evaluator for IsNull {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        Ok(Arc::new(arrow::compute::is_null(batch.column(self.0))?))
    }

    fn cannot_fail(&self) -> bool {
        true
    }
}

/// A count, which is zero of no rows.
#[derive(Debug)]
pub(super) struct OrZero(pub(super) usize);

impl Evaluator for OrZero {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let counts = batch.column(self.0);
        let zero = ScalarValue::new_zero(counts.data_type()).map_err(errors::execution)?;
        let zero = zero.to_scalar().map_err(errors::execution)?;
        let missing = arrow::compute::is_null(counts)?;
        Ok(arrow::compute::kernels::zip::zip(&missing, &zero, counts)?)
    }
}
