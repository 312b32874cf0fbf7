//! Windows: the operator of its own where it knows all calls, else by touched partition.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{NullTreatment, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, Window, WindowFrame as Frame, WindowFrameBound as Bound,
    WindowFrameUnits, WindowFunctionDefinition,
};
use deltaic_batch::Result;
use deltaic_ops::{
    FrameBound, Window as WindowOperator, WindowCall, WindowFrame, WindowFunction, WindowSpec,
};
use deltaic_state::SortKey;

use super::Lowering;
use super::top_k::has_order;
use crate::errors;
use crate::session::batch::relaxed;
use crate::tree::{ByGroup, Kind, NodeIx};

/// The input's columns, and those that windows need besides.
struct Columns {
    exprs: Vec<Expr>,
}

impl Columns {
    fn number(&mut self, expr: &Expr) -> usize {
        let expr = expr.clone().unalias();
        self.exprs.iter().position(|other| *other == expr).unwrap_or_else(|| {
            self.exprs.push(expr);
            self.exprs.len() - 1
        })
    }
}

impl Lowering {
    pub(super) fn window(&mut self, plan: &LogicalPlan, window: &Window) -> Result<NodeIx> {
        if let Some(node) = self.own_window(plan, window)? {
            return Ok(node);
        }
        if let Some(node) = self.measured_window(plan, window)? {
            return Ok(node);
        }
        let keys = common_partition(&window.window_expr);
        self.by_group(plan, &window.input, &keys, ByGroup::Window)
    }

    /// Window nodes over one partition and order; `None` where some call or type has none.
    fn own_window(&mut self, plan: &LogicalPlan, window: &Window) -> Result<Option<NodeIx>> {
        let schema = window.input.schema().clone();
        let mut columns =
            Columns { exprs: schema.columns().into_iter().map(Expr::Column).collect() };
        let width = columns.exprs.len();
        let output = relaxed(plan.schema().as_arrow());
        let Some((partition, order)) = common_order(&window.window_expr, &mut columns) else {
            return Ok(None);
        };
        let mut calls = Vec::with_capacity(window.window_expr.len());
        for (expr, field) in window.window_expr.iter().zip(&output.fields()[width..]) {
            match call(expr, field.as_ref().clone(), &mut columns) {
                Some(call) => calls.push(call),
                None => return Ok(None),
            }
        }
        let mut fields = Vec::with_capacity(columns.exprs.len());
        for expr in &columns.exprs {
            let data_type = expr.get_type(&schema).map_err(|e| errors::planning(&e))?;
            if !has_order(&data_type) {
                return Ok(None);
            }
            fields.push(Field::new(expr.schema_name().to_string(), data_type, true));
        }
        let read: SchemaRef = Arc::new(Schema::new(fields.clone()));
        let parts = parts(&calls);
        let spec = |input: SchemaRef, calls: &[WindowCall]| WindowSpec {
            input,
            partition: partition.clone(),
            order: order.clone(),
            calls: calls.to_vec(),
        };
        let known = |part: &Vec<usize>| {
            let calls: Vec<WindowCall> = part.iter().map(|&i| calls[i].clone()).collect();
            WindowOperator::try_new(spec(read.clone(), &calls)).is_ok()
        };
        if !parts.iter().all(known) {
            return Ok(None);
        }
        let mut node = self.lower(&window.input)?;
        if columns.exprs.len() > width {
            node = self.computed(node, &schema, &columns.exprs, fields)?;
        }
        // Where each call's column is.
        let mut places = vec![0; calls.len()];
        for part in parts {
            let input = self.tree.schema(node).clone();
            for (at, &call) in part.iter().enumerate() {
                places[call] = input.fields().len() + at;
            }
            let own: Vec<WindowCall> = part.iter().map(|&i| calls[i].clone()).collect();
            let added = own.iter().map(|call| Arc::new(call.output.clone()));
            let schema = Arc::new(Schema::new(
                input.fields().iter().cloned().chain(added).collect::<Vec<_>>(),
            ));
            let detail = self.shown(part.iter().map(|&i| &window.window_expr[i]));
            let about = format!("{:?}", spec(input, &own));
            let kind =
                Kind::Window { partition: partition.clone(), order: order.clone(), calls: own };
            node = self.tree.add(kind, vec![node], schema, detail, &about);
        }
        let shown: Vec<usize> = (0..width).chain(places).collect();
        Ok(Some(self.columns(node, &shown, &output)))
    }
}

