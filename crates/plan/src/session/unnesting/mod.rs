//! Correlated subqueries of any form, and lateral joins, as joins.
//!
//! A subquery that reads columns of the outer query is computed once for each different value of
//! these columns, the *domain*: every operator of the subquery is made to work for all values of
//! the domain at once ([`domain`]), and the outer rows are joined to the result on their values. See
//! T. Neumann and A. Kemper, "Unnesting Arbitrary Queries", BTW 2015.
//!
//! DataFusion's own rules pull equalities out of a subquery, which needs no domain; they keep what
//! they do well (`is_plain`), and the rest is done here, before them.

mod domain;
mod expressions;
mod plain;
mod scopes;
mod types;

use std::sync::Arc;

use datafusion::common::alias::AliasGenerator;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::{
    Expr, Filter, Join, JoinConstraint, JoinType, LogicalPlan, Projection,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use domain::Domain;
use expressions::{Outer, Which};
pub(super) use plain::{has_subquery, reads};
pub(super) use scopes::OneMeaning;
pub(super) use types::CoerceAgain;

/// The rule.
#[derive(Debug)]
pub(super) struct Unnesting;

impl OptimizerRule for Unnesting {
    fn name(&self) -> &'static str {
        "unnesting"
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
            LogicalPlan::Join(join) => lateral(join, config),
            LogicalPlan::Filter(filter) => filtered(filter, config),
            LogicalPlan::Projection(projection) => projected(projection, config),
            other => Ok(Transformed::no(other)),
        }
    }
}

/// A join whose right side reads columns of its left side.
fn lateral(join: Join, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    let from_left = !matches!(
        join.join_type,
        JoinType::Right
            | JoinType::RightSemi
            | JoinType::RightAnti
            | JoinType::RightMark
            | JoinType::Full
    );
    // DataFusion marks a lateral subquery as one, unless all that reads the left side is in
    // expressions of it.
    let is_plain = plain::is_subquery(&join.right) && plain::is_plain(&join.right);
    if !from_left || is_plain {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let Some(domain) = Domain::of(&join.left, &join.right, config.alias_generator())? else {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    };
    let Some(right) = domain.push(&join.right)? else {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    };
    let columns = join.schema.iter().map(Expr::from).collect();
    let equal = join.on.into_iter().map(|(one, other)| one.eq(other));
    let filter = datafusion::logical_expr::utils::conjunction(equal.chain(join.filter));
    let joined = Join::try_new(
        join.left,
        Arc::new(right),
        domain.pairs(),
        filter,
        join.join_type,
        JoinConstraint::On,
        NullEquality::NullEqualsNull,
        false,
    )?;
    let joined = Arc::new(LogicalPlan::Join(joined));
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(columns, joined)?)))
}

fn filtered(filter: Filter, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    match without_subqueries(&filter, config.alias_generator(), Which::Hard)? {
        Some(plan) => Ok(Transformed::yes(plan)),
        None => Ok(Transformed::no(LogicalPlan::Filter(filter))),
    }
}

/// A filter with columns in the place of subqueries; `None` where it has none that are ours.
fn without_subqueries(
    filter: &Filter,
    aliases: &Arc<AliasGenerator>,
    which: Which,
) -> Result<Option<LogicalPlan>> {
    let mut outer = Outer::new(&filter.input, aliases, which);
    let predicate = outer.rewritten(filter.predicate.clone())?;
    let Some(input) = outer.joined() else { return Ok(None) };
    let columns = filter.input.schema().iter().map(Expr::from).collect();
    let filtered = Arc::new(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?));
    Projection::try_new(columns, filtered).map(|plan| Some(LogicalPlan::Projection(plan)))
}

fn projected(
    projection: Projection,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match computed(&projection, config.alias_generator(), Which::HardAndTests)? {
        Some(plan) => Ok(Transformed::yes(plan)),
        None => Ok(Transformed::no(LogicalPlan::Projection(projection))),
    }
}

/// A projection, as [`without_subqueries`].
fn computed(
    projection: &Projection,
    aliases: &Arc<AliasGenerator>,
    which: Which,
) -> Result<Option<LogicalPlan>> {
    let mut outer = Outer::new(&projection.input, aliases, which);
    let mut exprs = Vec::with_capacity(projection.expr.len());
    for (expr, (qualifier, field)) in projection.expr.iter().zip(projection.schema.iter()) {
        let rewritten = outer.rewritten(expr.clone())?;
        exprs.push(match rewritten == *expr || matches!(rewritten, Expr::Alias(_)) {
            true => rewritten,
            false => rewritten.alias_qualified(qualifier.cloned(), field.name()),
        });
    }
    let Some(input) = outer.joined() else { return Ok(None) };
    Projection::try_new(exprs, Arc::new(input)).map(|plan| Some(LogicalPlan::Projection(plan)))
}
