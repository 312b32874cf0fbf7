//! Refuses references whose table may be one of two of the same name.
//!
//! A reference to an outer query names a table, not which query it is of. In
//! `SELECT … FROM t WHERE EXISTS (SELECT 1 FROM t JOIN (SELECT … WHERE u.k = t.a) d …)` the inner `t.a` is
//! that of the outermost query, since the derived table does not see what is beside it; were it lateral, it
//! would be the other. The plan of both is the same, where all references are in subqueries of its
//! expressions or where it is not lateral.
//!
//! Nor does a lateral subquery within a derived table see what is beside that table; but DataFusion
//! takes a reference for a column of it, if it has one of that name, and plans with its type.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DataFusionError, ExprSchema, Result};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use deltaic_batch::Error;

use super::plain::{is_subquery, reads};

/// The rule.
#[derive(Debug)]
pub(in crate::session) struct OneMeaning;

impl OptimizerRule for OneMeaning {
    fn name(&self) -> &'static str {
        "one_meaning"
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        check(&plan, &DFSchema::empty())?;
        Ok(Transformed::no(plan))
    }
}

/// Looks through a plan whose outer queries have the columns of `outer`.
fn check(plan: &LogicalPlan, outer: &DFSchema) -> Result<()> {
    plan.apply(|node| {
        if let LogicalPlan::Join(join) = node
            && !is_subquery(&join.right)
        {
            let beside = join.left.schema();
            let mut twice = None;
            reads(&join.right, &mut |column| {
                if beside.has_column(column) && outer.has_column(column) {
                    twice = Some(column.clone());
                }
            })?;
            if let Some(column) = twice.or(of_another_type(&join.right, beside)?) {
                let message = format!("'{column}' could be of the outer query or of this one");
                let error = Error::user("AMBIGUOUS_REFERENCE", message);
                let error = error.hint("give one of the two tables another name with AS");
                return Err(DataFusionError::External(Box::new(error)));
            }
        }
        let mut own = outer.clone();
        node.inputs().into_iter().for_each(|input| own.merge(input.schema()));
        node.apply_expressions(|expr| {
            expr.apply(|e| {
                match e {
                    Expr::ScalarSubquery(subquery) => check(&subquery.subquery, &own)?,
                    Expr::Exists(exists) => check(&exists.subquery.subquery, &own)?,
                    Expr::InSubquery(within) => check(&within.subquery.subquery, &own)?,
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

/// A column that a lateral subquery of `plan` reads, and that has another type in `beside`.
fn of_another_type(plan: &LogicalPlan, beside: &DFSchema) -> Result<Option<Column>> {
    let mut found = None;
    plan.apply(|node| {
        if let LogicalPlan::Join(join) = node {
            let near = join.left.schema();
            reads(&join.right, &mut |column| {
                let both = (near.field_from_column(column), beside.field_from_column(column));
                if let (Ok(near), Ok(far)) = both
                    && near.data_type() != far.data_type()
                {
                    found = Some(column.clone());
                }
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}