/// Calls that one operator takes together. Calls by rows and calls by peers are apart where the
/// former see rows around: a change affects rows near it for these, its peers for those. Copies of
/// a row have the same value of the latter, so that it does not matter which copy gets which.
fn parts(calls: &[WindowCall]) -> Vec<Vec<usize>> {
    let by_peers = |call: &WindowCall| match call.function {
        WindowFunction::Rank
        | WindowFunction::DenseRank
        | WindowFunction::PercentRank
        | WindowFunction::CumeDist => true,
        WindowFunction::RowNumber | WindowFunction::Ntile(_) | WindowFunction::Offset { .. } => {
            false
        }
        _ => call.frame.peers,
    };
    let sees_around = |call: &WindowCall| match call.function {
        WindowFunction::Offset { .. } => true,
        WindowFunction::RowNumber
        | WindowFunction::Rank
        | WindowFunction::DenseRank
        | WindowFunction::PercentRank
        | WindowFunction::CumeDist
        | WindowFunction::Ntile(_) => false,
        _ => {
            let is_around = |bound| matches!(bound, FrameBound::Rows(rows) if rows != 0);
            is_around(call.frame.start) || is_around(call.frame.end)
        }
    };
    let all: Vec<usize> = (0..calls.len()).collect();
    if !calls.iter().any(by_peers) || !calls.iter().any(sees_around) {
        return vec![all];
    }
    let (peers, rows): (Vec<usize>, Vec<usize>) =
        all.into_iter().partition(|&i| by_peers(&calls[i]));
    vec![rows, peers]
}

fn params(expr: &Expr) -> Option<(WindowFunctionDefinition, WindowFunctionParams)> {
    match expr.clone().unalias() {
        Expr::WindowFunction(call) => Some((call.fun, call.params)),
        _ => None,
    }
}

/// Partition and order, if all calls have the same.
fn common_order(exprs: &[Expr], columns: &mut Columns) -> Option<(Vec<usize>, Vec<SortKey>)> {
    let mut common = None;
    for expr in exprs {
        let (_, WindowFunctionParams { partition_by, order_by, .. }) = params(expr)?;
        let own = (partition_by, order_by);
        if common.get_or_insert_with(|| own.clone()) != &own {
            return None;
        }
    }
    let (partition, order) = common?;
    let mut keys: Vec<usize> = Vec::new();
    for expr in &partition {
        let column = columns.number(expr);
        if !keys.contains(&column) {
            keys.push(column);
        }
    }
    let order = order.iter().map(|key| SortKey {
        column: columns.number(&key.expr),
        descending: !key.asc,
        nulls_first: key.nulls_first,
    });
    Some((keys, order.collect()))
}

