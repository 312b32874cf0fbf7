//! `max_by(x, y)` and `min_by(x, y)`: the `x` of the row with the greatest or least `y`.
//!
//! Rewritten before planning to `first_value` by the order of `y`, among rows where it has a value.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query,
    Select, SelectItem, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// Rewrites all calls.
pub(super) fn mark(query: &mut Query) {
    let _ = query.visit(&mut Marker);
}

struct Marker;

impl VisitorMut for Marker {
    type Break = ();

    /// A column without a name keeps that of its call.
    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && rewritten(expr).is_some()
            {
                let alias = Ident::with_quote('"', expr.to_string().to_lowercase());
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(call) = rewritten(expr) {
            *expr = call;
        }
        ControlFlow::Continue(())
    }
}

fn rewritten(expr: &Expr) -> Option<Expr> {
    let Expr::Function(call) = expr else { return None };
    let direction = match call.name.to_string().to_lowercase().as_str() {
        "max_by" => "DESC",
        "min_by" => "ASC",
        _ => return None,
    };
    let FunctionArguments::List(list) = &call.args else { return None };
    let argument = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(argument.clone()),
        _ => None,
    };
    let [value, by] =
        list.args.iter().map(argument).collect::<Option<Vec<_>>>()?.try_into().ok()?;
    let template = format!(
        "first_value(__value ORDER BY __by {direction} NULLS LAST) FILTER (WHERE __by IS NOT NULL)"
    );
    let mut parser = Parser::new(&GenericDialect {}).try_with_sql(&template).ok()?;
    let mut first = parser.parse_expr().ok()?;
    let _ = first.visit(&mut Fill { value: &value, by: &by });
    if let (Expr::Function(Function { filter, .. }), Some(given)) = (&mut first, &call.filter)
        && let Some(known) = filter.take()
    {
        let (left, op, right) = (known, BinaryOperator::And, given.clone());
        *filter = Some(Box::new(Expr::BinaryOp { left, op, right }));
    }
    Some(first)
}

struct Fill<'a> {
    value: &'a Expr,
    by: &'a Expr,
}

impl VisitorMut for Fill<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(ident) = expr {
            match ident.value.as_str() {
                "__value" => *expr = self.value.clone(),
                "__by" => *expr = self.by.clone(),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }
}
