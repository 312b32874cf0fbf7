//! Sums that fail instead of wrapping, for what DataFusion executes.
//!
//! DataFusion's `sum` of integers wraps around in 64 bits, that of decimals in 128. Plans that it runs
//! (batch queries and recomputed parts) sum in a wider decimal instead, and cast the finished sum back,
//! which fails when it does not fit: the value decides, not the order of the rows.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, Cast, Expr, ExprSchemable, LogicalPlan, Projection, Window, WindowFunctionDefinition,
};

/// Decimals of up to this precision have room in 38 digits for ten billion rows.
const NARROW_PRECISION_MAX: u8 = 28;

/// The plan with checked sums.
pub(crate) fn checked(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(node) => aggregate(node),
        LogicalPlan::Window(node) => window(node),
        other => Ok(Transformed::no(other)),
    })
    .map(|plan| plan.data)
}

fn aggregate(node: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let schema = node.input.schema().clone();
    let Some(widened) = widened(&node.aggr_expr, |e| wide_sum(e, &schema)) else {
        return Ok(Transformed::no(LogicalPlan::Aggregate(node)));
    };
    let output = node.schema.clone();
    let first = output.fields().len() - node.aggr_expr.len();
    let wide = Aggregate::try_new(node.input, node.group_expr, widened)?;
    narrowed(LogicalPlan::Aggregate(wide), &output, first)
}

fn window(node: Window) -> Result<Transformed<LogicalPlan>> {
    let schema = node.input.schema().clone();
    let Some(widened) = widened(&node.window_expr, |e| wide_sum(e, &schema)) else {
        return Ok(Transformed::no(LogicalPlan::Window(node)));
    };
    let output = node.schema.clone();
    let first = node.input.schema().fields().len();
    let wide = Window::try_new(widened, node.input)?;
    narrowed(LogicalPlan::Window(wide), &output, first)
}

/// The expressions with wide sums under their old names; `None` when there is no such sum.
fn widened(exprs: &[Expr], wide: impl Fn(&Expr) -> Option<DataType>) -> Option<Vec<Expr>> {
    if exprs.iter().all(|expr| wide(expr).is_none()) {
        return None;
    }
    let wide = exprs.iter().map(|expr| {
        let Some(data_type) = wide(expr) else { return expr.clone() };
        let wide_argument = |arg| Expr::Cast(Cast::new(Box::new(arg), data_type.clone()));
        let name = expr.schema_name().to_string();
        let wide = match expr.clone().unalias() {
            Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
                params.args = params.args.into_iter().map(wide_argument).collect();
                Expr::AggregateFunction(AggregateFunction { func, params })
            }
            Expr::WindowFunction(call) => {
                let WindowFunction { fun, mut params } = *call;
                params.args = params.args.into_iter().map(wide_argument).collect();
                Expr::from(WindowFunction { fun, params })
            }
            other => other,
        };
        wide.alias(name)
    });
    Some(wide.collect())
}

/// The type to sum in; `None` for what is no sum that can wrap.
fn wide_sum(expr: &Expr, schema: &datafusion::common::DFSchema) -> Option<DataType> {
    let (name, args) = match expr {
        Expr::Alias(alias) => return wide_sum(&alias.expr, schema),
        Expr::AggregateFunction(call) => (call.func.name().to_owned(), &call.params.args),
        Expr::WindowFunction(call) => match &call.fun {
            WindowFunctionDefinition::AggregateUDF(f) => (f.name().to_owned(), &call.params.args),
            WindowFunctionDefinition::WindowUDF(_) => return None,
        },
        _ => return None,
    };
    if name != "sum" {
        return None;
    }
    match args.first()?.get_type(schema).ok()? {
        // Room for 2^63 rows of 64 bits each.
        integer if integer.is_integer() => Some(DataType::Decimal128(38, 0)),
        DataType::Decimal128(precision, scale) if precision > NARROW_PRECISION_MAX => {
            Some(DataType::Decimal256(76, scale))
        }
        _ => None,
    }
}

/// A projection back to the types of `output`; the columns from `first` on were computed.
fn narrowed(
    plan: LogicalPlan,
    output: &datafusion::common::DFSchemaRef,
    first: usize,
) -> Result<Transformed<LogicalPlan>> {
    let columns = plan.schema().columns();
    let exprs = (columns.into_iter().zip(output.iter()).enumerate())
        .map(|(i, (column, (_, field)))| {
            let wide = plan.schema().field(i).data_type() != field.data_type();
            match i >= first && wide {
                true => {
                    let cast = Cast::new(Box::new(Expr::Column(column)), field.data_type().clone());
                    Expr::Cast(cast).alias(field.name())
                }
                false => Expr::Column(column),
            }
        })
        .collect();
    let projection = Projection::try_new(exprs, Arc::new(plan))?;
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}
