//! Results that do not depend on the order in which rows arrive.
//!
//! SQL leaves open which of several equal rows a LIMIT keeps, a ranking counts first, or an
//! aggregate such as `array_agg` sees first. Here the rest of the row decides, ascending, NULL first,
//! so that incremental refresh, recompute and batch runs agree.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, FetchType, Limit, LogicalPlan, SkipType, Sort, SortExpr, Window,
};

use super::rows;

/// Aggregates whose result depends on the order of their input.
const ORDERED: [&str; 7] = [
    "array_agg",
    "string_agg",
    "first_value",
    "last_value",
    "nth_value",
    "collect_list",
    "any_value",
];

/// The input of a LIMIT with the ties of its ORDER BY broken; in the order of the whole row when it
/// has none. No more than `rows` of its rows are needed.
pub(crate) fn ordered_input(plan: &LogicalPlan, rows: Option<usize>) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Sort(sort) => {
            let rows = sort.fetch.into_iter().chain(rows).min();
            Ok(sorted(sort.input.as_ref().clone(), sort.expr.clone(), rows))
        }
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) if ordered(plan) => {
            let inputs = plan.inputs().into_iter().map(|input| ordered_input(input, rows));
            let inputs = inputs.collect::<Result<_>>()?;
            plan.with_new_exprs(plan.expressions(), inputs)
        }
        LogicalPlan::TableScan(_) if ordered(plan) => Ok(plan.clone()),
        other => Ok(sorted(other.clone(), Vec::new(), rows)),
    }
}

/// How many rows a LIMIT passes over, and how many it keeps at most; `None` where that is no number.
pub(crate) fn range_of(limit: &Limit) -> Option<(usize, Option<usize>)> {
    match (limit.get_skip_type(), limit.get_fetch_type()) {
        (Ok(SkipType::Literal(skip)), Ok(FetchType::Literal(fetch))) => Some((skip, fetch)),
        _ => None,
    }
}

/// The rows come in an order that a LIMIT above refers to.
pub(crate) fn ordered(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Limit(limit) => ordered(&limit.input),
        LogicalPlan::Projection(projection) => ordered(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => ordered(&alias.input),
        LogicalPlan::TableScan(scan) => rows::is_listed(scan),
        _ => false,
    }
}

/// A sort whose ties are broken.
fn sorted(input: LogicalPlan, keys: Vec<SortExpr>, fetch: Option<usize>) -> LogicalPlan {
    let expr = total(&input, keys);
    if expr.is_empty() {
        return input;
    }
    LogicalPlan::Sort(Sort { expr, input: Arc::new(input), fetch })
}

/// The order in which a window node reads its input: partitions, their order, the rest of the row.
pub(crate) fn window_keys(window: &Window) -> Vec<SortExpr> {
    let mut keys: Vec<SortExpr> = Vec::new();
    if let Some(Expr::WindowFunction(function)) =
        window.window_expr.first().map(|expr| expr.clone().unalias())
    {
        let WindowFunctionParams { partition_by, order_by, .. } = function.params;
        keys.extend(partition_by.into_iter().map(|expr| expr.sort(true, true)));
        keys.extend(order_by);
    }
    total(&window.input, keys)
}

/// An aggregate node whose order-sensitive calls have a total order.
pub(crate) fn ordered_calls(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Aggregate(node) = &plan else { return Ok(plan) };
    let input = node.input.clone();
    plan.map_expressions(|expr| {
        let name = expr.schema_name().to_string();
        let rewritten = expr.transform_up(|e| match e {
            Expr::AggregateFunction(AggregateFunction { func, mut params })
                if ORDERED.contains(&func.name()) =>
            {
                params.order_by = match params.distinct {
                    false => total(&input, params.order_by),
                    true if params.order_by.is_empty() => {
                        params.args.iter().take(1).map(|arg| arg.clone().sort(true, true)).collect()
                    }
                    true => params.order_by,
                };
                let call = AggregateFunction { func, params };
                Ok(Transformed::yes(Expr::AggregateFunction(call)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(match rewritten.transformed {
            true => Transformed::yes(saved(rewritten.data, name)),
            false => rewritten,
        })
    })
    .map(|plan| plan.data)
}

/// The expression under the name that it had.
fn saved(expr: Expr, name: String) -> Expr {
    let same = expr.schema_name().to_string() == name;
    if same { expr } else { expr.alias(name) }
}

/// The sort keys, then every other column that has an order, ascending, NULL first.
pub(crate) fn total(input: &LogicalPlan, mut keys: Vec<SortExpr>) -> Vec<SortExpr> {
    // A column may be named with its table or without, or have another name.
    let place = |key: &SortExpr| match key.expr.clone().unalias() {
        Expr::Column(column) => input.schema().maybe_index_of_column(&column),
        _ => None,
    };
    let known: Vec<usize> = keys.iter().filter_map(place).collect();
    let columns = input.schema().columns().into_iter().zip(input.schema().fields()).enumerate();
    for (at, (column, field)) in columns {
        if !known.contains(&at) && has_order(field.data_type()) {
            keys.push(Expr::Column(column).sort(true, true));
        }
    }
    keys
}

/// Types that a sort takes.
fn has_order(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_order(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().all(|field| has_order(field.data_type())),
        other => !other.is_nested(),
    }
}
