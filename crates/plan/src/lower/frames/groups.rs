//! Frames by groups of peers: `GROUPS BETWEEN 2 PRECEDING AND CURRENT ROW`.
//!
//! `dense_rank()` numbers the groups, and a frame of groups is a distance between their numbers. A
//! group that appears or goes renumbers those behind it, and so costs as much as there are rows in
//! them; any other change costs what a frame by distance does.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::functions_window::rank::dense_rank_udwf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Expr, LogicalPlan, Projection, Window, WindowFrame, WindowFrameUnits,
};

use super::calls::Calls;

/// Name of the column with the numbers.
const NUMBER: &str = "__group";

/// The same values by distance.
pub(super) fn by_number(window: &Window, calls: &Calls<'_>) -> Result<LogicalPlan> {
    let mut number = WindowFunction::new(dense_rank_udwf(), Vec::new());
    number.params.partition_by.clone_from(&calls.partition);
    number.params.order_by.clone_from(&calls.order);
    number.params.window_frame = WindowFrame::new(Some(false));
    let number = Expr::WindowFunction(Box::new(number)).alias(NUMBER);
    let numbered = LogicalPlan::Window(Window::try_new(vec![number], window.input.clone())?);
    let columns = numbered.schema().columns();
    let Some((number, columns)) = columns.split_last() else { return Ok(numbered) };
    let over = window.window_expr.iter().map(|expr| match expr.clone().unalias() {
        Expr::WindowFunction(mut call) => {
            call.params.order_by = vec![Expr::Column(number.clone()).sort(true, false)];
            call.params.window_frame.units = WindowFrameUnits::Range;
            Expr::WindowFunction(call)
        }
        other => other,
    });
    let over: Vec<Expr> =
        over.enumerate().map(|(at, call)| call.alias(format!("{NUMBER} {at}"))).collect();
    let values = over.len();
    let by_distance = LogicalPlan::Window(Window::try_new(over, Arc::new(numbered))?);
    let all = by_distance.schema().columns();
    let shown = columns.iter().cloned().chain(all[all.len() - values..].iter().cloned());
    let shown = shown.zip(window.schema.iter()).map(|(column, (table, field))| {
        Expr::Column(column).alias_qualified(table.cloned(), field.name())
    });
    Projection::try_new(shown.collect(), Arc::new(by_distance)).map(LogicalPlan::Projection)
}
