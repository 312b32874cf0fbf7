//! Union all.
//!
//! **Meaning**: the sum of the inputs as multisets; columns correspond by position.
//!
//! **Incremental form**: linear, `Δout = Δin₀ + Δin₁ + …`; nothing is copied.
//!
//! **State**: none.
//!
//! **Nulls**: pass through.
//!
//! **Refuses**: no inputs.

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::Slot;

use crate::{Algebra, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext};

/// Adds its inputs up.
#[derive(Debug)]
pub struct UnionAll {
    spec: OperatorSpec,
}

impl UnionAll {
    /// The sum of `inputs` inputs, each with the columns of `schema`.
    pub fn try_new(schema: SchemaRef, inputs: usize) -> Result<Self> {
        if inputs == 0 {
            return Err(Error::internal("UNION_INPUTS", "a union needs at least one input"));
        }
        let input = InputSpec { schema: schema.clone(), exchange: Exchange::Any };
        let spec = OperatorSpec {
            name: "UnionAll",
            detail: String::new(),
            inputs: vec![input; inputs],
            output: schema,
            slots: Vec::new(),
            algebra: Algebra::Linear,
            output_is_set: false,
        };
        Ok(Self { spec })
    }
}

impl Operator for UnionAll {
    fn spec(&self) -> &OperatorSpec {
        &self.spec
    }

    fn needs_consolidated(&self) -> bool {
        false
    }

    fn step(
        &self,
        inputs: &[ZBatch],
        _state: &mut [Slot],
        out: &mut dyn Output,
        _cx: &StepContext,
    ) -> Result<()> {
        for input in inputs {
            if !input.is_empty() {
                out.push(renamed(input, &self.spec.output)?)?;
            }
        }
        Ok(())
    }
}

/// The same columns under another schema of the same types.
fn renamed(batch: &ZBatch, schema: &SchemaRef) -> Result<ZBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.rows().columns().to_vec();
    let rows = RecordBatch::try_new_with_options(schema.clone(), columns, &options)?;
    ZBatch::try_new(rows, batch.weights().clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field, Schema};
    use std::sync::Arc;

    fn schema(name: &str) -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new(name, DataType::Int64, true)]))
    }

    #[test]
    fn inputs_add_up_under_the_schema_of_the_output() {
        let union = UnionAll::try_new(schema("id"), 3).unwrap();
        let inputs = [
            ZBatch::parse(&schema("a"), "+ 1\n- 2").unwrap(),
            ZBatch::empty(schema("b")),
            ZBatch::parse(&schema("c"), "+ 2\n+ 1").unwrap(),
        ];
        let mut out: Vec<ZBatch> = Vec::new();
        let cx = StepContext { epoch: 0, shard: 0, shards: 1 };
        union.step(&inputs, &mut [], &mut out, &cx).unwrap();
        assert!(out.iter().all(|piece| piece.schema() == schema("id")));
        let sum = ZBatch::concat(&schema("id"), &out).unwrap().consolidate().unwrap();
        assert_eq!(sum.to_string(), "+2 1\n");
    }

    #[test]
    fn refuses_no_inputs() {
        assert_eq!(UnionAll::try_new(schema("id"), 0).unwrap_err().code(), "UNION_INPUTS");
    }
}
