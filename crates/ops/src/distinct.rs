//! Distinct: each row once, however often it occurs in the input.

use arrow::datatypes::SchemaRef;
use deltaic_batch::{Result, ZBatch};
use deltaic_state::Slot;

use crate::{Operator, OperatorSpec, Output, StepContext};

/// The distinct operator.
#[derive(Debug)]
pub struct Distinct {}

impl Distinct {
    /// Distinct rows of `schema`.
    pub fn try_new(_schema: SchemaRef) -> Result<Self> {
        unimplemented!("skeleton")
    }
}

impl Operator for Distinct {
    fn spec(&self) -> &OperatorSpec {
        unimplemented!("skeleton")
    }

    fn step(
        &self,
        _inputs: &[ZBatch],
        _state: &mut [Slot],
        _out: &mut dyn Output,
        _cx: &StepContext,
    ) -> Result<()> {
        unimplemented!("skeleton")
    }
}
