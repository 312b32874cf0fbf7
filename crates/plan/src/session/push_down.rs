//! Filter push-down that leaves constant conditions above aggregates.
//!
//! DataFusion pushes a condition below an aggregate when all its columns are group keys, which holds
//! for a condition without columns, such as the NULL of `c NOT IN (1, NULL)`. Below an aggregate that
//! has a row for no input (no keys, or grouping sets with an empty one), it would let that row through.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule.
#[derive(Debug, Default)]
pub(crate) struct PushDown {
    inner: PushDownFilter,
}

impl OptimizerRule for PushDown {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.inner.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if let LogicalPlan::Filter(filter) = &plan
            && let LogicalPlan::Aggregate(aggregate) = filter.input.as_ref()
            && has_row_for_nothing(aggregate)
            && split_conjunction(&filter.predicate).iter().any(|c| c.column_refs().is_empty())
        {
            return Ok(Transformed::no(plan));
        }
        self.inner.rewrite(plan, config)
    }
}

fn has_row_for_nothing(aggregate: &Aggregate) -> bool {
    aggregate.group_expr.iter().all(|expr| matches!(expr, Expr::GroupingSet(_)))
}
