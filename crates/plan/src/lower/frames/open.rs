//! Frames with an offset on one side and none on the other: `RANGE BETWEEN UNBOUNDED PRECEDING AND 5
//! PRECEDING`.
//!
//! The value of a frame is a running value, taken up where the frame ends. So each place (partition and
//! value of the sort column) puts a mark among the rows, as far from it as the frame's end; the running
//! value at a mark is that of the place's frame, which its rows take.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, NullEquality, Result, ScalarValue};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Filter, Join, JoinConstraint, JoinType, LogicalPlan, LogicalPlanBuilder,
    Operator, Projection, Window, WindowFrame, WindowFrameBound as Bound, WindowFrameUnits, cast,
    lit, when,
};

use super::calls::{Calls, is_unbounded};
use super::distance::{amount, computed_type, moved};

/// The same values by marks; `None` where the sort column has no distances.
pub(super) fn with_marks(window: &Window, calls: &Calls<'_>) -> Result<Option<LogicalPlan>> {
    let [order] = calls.order.as_slice() else { return Ok(None) };
    let starts = is_unbounded(&calls.frame.start_bound);
    let end = if starts { &calls.frame.end_bound } else { &calls.frame.start_bound };
    let (by, before) = match end {
        Bound::Preceding(by) => (by, true),
        Bound::Following(by) => (by, false),
        Bound::CurrentRow => return Ok(None),
    };
    let schema = calls.input.schema();
    let key_type = order.expr.get_type(schema)?;
    let computed = match computed_type(&key_type) {
        Some(computed) => computed,
        None if key_type == DataType::Float32 => key_type.clone(),
        None => return Ok(None),
    };
    let Some(by) = amount(&by.clone(), &computed) else { return Ok(None) };
    // In a falling order what is before has greater values.
    let direction = if before == order.asc { Operator::Minus } else { Operator::Plus };

    let named = |at: usize| format!("__partition {at}");
    let partition: Vec<Expr> =
        calls.partition.iter().enumerate().map(|(at, e)| e.clone().alias(named(at))).collect();
    let partitions = || (0..calls.partition.len()).map(|at| column(&named(at)));
    let arguments = calls.calls.iter().map(|call| {
        let value = call.argument.clone().unwrap_or_else(|| lit(1_i64)).unalias();
        match &call.filter {
            None => Ok(value),
            Some(filter) => when(filter.clone(), value).end(),
        }
    });
    let arguments = arguments.collect::<Result<Vec<Expr>>>()?;
    let argument = |at: usize| format!("__argument {at}");

    let mut row = partition.clone();
    row.push(cast(order.expr.clone(), computed.clone()).alias("__value"));
    row.push(null(&key_type)?.alias("__place"));
    row.push(lit(false).alias("__is_mark"));
    row.extend(arguments.iter().enumerate().map(|(at, e)| e.clone().alias(argument(at))));
    let rows = Projection::try_new(row, window.input.clone())?;

    let place = partition.into_iter().chain([order.expr.clone().alias("__place")]);
    let places =
        LogicalPlanBuilder::from(calls.input.clone()).project(place)?.distinct()?.build()?;
    let mut mark: Vec<Expr> = partitions().collect();
    let value = cast(column("__place"), computed);
    mark.push(moved(&value, direction, &by).alias("__value"));
    mark.push(column("__place"));
    mark.push(lit(true).alias("__is_mark"));
    for (at, expr) in arguments.iter().enumerate() {
        mark.push(null(&expr.get_type(schema)?)?.alias(argument(at)));
    }
    let marks = Projection::try_new(mark, Arc::new(places))?;
    let both = LogicalPlanBuilder::from(LogicalPlan::Projection(rows))
        .union(LogicalPlan::Projection(marks))?
        .build()?;

    let (start, end) = match starts {
        true => (Bound::Preceding(ScalarValue::Null), Bound::CurrentRow),
        false => (Bound::CurrentRow, Bound::Following(ScalarValue::Null)),
    };
    let frame = WindowFrame::new_bounds(WindowFrameUnits::Range, start, end);
    let value = |at: usize| format!("__frame {at}");
    let running = window.window_expr.iter().enumerate().map(|(at, expr)| {
        let Expr::WindowFunction(mut call) = expr.clone().unalias() else { return expr.clone() };
        call.params.args = vec![column(&argument(at))];
        call.params.filter = None;
        call.params.partition_by = partitions().collect();
        call.params.order_by = vec![column("__value").sort(order.asc, order.nulls_first)];
        call.params.window_frame = frame.clone();
        Expr::WindowFunction(call).alias(value(at))
    });
    let running = Window::try_new(running.collect(), Arc::new(both))?;
    let at_marks = Filter::try_new(column("__is_mark"), Arc::new(LogicalPlan::Window(running)))?;
    let found = partitions()
        .chain([column("__place")])
        .chain((0..calls.calls.len()).map(|at| column(&value(at))));
    let found = Projection::try_new(found.collect(), Arc::new(LogicalPlan::Filter(at_marks)))?;

    let mine = calls.partition.iter().cloned().chain([order.expr.clone()]);
    let on = mine.zip(partitions().chain([column("__place")])).collect();
    let joined = Join::try_new(
        window.input.clone(),
        Arc::new(LogicalPlan::Projection(found)),
        on,
        None,
        JoinType::Inner,
        JoinConstraint::On,
        NullEquality::NullEqualsNull,
        false,
    )?;
    let values = (0..calls.calls.len()).map(|at| column(&value(at)));
    let shown = schema.columns().into_iter().map(Expr::Column).chain(values);
    let shown = shown
        .zip(window.schema.iter())
        .map(|(expr, (table, field))| expr.alias_qualified(table.cloned(), field.name()));
    let joined = Arc::new(LogicalPlan::Join(joined));
    Projection::try_new(shown.collect(), joined).map(|plan| Some(LogicalPlan::Projection(plan)))
}

fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

fn null(data_type: &DataType) -> Result<Expr> {
    Ok(lit(ScalarValue::try_from(data_type)?))
}
