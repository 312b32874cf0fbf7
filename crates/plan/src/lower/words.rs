//! Expressions in the words that people write, for explain.

use std::collections::{HashMap, HashSet};

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, Case, WindowFunction, WindowFunctionParams,
};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, SortExpr};

use crate::session::checked;
use crate::session::clock::CLOCK;
use crate::type_name;

/// Texts longer than this are cut off.
const TEXT_MAX: usize = 200;
/// The frames that nobody writes.
const DEFAULT_FRAMES: [&str; 2] = [
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
];

/// Which names of columns need their table in front.
#[derive(Debug, Default)]
pub(crate) struct Words {
    ambiguous: HashSet<String>,
}

fn is_clock(column: &Column) -> bool {
    column.relation.as_ref().is_some_and(|table| table.table() == CLOCK)
}

/// How strongly an operator binds.
type Strength = u8;
const WEAKEST: Strength = 0;
const OPERAND: Strength = 10;

impl Words {
    /// Of a query: names that several of its tables have need their table.
    pub(crate) fn of(plan: &LogicalPlan) -> Self {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let _ = plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                for field in scan.projected_schema.fields() {
                    *counts.entry(field.name().clone()).or_default() += 1;
                }
            }
            Ok(TreeNodeRecursion::Continue)
        });
        let ambiguous = counts.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name);
        Self { ambiguous: ambiguous.collect() }
    }

    /// `amount * 2 AS twice`
    pub(crate) fn expr(&self, expr: &Expr) -> String {
        let text = match expr {
            Expr::Alias(alias) => {
                let own = self.strong(&alias.expr, WEAKEST);
                let name = without_types(&alias.name);
                // A name that is made from the expression says nothing new.
                match is_made(&name) || own == name {
                    true => own,
                    false => format!("{own} AS {name}"),
                }
            }
            other => self.strong(other, WEAKEST),
        };
        shortened(text)
    }

    /// A column's name as its output shows it.
    pub(crate) fn name(&self, name: &str) -> String {
        shortened(without_types(name))
    }

    /// `amount DESC`
    pub(crate) fn order(&self, key: &SortExpr) -> String {
        let direction = if key.asc { "" } else { " DESC" };
        let nulls = match (key.asc, key.nulls_first) {
            (true, true) => " NULLS FIRST",
            (false, false) => " NULLS LAST",
            _ => "",
        };
        format!("{}{direction}{nulls}", self.expr(&key.expr))
    }

    /// The expression, in brackets if it binds weaker than `around`.
    fn strong(&self, expr: &Expr, around: Strength) -> String {
        let (text, own) = self.bound(expr);
        if own < around { format!("({text})") } else { text }
    }

    fn bound(&self, expr: &Expr) -> (String, Strength) {
        let suffix = |of: &Expr, words: &str| (format!("{} {words}", self.strong(of, 4)), 3);
        match expr {
            Expr::Alias(alias) => self.bound(&alias.expr),
            // The clock.
            Expr::Column(column) if is_clock(column) => (CLOCK.into(), OPERAND),
            Expr::Column(column) => (self.column(column), OPERAND),
            Expr::OuterReferenceColumn(_, column) => (self.column(column), OPERAND),
            Expr::Literal(value, _) => (literal(value), OPERAND),
            Expr::BinaryExpr(binary) => self.binary(&binary.left, &binary.op, &binary.right),
            Expr::Not(of) => (format!("NOT {}", self.strong(of, 3)), 2),
            Expr::IsNull(of) => suffix(of, "IS NULL"),
            Expr::IsNotNull(of) => suffix(of, "IS NOT NULL"),
            Expr::IsTrue(of) => suffix(of, "IS TRUE"),
            Expr::IsFalse(of) => suffix(of, "IS FALSE"),
            Expr::IsUnknown(of) => suffix(of, "IS UNKNOWN"),
            Expr::IsNotTrue(of) => suffix(of, "IS NOT TRUE"),
            Expr::IsNotFalse(of) => suffix(of, "IS NOT FALSE"),
            Expr::IsNotUnknown(of) => suffix(of, "IS NOT UNKNOWN"),
            Expr::Negative(of) => (format!("-{}", self.strong(of, 8)), 7),
            Expr::Like(like) => {
                let not = if like.negated { "NOT " } else { "" };
                let word = if like.case_insensitive { "ILIKE" } else { "LIKE" };
                let (left, right) = (self.strong(&like.expr, 4), self.strong(&like.pattern, 4));
                (format!("{left} {not}{word} {right}"), 3)
            }
            Expr::Between(between) => {
                let not = if between.negated { "NOT " } else { "" };
                let (of, low) = (self.strong(&between.expr, 4), self.strong(&between.low, 4));
                let high = self.strong(&between.high, 4);
                (format!("{of} {not}BETWEEN {low} AND {high}"), 3)
            }
            Expr::InList(list) => {
                let not = if list.negated { "NOT " } else { "" };
                let of = self.strong(&list.expr, 4);
                (format!("{of} {not}IN ({})", self.listed(&list.list)), 3)
            }
            Expr::Case(case) => (self.case(case), OPERAND),
            Expr::Cast(cast) => {
                let to = type_name(cast.field.data_type());
                (format!("CAST({} AS {to})", self.expr(&cast.expr)), OPERAND)
            }
            Expr::TryCast(cast) => {
                let to = type_name(cast.field.data_type());
                (format!("TRY_CAST({} AS {to})", self.expr(&cast.expr)), OPERAND)
            }
            Expr::ScalarFunction(call) => {
                let name = call.func.name();
                match (checked::operator(name), call.args.as_slice()) {
                    (Some(operator), [left, right]) => self.binary(left, &operator, right),
                    _ => (format!("{name}({})", self.listed(&call.args)), OPERAND),
                }
            }
            Expr::AggregateFunction(call) => (self.aggregate(call), OPERAND),
            Expr::WindowFunction(call) => (self.window(call), OPERAND),
            other => (without_types(&other.human_display().to_string()), WEAKEST),
        }
    }

    fn column(&self, column: &Column) -> String {
        let name = without_types(&column.name);
        match &column.relation {
            Some(table) if self.ambiguous.contains(&column.name) && !is_made(table.table()) => {
                format!("{}.{name}", table.table())
            }
            _ => name,
        }
    }

    fn binary(&self, left: &Expr, operator: &Operator, right: &Expr) -> (String, Strength) {
        let own = match operator {
            Operator::Or => 0,
            Operator::And => 1,
            Operator::Plus | Operator::Minus => 5,
            Operator::Multiply | Operator::Divide | Operator::Modulo => 6,
            Operator::StringConcat => 4,
            _ => 3,
        };
        // `a - (b - c)` needs its brackets, `a + (b + c)` does not.
        let regroups =
            matches!(operator, Operator::Or | Operator::And | Operator::Plus | Operator::Multiply);
        let right = self.strong(right, if regroups { own } else { own + 1 });
        (format!("{} {operator} {right}", self.strong(left, own)), own)
    }

    fn case(&self, case: &Case) -> String {
        let mut text = "CASE".to_owned();
        if let Some(of) = &case.expr {
            text += &format!(" {}", self.expr(of));
        }
        for (when, then) in &case.when_then_expr {
            text += &format!(" WHEN {} THEN {}", self.expr(when), self.expr(then));
        }
        if let Some(otherwise) = &case.else_expr {
            text += &format!(" ELSE {}", self.expr(otherwise));
        }
        text + " END"
    }

    fn listed(&self, exprs: &[Expr]) -> String {
        exprs.iter().map(|expr| self.expr(expr)).collect::<Vec<_>>().join(", ")
    }

    fn ordered(&self, keys: &[SortExpr]) -> String {
        keys.iter().map(|key| self.order(key)).collect::<Vec<_>>().join(", ")
    }

    fn aggregate(&self, call: &AggregateFunction) -> String {
        let AggregateFunctionParams { args, distinct, filter, order_by, .. } = &call.params;
        let mut text = self.call(call.func.name(), args, *distinct);
        if !order_by.is_empty() {
            text.insert_str(text.len() - 1, &format!(" ORDER BY {}", self.ordered(order_by)));
        }
        if let Some(filter) = filter {
            text += &format!(" FILTER (WHERE {})", self.expr(filter));
        }
        text
    }

    fn window(&self, call: &WindowFunction) -> String {
        let WindowFunctionParams {
            args,
            partition_by,
            order_by,
            window_frame,
            filter,
            distinct,
            ..
        } = &call.params;
        let mut text = self.call(call.fun.name(), args, *distinct);
        if let Some(filter) = filter {
            text += &format!(" FILTER (WHERE {})", self.expr(filter));
        }
        let mut over = Vec::new();
        if !partition_by.is_empty() {
            over.push(format!("PARTITION BY {}", self.listed(partition_by)));
        }
        if !order_by.is_empty() {
            over.push(format!("ORDER BY {}", self.ordered(order_by)));
        }
        let frame = window_frame.to_string();
        if !DEFAULT_FRAMES.contains(&frame.as_str()) {
            over.push(frame);
        }
        format!("{text} OVER ({})", over.join(" "))
    }

    fn call(&self, name: &str, args: &[Expr], distinct: bool) -> String {
        let args = match (name, args) {
            ("count", [Expr::Literal(value, _)]) if !value.is_null() => "*".to_owned(),
            ("count", []) => "*".to_owned(),
            _ => self.listed(args),
        };
        let distinct = if distinct { "DISTINCT " } else { "" };
        format!("{name}({distinct}{args})")
    }
}

