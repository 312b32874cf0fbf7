//! The domain of a subquery, and its operators over all values of it at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::alias::AliasGenerator;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef, NullEquality, Result, ScalarValue, TableReference};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprFunctionExt, Filter, Join, JoinConstraint, JoinType, Limit,
    LogicalPlan, LogicalPlanBuilder, Operator, Projection, SortExpr, Union, Window, lit, when,
};

use super::expressions::Which;
use super::plain::{has_subquery, reads};
use super::{computed, without_subqueries};
use crate::session::ties;

/// The different values of the outer columns that a subquery reads.
pub(super) struct Domain {
    /// The outer columns.
    columns: Vec<Column>,
    /// Names of the domain's, which no other domain has.
    names: Vec<String>,
    /// One row per value, under the names of [`Self::own`].
    rows: LogicalPlan,
    alias: TableReference,
    aliases: Arc<AliasGenerator>,
}

impl Domain {
    /// Of a subquery beside the rows of `outer`; `None` if it reads none of their columns.
    pub(super) fn of(
        outer: &LogicalPlan,
        subquery: &LogicalPlan,
        aliases: &Arc<AliasGenerator>,
    ) -> Result<Option<Self>> {
        let mut columns = BTreeSet::new();
        reads(subquery, &mut |column| {
            if outer.schema().has_column(column) {
                columns.insert(column.clone());
            }
        })?;
        Self::over(outer, columns, aliases)
    }

    /// Of given columns of `outer`.
    pub(super) fn over(
        outer: &LogicalPlan,
        columns: BTreeSet<Column>,
        aliases: &Arc<AliasGenerator>,
    ) -> Result<Option<Self>> {
        if columns.is_empty() {
            return Ok(None);
        }
        let columns: Vec<Column> = columns.into_iter().collect();
        let alias = TableReference::bare(aliases.next("__outer"));
        let named = columns.iter().enumerate();
        let named = named.map(|(at, column)| Expr::Column(column.clone()).alias(name(&alias, at)));
        let names = (0..columns.len()).map(|at| name(&alias, at)).collect();
        let rows = LogicalPlanBuilder::from(outer.clone())
            .project(named.collect::<Vec<_>>())?
            .distinct()?
            .build()?;
        let aliases = aliases.clone();
        Some(Self { columns, names, rows, alias, aliases }.named()).transpose()
    }

    /// The rows under the domain's alias.
    fn named(mut self) -> Result<Self> {
        self.rows = LogicalPlanBuilder::from(self.rows).alias(self.alias.clone())?.build()?;
        Ok(self)
    }

    /// The same values under another alias.
    fn again(&self) -> Result<Self> {
        let alias = TableReference::bare(self.aliases.next("__outer"));
        let LogicalPlan::SubqueryAlias(named) = &self.rows else {
            return datafusion::common::internal_err!("a domain has an alias");
        };
        let rows = named.input.as_ref().clone();
        let (columns, names) = (self.columns.clone(), self.names.clone());
        Self { columns, names, rows, alias, aliases: self.aliases.clone() }.named()
    }

    /// The domain's columns.
    pub(super) fn own(&self) -> Vec<Expr> {
        let names = self.names.iter();
        names.map(|name| Expr::Column(Column::new(Some(self.alias.clone()), name))).collect()
    }

    /// Outer columns beside the domain's.
    pub(super) fn pairs(&self) -> Vec<(Expr, Expr)> {
        self.columns.iter().cloned().map(Expr::Column).zip(self.own()).collect()
    }

    /// An expression of the subquery over the domain's columns.
    pub(super) fn bound(&self, expr: Expr) -> Result<Expr> {
        let own = self.own();
        let bound = expr.transform_up(|expr| {
            let Expr::OuterReferenceColumn(_, column) = &expr else {
                return Ok(Transformed::no(expr));
            };
            let at = self.columns.iter().position(|outer| outer == column);
            Ok(at.map_or(Transformed::no(expr), |at| Transformed::yes(own[at].clone())))
        });
        bound.map(|expr| expr.data)
    }

    fn all_bound(&self, exprs: &[Expr]) -> Result<Vec<Expr>> {
        exprs.iter().map(|expr| self.bound(expr.clone())).collect()
    }

