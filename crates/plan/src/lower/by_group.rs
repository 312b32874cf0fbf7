//! What is recomputed by touched group: windows with PARTITION BY, and aggregate functions without
//! an incremental form of their own.

use std::sync::Arc;

use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use deltaic_batch::Result;

use super::Lowering;
use super::region::describe;
use crate::errors;
use crate::hybrid::{Hole, Order, RecomputeTouched, Region, RegionInput};
use crate::session::batch::relaxed;
use crate::tree::{ByGroup, Kind, NodeIx};

impl Lowering {
    /// An aggregate of functions that cannot take back a row.
    pub(super) fn generic_aggregate(&mut self, node: Aggregate) -> Result<NodeIx> {
        let (input, keys) = (node.input.clone(), node.group_expr.clone());
        self.by_group(&LogicalPlan::Aggregate(node), &input, &keys, ByGroup::Aggregate)
    }

    /// The plan's top node by touched group; as a hybrid node without a key, or if some type has no
    /// order.
    pub(super) fn by_group(
        &mut self,
        plan: &LogicalPlan,
        input: &LogicalPlan,
        keys: &[Expr],
        what: ByGroup,
    ) -> Result<NodeIx> {
        if keys.is_empty() {
            return self.hybrid(plan);
        }
        let node = self.lower(input)?;
        let side = self.side(node, input, keys.iter())?;
        let hole = Hole::scan(0, input.schema());
        let template = plan.with_new_exprs(plan.expressions(), vec![hole]);
        let template = template.map_err(|e| errors::planning(&e))?;
        let order = match what {
            ByGroup::Window => Order::Any,
            ByGroup::Aggregate => Order::Canonical,
        };
        let output = relaxed(plan.schema().as_arrow());
        let spec = format!("{:?} {}", side.keys, describe(&template)?);
        let detail = match &template {
            LogicalPlan::Window(window) => self.shown(&window.window_expr),
            LogicalPlan::Aggregate(node) => {
                let functions = self.shown(&node.aggr_expr);
                format!("{functions} by {}", self.shown(keys))
            }
            other => other.display().to_string(),
        };
        let region = Arc::new(Region {
            state: self.state.clone(),
            template,
            inputs: vec![RegionInput { schema: input.schema().clone(), order }],
            output: output.clone(),
        });
        let schema = self.tree.schema(side.node).clone();
        let about = (what.name(), detail.clone());
        let (keys, width) = (side.keys, side.width);
        if RecomputeTouched::try_new(region.clone(), schema, keys.clone(), width, about).is_err() {
            return self.hybrid(plan);
        }
        let kind = Kind::ByGroup { region, keys, width, what };
        Ok(self.tree.add(kind, vec![side.node], output, detail, &spec))
    }
}
