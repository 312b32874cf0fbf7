//! Scalar subqueries that aggregate what some condition, not an equality, connects to the outer row:
//! `(SELECT count(*) FROM t x WHERE x.b < t.b)`.
//!
//! DataFusion pulls equalities up to a join and leaves the rest alone, which then cannot be planned. Here
//! the subquery is computed once for each different value of the outer columns that it reads: these
//! values, left joined to the subquery's rows on its whole condition, are grouped; a mark on the
//! subquery's rows keeps the padding of values without any out of the functions, so that COUNT is 0 for
//! them. Then the outer rows are joined to the groups. See T. Neumann and A. Kemper, "Unnesting Arbitrary
//! Queries", BTW 2015, of which this is the case of one aggregate.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, NullEquality, Result};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Aggregate, Expr, Filter, JoinType, LogicalPlan, LogicalPlanBuilder, Operator, Projection,
    Subquery, lit,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// Marks the rows of the subquery.
const MARK: &str = "__is_row";
/// The subquery's value.
const VALUE: &str = "__value";

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct CorrelatedAggregate;

impl OptimizerRule for CorrelatedAggregate {
    fn name(&self) -> &str {
        "correlated_aggregate"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
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
            LogicalPlan::Filter(filter) => {
                let mut input = Outer::new(&filter.input, config);
                let predicate = input.rewritten(filter.predicate.clone())?;
                if !input.is_changed {
                    return Ok(Transformed::no(LogicalPlan::Filter(filter)));
                }
                let filtered = Filter::try_new(predicate, Arc::new(input.plan))?;
                let columns = filter.input.schema().columns().into_iter().map(Expr::Column);
                let plan = LogicalPlanBuilder::from(LogicalPlan::Filter(filtered))
                    .project(columns.collect::<Vec<_>>())?;
                Ok(Transformed::yes(plan.build()?))
            }
            LogicalPlan::Projection(projection) => {
                let mut input = Outer::new(&projection.input, config);
                let mut exprs = Vec::with_capacity(projection.expr.len());
                for (expr, (qualifier, field)) in
                    projection.expr.iter().zip(projection.schema.iter())
                {
                    let rewritten = input.rewritten(expr.clone())?;
                    let is_same = rewritten == *expr;
                    exprs.push(match is_same || matches!(rewritten, Expr::Alias(_)) {
                        true => rewritten,
                        false => rewritten.alias_qualified(qualifier.cloned(), field.name()),
                    });
                }
                if !input.is_changed {
                    return Ok(Transformed::no(LogicalPlan::Projection(projection)));
                }
                let plan = Projection::try_new(exprs, Arc::new(input.plan))?;
                Ok(Transformed::yes(LogicalPlan::Projection(plan)))
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

/// The outer query, to which the values of subqueries are joined.
struct Outer<'a> {
    plan: LogicalPlan,
    config: &'a dyn OptimizerConfig,
    is_changed: bool,
}

impl<'a> Outer<'a> {
    fn new(plan: &LogicalPlan, config: &'a dyn OptimizerConfig) -> Self {
        Self { plan: plan.clone(), config, is_changed: false }
    }

    /// An expression over the plan with columns in the place of its subqueries.
    fn rewritten(&mut self, expr: Expr) -> Result<Expr> {
        let rewritten = expr.transform_down(|expr| {
            let Expr::ScalarSubquery(subquery) = &expr else { return Ok(Transformed::no(expr)) };
            Ok(match Parts::of(subquery, &self.plan) {
                Some(parts) => Transformed::yes(self.join(&parts)?),
                None => Transformed::no(expr),
            })
        })?;
        Ok(rewritten.data)
    }

    /// Joins the subquery's value to the plan; the column that has it.
    fn join(&mut self, parts: &Parts<'_>) -> Result<Expr> {
        let aliases = self.config.alias_generator();
        let (values, result) = (aliases.next("__outer"), aliases.next("__correlated"));
        let name = |i: usize| format!("o{i}");
        let named = (parts.outer.iter().enumerate())
            .map(|(i, column)| Expr::Column(column.clone()).alias(name(i)));
        let domain = LogicalPlanBuilder::from(self.plan.clone())
            .project(named.collect::<Vec<_>>())?
            .distinct()?
            .alias(values.as_str())?;
        let keys: Vec<Expr> = (0..parts.outer.len())
            .map(|i| Expr::Column(Column::new(Some(values.as_str()), name(i))))
            .collect();
        let condition = parts.predicate.clone().transform_up(|expr| {
            let Expr::OuterReferenceColumn(_, column) = &expr else {
                return Ok(Transformed::no(expr));
            };
            let at = parts.outer.iter().position(|outer| outer == column);
            Ok(at.map_or(Transformed::no(expr), |at| Transformed::yes(keys[at].clone())))
        })?;
        let mut rows: Vec<Expr> =
            parts.inner.schema().columns().into_iter().map(Expr::Column).collect();
        rows.push(lit(true).alias(MARK));
        let inner = LogicalPlanBuilder::from(parts.inner.clone()).project(rows)?.build()?;
        let joined = domain.join_on(inner, JoinType::Left, [condition.data])?.build()?;
        let functions = parts.functions.iter().map(marked);
        let functions = functions.collect::<Option<Vec<Expr>>>().unwrap_or_default();
        let grouped = Aggregate::try_new(Arc::new(joined), keys.clone(), functions)?;
        let mut shown: Vec<Expr> =
            (0..keys.len()).map(|i| keys[i].clone().alias(name(i))).collect();
        shown.push(parts.value.clone().unalias().alias(VALUE));
        let groups = LogicalPlanBuilder::from(LogicalPlan::Aggregate(grouped))
            .project(shown)?
            .alias(result.as_str())?
            .build()?;
        let right = (0..keys.len()).map(|i| Column::new(Some(result.as_str()), name(i)));
        // Every outer row has its group; a left join would pad rows on the way, too.
        self.plan = LogicalPlanBuilder::from(self.plan.clone())
            .join_detailed(
                groups,
                JoinType::Inner,
                (parts.outer.clone(), right.collect::<Vec<_>>()),
                None,
                NullEquality::NullEqualsNull,
            )?
            .build()?;
        self.is_changed = true;
        Ok(Expr::Column(Column::new(Some(result.as_str()), VALUE)))
    }
}

/// The parts of a subquery: one value computed from the functions over all rows of `inner` for which the
/// predicate is true.
struct Parts<'a> {
    value: Expr,
    functions: &'a [Expr],
    predicate: &'a Expr,
    inner: &'a LogicalPlan,
    /// Columns of the outer query in the predicate, each once.
    outer: Vec<Column>,
}

impl<'a> Parts<'a> {
    /// `None` where DataFusion does it, or nobody.
    fn of(subquery: &'a Subquery, outer_plan: &LogicalPlan) -> Option<Self> {
        let (value, below) = match subquery.subquery.as_ref() {
            LogicalPlan::Projection(p) if p.expr.len() == 1 => (Some(&p.expr[0]), p.input.as_ref()),
            other => (None, other),
        };
        let LogicalPlan::Aggregate(aggregate) = below else { return None };
        let LogicalPlan::Filter(filter) = aggregate.input.as_ref() else { return None };
        let value = match value {
            Some(value) => value.clone(),
            None => Expr::Column(aggregate.schema.columns().into_iter().next()?),
        };
        let is_one_row = aggregate.group_expr.is_empty() && !aggregate.aggr_expr.is_empty();
        let is_plain = aggregate.aggr_expr.iter().all(|function| marked(function).is_some());
        let reads_outward = value.contains_outer()
            || aggregate.aggr_expr.iter().any(Expr::contains_outer)
            || filter.input.contains_outer_reference()
            || filter.input.inputs().iter().any(|plan| holds_outer(plan));
        let is_equality =
            |expr: &&Expr| matches!(expr, Expr::BinaryExpr(b) if b.op == Operator::Eq);
        let mut correlated =
            split_conjunction(&filter.predicate).into_iter().filter(|expr| expr.contains_outer());
        if !is_one_row || !is_plain || reads_outward || correlated.all(|expr| is_equality(&expr)) {
            return None;
        }
        let mut outer = BTreeSet::new();
        let visited = filter.predicate.apply(|expr| {
            if let Expr::OuterReferenceColumn(_, column) = expr {
                outer.insert(column.clone());
            }
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        });
        visited.ok()?;
        let is_ours = outer.iter().all(|column| outer_plan.schema().has_column(column));
        is_ours.then(|| Self {
            value,
            functions: &aggregate.aggr_expr,
            predicate: &filter.predicate,
            inner: filter.input.as_ref(),
            outer: outer.into_iter().collect(),
        })
    }
}

fn holds_outer(plan: &LogicalPlan) -> bool {
    plan.contains_outer_reference() || plan.inputs().iter().any(|input| holds_outer(input))
}

/// An aggregate function over marked rows alone, under the same name.
fn marked(function: &Expr) -> Option<Expr> {
    let name = function.schema_name().to_string();
    let Expr::AggregateFunction(AggregateFunction { func, params }) = function.clone().unalias()
    else {
        return None;
    };
    let mark = Expr::Column(Column::from_name(MARK)).is_true();
    let filter = match params.filter {
        Some(filter) => mark.and(*filter),
        None => mark,
    };
    let params = AggregateFunctionParams { filter: Some(Box::new(filter)), ..params };
    Some(Expr::AggregateFunction(AggregateFunction { func, params }).alias(name))
}
