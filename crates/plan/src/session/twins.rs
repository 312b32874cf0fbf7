//! Columns of one name in a SELECT where names have no meaning.
//!
//! `(SELECT a, a FROM t) AS v(x, y)`, the second part of a UNION, the SELECT of an EXISTS: their
//! columns may have any names, or the same, but DataFusion wants them to differ. Later columns of a
//! name get another one, before planning.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, Select, SelectItem, SetExpr, TableFactor, UnaryOperator, VisitMut,
    VisitorMut,
};

/// Gives columns of one name different ones where nobody can ask for them by name.
pub(crate) fn mark(query: &mut Query) {
    let _ = query.visit(&mut Twins);
}

struct Twins;

impl VisitorMut for Twins {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            if !cte.alias.columns.is_empty() {
                rename(&mut cte.query.body);
            }
        }
        rename_right(&mut query.body);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Derived { subquery, alias: Some(alias), .. } = factor
            && !alias.columns.is_empty()
        {
            rename(&mut subquery.body);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Exists { subquery, .. } = expr {
            rename(&mut subquery.body);
        }
        ControlFlow::Continue(())
    }
}

/// Renames in all parts but the first, whose names are those of the whole.
fn rename_right(body: &mut SetExpr) {
    if let SetExpr::SetOperation { left, right, .. } = body {
        rename_right(left);
        rename(right);
    }
}

fn rename(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => rename_items(select),
        SetExpr::Query(query) => rename(&mut query.body),
        SetExpr::SetOperation { left, right, .. } => {
            rename(left);
            rename(right);
        }
        _ => {}
    }
}

fn rename_items(select: &mut Select) {
    let mut seen = HashSet::new();
    for (at, item) in select.projection.iter_mut().enumerate() {
        let Some(name) = name(item) else { continue };
        if seen.insert(name.clone()) {
            continue;
        }
        let alias = Ident::with_quote('"', format!("{name}:{at}"));
        match item {
            SelectItem::UnnamedExpr(expr) => {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            }
            SelectItem::ExprWithAlias { alias: old, .. } => *old = alias,
            _ => {}
        }
    }
}

/// The expression without parentheses and `+`, which leave no trace in its name.
fn plain(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Plus, expr: inner } => {
            plain(inner)
        }
        other => other,
    }
}

/// The first name that two columns of the result have.
pub(crate) fn repeated(query: &Query) -> Option<String> {
    let mut body = query.body.as_ref();
    loop {
        body = match body {
            SetExpr::Query(query) => query.body.as_ref(),
            SetExpr::SetOperation { left, .. } => left.as_ref(),
            SetExpr::Select(select) => {
                let mut seen = HashSet::new();
                return select.projection.iter().filter_map(name).find(|n| !seen.insert(n.clone()));
            }
            _ => return None,
        };
    }
}

/// The name of a column, in lower case; none where it is not known here.
fn name(item: &SelectItem) -> Option<String> {
    let name = match item {
        SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
        SelectItem::UnnamedExpr(expr) => match plain(expr) {
            Expr::Identifier(ident) => ident.value.clone(),
            Expr::CompoundIdentifier(parts) => parts.last()?.value.clone(),
            other => other.to_string(),
        },
        _ => return None,
    };
    Some(name.to_lowercase())
}
