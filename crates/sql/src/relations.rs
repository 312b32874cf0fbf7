//! Which tables a parsed query reads: names that no CTE in scope hides, what each join joins, and
//! which constructs need all rows of what they read.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, GroupByExpr, JoinOperator, ObjectName, Query, Select, SetExpr, SetOperator,
    SetQuantifier, Spanned as _, TableFactor, Visit, Visitor,
};
use sqlparser::tokenizer::Location;

use crate::ast::{
    JoinSide, JoinedSources, Name, ParseError, QuerySource, Span, TableRef, Unbounded,
};
use crate::errors::error;
use crate::query::Placeholders;
use crate::streams::Replacement;
use crate::tokens::Cursor;

/// What a query reads.
#[derive(Debug, Default)]
pub(crate) struct Relations {
    /// In order of their places.
    pub(crate) sources: Vec<QuerySource>,
    /// See [`Unbounded`].
    pub(crate) unbounded: Vec<Unbounded>,
    /// See [`JoinedSources`].
    pub(crate) joins: Vec<JoinedSources>,
    /// Edits (file bytes, new text) for names that the planner should not see as they are.
    pub(crate) pieces: Vec<(usize, usize, String)>,
}

/// Walks `tree`, whose tokens have the places of `part`.
pub(crate) fn collect(
    tree: &Query,
    part: &Cursor<'_>,
    replacements: &[Replacement],
    placeholders: &mut Placeholders,
) -> Result<Relations, ParseError> {
    let streams = replacements
        .iter()
        .filter_map(|r| r.source.as_ref())
        .map(|s| (s.placeholder.as_str(), s))
        .collect();
    let mut walk = Walk {
        part,
        streams,
        placeholders,
        queries: Vec::new(),
        scopes: Vec::new(),
        selects: Vec::new(),
        found: Relations::default(),
    };
    if let ControlFlow::Break(e) = tree.visit(&mut walk) {
        return Err(*e);
    }
    let mut found = walk.found;
    found.sources.sort_by_key(|s| s.span.start);
    found.unbounded.sort_by_key(|u| u.span.start);
    Ok(found)
}

/// ``format.`path` ``.
pub(crate) fn external(parts: &[String], span: Span) -> Option<TableRef> {
    const FORMATS: &[&str] = &["parquet", "delta", "csv", "json"];
    let [format, path] = parts else {
        return None;
    };
    let format = format.to_ascii_lowercase();
    let is_path = path.contains(['/', '\\', '*']) || path.contains('.');
    (FORMATS.contains(&format.as_str()) && is_path).then(|| TableRef::External {
        format,
        path: path.clone(),
        span,
    })
}

/// A query under way and the CTEs that it defines.
#[derive(Debug, Default)]
struct OpenQuery {
    /// Lower-case names with what each reads, filled when its query is done.
    ctes: Vec<(String, BTreeSet<String>)>,
    recursive: bool,
    /// CTEs whose query is done.
    done: usize,
}

/// A `SELECT` under way.
#[derive(Debug, Default)]
struct OpenSelect {
    aggregate: Option<(String, Span)>,
    window: Option<Span>,
    /// What each table factor reads.
    sides: Vec<BTreeSet<String>>,
    /// Scopes that were open when it began.
    depth: usize,
}

struct Walk<'a> {
    part: &'a Cursor<'a>,
    streams: BTreeMap<&'a str, &'a QuerySource>,
    placeholders: &'a mut Placeholders,
    queries: Vec<OpenQuery>,
    /// Placeholders read within each open query, select and table factor.
    scopes: Vec<BTreeSet<String>>,
    selects: Vec<OpenSelect>,
    found: Relations,
}