/// A name that planning has made.
fn is_made(name: &str) -> bool {
    name.contains('(') || name.starts_with("__")
}

fn literal(value: &ScalarValue) -> String {
    if value.is_null() {
        return "NULL".to_owned();
    }
    match value {
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)) => format!("'{}'", text.replace('\'', "''")),
        ScalarValue::Date32(_) => format!("DATE '{value}'"),
        ScalarValue::TimestampMicrosecond(_, _) | ScalarValue::TimestampNanosecond(_, _) => {
            let array = value.to_array();
            let text = array.map_err(drop).and_then(|array| {
                arrow::util::display::array_value_to_string(&array, 0).map_err(drop)
            });
            format!("TIMESTAMP '{}'", text.unwrap_or_else(|()| value.to_string()))
        }
        ScalarValue::Decimal128(Some(unscaled), _, scale) => decimal(*unscaled, *scale),
        other => other.to_string(),
    }
}

fn decimal(unscaled: i128, scale: i8) -> String {
    let Ok(scale) = usize::try_from(scale) else { return format!("{unscaled}e{}", -scale) };
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    match fraction.is_empty() {
        true => format!("{sign}{whole}"),
        false => format!("{sign}{whole}.{fraction}"),
    }
}

/// Of an expression that several others share, before its number.
const COMMON: &str = "__common_expr_";

