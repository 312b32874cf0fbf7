//! DataFusion's physical expressions as the kernel's evaluators.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::DataType;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use deltaic_batch::{Result, canonicalize};
use deltaic_ops::{ColumnRef, Evaluator};

use crate::errors;

/// Evaluates a physical expression; floats come out canonical.
#[derive(Debug)]
pub(crate) struct Expression {
    expr: Arc<dyn PhysicalExpr>,
    data_type: DataType,
}

impl Expression {
    /// An evaluator that yields `data_type`; a plain column is passed on without copying.
    pub(crate) fn evaluator(
        expr: Arc<dyn PhysicalExpr>,
        data_type: DataType,
    ) -> Arc<dyn Evaluator> {
        match expr.downcast_ref::<Column>() {
            Some(column) => Arc::new(ColumnRef(column.index())),
            None => Arc::new(Self { expr, data_type }),
        }
    }
}

impl Evaluator for Expression {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let value = self.expr.evaluate(batch).map_err(errors::execution)?;
        let array = value.into_array(batch.num_rows()).map_err(errors::execution)?;
        let array = match array.data_type() == &self.data_type {
            true => array,
            false => arrow::compute::cast(&array, &self.data_type)?,
        };
        Ok(canonicalize(&array))
    }
}
