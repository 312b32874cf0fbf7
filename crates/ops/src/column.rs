//! [`ColumnRef`]: the expression that is a column.

use arrow::array::{ArrayRef, RecordBatch};
use deltaic_batch::{Error, Result};

use crate::Evaluator;

/// Evaluates to the column of this number, without copying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnRef(pub usize);

impl Evaluator for ColumnRef {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        batch.columns().get(self.0).cloned().ok_or_else(|| {
            Error::internal(
                "COLUMN_NUMBER",
                format!("column {} of a batch with {} columns", self.0, batch.num_columns()),
            )
        })
    }

    fn cannot_fail(&self) -> bool {
        true
    }

    fn column(&self) -> Option<usize> {
        Some(self.0)
    }
}