/// A made name without the types of its literals: `Int64(1)` is 1, `Utf8("a")` is 'a'.
fn without_types(name: &str) -> String {
    if let Some(number) = name.strip_prefix(COMMON) {
        return format!("common_{number}");
    }
    const TYPES: [&str; 10] = [
        "Int64(",
        "Int32(",
        "UInt64(",
        "Float64(",
        "Float32(",
        "Boolean(",
        "Utf8(",
        "Decimal128(",
        "Date32(",
        "Int8(",
    ];
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while !rest.is_empty() {
        let is_start = !text.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let found = TYPES.iter().find(|prefix| is_start && rest.starts_with(**prefix));
        let inner = found.and_then(|prefix| rest[prefix.len()..].split_once(')'));
        match (found, inner) {
            (Some(_), Some((inner, after))) if !inner.contains('(') => {
                let value = inner.trim_matches('"');
                match inner.starts_with('"') {
                    true => text += &format!("'{value}'"),
                    false => text += value.split(',').next().unwrap_or(value),
                }
                rest = after;
            }
            _ => {
                let mut chars = rest.chars();
                text.extend(chars.next());
                rest = chars.as_str();
            }
        }
    }
    text
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::{col, lit};

    #[test]
    fn brackets_stand_where_they_must() {
        let words = Words::default();
        let sum = col("a") + col("b");
        assert_eq!(words.expr(&(sum.clone() * lit(2))), "(a + b) * 2");
        assert_eq!(words.expr(&(col("c") - sum.clone())), "c - (a + b)");
        assert_eq!(words.expr(&(sum + col("c"))), "a + b + c");
        let either = col("a").eq(lit("it's")).or(col("b").gt(lit(1)));
        assert_eq!(
            words.expr(&either.and(col("c").is_null())),
            "(a = 'it''s' OR b > 1) AND c IS NULL"
        );
    }

    #[test]
    fn made_names_lose_their_types() {
        assert_eq!(without_types("sum(t.a * Int64(1) - t.b)"), "sum(t.a * 1 - t.b)");
        assert_eq!(without_types("max(Utf8(\"x\"))"), "max('x')");
        assert_eq!(without_types("MyInt64(3)"), "MyInt64(3)");
        let shared = (col("a") * lit(2)).alias("__common_expr_1");
        assert_eq!(Words::default().expr(&shared), "a * 2 AS common_1");
        assert_eq!(decimal(-5, 2), "-0.05");
        assert_eq!(decimal(120, 0), "120");
    }
}
