//! Scalar, EXISTS and IN subqueries in the expressions of a filter or a projection, as columns that are
//! joined to its input.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::alias::AliasGenerator;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, NullEquality, Result, ScalarValue, TableReference};
use datafusion::functions_aggregate::expr_fn::{bool_or, count};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{
    Expr, Join, JoinConstraint, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, Subquery,
    lit, when,
};

use super::domain::Domain;
use super::plain;

/// Which subqueries to rewrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Those that DataFusion cannot do.
    Hard,
    /// And all tests for rows.
    HardAndTests,
    /// All that read the outer query.
    Correlated,
}

/// The outer query, to which the values of subqueries are joined.
pub(super) struct Outer {
    plan: LogicalPlan,
    aliases: Arc<AliasGenerator>,
    which: Which,
    is_changed: bool,
}

impl Outer {
    pub(super) fn new(plan: &LogicalPlan, aliases: &Arc<AliasGenerator>, which: Which) -> Self {
        Self { plan: plan.clone(), aliases: aliases.clone(), which, is_changed: false }
    }

    /// The plan with the values, if there are any.
    pub(super) fn joined(self) -> Option<LogicalPlan> {
        self.is_changed.then_some(self.plan)
    }

    /// An expression over the plan with columns in the place of its subqueries.
    pub(super) fn rewritten(&mut self, expr: Expr) -> Result<Expr> {
        let rewritten = expr.transform_down(|expr| {
            let column = match &expr {
                Expr::ScalarSubquery(subquery) => self.scalar(subquery)?,
                Expr::Exists(Exists { subquery, negated }) => self.exists(subquery, *negated)?,
                Expr::InSubquery(within) => self.within(within)?,
                _ => None,
            };
            Ok(column.map_or(Transformed::no(expr), Transformed::yes))
        })?;
        Ok(rewritten.data)
    }

    /// True for a subquery that is ours.
    fn is_ours(&self, subquery: &Subquery) -> bool {
        match self.which {
            Which::Correlated => plain::holds_outer(&subquery.subquery),
            _ => !plain::is_plain(&subquery.subquery),
        }
    }

    /// The same of a subquery that is tested for rows, which DataFusion knows in conditions alone.
    fn is_ours_to_test(&self, subquery: &Subquery) -> bool {
        self.which == Which::HardAndTests || self.is_ours(subquery)
    }

    fn scalar(&mut self, subquery: &Subquery) -> Result<Option<Expr>> {
        if !self.is_ours(subquery) || !has_one_row(&subquery.subquery) {
            return Ok(None);
        }
        let Some(domain) = self.domain(subquery, BTreeSet::new())? else { return Ok(None) };
        let Some(pushed) = domain.push(&subquery.subquery)? else { return Ok(None) };
        let value = subquery.subquery.schema().columns().into_iter().next();
        let Some(value) = value else { return Ok(None) };
        let values = vec![Expr::Column(value).alias("v0")];
        // Else a left join would pad rows on the way.
        let is_there = has_exactly_one_row(&subquery.subquery);
        let join_type = if is_there { JoinType::Inner } else { JoinType::Left };
        self.join(&domain, pushed, values, join_type).map(|columns| columns.into_iter().next())
    }

    fn exists(&mut self, subquery: &Subquery, negated: bool) -> Result<Option<Expr>> {
        if !self.is_ours_to_test(subquery) {
            return Ok(None);
        }
        let counted = vec![count(lit(1_i64)).alias("v0")];
        let Some(columns) = self.grouped(subquery, BTreeSet::new(), |_, _| Ok(counted))? else {
            return Ok(None);
        };
        // Without a domain there is a count always, and it may be zero.
        let Some(rows) = columns.into_iter().next() else { return Ok(None) };
        let is_empty = rows.clone().is_null().or(rows.eq(lit(0_i64)));
        Ok(Some(if negated { is_empty } else { Expr::Not(Box::new(is_empty)) }))
    }

    /// `x IN (subquery)`, with SQL's three values.
    fn within(&mut self, within: &InSubquery) -> Result<Option<Expr>> {
        let InSubquery { expr, subquery, negated } = within;
        if !self.is_ours_to_test(subquery) || plain::has_subquery(expr) {
            return Ok(None);
        }
        let compared: BTreeSet<Column> = expr.column_refs().into_iter().cloned().collect();
        let calls = |own: &[(Expr, Expr)], value: Expr| {
            let of_domain = expr.as_ref().clone().transform_up(|e| {
                let own = own.iter().find(|(outer, _)| *outer == e);
                Ok(own.map_or(Transformed::no(e.clone()), |(_, own)| Transformed::yes(own.clone())))
            })?;
            Ok(vec![
                bool_or(of_domain.data.eq(value.clone())).alias("v0"),
                count(lit(1_i64)).alias("v1"),
                count(value).alias("v2"),
            ])
        };
        let Some(columns) = self.grouped(subquery, compared, calls)? else { return Ok(None) };
        let [is_match, rows, known] = columns.as_slice() else { return Ok(None) };
        let is_empty = rows.clone().is_null().or(rows.clone().eq(lit(0_i64)));
        let unknown = expr.as_ref().clone().is_null().or(known.clone().lt(rows.clone()));
        let found = when(is_empty, lit(false))
            .when(is_match.clone(), lit(true))
            .when(unknown, lit(ScalarValue::Boolean(None)))
            .otherwise(lit(false))?;
        Ok(Some(if *negated { Expr::Not(Box::new(found)) } else { found }))
    }

