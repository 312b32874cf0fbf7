//! Whole numbers beyond BIGINT, as the decimals that they are in Spark.
//!
//! DataFusion takes `9223372036854775808` for an unsigned integer, and anything greater, or less than
//! the least BIGINT, for a rounded float. The parsed number is rewritten to a cast of its digits.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, UnaryOperator, Value, ValueWithSpan, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// Digits that a decimal has at most.
const DIGITS_MAX: usize = 38;

/// Rewrites the numbers.
pub(crate) fn mark(node: &mut impl VisitMut) {
    let _ = node.visit(&mut Marker { least: false });
}

struct Marker {
    /// The next expression is what follows the sign of the least BIGINT.
    least: bool,
}

impl VisitorMut for Marker {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let least = std::mem::take(&mut self.least);
        if let Expr::UnaryOp { op: UnaryOperator::Minus, expr: operand } = expr
            && let Some(digits) = digits(operand)
        {
            self.least = format!("-{digits}").parse::<i64>().is_ok();
        }
        if !least
            && let Some(digits) = digits(expr)
            && digits.parse::<i64>().is_err()
            && let Some(decimal) = decimal(digits.trim_start_matches('0'))
        {
            *expr = decimal;
        }
        ControlFlow::Continue(())
    }
}

fn digits(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(text, _), .. })
            if text.bytes().all(|b| b.is_ascii_digit()) =>
        {
            Some(text)
        }
        _ => None,
    }
}

fn decimal(digits: &str) -> Option<Expr> {
    if digits.len() > DIGITS_MAX {
        return None;
    }
    let text = format!("CAST('{digits}' AS DECIMAL({}, 0))", digits.len());
    Parser::new(&GenericDialect {}).try_with_sql(&text).ok()?.parse_expr().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_beyond_bigint_become_decimals() {
        let marked = |sql: &str| {
            let mut parser = Parser::new(&GenericDialect {}).try_with_sql(sql).unwrap();
            let mut expr = parser.parse_expr().unwrap();
            mark(&mut expr);
            expr.to_string()
        };
        for kept in
            ["1", "9223372036854775807", "-9223372036854775808", "-9223372036854775808 + 1.5"]
        {
            assert_eq!(marked(kept), kept);
        }
        assert_eq!(
            marked("9223372036854775808 + -9223372036854775809"),
            "CAST('9223372036854775808' AS DECIMAL(19,0)) + -CAST('9223372036854775809' AS DECIMAL(19,0))"
        );
    }
}