    /// The subquery for all values of the domain: its own columns as they are, then the domain's.
    /// `None` if some operator of it has no such form.
    pub(super) fn push(&self, plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        if let LogicalPlan::EmptyRelation(empty) = plan
            && empty.produce_one_row
        {
            return Ok(Some(self.rows.clone()));
        }
        if !self.is_read_by(plan)? {
            let beside = LogicalPlanBuilder::from(plan.clone()).cross_join(self.rows.clone())?;
            return beside.build().map(Some);
        }
        match plan {
            LogicalPlan::Subquery(subquery) => self.push(&subquery.subquery),
            LogicalPlan::Projection(node) => self.projection(node),
            LogicalPlan::Filter(node) => {
                if self.is_read_within(&node.predicate)? {
                    return match without_subqueries(node, &self.aliases, Which::Correlated)? {
                        Some(plan) => self.push(&plan),
                        None => Ok(None),
                    };
                }
                let predicate = self.bound(node.predicate.clone())?;
                self.over_input(&node.input, |input| {
                    Ok(LogicalPlan::Filter(Filter::try_new(predicate, input)?))
                })
            }
            LogicalPlan::SubqueryAlias(node) => {
                let names = node.schema.fields().iter().map(|field| field.name().clone());
                let inner = node.input.schema().iter().map(Expr::from);
                let exprs = inner
                    .zip(names)
                    .map(|(expr, name)| expr.alias_qualified(Some(node.alias.clone()), name));
                let exprs = exprs.chain(self.own()).collect();
                self.over_input(&node.input, |input| {
                    Ok(LogicalPlan::Projection(Projection::try_new(exprs, input)?))
                })
            }
            LogicalPlan::Aggregate(node) => self.aggregate(node),
            // The order of rows means nothing but to a LIMIT.
            LogicalPlan::Sort(node) if node.fetch.is_none() => self.push(&node.input),
            LogicalPlan::Limit(node) => self.limit(node),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                self.over_input(input, |input| Ok(LogicalPlan::Distinct(Distinct::All(input))))
            }
            LogicalPlan::Window(node) => self.window(node),
            LogicalPlan::Join(node) => self.join(node),
            LogicalPlan::Union(node) => {
                let inputs = node.inputs.iter().map(|input| self.push(input));
                let Some(inputs) = inputs.collect::<Result<Option<Vec<_>>>>()? else {
                    return Ok(None);
                };
                let union = Union::try_new(inputs.into_iter().map(Arc::new).collect())?;
                self.renamed(LogicalPlan::Union(union), &node.schema).map(Some)
            }
            LogicalPlan::Unnest(node) => self.over_input(&node.input, |input| {
                LogicalPlanBuilder::from(Arc::unwrap_or_clone(input))
                    .unnest_columns_with_options(node.exec_columns.clone(), node.options.clone())?
                    .build()
            }),
            _ => Ok(None),
        }
    }

    fn is_read_by(&self, plan: &LogicalPlan) -> Result<bool> {
        let mut found = false;
        reads(plan, &mut |column| found |= self.columns.contains(column))?;
        Ok(found)
    }

    /// A subquery within an expression reads the domain.
    fn is_read_within(&self, expr: &Expr) -> Result<bool> {
        let mut found = false;
        expr.apply(|e| {
            let plan = match e {
                Expr::ScalarSubquery(subquery) => Some(&subquery.subquery),
                Expr::Exists(exists) => Some(&exists.subquery.subquery),
                Expr::InSubquery(within) => Some(&within.subquery.subquery),
                _ => None,
            };
            if let Some(plan) = plan {
                found |= self.is_read_by(plan)?;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(found)
    }

    fn over_input(
        &self,
        input: &LogicalPlan,
        node: impl FnOnce(Arc<LogicalPlan>) -> Result<LogicalPlan>,
    ) -> Result<Option<LogicalPlan>> {
        match self.push(input)? {
            Some(input) => node(Arc::new(input)).map(Some),
            None => Ok(None),
        }
    }

    /// The columns of `schema`, then the domain's.
    fn arranged(&self, plan: LogicalPlan, schema: &DFSchemaRef) -> Result<LogicalPlan> {
        let columns = schema.iter().map(Expr::from).chain(self.own()).collect();
        Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
    }

    /// The first columns under the names of `schema`, the last under the domain's.
    fn renamed(&self, plan: LogicalPlan, schema: &DFSchemaRef) -> Result<LogicalPlan> {
        let own = self.names.iter().map(|name| (Some(self.alias.clone()), name.clone()));
        let names = schema.iter().map(|(table, field)| (table.cloned(), field.name().clone()));
        let names: Vec<_> = names.chain(own).collect();
        let columns = plan.schema().columns().into_iter().zip(names);
        let columns = columns.map(|(column, (table, name))| match column.relation == table {
            true if column.name == name => Expr::Column(column),
            _ => Expr::Column(column).alias_qualified(table, name),
        });
        let columns = columns.collect();
        Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
    }

    fn projection(&self, node: &Projection) -> Result<Option<LogicalPlan>> {
        for expr in &node.expr {
            if self.is_read_within(expr)? {
                return match computed(node, &self.aliases, Which::Correlated)? {
                    Some(plan) => self.push(&plan),
                    None => Ok(None),
                };
            }
        }
        let names = NamePreserver::new_for_projection();
        let mut exprs = Vec::with_capacity(node.expr.len() + self.columns.len());
        for expr in &node.expr {
            let name = names.save(expr);
            exprs.push(name.restore(self.bound(expr.clone())?));
        }
        exprs.extend(self.own());
        self.over_input(&node.input, |input| {
            Ok(LogicalPlan::Projection(Projection::try_new(exprs, input)?))
        })
    }

    fn aggregate(&self, node: &Aggregate) -> Result<Option<LogicalPlan>> {
        if node.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
            return Ok(None);
        }
        let Some(input) = self.push(&node.input)? else { return Ok(None) };
        let names = NamePreserver::new_for_projection();
        let bound = |exprs: &[Expr]| -> Result<Vec<Expr>> {
            let named = |expr: &Expr| Ok(names.save(expr).restore(self.bound(expr.clone())?));
            exprs.iter().map(named).collect()
        };
        let mut groups = bound(&node.group_expr)?;
        groups.extend(self.own());
        let calls = bound(&node.aggr_expr)?;
        let grouped = Aggregate::try_new(Arc::new(input), groups, calls)?;
        let grouped = self.arranged(LogicalPlan::Aggregate(grouped), &node.schema)?;
        if !node.group_expr.is_empty() {
            return Ok(Some(grouped));
        }
        self.with_empty_groups(node, grouped).map(Some)
    }

    /// An aggregate without groups has one row for no input, too: so has each value of the domain.
    fn with_empty_groups(&self, node: &Aggregate, grouped: LogicalPlan) -> Result<LogicalPlan> {
        const MARK: &str = "__is_row";
        let groups = TableReference::bare(self.aliases.next("__groups"));
        let numbered = node.schema.iter().enumerate();
        let numbered = numbered.map(|(at, column)| Expr::from(column).alias(format!("v{at}")));
        let named = self.own().into_iter().enumerate().map(|(at, own)| own.alias(format!("o{at}")));
        let shown = numbered.chain(named).chain([lit(true).alias(MARK)]);
        let grouped = LogicalPlanBuilder::from(grouped)
            .project(shown.collect::<Vec<_>>())?
            .alias(groups.clone())?
            .build()?;
        let of = |name: String| Expr::Column(Column::new(Some(groups.clone()), name));
        let on = self
            .own()
            .into_iter()
            .enumerate()
            .map(|(at, own)| (own, of(format!("o{at}"))))
            .collect();
        let joined = Join::try_new(
            Arc::new(self.rows.clone()),
            Arc::new(grouped),
            on,
            None,
            JoinType::Left,
            JoinConstraint::On,
            NullEquality::NullEqualsNull,
            false,
        )?;
        let mut columns = Vec::new();
        for (at, ((table, field), call)) in node.schema.iter().zip(&node.aggr_expr).enumerate() {
            let value = of(format!("v{at}"));
            let value = match of_nothing(call, field.data_type())? {
                empty if empty.is_null() => value,
                empty => when(of(MARK.into()).is_null(), lit(empty)).otherwise(value)?,
            };
            columns.push(value.alias_qualified(table.cloned(), field.name()));
        }
        columns.extend(self.own());
        let joined = Arc::new(LogicalPlan::Join(joined));
        Ok(LogicalPlan::Projection(Projection::try_new(columns, joined)?))
    }

    /// The first rows of each value of the domain.
    fn limit(&self, node: &Limit) -> Result<Option<LogicalPlan>> {
        let Some((skip, fetch)) = ties::range_of(node) else { return Ok(None) };
        let (input, keys): (&LogicalPlan, Vec<SortExpr>) = match node.input.as_ref() {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => (&sort.input, sort.expr.clone()),
            // A projection keeps rows and their order.
            LogicalPlan::Projection(projection) if ties::ordered(&projection.input) => {
                let limit = Limit { input: projection.input.clone(), ..node.clone() };
                let input = Arc::new(LogicalPlan::Limit(limit));
                return self.projection(&Projection::try_new(projection.expr.clone(), input)?);
            }
            LogicalPlan::SubqueryAlias(_) if ties::ordered(&node.input) => return Ok(None),
            other => (other, Vec::new()),
        };
        let Some(pushed) = self.push(input)? else { return Ok(None) };
        let keys = keys.into_iter().map(|key| Ok(SortExpr { expr: self.bound(key.expr)?, ..key }));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let number = self.aliases.next("__number");
        let call = row_number().partition_by(self.own()).order_by(keys).build()?;
        let numbered =
            LogicalPlanBuilder::from(pushed).window(vec![call.alias(number.as_str())])?;
        let number = Expr::Column(Column::new_unqualified(number));
        let places = |places: usize| lit(u64::try_from(places).unwrap_or(u64::MAX));
        let mut condition = number.clone().gt(places(skip));
        if let Some(fetch) = fetch {
            condition = condition.and(number.lt_eq(places(skip.saturating_add(fetch))));
        }
        self.arranged(numbered.filter(condition)?.build()?, input.schema()).map(Some)
    }

    fn window(&self, node: &Window) -> Result<Option<LogicalPlan>> {
        let names = NamePreserver::new_for_projection();
        let mut calls = Vec::with_capacity(node.window_expr.len());
        for expr in self.all_bound(&node.window_expr)?.into_iter().zip(&node.window_expr) {
            let (bound, original) = expr;
            let name = names.save(original);
            let Expr::WindowFunction(mut call) = bound.unalias() else { return Ok(None) };
            let WindowFunction { params, .. } = call.as_mut();
            params.partition_by.extend(self.own());
            calls.push(name.restore(Expr::WindowFunction(call)));
        }
        let Some(input) = self.push(&node.input)? else { return Ok(None) };
        let window = LogicalPlan::Window(Window::try_new(calls, Arc::new(input))?);
        self.arranged(window, &node.schema).map(Some)
    }

    /// Each side that reads the domain has its columns; both sides have equal ones.
    fn join(&self, node: &Join) -> Result<Option<LogicalPlan>> {
        let keeps_right = match node.join_type {
            JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti => false,
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti => true,
            JoinType::Full | JoinType::LeftMark | JoinType::RightMark => return Ok(None),
        };
        if node.null_aware {
            return Ok(None);
        }
        let (kept, other) =
            if keeps_right { (&node.right, &node.left) } else { (&node.left, &node.right) };
        let again = self.again()?;
        let Some(kept) = self.push(kept)? else { return Ok(None) };
        let is_read = self.is_read_by(other)?;
        let other = match is_read {
            true => again.push(other)?,
            false => Some(other.as_ref().clone()),
        };
        let Some(other) = other else { return Ok(None) };
        let mut filter = node.filter.clone().map(|filter| self.bound(filter)).transpose()?;
        if filter.as_ref().is_some_and(has_subquery) {
            return Ok(None);
        }
        let mut on = Vec::with_capacity(node.on.len());
        for (l, r) in &node.on {
            on.push((self.bound(l.clone())?, self.bound(r.clone())?));
        }
        let mut null_equality = node.null_equality;
        if is_read {
            let (mine, theirs) = (self.own(), again.own());
            let (left, right) = if keeps_right { (theirs, mine) } else { (mine, theirs) };
            let pairs = left.into_iter().zip(right);
            if on.is_empty() {
                (on, null_equality) = (pairs.collect(), NullEquality::NullEqualsNull);
            } else {
                for (l, r) in pairs {
                    let same =
                        datafusion::logical_expr::binary_expr(l, Operator::IsNotDistinctFrom, r);
                    filter = Some(filter.map_or(same.clone(), |filter| filter.and(same)));
                }
            }
        }
        let (left, right) = if keeps_right { (other, kept) } else { (kept, other) };
        let joined = Join::try_new(
            Arc::new(left),
            Arc::new(right),
            on,
            filter,
            node.join_type,
            node.join_constraint,
            null_equality,
            false,
        )?;
        self.arranged(LogicalPlan::Join(joined), &node.schema).map(Some)
    }
}

/// Name of a domain's column.
fn name(alias: &TableReference, at: usize) -> String {
    format!("{alias} {at}")
}

/// What an aggregate function is of no rows.
fn of_nothing(call: &Expr, data_type: &arrow::datatypes::DataType) -> Result<ScalarValue> {
    match call.clone().unalias() {
        Expr::AggregateFunction(AggregateFunction { func, .. }) => func.default_value(data_type),
        _ => ScalarValue::try_from(data_type),
    }
}