    /// Some functions over the subquery's rows for each value of the domain, joined to the plan.
    /// `calls` gets the domain's columns beside the outer ones, and the subquery's first column.
    fn grouped(
        &mut self,
        subquery: &Subquery,
        more: BTreeSet<Column>,
        calls: impl FnOnce(&[(Expr, Expr)], Expr) -> Result<Vec<Expr>>,
    ) -> Result<Option<Vec<Expr>>> {
        let value = subquery.subquery.schema().columns().into_iter().next();
        let value = value.map_or(lit(true), Expr::Column);
        let Some(domain) = self.domain(subquery, more)? else {
            if plain::holds_outer(&subquery.subquery) {
                return Ok(None);
            }
            let calls = calls(&[], value)?;
            let count = calls.len();
            let none: Vec<Expr> = Vec::new();
            let counted =
                LogicalPlanBuilder::from(subquery.subquery.clone()).aggregate(none, calls)?;
            let alias = TableReference::bare(self.aliases.next("__correlated"));
            let counted = counted.alias(alias.clone())?.build()?;
            let plan = LogicalPlanBuilder::from(self.plan.clone()).cross_join(counted)?;
            self.plan = plan.build()?;
            self.is_changed = true;
            return Ok(Some(columns_of(&alias, count)));
        };
        let Some(pushed) = domain.push(&subquery.subquery)? else { return Ok(None) };
        let calls = calls(&domain.pairs(), value)?;
        let count = calls.len();
        let grouped = LogicalPlanBuilder::from(pushed).aggregate(domain.own(), calls)?.build()?;
        let name = |at: usize| Expr::Column(Column::new_unqualified(format!("v{at}")));
        let values = (0..count).map(name).collect();
        self.join(&domain, grouped, values, JoinType::Left).map(Some)
    }

    /// The domain of the columns that a subquery reads, and of some more.
    fn domain(&self, subquery: &Subquery, more: BTreeSet<Column>) -> Result<Option<Domain>> {
        let mut columns = more;
        let schema = self.plan.schema();
        plain::reads(&subquery.subquery, &mut |column| {
            if schema.has_column(column) {
                columns.insert(column.clone());
            }
        })?;
        Domain::over(&self.plan, columns, &self.aliases)
    }

    /// Joins some values (named `v0`, `v1` …) to the plan by the domain; the columns that have them.
    fn join(
        &mut self,
        domain: &Domain,
        values: LogicalPlan,
        shown: Vec<Expr>,
        join_type: JoinType,
    ) -> Result<Vec<Expr>> {
        let alias = TableReference::bare(self.aliases.next("__correlated"));
        let count = shown.len();
        let own = domain.own().into_iter().enumerate();
        let own = own.map(|(at, own)| own.alias(format!("o{at}")));
        let shown = shown.into_iter().chain(own).collect::<Vec<_>>();
        let shown = LogicalPlan::Projection(Projection::try_new(shown, Arc::new(values))?);
        let right = LogicalPlanBuilder::from(shown).alias(alias.clone())?.build()?;
        let of = |name: String| Expr::Column(Column::new(Some(alias.clone()), name));
        let outer = domain.pairs().into_iter().map(|(outer, _)| outer).enumerate();
        let on = outer.map(|(at, outer)| (outer, of(format!("o{at}")))).collect();
        let joined = Join::try_new(
            Arc::new(self.plan.clone()),
            Arc::new(right),
            on,
            None,
            join_type,
            JoinConstraint::On,
            NullEquality::NullEqualsNull,
            false,
        )?;
        self.plan = LogicalPlan::Join(joined);
        self.is_changed = true;
        Ok(columns_of(&alias, count))
    }
}

/// The values of a joined subquery.
fn columns_of(alias: &TableReference, count: usize) -> Vec<Expr> {
    let column = |at| Expr::Column(Column::new(Some(alias.clone()), format!("v{at}")));
    (0..count).map(column).collect()
}

fn has_exactly_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(node) => has_exactly_one_row(&node.input),
        LogicalPlan::SubqueryAlias(node) => has_exactly_one_row(&node.input),
        LogicalPlan::Aggregate(node) => node.group_expr.is_empty(),
        _ => false,
    }
}

/// At most one row for any row of the outer query.
fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(node) => has_one_row(&node.input),
        LogicalPlan::SubqueryAlias(node) => has_one_row(&node.input),
        LogicalPlan::Filter(node) => has_one_row(&node.input),
        LogicalPlan::Sort(node) => has_one_row(&node.input),
        LogicalPlan::Aggregate(node) => node.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::Limit(node) => crate::session::ties::range_of(node)
            .is_some_and(|(_, fetch)| fetch.is_some_and(|rows| rows <= 1)),
        _ => false,
    }
}
