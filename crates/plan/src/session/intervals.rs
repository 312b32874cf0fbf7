//! Intervals in the order of their length.
//!
//! Arrow orders an interval by months, then days, then nanoseconds, so that 36 hours are less than a
//! day. Here, as in PostgreSQL and DuckDB, a day has 24 hours and a month 30 days where intervals are
//! compared: a comparison, a sort and MIN or MAX look at their lengths in nanoseconds.

use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use arrow::array::{AsArray, Decimal128Array};
use arrow::datatypes::{DataType, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, InList, ScalarFunction,
};
use datafusion::logical_expr::{
    Between, BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, SortExpr, Volatility,
};
use datafusion::sql::sqlparser::ast::{self, Query, VisitMut, VisitorMut};

/// Writes `INTERVAL 2 DAYS` as `INTERVAL '2' DAYS`, the one form that DataFusion knows in window frames.
pub(super) fn mark(query: &mut Query) {
    let _ = query.visit(&mut Quoted);
}

struct Quoted;

impl VisitorMut for Quoted {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Interval(interval) = expr
            && let ast::Expr::Value(value) = interval.value.as_mut()
            && let ast::Value::Number(number, _) = &value.value
        {
            value.value = ast::Value::SingleQuotedString(number.clone());
        }
        ControlFlow::Continue(())
    }
}

const NAME: &str = "interval_length";
const DAY_NS: i128 = 86_400_000_000_000;
const MONTH_NS: i128 = 30 * DAY_NS;
const LENGTH: DataType = DataType::Decimal128(38, 0);

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Length { signature }))
});

#[derive(Debug, PartialEq, Eq, Hash)]
struct Length {
    signature: Signature,
}

impl ScalarUDFImpl for Length {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(LENGTH)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = ColumnarValue::values_to_arrays(&args.args)?;
        let intervals = values[0].as_primitive::<IntervalMonthDayNanoType>();
        let lengths: Decimal128Array = intervals.unary(|interval| {
            i128::from(interval.months) * MONTH_NS
                + i128::from(interval.days) * DAY_NS
                + i128::from(interval.nanoseconds)
        });
        Ok(ColumnarValue::Array(Arc::new(lengths.with_data_type(LENGTH))))
    }
}

/// The interval whose length an expression is.
pub(super) fn inner(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::ScalarFunction(call) if call.func.name() == NAME => call.args.first(),
        _ => None,
    }
}

fn length(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(FUNCTION.clone(), vec![expr]))
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Interval(IntervalUnit::MonthDayNano)))
}

/// Compares, sorts and ranks intervals by length in one expression whose parts are done.
pub(super) fn by_length(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let boxed = |expr: Box<Expr>| Box::new(length(*expr));
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if op.supports_propagation()
                && is_interval(&left, schema)
                && is_interval(&right, schema) =>
        {
            let (left, right) = (boxed(left), boxed(right));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_interval(&expr, schema) => {
            let (expr, low, high) = (boxed(expr), boxed(low), boxed(high));
            Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
        }
        Expr::InList(InList { expr, list, negated }) if is_interval(&expr, schema) => {
            let list = list.into_iter().map(length).collect();
            Transformed::yes(Expr::InList(InList { expr: boxed(expr), list, negated }))
        }
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            extremum(AggregateFunction { func, params }, schema)
        }
        Expr::WindowFunction(mut window) => {
            let is_changed = sort_by_length(&mut window.params.order_by, schema);
            changed(Expr::WindowFunction(window), is_changed)
        }
        other => Transformed::no(other),
    })
}

/// True if a sort key was an interval.
fn sort_by_length(keys: &mut [SortExpr], schema: &DFSchema) -> bool {
    let mut is_changed = false;
    for key in keys.iter_mut().filter(|key| is_interval(&key.expr, schema)) {
        key.expr = length(key.expr.clone());
        is_changed = true;
    }
    is_changed
}

/// MIN or MAX of intervals as the first value by length, and of equal lengths the first of them; an
/// aggregate in the order of intervals in that of their lengths.
fn extremum(mut call: AggregateFunction, schema: &DFSchema) -> Transformed<Expr> {
    let is_sorted = sort_by_length(&mut call.params.order_by, schema);
    let AggregateFunctionParams { args, filter, .. } = &call.params;
    let falls = match (call.func.name(), args.as_slice()) {
        ("min", [arg]) if is_interval(arg, schema) => false,
        ("max", [arg]) if is_interval(arg, schema) => true,
        _ => return changed(Expr::AggregateFunction(call), is_sorted),
    };
    let (arg, filter) = (args[0].clone(), filter.clone());
    let order_by = vec![
        SortExpr::new(length(arg.clone()), !falls, false),
        SortExpr::new(arg.clone(), true, false),
    ];
    let args = vec![arg];
    let first = AggregateFunction::new_udf(first_value_udaf(), args, false, filter, order_by, None);
    Transformed::yes(Expr::AggregateFunction(first))
}

fn changed<T>(data: T, is_changed: bool) -> Transformed<T> {
    if is_changed { Transformed::yes(data) } else { Transformed::no(data) }
}

/// A sort by length, for a sort key that is an interval.
pub(super) fn sorted(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Sort(mut sort) = plan else { return Ok(Transformed::no(plan)) };
    let is_changed = sort_by_length(&mut sort.expr, sort.input.schema());
    Ok(changed(LogicalPlan::Sort(sort), is_changed))
}
