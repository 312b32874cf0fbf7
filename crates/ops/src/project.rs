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
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::datatypes::{DataType, Field, Schema};
/// # use deltaic_batch::ZBatch;
/// # use deltaic_ops::{ColumnRef, Operator, Project, StepContext};
/// let id = Field::new("id", DataType::Int64, false);
/// let city = Field::new("city", DataType::Utf8, false);
/// let schema = Arc::new(Schema::new(vec![id, city.clone()]));
/// let cities = vec![(Arc::new(ColumnRef(1)) as _, city)];
/// let project = Project::try_new(schema.clone(), cities, "city".into())?;
/// let delta = ZBatch::parse(&schema, "+ 1 | Oslo\n+ 2 | Oslo\n- 3 | Rome")?;
/// let mut out: Vec<ZBatch> = Vec::new();
/// project.step(&[delta], &mut [], &mut out, &StepContext { epoch: 0, shard: 0, shards: 1 })?;
/// assert_eq!(out[0].consolidate()?.to_string(), "+2 Oslo\n- Rome\n");
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
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

    fn needs_consolidated(&self) -> bool {
        !self.columns.iter().all(|column| column.cannot_fail())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ColumnRef;
    use arrow::array::{ArrayRef, AsArray, Float64Array};
    use arrow::datatypes::{DataType, Float64Type};

    /// `1 / x`.
    #[derive(Debug)]
    struct Inverse;

    impl Evaluator for Inverse {
        fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
            let x = batch.column(0).as_primitive::<Float64Type>();
            Ok(Arc::new(x.unary::<_, Float64Type>(|x| 1.0 / x)))
        }
    }

    fn run(columns: Vec<(Arc<dyn Evaluator>, Field)>) -> Result<ZBatch> {
        let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Float64, true)]));
        let x = Arc::new(Float64Array::from(vec![2.0, f64::NEG_INFINITY]));
        let rows = RecordBatch::try_new(schema.clone(), vec![x]).unwrap();
        let project = Project::try_new(schema, columns, String::new())?;
        let mut out: Vec<ZBatch> = Vec::new();
        let cx = StepContext { epoch: 0, shard: 0, shards: 1 };
        let input = ZBatch::try_new(rows, vec![3, -1])?;
        project.step(&[input], &mut [], &mut out, &cx)?;
        Ok(out.remove(0))
    }

    #[test]
    fn computes_columns_keeps_weights_and_makes_floats_canonical() {
        let inverse = Field::new("inverse", DataType::Float64, true);
        let copy = Field::new("x", DataType::Float64, true);
        let out = run(vec![(Arc::new(Inverse), inverse), (Arc::new(ColumnRef(0)), copy)]).unwrap();
        assert_eq!(out.weights().as_ref(), &[3, -1]);
        let values = out.rows().column(0).as_primitive::<Float64Type>();
        assert_eq!(values.value(0).to_bits(), 0.5_f64.to_bits());
        assert_eq!(values.value(1).to_bits(), 0.0_f64.to_bits(), "-0.0 is not canonical");
        assert_eq!(out.rows().column(1).as_primitive::<Float64Type>().value(0), 2.0);
    }

    #[test]
    fn no_columns_leave_the_weights() {
        let out = run(Vec::new()).unwrap();
        assert_eq!((out.rows().num_columns(), out.weights().as_ref()), (0, &[3, -1][..]));
    }

    #[test]
    fn refuses_another_type_than_declared() {
        let field = Field::new("x", DataType::Int64, true);
        assert_eq!(run(vec![(Arc::new(ColumnRef(0)), field)]).unwrap_err().code(), "PROJECT_TYPE");
    }
}
