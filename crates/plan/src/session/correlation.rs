//! Refuses correlated subqueries that DataFusion would decorrelate wrongly.
//!
//! Decorrelation moves a condition on the outer row up to the join with the outer query. Past the side
//! of an outer join that may be padded with NULL, or the right side of a semi or anti join, that
//! changes the meaning: the padding, or the test for existence, must see the condition. What `unnesting`
//! has not dealt with is refused.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use deltaic_batch::Error;

/// The rule: an error when a plan has such a subquery.
#[derive(Debug)]
pub(super) struct RefuseUnsafe;

impl OptimizerRule for RefuseUnsafe {
    fn name(&self) -> &'static str {
        "refuse_unsafe"
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let mut found = false;
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::Join(join) = node {
                found |= is_unsafe(join)?;
            }
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !found {
            return Ok(Transformed::no(plan));
        }
        let error = Error::user(
            "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY",
            "a subquery refers to the outer query below an outer, semi or anti join",
        );
        let hint = "move the condition on the outer query's columns out of that side of the join";
        Err(DataFusionError::External(Box::new(error.hint(hint))))
    }
}

fn is_unsafe(join: &Join) -> Result<bool> {
    let (left, right) = match join.join_type {
        JoinType::Inner => return Ok(false),
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            (false, true)
        }
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            (true, false)
        }
        JoinType::Full => (true, true),
    };
    let lateral = is_lateral(&join.left) || is_lateral(&join.right);
    let conditions = join.on.iter().flat_map(|(l, r)| [l, r]).chain(&join.filter);
    let mut found = false;
    if !lateral {
        for condition in conditions {
            found |= refers_outward(condition)?;
        }
    }
    Ok(found || (left && reads_outward(&join.left)?) || (right && reads_outward(&join.right)?))
}

fn is_lateral(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Subquery(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_lateral(&alias.input),
        _ => false,
    }
}

/// A node of the plan refers to an outer query; those of a lateral subquery refer to this one.
fn reads_outward(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply(|node| {
        if matches!(node, LogicalPlan::Subquery(_)) {
            return Ok(TreeNodeRecursion::Jump);
        }
        node.apply_expressions(|expr| {
            found |= refers_outward(expr)?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

fn refers_outward(expr: &Expr) -> Result<bool> {
    expr.exists(|e| Ok(matches!(e, Expr::OuterReferenceColumn(..))))
}
