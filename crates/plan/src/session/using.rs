//! The column that `JOIN … USING (c)` makes of the two sides' columns.
//!
//! DataFusion lets `c` stand for the left side's column, which is NULL for the unmatched rows of a
//! RIGHT or FULL JOIN, and finds it ambiguous in WHERE. Here `c` is replaced, before planning, by the
//! left column (inner and LEFT joins), the right one (RIGHT) or the first of both that is not NULL
//! (FULL); `*` replaces its column likewise.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, ObjectName, Query,
    ReplaceSelectElement, ReplaceSelectItem, Select, SelectItem, SetExpr, TableFactor, VisitMut,
    VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use deltaic_batch::{Error, Result};

/// Rewrites every SELECT over a join with USING.
pub(crate) fn mark(query: &mut Query) -> Result<()> {
    match query.visit(&mut Selects) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Selects;

impl VisitorMut for Selects {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        match body(&mut query.body) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

fn body(set: &mut SetExpr) -> Result<()> {
    match set {
        SetExpr::Select(select) => rewrite(select),
        SetExpr::SetOperation { left, right, .. } => {
            body(left)?;
            body(right)
        }
        _ => Ok(()),
    }
}

/// A merged column: its name and what it stands for.
struct Merged {
    name: String,
    /// A column of the left side, one of the right, or both.
    value: Expr,
    /// DataFusion's own choice, the left column, would be wrong.
    differs: bool,
}

fn rewrite(select: &mut Select) -> Result<()> {
    let mut merged: Vec<Merged> = Vec::new();
    for from in &select.from {
        let mut left = alias(&from.relation).filter(|_| select.from.len() == 1);
        for join in &from.joins {
            let kind = Kind::of(&join.join_operator);
            match constraint(&join.join_operator) {
                Some(JoinConstraint::Using(columns)) => {
                    let right = alias(&join.relation);
                    for column in columns {
                        merge(&mut merged, kind, column, left.as_ref(), right.as_ref())?;
                    }
                }
                Some(JoinConstraint::Natural) if kind != Kind::Left => return Err(refused()),
                _ => {}
            }
            // Whose a column is after a join is known only where USING says it.
            left = None;
        }
    }
    if merged.is_empty() {
        return Ok(());
    }
    for item in &mut select.projection {
        rewrite_item(item, &merged);
    }
    let mut columns = Columns { merged: &merged, depth: 0 };
    let groups = match &mut select.group_by {
        GroupByExpr::Expressions(exprs, _) => exprs.as_mut_slice(),
        GroupByExpr::All(_) => &mut [],
    };
    let clauses = select.selection.iter_mut().chain(&mut select.having).chain(&mut select.qualify);
    for clause in clauses.chain(groups) {
        let _ = clause.visit(&mut columns);
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Left,
    Right,
    Full,
}

impl Kind {
    fn of(operator: &JoinOperator) -> Self {
        match operator {
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => Self::Right,
            JoinOperator::FullOuter(_) => Self::Full,
            _ => Self::Left,
        }
    }
}

fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    match operator {
        JoinOperator::Join(c)
        | JoinOperator::Inner(c)
        | JoinOperator::Left(c)
        | JoinOperator::LeftOuter(c)
        | JoinOperator::Right(c)
        | JoinOperator::RightOuter(c)
        | JoinOperator::FullOuter(c) => Some(c),
        _ => None,
    }
}

fn merge(
    merged: &mut Vec<Merged>,
    kind: Kind,
    column: &ObjectName,
    left: Option<&Ident>,
    right: Option<&Ident>,
) -> Result<()> {
    let Some(name) = column.0.last().and_then(|part| part.as_ident()) else { return Ok(()) };
    let of = |table: &Ident| Expr::CompoundIdentifier(vec![table.clone(), name.clone()]);
    let known = merged.iter().position(|m| m.name.eq_ignore_ascii_case(&name.value));
    if known.is_some_and(|i| merged.get(i).is_some_and(|m| m.differs)) {
        return Err(refused());
    }
    let before = match (known, left) {
        (Some(i), _) => merged.get(i).map(|m| m.value.clone()),
        (None, left) => left.map(of),
    };
    let value = match (kind, before, right) {
        (Kind::Left, Some(before), _) => before,
        (Kind::Left, None, _) => return Ok(()),
        (Kind::Right, _, Some(right)) => of(right),
        (Kind::Full, Some(before), Some(right)) => first_of(&before, &of(right))?,
        _ => return Err(refused()),
    };
    match known.and_then(|i| merged.get_mut(i)) {
        Some(entry) => (entry.value, entry.differs) = (value, kind != Kind::Left),
        None => {
            merged.push(Merged { name: name.value.clone(), value, differs: kind != Kind::Left })
        }
    }
    Ok(())
}

fn first_of(left: &Expr, right: &Expr) -> Result<Expr> {
    Parser::new(&GenericDialect {})
        .try_with_sql(&format!("coalesce({left}, {right})"))
        .and_then(|mut parser| parser.parse_expr())
        .map_err(|e| super::parse::syntax(&e))
}

fn refused() -> Error {
    Error::user(
        "UNSUPPORTED_JOIN",
        "RIGHT and FULL joins that are NATURAL, or have USING beside another join of the same column, \
         are not supported",
    )
    .hint("write the condition with ON, and coalesce() for the common column")
}

/// The name by which a table's columns are called.
fn alias(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. } => Some(alias.name.clone()),
        TableFactor::Table { name, .. } => name.0.last()?.as_ident().cloned(),
        _ => None,
    }
}

fn rewrite_item(item: &mut SelectItem, merged: &[Merged]) {
    match item {
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => {
            if let Some(m) = find(merged, name) {
                *item = match m.differs {
                    true => {
                        SelectItem::ExprWithAlias { expr: m.value.clone(), alias: name.clone() }
                    }
                    false => SelectItem::UnnamedExpr(m.value.clone()),
                };
            }
        }
        SelectItem::Wildcard(options) if options.opt_replace.is_none() => {
            let items: Vec<_> = (merged.iter().filter(|m| m.differs))
                .map(|m| {
                    Box::new(ReplaceSelectElement {
                        expr: m.value.clone(),
                        column_name: Ident::new(m.name.clone()),
                        as_keyword: true,
                    })
                })
                .collect();
            if !items.is_empty() {
                options.opt_replace = Some(ReplaceSelectItem { items });
            }
        }
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            let _ = expr.visit(&mut Columns { merged, depth: 0 });
        }
        _ => {}
    }
}

fn find<'a>(merged: &'a [Merged], name: &Ident) -> Option<&'a Merged> {
    merged.iter().find(|m| m.name.eq_ignore_ascii_case(&name.value))
}

/// Replaces the merged columns in an expression. A nested query has names of its own.
struct Columns<'a> {
    merged: &'a [Merged],
    depth: usize,
}

impl VisitorMut for Columns<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Identifier(name) = expr
            && let Some(m) = find(self.merged, name)
        {
            *expr = m.value.clone();
        }
        ControlFlow::Continue(())
    }
}
