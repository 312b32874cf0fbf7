//! Aggregate: one row per group of equal keys, or one row in all when there are no keys.

mod spec;

pub use spec::{AggregateCall, AggregateFunction, AggregateSpec};

use deltaic_batch::{Result, ZBatch};
use deltaic_state::Slot;

use crate::{Operator, OperatorSpec, Output, StepContext};

/// The aggregate operator.
#[derive(Debug)]
pub struct Aggregate {}

impl Aggregate {
    /// Checks `spec`; a user error (`UNSUPPORTED_AGGREGATE`) says which call has no incremental
    /// form here.
    pub fn try_new(_spec: AggregateSpec) -> Result<Self> {
        unimplemented!("skeleton")
    }
}

impl Operator for Aggregate {
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
