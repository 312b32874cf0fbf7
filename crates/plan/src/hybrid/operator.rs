//! Recompute: the operator of hybrid refresh, and of constants.
//!
//! **Meaning.** `out = query(in₁, …, inₙ)`, for any query that DataFusion runs.
//!
//! **Incremental form.** Integrate each input, run the query over all of it, emit the new result
//! minus the last one: O(inputs + result) per step with a change, nothing without.
//!
//! **State.** The integrated inputs (one slot each) and the last result.
//!
//! **Refuses.** Inputs whose integrated weight is negative: they are no tables.

use std::sync::Arc;

use deltaic_batch::{Result, ZBatch};
use deltaic_ops::{Algebra, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext};
use deltaic_state::{Arrangement, ArrangementSpec, Slot, SlotSpec};

use super::region::Region;
use arrow::datatypes::SchemaRef;

/// Rows per piece when state is read.
const PIECE_ROWS: usize = 1 << 20;

/// Recomputes a region; see the module's head.
#[derive(Debug)]
pub(crate) struct Recompute {
    spec: OperatorSpec,
    region: Arc<Region>,
}

impl Recompute {
    /// The operator of a region over inputs of these schemas.
    pub(crate) fn new(region: Arc<Region>, inputs: Vec<SchemaRef>, detail: String) -> Self {
        let mut slots: Vec<SlotSpec> = inputs.iter().map(rows).collect();
        if !inputs.is_empty() {
            slots.push(rows(&region.output));
        }
        let inputs = (inputs.into_iter())
            .map(|schema| InputSpec { schema, exchange: Exchange::Single })
            .collect();
        let spec = OperatorSpec {
            name: "Recompute",
            detail,
            inputs,
            output: region.output.clone(),
            slots,
            algebra: Algebra::NonLinear,
            output_is_set: false,
        };
        Self { spec, region }
    }
}

fn rows(schema: &SchemaRef) -> SlotSpec {
    SlotSpec::Rows(ArrangementSpec { schema: schema.clone(), key: Vec::new(), order: Vec::new() })
}

impl Operator for Recompute {
    fn spec(&self) -> &OperatorSpec {
        &self.spec
    }

    fn step(
        &self,
        inputs: &[ZBatch],
        state: &mut [Slot],
        out: &mut dyn Output,
        cx: &StepContext,
    ) -> Result<()> {
        let idle = inputs.iter().all(ZBatch::is_empty);
        if cx.shard != 0 || (idle && !cx.is_first()) {
            return Ok(());
        }
        let Some((last, sides)) = state.split_last_mut() else {
            return out.push(self.region.run(&[])?);
        };
        let mut integrated = Vec::with_capacity(inputs.len());
        for ((input, slot), spec) in inputs.iter().zip(sides).zip(&self.spec.inputs) {
            let rows = slot.rows()?;
            rows.apply(input)?;
            integrated.push(everything(rows, &spec.schema)?);
        }
        let last = last.rows()?;
        let before = everything(last, &self.region.output)?.negate()?;
        let after = self.region.run(&integrated)?;
        let delta = ZBatch::concat(&self.region.output, &[after, before])?.consolidate()?;
        last.apply(&delta)?;
        out.push(delta)
    }
}

fn everything(rows: &Arrangement, schema: &SchemaRef) -> Result<ZBatch> {
    ZBatch::concat(schema, &rows.scan(PIECE_ROWS)?)
}
