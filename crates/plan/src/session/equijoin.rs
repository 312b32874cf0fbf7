//! Equalities of a join condition as its keys, but not beside keys in which NULL equals NULL.
//!
//! Keys have one rule for NULL. DataFusion adds an equality from the condition to keys whose rule is
//! the other one, and `NULL = NULL` becomes true.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule.
#[derive(Debug, Default)]
pub(super) struct EquijoinKeys {
    inner: ExtractEquijoinPredicate,
}

impl OptimizerRule for EquijoinKeys {
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
        if let LogicalPlan::Join(join) = &plan
            && join.null_equality == NullEquality::NullEqualsNull
            && !join.on.is_empty()
        {
            return Ok(Transformed::no(plan));
        }
        self.inner.rewrite(plan, config)
    }
}
