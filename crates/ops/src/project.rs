//! Project.
//!
//! **Meaning**: one output row per input row, each column an expression over it. Rows that become
//! equal add up (the driver consolidates).
//!
//! **Incremental form**: linear, `Δout = project(Δin)`; one evaluation per column and delta row. A
//! column that is only passed on costs nothing.
//!
//! **State**: none.
//!
//! **Nulls**: as the expressions say. Floats that an expression made are brought into canonical
//! form (one zero, one NaN).
//!
//! **Refuses**: an expression whose type differs from its field's.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use deltaic_batch::{Error, Result, ZBatch, canonicalize};
use deltaic_state::Slot;

use crate::{Algebra, Evaluator, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext};

/// Computes columns.
#[derive(Debug)]
pub struct Project {
    spec: OperatorSpec,
    columns: Vec<Arc<dyn Evaluator>>,
}

impl Project {
    /// Rows of `input`, turned into the given columns.
    pub fn try_new(
        input: SchemaRef,
        columns: Vec<(Arc<dyn Evaluator>, Field)>,
        detail: String,
    ) -> Result<Self> {
        let (columns, fields): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let spec = OperatorSpec {
            name: "Project",
            detail,
            inputs: vec![InputSpec { schema: input, exchange: Exchange::Any }],
            output: Arc::new(Schema::new(fields)),
            slots: Vec::new(),
            algebra: Algebra::Linear,
            output_is_set: false,
        };
        Ok(Self { spec, columns })
    }

    fn evaluate(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (column, field) in self.columns.iter().zip(self.spec.output.fields()) {
            let values = column.evaluate(rows)?;
            if values.data_type() != field.data_type() {
                return Err(Error::internal(
                    "PROJECT_TYPE",
                    format!(
                        "column '{}' is declared {} but evaluated to {}",
                        field.name(),
                        field.data_type(),
                        values.data_type()
                    ),
                ));
            }
            if values.len() != rows.num_rows() {
                return Err(crate::evaluated_length(values.len(), rows.num_rows()));
            }
            arrays.push(canonicalize(&values));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        Ok(RecordBatch::try_new_with_options(self.spec.output.clone(), arrays, &options)?)
    }
}

impl Operator for Project {
    fn spec(&self) -> &OperatorSpec {
        &self.spec
    }

    fn step(
        &self,
        inputs: &[ZBatch],
        _state: &mut [Slot],
        out: &mut dyn Output,
        _cx: &StepContext,
    ) -> Result<()> {
        let input = crate::input(inputs, 0)?;
        if input.is_empty() {
            return Ok(());
        }
        let rows = self.evaluate(input.rows())?;
        out.push(ZBatch::try_new(rows, input.weights().clone())?)
    }
}
