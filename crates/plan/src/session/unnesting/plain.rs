//! Which subqueries DataFusion's own rules can do, and what reads the outer query.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, Operator};

/// True for a lateral subquery, with or without a name.
pub(super) fn is_subquery(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Subquery(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_subquery(&alias.input),
        _ => false,
    }
}

/// A node or one below it reads an outer query.
pub(super) fn holds_outer(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let visited = reads(plan, &mut |_| found = true);
    visited.is_err() || found
}

/// Calls `tell` for each reference to a query outside of `plan`, in its subqueries too.
pub(in crate::session) fn reads(plan: &LogicalPlan, tell: &mut dyn FnMut(&Column)) -> Result<()> {
    if let LogicalPlan::Join(join) = plan {
        reads(&join.left, tell)?;
        // A lateral subquery reads what is beside it.
        reads(&join.right, &mut |column| {
            if !join.left.schema().has_column(column) {
                tell(column);
            }
        })?;
    } else {
        plan.inputs().into_iter().try_for_each(|input| reads(input, tell))?;
    }
    let mut own = DFSchema::empty();
    plan.inputs().into_iter().for_each(|input| own.merge(input.schema()));
    plan.apply_expressions(|expr| {
        expr.apply(|e| {
            let subquery = match e {
                Expr::OuterReferenceColumn(_, column) => {
                    tell(column);
                    None
                }
                Expr::ScalarSubquery(subquery) => Some(subquery),
                Expr::Exists(exists) => Some(&exists.subquery),
                Expr::InSubquery(within) => Some(&within.subquery),
                _ => None,
            };
            if let Some(subquery) = subquery {
                reads(&subquery.subquery, &mut |column| {
                    if !own.has_column(column) {
                        tell(column);
                    }
                })?;
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
}

/// True when a subquery is part of an expression.
pub(in crate::session) fn has_subquery(expr: &Expr) -> bool {
    let is_subquery =
        |e: &Expr| matches!(e, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_));
    expr.exists(|e| Ok(is_subquery(e))).unwrap_or(true)
}

/// Conditions over inner joins, with at most one aggregate above equalities, and nothing else that
/// reads the outer query: what DataFusion decorrelates, and rightly.
pub(super) fn is_plain(plan: &LogicalPlan) -> bool {
    if !holds_outer(plan) {
        return true;
    }
    match plan {
        LogicalPlan::Subquery(subquery) => is_plain(&subquery.subquery),
        LogicalPlan::Projection(node) => {
            !node.expr.iter().any(Expr::contains_outer) && is_plain(&node.input)
        }
        LogicalPlan::SubqueryAlias(_) if is_subquery(plan) => {
            plan.inputs().into_iter().all(is_plain)
        }
        LogicalPlan::Aggregate(node) => {
            let exprs = node.group_expr.iter().chain(&node.aggr_expr);
            !exprs.into_iter().any(Expr::contains_outer) && is_filtered(&node.input, is_equality)
        }
        LogicalPlan::Sort(node) => node.fetch.is_none() && is_plain(&node.input),
        other => is_filtered(other, |_| true),
    }
}

/// Without an aggregate, and without derived tables, through which DataFusion loses columns; each
/// condition that reads the outer query is of some form.
fn is_filtered(plan: &LogicalPlan, form: fn(&Expr) -> bool) -> bool {
    match plan {
        LogicalPlan::Filter(node) => {
            let is_plain = |expr: &Expr| !expr.contains_outer() || form(expr);
            split_conjunction(&node.predicate).into_iter().all(is_plain)
                && !(has_subquery(&node.predicate) && holds_outer(plan))
                && is_filtered(&node.input, form)
        }
        LogicalPlan::Join(node) if node.join_type == JoinType::Inner => {
            let conditions = node.on.iter().flat_map(|(l, r)| [l, r]).chain(&node.filter);
            !conditions.into_iter().any(Expr::contains_outer)
                && is_filtered(&node.left, form)
                && is_filtered(&node.right, form)
        }
        other => !holds_outer(other),
    }
}

/// An equality one side of which is of the outer query, the other of the subquery.
fn is_equality(expr: &Expr) -> bool {
    let Expr::BinaryExpr(binary) = expr else { return false };
    let (left, right) = (&binary.left, &binary.right);
    binary.op == Operator::Eq
        && left.contains_outer() != right.contains_outer()
        && left.contains_outer() != left.any_column_refs()
        && right.contains_outer() != right.any_column_refs()
}
