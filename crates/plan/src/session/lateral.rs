//! Lateral subqueries that read nothing but the row beside them: `CROSS JOIN LATERAL (SELECT
//! unnest(t.list))`, and `UNNEST(t.list)` in FROM.
//!
//! They need no join: each operator of the subquery can work on the rows of the left side, whose
//! columns it passes on. So `t, UNNEST(t.list) AS u(x)` becomes a projection and an unnest over `t`.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Expr, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, ScalarUDF, Unnest,
    lit,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::unnesting::{has_subquery, reads};

/// The rule.
#[derive(Debug)]
pub(super) struct LateralRows;

impl OptimizerRule for LateralRows {
    fn name(&self) -> &'static str {
        "lateral_rows"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Join(join) if reads_row_only(&join.right) && is_ours(&join) => {
                let outer = config.function_registry().map(|known| known.udf("__outer"));
                rewrite(join, outer.transpose()?).map(Transformed::yes)
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

/// Operators that work row by row, over the one row of no table.
fn reads_row_only(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Unnest(_) => {
            // A subquery within would lose the names that it knows.
            !plan.expressions().iter().any(has_subquery)
                && plan.inputs().into_iter().all(reads_row_only)
        }
        LogicalPlan::Subquery(subquery) => reads_row_only(&subquery.subquery),
        _ => false,
    }
}

/// An inner join, or a left join that pads rows without elements only.
fn is_ours(join: &Join) -> bool {
    let is_ours = match join.join_type {
        JoinType::Inner => true,
        JoinType::Left => {
            let is_always = join.on.is_empty() && join.filter.iter().all(|f| *f == lit(true));
            is_always && is_padded_by_one(&join.right, 0)
        }
        _ => false,
    };
    is_ours && is_lateral(join)
}

/// The right side reads a column of the left side, and not only of a query further out.
fn is_lateral(join: &Join) -> bool {
    let mut found = false;
    let schema = join.left.schema();
    let visited = reads(&join.right, &mut |column| found |= schema.has_column(column));
    visited.is_ok() && found
}

fn rewrite(join: Join, outer: Option<Arc<ScalarUDF>>) -> Result<LogicalPlan> {
    let pads = join.join_type == JoinType::Left;
    let left = Left::of(&join.left);
    let renamed = left.renamed(&join.left)?;
    let mut plan = left.apply(&join.right, renamed, outer.filter(|_| pads).as_ref())?;
    let columns = left.restored(&plan, &join)?;
    plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?);
    let equal = join.on.into_iter().map(|(one, other)| one.eq(other));
    match conjunction(equal.chain(join.filter.filter(|_| !pads))) {
        Some(condition) => Ok(LogicalPlan::Filter(Filter::try_new(condition, Arc::new(plan))?)),
        None => Ok(plan),
    }
}

/// Exactly one node unnests lists, and none drops rows.
fn is_padded_by_one(plan: &LogicalPlan, lists: usize) -> bool {
    let here = match plan {
        LogicalPlan::Filter(_) => return false,
        LogicalPlan::Unnest(unnest) if !unnest.list_type_columns.is_empty() => {
            if unnest.list_type_columns.iter().any(|(_, list)| list.depth > 1) {
                return false;
            }
            lists + 1
        }
        _ => lists,
    };
    match plan {
        LogicalPlan::Subquery(subquery) => is_padded_by_one(&subquery.subquery, here),
        other => match other.inputs().first() {
            Some(input) => is_padded_by_one(input, here),
            None => here == 1,
        },
    }
}

/// The columns of the left side, under names that nothing in the subquery has.
struct Left {
    /// As the subquery knows them.
    columns: Vec<Column>,
}

impl Left {
    fn of(plan: &LogicalPlan) -> Self {
        Self { columns: plan.schema().columns() }
    }

    fn name(at: usize) -> String {
        format!("__left {at}")
    }

    fn is_left(name: &str) -> bool {
        name.starts_with("__left ")
    }