/// A call of DataFusion's as the operator's.
fn call(expr: &Expr, output: Field, columns: &mut Columns) -> Option<WindowCall> {
    let (definition, params) = params(expr)?;
    let WindowFunctionParams { args, filter, null_treatment, distinct, window_frame, .. } = params;
    if distinct || null_treatment == Some(NullTreatment::IgnoreNulls) {
        return None;
    }
    let frame = frame(&window_frame)?;
    let filter = filter.map(|filter| columns.number(&filter));
    let name = definition.name().to_owned();
    let WindowFunctionDefinition::WindowUDF(_) = definition else {
        let function = super::aggregate::function(&name, &args, false)?;
        let input = match function {
            deltaic_ops::AggregateFunction::CountStar => None,
            _ => Some(columns.number(args.first()?)),
        };
        let function = WindowFunction::Aggregate(function);
        return Some(WindowCall { function, input, filter, frame, output });
    };
    if filter.is_some() {
        return None;
    }
    let number = |at: usize| integer(args.get(at)?);
    let function = match name.as_str() {
        "row_number" => WindowFunction::RowNumber,
        "rank" => WindowFunction::Rank,
        "dense_rank" => WindowFunction::DenseRank,
        "percent_rank" => WindowFunction::PercentRank,
        "cume_dist" => WindowFunction::CumeDist,
        "ntile" => {
            WindowFunction::Ntile(u64::try_from(integer(args.first()?)?).ok().filter(|&n| n > 0)?)
        }
        "first_value" => WindowFunction::First,
        "last_value" => WindowFunction::Last,
        "nth_value" => WindowFunction::Nth(u64::try_from(number(1)?).ok().filter(|&n| n > 0)?),
        "lag" | "lead" => {
            let rows = if args.len() > 1 { number(1)? } else { 1 };
            let rows = if name == "lag" { rows.checked_neg()? } else { rows };
            let default = match args.get(2).map(|expr| expr.clone().unalias()) {
                None => None,
                Some(Expr::Literal(value, _)) if value.is_null() => None,
                Some(Expr::Literal(value, _)) => {
                    let value = value.cast_to(output.data_type()).ok()?;
                    Some(value.to_array().ok()?)
                }
                Some(_) => return None,
            };
            WindowFunction::Offset { rows, default }
        }
        _ => return None,
    };
    let has_argument = matches!(
        function,
        WindowFunction::First
            | WindowFunction::Last
            | WindowFunction::Nth(_)
            | WindowFunction::Offset { .. }
    );
    let input = if has_argument { Some(columns.number(args.first()?)) } else { None };
    Some(WindowCall { function, input, filter: None, frame, output })
}

/// A whole number that is written as such.
fn integer(expr: &Expr) -> Option<i64> {
    match expr.clone().unalias() {
        Expr::Literal(value, _) => match value.cast_to(&DataType::Int64).ok()? {
            ScalarValue::Int64(number) if value.data_type().is_integer() => number,
            _ => None,
        },
        _ => None,
    }
}

/// A frame by rows, or by peers up to the current row's.
fn frame(frame: &Frame) -> Option<WindowFrame> {
    let peers = !matches!(frame.units, WindowFrameUnits::Rows);
    let rows = |value: &ScalarValue| match value {
        ScalarValue::UInt64(Some(rows)) => i64::try_from(*rows).ok(),
        ScalarValue::Int64(rows) => *rows,
        _ => None,
    };
    let bound = |bound: &Bound, is_start: bool| match bound {
        Bound::CurrentRow => Some(FrameBound::Rows(0)),
        Bound::Preceding(value) if value.is_null() => is_start.then_some(FrameBound::Unbounded),
        Bound::Following(value) if value.is_null() => (!is_start).then_some(FrameBound::Unbounded),
        _ if peers => None,
        Bound::Preceding(value) => rows(value)?.checked_neg().map(FrameBound::Rows),
        Bound::Following(value) => rows(value).map(FrameBound::Rows),
    };
    let (start, end) = (bound(&frame.start_bound, true)?, bound(&frame.end_bound, false)?);
    let is_whole = (start, end) == (FrameBound::Unbounded, FrameBound::Unbounded);
    Some(WindowFrame { start, end, peers: peers && !is_whole })
}

/// What all windows are partitioned by.
fn common_partition(windows: &[Expr]) -> Vec<Expr> {
    let mut common: Option<Vec<Expr>> = None;
    for window in windows {
        let Some((_, WindowFunctionParams { partition_by: own, .. })) = params(window) else {
            return Vec::new();
        };
        common = Some(match common {
            None => own,
            Some(common) => common.into_iter().filter(|expr| own.contains(expr)).collect(),
        });
    }
    common.unwrap_or_default()
}
