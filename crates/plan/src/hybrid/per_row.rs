//! Queries that treat each row by itself and have no operator of their own: UNNEST.
//!
//! **Meaning.** `out = query(in)`, for a linear query: `query(a + b) = query(a) + query(b)`.
//!
//! **Incremental form.** The query runs over the rows that come, and over those that go; O(delta).
//!
//! **State.** None.

use std::sync::Arc;

use arrow::array::BooleanArray;
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_ops::{Algebra, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext};
use deltaic_state::Slot;

use super::region::Region;

/// See the module.
#[derive(Debug)]
pub(crate) struct PerRow {
    spec: OperatorSpec,
    region: Arc<Region>,
}

impl PerRow {
    /// The operator of a linear region over an input of this schema.
    pub(crate) fn new(region: Arc<Region>, input: SchemaRef, detail: String) -> Self {
        let spec = OperatorSpec {
            name: "Unnest",
            detail,
            inputs: vec![InputSpec { schema: input, exchange: Exchange::Any }],
            output: region.output.clone(),
            slots: Vec::new(),
            algebra: Algebra::Linear,
            output_is_set: false,
        };
        Self { spec, region }
    }

    /// The result over the rows of one sign, each as often as its weight says.
    fn result(&self, delta: &ZBatch, is_wanted: impl Fn(i64) -> bool) -> Result<Option<ZBatch>> {
        let keep: BooleanArray =
            delta.weights().iter().map(|&weight| Some(is_wanted(weight))).collect();
        if keep.true_count() == 0 {
            return Ok(None);
        }
        let rows = filter_record_batch(delta.rows(), &keep)?;
        let weights = delta.weights().iter().filter(|weight| is_wanted(**weight));
        let weights = weights.map(|weight| weight.checked_abs()).collect::<Option<Vec<i64>>>();
        let weights = weights
            .ok_or_else(|| Error::data("WEIGHT_OVERFLOW", "the weight of a row exceeds 63 bits"))?;
        self.region.run(&[ZBatch::try_new(rows, weights)?]).map(Some)
    }
}

impl Operator for PerRow {
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
        for delta in inputs {
            if let Some(come) = self.result(delta, |weight| weight > 0)? {
                out.push(come)?;
            }
            if let Some(gone) = self.result(delta, |weight| weight < 0)? {
                out.push(gone.negate()?)?;
            }
        }
        Ok(())
    }
}
