//! Equalities as keys of a join, but not beside keys whose rule for NULL is the other one.
//!
//! The keys of a join have one rule for NULL. DataFusion adds an equality from the join's condition to
//! keys in which NULL equals NULL, and gives joins that it puts in another order the rule of the topmost:
//! `NULL = NULL` becomes true, or NULL no longer meets NULL.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan, Projection};
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule for the condition of a join.
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
        match &plan {
            LogicalPlan::Join(join) if is_null_safe(join) => Ok(Transformed::no(plan)),
            _ => self.inner.rewrite(plan, config),
        }
    }
}

fn is_null_safe(join: &Join) -> bool {
    join.null_equality == NullEquality::NullEqualsNull && !join.on.is_empty()
}

/// The rule for inner joins that follow each other: those in which NULL equals NULL keep their place,
/// since a projection around each, and below it, ends what the rule takes together.
#[derive(Debug, Default)]
pub(super) struct CrossJoins {
    inner: EliminateCrossJoin,
}

impl OptimizerRule for CrossJoins {
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
        let is_ours = |plan: &LogicalPlan| match plan {
            LogicalPlan::Join(join) => join.join_type == JoinType::Inner && is_null_safe(join),
            _ => false,
        };
        let mut found = false;
        plan.apply_with_subqueries(|node| {
            found |= is_ours(node);
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !found {
            return self.inner.rewrite(plan, config);
        }
        let apart = plan.transform_up_with_subqueries(|node| match node {
            node if is_ours(&node) => {
                let below = node.map_children(|input| all_columns(input).map(Transformed::yes))?;
                all_columns(below.data).map(Transformed::yes)
            }
            node => Ok(Transformed::no(node)),
        })?;
        self.inner.rewrite(apart.data, config).map(|plan| Transformed::yes(plan.data))
    }
}

/// A projection that keeps all columns.
fn all_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    let columns = plan.schema().iter().map(Expr::from).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}