    fn passed_on(&self) -> impl Iterator<Item = Expr> + '_ {
        (0..self.columns.len()).map(|at| Expr::Column(Column::new_unqualified(Self::name(at))))
    }

    fn renamed(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        let columns = self.columns.iter().enumerate();
        let columns =
            columns.map(|(at, column)| Expr::Column(column.clone()).alias(Self::name(at)));
        let input = Arc::new(plan.clone());
        Ok(LogicalPlan::Projection(Projection::try_new(columns.collect(), input)?))
    }

    /// An expression of the subquery over the left side's columns.
    fn bound(&self, expr: Expr) -> Result<Expr> {
        let bound = expr.transform_up(|expr| {
            let Expr::OuterReferenceColumn(_, column) = &expr else {
                return Ok(Transformed::no(expr));
            };
            let at = self.columns.iter().position(|left| left == column);
            let column = |at| Expr::Column(Column::new_unqualified(Self::name(at)));
            Ok(at.map_or(Transformed::no(expr), |at| Transformed::yes(column(at))))
        });
        bound.map(|expr| expr.data)
    }

    /// The subquery's operators over `base`.
    fn apply(
        &self,
        plan: &LogicalPlan,
        base: LogicalPlan,
        outer: Option<&Arc<ScalarUDF>>,
    ) -> Result<LogicalPlan> {
        Ok(match plan {
            LogicalPlan::Subquery(subquery) => self.apply(&subquery.subquery, base, outer)?,
            LogicalPlan::Projection(node) => {
                let input = self.apply(&node.input, base, outer)?;
                // Without their tables, which mean nothing outside the subquery.
                let own = node.expr.iter().map(|expr| {
                    let name = expr.schema_name().to_string();
                    Ok(self.bound(expr.clone())?.unalias().alias(name))
                });
                let exprs = own.chain(self.passed_on().map(Ok)).collect::<Result<Vec<_>>>()?;
                LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?)
            }
            LogicalPlan::Filter(node) => {
                let input = self.apply(&node.input, base, outer)?;
                let predicate = self.bound(node.predicate.clone())?;
                LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?)
            }
            LogicalPlan::SubqueryAlias(node) => {
                let input = self.apply(&node.input, base, outer)?;
                let names = node.schema.fields().iter().map(|field| field.name().clone());
                let own = self.own(&input).zip(names);
                let own = own.map(|(column, name)| {
                    Expr::Column(column).alias_qualified(Some(node.alias.clone()), name)
                });
                let exprs = own.chain(self.passed_on()).collect();
                LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?)
            }
            LogicalPlan::Unnest(node) => {
                let input = self.apply(&node.input, base, outer)?;
                let input = match outer {
                    Some(outer) => self.padded(node, input, outer)?,
                    None => input,
                };
                let (columns, options) = (node.exec_columns.clone(), node.options.clone());
                LogicalPlanBuilder::from(input)
                    .unnest_columns_with_options(columns, options)?
                    .build()?
            }
            _ => base,
        })
    }

    /// The columns that are not of the left side.
    fn own<'a>(&self, plan: &'a LogicalPlan) -> impl Iterator<Item = Column> + 'a {
        plan.schema().columns().into_iter().filter(|column| !Self::is_left(&column.name))
    }

    /// The input of an unnest with one NULL in lists that have nothing.
    fn padded(
        &self,
        node: &Unnest,
        input: LogicalPlan,
        outer: &Arc<ScalarUDF>,
    ) -> Result<LogicalPlan> {
        let lists: Vec<&Column> = (node.list_type_columns.iter())
            .filter_map(|(at, _)| {
                node.exec_columns
                    .iter()
                    .find(|column| node.input.schema().index_of_column(column).ok() == Some(*at))
            })
            .collect();
        let columns = input.schema().columns().into_iter().map(|column| {
            let is_list = lists.iter().any(|list| list.name == column.name);
            let (relation, name) = (column.relation.clone(), column.name.clone());
            match is_list {
                true => {
                    let call = ScalarFunction::new_udf(outer.clone(), vec![Expr::Column(column)]);
                    Expr::ScalarFunction(call).alias_qualified(relation, name)
                }
                false => Expr::Column(column),
            }
        });
        let columns = columns.collect();
        Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(input))?))
    }

    /// The columns of the join under their own names.
    fn restored(&self, plan: &LogicalPlan, join: &Join) -> Result<Vec<Expr>> {
        let left = self.passed_on().zip(self.columns.iter().cloned());
        let right = self.own(plan).map(Expr::Column).zip(join.right.schema().columns());
        let columns: Vec<Expr> = left
            .chain(right)
            .map(|(expr, column)| expr.alias_qualified(column.relation, column.name))
            .collect();
        match columns.len() == join.schema.fields().len() {
            true => Ok(columns),
            false => plan_err!("a lateral subquery has other columns than its operators"),
        }
    }
}
