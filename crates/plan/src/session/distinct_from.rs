//! The precedence of `IS [NOT] DISTINCT FROM`.
//!
//! The parser takes everything that follows as the right side: `a IS DISTINCT FROM b AND c` comes out
//! as `a IS DISTINCT FROM (b AND c)`. Here such a chain is taken apart into operands and operators, in
//! the order of the text, and put together by precedence: OR, AND, NOT, IS DISTINCT FROM. Operands in
//! parentheses stay whole.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, UnaryOperator, Value, VisitMut, VisitorMut,
};

/// Rewrites every chain of a query or expression.
pub(crate) fn mark(node: &mut impl VisitMut) {
    let _ = node.visit(&mut Marker);
}

struct Marker;

impl VisitorMut for Marker {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if is_link(expr) && loose(expr) {
            let mut pieces = VecDeque::new();
            take_apart(take(expr), &mut pieces);
            if let Some(whole) = put_together(&mut pieces, 0) {
                *expr = whole;
            }
        }
        ControlFlow::Continue(())
    }
}

enum Piece {
    Operand(Box<Expr>),
    Not,
    And,
    Or,
    Distinct { negated: bool },
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.into()))
}

/// Whether an expression is one of the operators of a chain.
fn is_link(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. }
            | Expr::UnaryOp { op: UnaryOperator::Not, .. }
            | Expr::IsDistinctFrom(..)
            | Expr::IsNotDistinctFrom(..)
    )
}

/// Whether some right side in the chain took in more than it should.
fn loose(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            loose(left) || loose(right)
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => loose(expr),
        Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => is_link(right),
        _ => false,
    }
}

fn take_apart(expr: Expr, pieces: &mut VecDeque<Piece>) {
    match expr {
        Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
            take_apart(*left, pieces);
            pieces.push_back(if op == BinaryOperator::And { Piece::And } else { Piece::Or });
            take_apart(*right, pieces);
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            pieces.push_back(Piece::Not);
            take_apart(*expr, pieces);
        }
        Expr::IsDistinctFrom(left, right) => {
            take_apart(*left, pieces);
            pieces.push_back(Piece::Distinct { negated: false });
            take_apart(*right, pieces);
        }
        Expr::IsNotDistinctFrom(left, right) => {
            take_apart(*left, pieces);
            pieces.push_back(Piece::Distinct { negated: true });
            take_apart(*right, pieces);
        }
        operand => pieces.push_back(Piece::Operand(Box::new(operand))),
    }
}

/// Precedence climbing: reads an operand and what binds more tightly than `bound`.
fn put_together(pieces: &mut VecDeque<Piece>, bound: u8) -> Option<Expr> {
    let mut left = match pieces.pop_front()? {
        Piece::Operand(expr) => *expr,
        Piece::Not => {
            Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(put_together(pieces, NOT)?) }
        }
        Piece::And | Piece::Or | Piece::Distinct { .. } => return None,
    };
    while let Some(strength) = pieces.front().map(strength)
        && strength > bound
    {
        let operator = pieces.pop_front()?;
        let sides = (Box::new(left), Box::new(put_together(pieces, strength)?));
        left = match operator {
            Piece::Distinct { negated: false } => Expr::IsDistinctFrom(sides.0, sides.1),
            Piece::Distinct { negated: true } => Expr::IsNotDistinctFrom(sides.0, sides.1),
            Piece::And => binary(sides, BinaryOperator::And),
            _ => binary(sides, BinaryOperator::Or),
        };
    }
    Some(left)
}

const NOT: u8 = 3;

fn strength(piece: &Piece) -> u8 {
    match piece {
        Piece::Operand(_) => 0,
        Piece::Or => 1,
        Piece::And => 2,
        Piece::Not => NOT,
        Piece::Distinct { .. } => 4,
    }
}

fn binary((left, right): (Box<Expr>, Box<Expr>), op: BinaryOperator) -> Expr {
    Expr::BinaryOp { left, op, right }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::mark;

    /// Both texts, the second with every parenthesis written, mean the same.
    fn same(text: &str, explicit: &str) {
        let mut expr = parse::expression(text).unwrap();
        mark(&mut expr);
        let shape = |e: &datafusion::sql::sqlparser::ast::Expr| shape(e);
        assert_eq!(shape(&expr), shape(&parse::expression(explicit).unwrap()), "{text}");
    }

    fn shape(expr: &datafusion::sql::sqlparser::ast::Expr) -> String {
        use datafusion::sql::sqlparser::ast::Expr;
        match expr {
            Expr::Nested(inner) => shape(inner),
            Expr::BinaryOp { left, op, right } => {
                format!("({} {op} {})", shape(left), shape(right))
            }
            Expr::UnaryOp { op, expr } => format!("({op} {})", shape(expr)),
            Expr::IsDistinctFrom(a, b) => format!("({} <> {})", shape(a), shape(b)),
            Expr::IsNotDistinctFrom(a, b) => format!("({} == {})", shape(a), shape(b)),
            other => other.to_string(),
        }
    }

    #[test]
    fn it_binds_more_tightly_than_and_or_and_not() {
        same("a IS DISTINCT FROM b AND c", "(a IS DISTINCT FROM b) AND c");
        same("x AND a IS DISTINCT FROM b OR c", "(x AND (a IS DISTINCT FROM b)) OR c");
        same("x OR a IS NOT DISTINCT FROM b AND c", "x OR ((a IS NOT DISTINCT FROM b) AND c)");
        same("NOT a IS DISTINCT FROM b OR c", "(NOT (a IS DISTINCT FROM b)) OR c");
        same("a IS DISTINCT FROM b + 1 AND c = 2", "(a IS DISTINCT FROM (b + 1)) AND (c = 2)");
        same(
            "a IS DISTINCT FROM b AND c IS DISTINCT FROM d OR e",
            "((a IS DISTINCT FROM b) AND (c IS DISTINCT FROM d)) OR e",
        );
    }

    #[test]
    fn parentheses_hold() {
        same("a IS DISTINCT FROM (b AND c) AND d", "(a IS DISTINCT FROM (b AND c)) AND d");
    }
}
