//! Aggregates that do not depend on the order of the rows, for what DataFusion executes.
//!
//! DataFusion's `sum` of integers wraps around in 64 bits, that of decimals in 128; plans that it runs
//! (batch queries and recomputed parts) sum in a wider decimal instead, and cast the finished sum back,
//! which fails when it does not fit. Sums and averages of floats are computed exactly and rounded once,
//! their minima and maxima as integers of the same order, of which each is counted once, too, by
//! `count(DISTINCT …)`: −0.0 is 0.0.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DFSchemaRef, Result};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Cast, Expr, ExprSchemable, LogicalPlan, Projection, Window,
    WindowFunctionDefinition,
};

use super::float_sum;
use super::ordered_bits::{integer_of, ordered_bits};

/// Decimals of up to this precision have room in 38 digits for ten billion rows.
const NARROW_PRECISION_MAX: u8 = 28;

/// How a call is computed instead.
enum Detour {
    /// From its argument as this wider type.
    Wider(DataType),
    /// From the integer that has its argument's place in the order.
    Ordered,
    /// By another function.
    Other(Arc<AggregateUDF>),
}

/// The plan with exact aggregates.
pub(crate) fn exact(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(node) => aggregate(node),
        LogicalPlan::Window(node) => window(node),
        other => Ok(Transformed::no(other)),
    })
    .map(|plan| plan.data)
}

fn aggregate(node: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let schema = node.input.schema().clone();
    let Some(exprs) = changed(&node.aggr_expr, &schema) else {
        return Ok(Transformed::no(LogicalPlan::Aggregate(node)));
    };
    let output = node.schema.clone();
    let first = output.fields().len() - node.aggr_expr.len();
    let changed = Aggregate::try_new(node.input, node.group_expr, exprs)?;
    changed_back(LogicalPlan::Aggregate(changed), &output, first)
}

fn window(node: Window) -> Result<Transformed<LogicalPlan>> {
    let schema = node.input.schema().clone();
    let Some(exprs) = changed(&node.window_expr, &schema) else {
        return Ok(Transformed::no(LogicalPlan::Window(node)));
    };
    let output = node.schema.clone();
    let first = node.input.schema().fields().len();
    let changed = Window::try_new(exprs, node.input)?;
    changed_back(LogicalPlan::Window(changed), &output, first)
}

/// The expressions with other calls under their old names; `None` when all stay.
fn changed(exprs: &[Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    if exprs.iter().all(|expr| detour(expr, schema).is_none()) {
        return None;
    }
    let changed = exprs.iter().map(|expr| match detour(expr, schema) {
        None => expr.clone(),
        Some(detour) => {
            let name = expr.schema_name().to_string();
            by(&detour, expr.clone().unalias()).alias(name)
        }
    });
    Some(changed.collect())
}

fn by(detour: &Detour, call: Expr) -> Expr {
    match call {
        Expr::AggregateFunction(AggregateFunction { mut func, mut params }) => {
            match detour {
                Detour::Other(other) => func = other.clone(),
                _ => params.args = arguments(detour, params.args),
            }
            Expr::AggregateFunction(AggregateFunction { func, params })
        }
        Expr::WindowFunction(call) => {
            let WindowFunction { mut fun, mut params } = *call;
            match detour {
                Detour::Other(other) => {
                    fun = WindowFunctionDefinition::AggregateUDF(other.clone());
                }
                _ => params.args = arguments(detour, params.args),
            }
            Expr::from(WindowFunction { fun, params })
        }
        other => other,
    }
}

fn arguments(detour: &Detour, args: Vec<Expr>) -> Vec<Expr> {
    let argument = |arg| match detour {
        Detour::Wider(wide) => Expr::Cast(Cast::new(Box::new(arg), wide.clone())),
        Detour::Ordered => ordered_bits(arg),
        Detour::Other(_) => arg,
    };
    args.into_iter().map(argument).collect()
}

/// `None` for what DataFusion computes right.
fn detour(expr: &Expr, schema: &DFSchema) -> Option<Detour> {
    let (function, args, distinct) = match expr {
        Expr::Alias(alias) => return detour(&alias.expr, schema),
        Expr::AggregateFunction(call) => (&call.func, &call.params.args, call.params.distinct),
        Expr::WindowFunction(call) => match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) => {
                (function, &call.params.args, call.params.distinct)
            }
            WindowFunctionDefinition::WindowUDF(_) => return None,
        },
        _ => return None,
    };
    let data_type = args.first()?.get_type(schema).ok()?;
    match (function.name(), data_type) {
        // Room for 2^63 rows of 64 bits each.
        ("sum", integer) if integer.is_integer() => {
            Some(Detour::Wider(DataType::Decimal128(38, 0)))
        }
        ("sum", DataType::Decimal128(precision, scale)) if precision > NARROW_PRECISION_MAX => {
            Some(Detour::Wider(DataType::Decimal256(76, scale)))
        }
        (name, DataType::Float64) if let Some(exact) = float_sum::exact(name) => {
            Some(Detour::Other(exact))
        }
        ("count", float) if distinct && integer_of(&float).is_some() => Some(Detour::Ordered),
        ("min" | "max", float) if integer_of(&float).is_some() => Some(Detour::Ordered),
        _ => None,
    }
}

/// A projection back to the types of `output`; the columns from `first` on were computed.
fn changed_back(
    plan: LogicalPlan,
    output: &DFSchemaRef,
    first: usize,
) -> Result<Transformed<LogicalPlan>> {
    let columns = plan.schema().columns();
    let exprs = (columns.into_iter().zip(output.iter()).enumerate())
        .map(|(i, (column, (_, field)))| {
            let found = plan.schema().field(i).data_type();
            let wanted = field.data_type();
            if i < first || found == wanted {
                return Expr::Column(column);
            }
            let back = match integer_of(wanted) {
                Some(_) => ordered_bits(Expr::Column(column)),
                None => Expr::Cast(Cast::new(Box::new(Expr::Column(column)), wanted.clone())),
            };
            back.alias(field.name())
        })
        .collect();
    let projection = Projection::try_new(exprs, Arc::new(plan))?;
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}