impl Walk<'_> {
    /// What the CTE of this name reads, if one is in scope.
    fn cte(&self, name: &str) -> Option<&BTreeSet<String>> {
        self.queries.iter().rev().find_map(|q| {
            let visible = if q.done < q.ctes.len() {
                q.done + usize::from(q.recursive)
            } else {
                q.ctes.len()
            };
            q.ctes[..visible].iter().rev().find(|(n, _)| n == name).map(|(_, reads)| reads)
        })
    }

    fn reads(&mut self, placeholder: &str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(placeholder.to_owned());
        }
    }

    /// Closes a scope; what it read was read by the one around it too.
    fn close(&mut self) -> BTreeSet<String> {
        let scope = self.scopes.pop().unwrap_or_default();
        if let Some(outer) = self.scopes.last_mut() {
            outer.extend(scope.iter().cloned());
        }
        scope
    }

    /// Token at a place that the parser tells.
    fn token_at(&self, at: Location) -> Option<usize> {
        let key = (at.line, at.column);
        self.part.toks.binary_search_by_key(&key, |t| (t.span.line, t.span.column)).ok()
    }

    fn span_at(&self, at: Location) -> Span {
        self.token_at(at).map_or_else(|| self.part.span(), |n| self.part.toks[n].span)
    }

    fn relation(&mut self, name: &ObjectName) -> Result<(), ParseError> {
        let idents: Vec<_> = name.0.iter().filter_map(|p| p.as_ident()).collect();
        let (Some(first), Some(last)) = (idents.first(), idents.last()) else {
            return Ok(());
        };
        if idents.len() == 1 {
            if let Some(source) = self.streams.get(first.value.as_str()).copied() {
                return self.stream(source);
            }
            if let Some(reads) = self.cte(&first.value.to_lowercase()).cloned() {
                if let Some(scope) = self.scopes.last_mut() {
                    scope.extend(reads);
                }
                return Ok(());
            }
        }
        let start = self.span_at(first.span.start);
        let end = self.span_at(last.span.start).end;
        let span = Span { end, ..start };
        let mut parts: Vec<String> = idents.iter().map(|i| i.value.clone()).collect();
        if let Some(table) = external(&parts, span) {
            let placeholder = self.placeholders.fresh();
            self.found.pieces.push((span.start, span.end, placeholder.clone()));
            self.reads(&placeholder);
            self.found.sources.push(QuerySource { placeholder, table, streaming: false, span });
            return Ok(());
        }
        let live = parts.len() > 1
            && first.quote_style.is_none()
            && first.value.eq_ignore_ascii_case("live");
        if live {
            let next = self.span_at(idents[1].span.start).start;
            self.found.pieces.push((span.start, next, String::new()));
            parts.remove(0);
        }
        let placeholder = parts.join(".").to_lowercase();
        self.reads(&placeholder);
        let table = TableRef::Table(Name { parts, span });
        self.found.sources.push(QuerySource { placeholder, table, streaming: false, span });
        Ok(())
    }

    fn stream(&mut self, source: &QuerySource) -> Result<(), ParseError> {
        if let TableRef::Table(name) = &source.table
            && let [table] = &name.parts[..]
            && self.cte(&table.to_lowercase()).is_some()
        {
            let message = format!("'{table}' is a common table expression, not a table");
            let hint = "leave STREAM out here and read the stream inside of the WITH query";
            return Err(error(source.span, message, Some(hint.into())));
        }
        self.reads(&source.placeholder);
        self.found.sources.push(source.clone());
        Ok(())
    }

    fn unbounded(&mut self, what: &str, over: &BTreeSet<String>, span: Span) {
        if !over.is_empty() {
            let over = over.iter().cloned().collect();
            self.found.unbounded.push(Unbounded { what: what.to_owned(), over, span });
        }
    }

    fn set_operations(&mut self, body: &SetExpr, over: &BTreeSet<String>) {
        let SetExpr::SetOperation { op, set_quantifier, left, right } = body else {
            return;
        };
        let all = matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName);
        if *op != SetOperator::Union || !all {
            let span = self.span_at(right.span().start);
            self.unbounded(&format!("{op} without duplicates"), over, span);
        }
        self.set_operations(left, over);
        self.set_operations(right, over);
    }

    fn finish_select(&mut self, select: &Select, open: OpenSelect, over: &BTreeSet<String>) {
        let span = self.span_at(select.select_token.0.span.start);
        let grouped = match &select.group_by {
            GroupByExpr::All(_) => true,
            GroupByExpr::Expressions(list, modifiers) => !list.is_empty() || !modifiers.is_empty(),
        };
        if let Some((function, span)) = open.aggregate {
            self.unbounded(&format!("the aggregate function {function}"), over, span);
        } else if grouped || select.having.is_some() {
            self.unbounded("GROUP BY", over, span);
        }
        if select.distinct.is_some() {
            self.unbounded("SELECT DISTINCT", over, span);
        }
        if let Some(span) = open.window {
            self.unbounded("a window function", over, span);
        }
        let tables: BTreeSet<&String> = open.sides.iter().flatten().collect();
        let others = over.iter().filter(|p| !tables.contains(p)).cloned().collect();
        self.unbounded("a subquery in an expression", &others, span);
        if open.sides.len() > 1 {
            let kept = kept_sides(select);
            let sides = open.sides.into_iter().enumerate().map(|(n, over)| JoinSide {
                over: over.into_iter().collect(),
                kept: kept.get(n).copied().unwrap_or(false),
            });
            self.found.joins.push(JoinedSources { sides: sides.collect(), span });
        }
    }
}

