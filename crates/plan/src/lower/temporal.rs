//! Temporal filters: conditions that move with the clock.

use std::sync::Arc;

use datafusion::logical_expr::{Filter, LogicalPlan, Projection};
use deltaic_batch::{Error, Result};
use deltaic_ops::{DynamicFilter, DynamicFilterSpec};

use super::Lowering;
use crate::errors;
use crate::session::clock::{self, Temporal};
use crate::tree::{Kind, NodeIx};

impl Lowering {
    /// A filter that is a temporal condition; `None` for others.
    pub(super) fn temporal(&mut self, filter: &Filter) -> Result<Option<NodeIx>> {
        let Some(temporal) = Temporal::of(&filter.predicate) else { return Ok(None) };
        let Some(schema) = self.clock.clone() else {
            return Err(Error::internal("PLAN_CLOCK", "a plan without a clock asks for the time"));
        };
        let plan = |plan: datafusion::common::Result<LogicalPlan>| {
            plan.map_err(|error| errors::planning(&error))
        };
        let scan = plan(clock::scan(&schema))?;
        let bound = || {
            let bound = clock::read(temporal.bound.clone())?.data;
            Projection::try_new(vec![bound], Arc::new(scan.clone())).map(LogicalPlan::Projection)
        };
        let bound = self.lower(&plan(bound())?)?;
        let rows = self.lower(&filter.input)?;
        let side = self.side(rows, &filter.input, std::iter::once(&temporal.value))?;
        let detail = self.words.expr(&filter.predicate);
        let &[value] = side.keys.as_slice() else {
            return Err(Error::internal("PLAN_CLOCK", "a temporal condition has one value"));
        };
        let kind = Kind::Bounded { value, comparison: temporal.comparison, temporal: true };
        let (input, bounds) =
            (self.tree.schema(side.node).clone(), self.tree.schema(bound).clone());
        let declared = DynamicFilterSpec {
            input: input.clone(),
            value,
            comparison: temporal.comparison,
            bound: bounds,
            detail: detail.clone(),
        };
        if DynamicFilter::try_new(declared).is_err() {
            // Rows that have no order.
            let plan = plan(clock::beside(LogicalPlan::Filter(filter.clone()), &scan))?;
            return self.lower(&plan).map(Some);
        }
        let spec = format!("{value} {:?}", temporal.comparison);
        let inputs = vec![side.node, bound];
        let node = self.tree.add(kind, inputs, input.clone(), detail, &spec);
        let kept: Vec<usize> = (0..side.width).collect();
        let output = crate::session::batch::relaxed(filter.input.schema().as_arrow());
        Ok(Some(self.columns(node, &kept, &output)))
    }
}
