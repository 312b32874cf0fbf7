//! Filter push-down that leaves conditions above aggregates that have a row for no input.
//!
//! DataFusion pushes a condition below an aggregate when all its columns are group keys, which holds
//! for a condition without columns: the NULL of `c NOT IN (1, NULL)`, or the FALSE that it finds
//! `n = 1 AND n = 2` to be. An aggregate without keys, or with an empty grouping set, has a row for
//! no input, which a condition below it would let through.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
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
        {
            return Ok(Transformed::no(plan));
        }
        self.inner.rewrite(plan, config)
    }
}

fn has_row_for_nothing(aggregate: &Aggregate) -> bool {
    aggregate.group_expr.iter().all(|expr| matches!(expr, Expr::GroupingSet(_)))
}