/// Per table factor of the select: whether an outer or anti join keeps its rows without a match.
fn kept_sides(select: &Select) -> Vec<bool> {
    let mut kept = Vec::new();
    for from in &select.from {
        let first = kept.len();
        kept.push(false);
        for join in &from.joins {
            let (left, right) = match &join.join_operator {
                JoinOperator::Left(_)
                | JoinOperator::LeftOuter(_)
                | JoinOperator::Anti(_)
                | JoinOperator::LeftAnti(_) => (true, false),
                JoinOperator::Right(_)
                | JoinOperator::RightOuter(_)
                | JoinOperator::RightAnti(_) => (false, true),
                JoinOperator::FullOuter(_) => (true, true),
                _ => (false, false),
            };
            kept[first..].iter_mut().for_each(|k| *k |= left);
            kept.push(right);
        }
    }
    kept
}

impl Visitor for Walk<'_> {
    type Break = Box<ParseError>;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        let mut open = OpenQuery::default();
        if let Some(with) = &query.with {
            open.recursive = with.recursive;
            let name = |c: &sqlparser::ast::Cte| c.alias.name.value.to_lowercase();
            open.ctes = with.cte_tables.iter().map(|c| (name(c), BTreeSet::new())).collect();
        }
        self.queries.push(open);
        self.scopes.push(BTreeSet::new());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        let over = self.close();
        self.queries.pop();
        if query.limit_clause.is_some() || query.fetch.is_some() {
            let span = self.span_at(query.body.span().start);
            self.unbounded("LIMIT", &over, span);
        }
        if let Some(with) = query.with.as_ref().filter(|w| w.recursive) {
            let span = self.span_at(with.with_token.0.span.start);
            self.unbounded("WITH RECURSIVE", &over, span);
        }
        self.set_operations(&query.body, &over);
        if let Some(outer) = self.queries.last_mut()
            && outer.done < outer.ctes.len()
        {
            outer.ctes[outer.done].1 = over;
            outer.done += 1;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, _select: &Select) -> ControlFlow<Self::Break> {
        self.scopes.push(BTreeSet::new());
        let depth = self.scopes.len();
        self.selects.push(OpenSelect { depth, ..OpenSelect::default() });
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        let over = self.close();
        if let Some(open) = self.selects.pop() {
            self.finish_select(select, open, &over);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Self::Break> {
        self.scopes.push(BTreeSet::new());
        if let TableFactor::Table { name, args: None, .. } = factor
            && let Err(e) = self.relation(name)
        {
            return ControlFlow::Break(Box::new(e));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, _factor: &TableFactor) -> ControlFlow<Self::Break> {
        let over = self.close();
        let depth = self.scopes.len();
        if let Some(select) = self.selects.last_mut()
            && select.depth == depth
        {
            select.sides.push(over);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        let Expr::Function(function) = expr else {
            return ControlFlow::Continue(());
        };
        let name = function.name.0.last().and_then(|p| p.as_ident());
        let Some(name) = name else {
            return ControlFlow::Continue(());
        };
        let span = self.span_at(name.span.start);
        let aggregate = AGGREGATES.contains(&name.value.to_ascii_lowercase().as_str());
        if let Some(select) = self.selects.last_mut() {
            if function.over.is_some() {
                select.window.get_or_insert(span);
            } else if aggregate {
                select.aggregate.get_or_insert((name.value.clone(), span));
            }
        }
        ControlFlow::Continue(())
    }
}

/// Aggregate functions, to see an aggregate without GROUP BY. A user-defined one is only seen by
/// its GROUP BY.
const AGGREGATES: &[&str] = &[
    "any_value",
    "approx_count_distinct",
    "approx_distinct",
    "approx_median",
    "approx_percentile",
    "approx_percentile_cont",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "collect_list",
    "collect_set",
    "corr",
    "count",
    "count_if",
    "covar_pop",
    "covar_samp",
    "every",
    "first",
    "first_value",
    "grouping",
    "kurtosis",
    "last",
    "last_value",
    "listagg",
    "max",
    "max_by",
    "mean",
    "median",
    "min",
    "min_by",
    "mode",
    "nth_value",
    "percentile",
    "percentile_approx",
    "percentile_cont",
    "percentile_disc",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "skewness",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "try_avg",
    "try_sum",
    "var_pop",
    "var_samp",
    "variance",
];
