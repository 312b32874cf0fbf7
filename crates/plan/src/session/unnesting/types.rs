//! Types of what was a reference to the outer query.
//!
//! A reference has the type that the outer column had when it was planned. Coercion may have given the
//! column another one since, as that of a UNION of INT and BIGINT, and then a comparison has two types.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};

/// The rule: coerces once more where it is needed.
#[derive(Debug)]
pub(in crate::session) struct CoerceAgain;

impl OptimizerRule for CoerceAgain {
    fn name(&self) -> &'static str {
        "coerce_again"
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let mut is_needed = false;
        plan.apply(|node| {
            let mut schema = DFSchema::empty();
            node.inputs().into_iter().for_each(|input| schema.merge(input.schema()));
            for expr in node.expressions() {
                is_needed |= expr.exists(|e| Ok(compares_types(e, &schema)))?;
            }
            Ok(if is_needed { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        match is_needed {
            true => TypeCoercion::new().analyze(plan, &config.options()).map(Transformed::yes),
            false => Ok(Transformed::no(plan)),
        }
    }
}

/// A comparison of numbers of two types.
fn compares_types(expr: &Expr, schema: &DFSchema) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return false };
    let is_comparison = op.supports_propagation()
        || matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom);
    match (left.get_type(schema), right.get_type(schema)) {
        (Ok(left), Ok(right)) => {
            is_comparison && left != right && left.is_numeric() && right.is_numeric()
        }
        _ => false,
    }
}
