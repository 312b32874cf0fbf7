//! Filter.
//!
//! **Meaning**: the rows of the input for which the predicate is TRUE.
//!
//! **Incremental form**: linear, `Δout = filter(Δin)`; one evaluation per delta row.
//!
//! **State**: none.
//!
//! **Nulls**: a predicate that is NULL drops the row.
//!
//! **Refuses**: a predicate whose values are not boolean.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use deltaic_batch::{Result, ZBatch};
use deltaic_state::Slot;

use crate::selection;
use crate::{Algebra, Evaluator, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext};

/// Keeps the rows for which a predicate is TRUE.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::datatypes::{DataType, Field, Schema};
/// # use deltaic_batch::ZBatch;
/// # use deltaic_ops::{ColumnRef, Filter, Operator, StepContext};
/// let schema = Arc::new(Schema::new(vec![
///     Field::new("id", DataType::Int64, false),
///     Field::new("open", DataType::Boolean, true),
/// ]));
/// let open = Filter::try_new(schema.clone(), Arc::new(ColumnRef(1)), "open".into())?;
/// let delta = ZBatch::parse(&schema, "+ 1 | true\n- 2 | true\n+ 3 | false")?;
/// let mut out: Vec<ZBatch> = Vec::new();
/// open.step(&[delta], &mut [], &mut out, &StepContext { epoch: 0, shard: 0, shards: 1 })?;
/// assert_eq!(out[0].to_string(), "+ 1 | true\n- 2 | true\n");
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
#[derive(Debug)]
pub struct Filter {
    spec: OperatorSpec,
    predicate: Arc<dyn Evaluator>,
}

impl Filter {
    /// Rows of `schema` for which `predicate` is TRUE.
    pub fn try_new(
        schema: SchemaRef,
        predicate: Arc<dyn Evaluator>,
        detail: String,
    ) -> Result<Self> {
        let spec = OperatorSpec {
            name: "Filter",
            detail,
            inputs: vec![InputSpec { schema: schema.clone(), exchange: Exchange::Any }],
            output: schema,
            slots: Vec::new(),
            algebra: Algebra::Linear,
            output_is_set: false,
        };
        Ok(Self { spec, predicate })
    }
}

impl Operator for Filter {
    fn spec(&self) -> &OperatorSpec {
        &self.spec
    }

    fn needs_consolidated(&self) -> bool {
        !self.predicate.cannot_fail()
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
        let keep = selection::evaluate(self.predicate.as_ref(), input.rows())?;
        out.push(selection::filter(input, &keep)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ColumnRef;
    use arrow::array::{Array, BooleanArray, Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Schema};

    fn input() -> ZBatch {
        let schema = Arc::new(Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("open", DataType::Boolean, true),
        ]));
        let rows = RecordBatch::try_new(
            schema,
            vec![
                Arc::new(Int64Array::from(vec![1, 2, 3, 4])),
                Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)])),
            ],
        )
        .unwrap();
        ZBatch::try_new(rows, vec![1, 1, 1, -2]).unwrap()
    }

    fn run(column: usize) -> Result<Vec<ZBatch>> {
        let input = input();
        let filter =
            Filter::try_new(input.schema(), Arc::new(ColumnRef(column)), "open".into()).unwrap();
        let mut out: Vec<ZBatch> = Vec::new();
        let cx = StepContext { epoch: 0, shard: 0, shards: 1 };
        filter.step(&[input], &mut [], &mut out, &cx)?;
        Ok(out)
    }

    #[test]
    fn keeps_true_drops_false_and_null() {
        let out = run(1).unwrap();
        assert_eq!(out.len(), 1);
        let ids = out[0].rows().column(0).as_any().downcast_ref::<Int64Array>().unwrap();
        assert_eq!(ids.values(), &[1, 4]);
        assert_eq!(out[0].weights().as_ref(), &[1, -2]);
    }

    #[test]
    fn refuses_a_predicate_that_is_not_boolean() {
        let error = run(0).unwrap_err();
        assert_eq!(error.code(), "PREDICATE_TYPE");
    }
}
