//! The clock as an input: `now()` and its kin become a column of a table with one row.
//!
//! A condition such as `ts > now() - INTERVAL 1 DAY`, one side of which asks for the time and the
//! other for columns, stays a filter, which is lowered to a filter by a moving bound. Anything else
//! that asks for the time is computed beside the clock's one row, so that a later time changes all of
//! its rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, FieldRef, IntervalMonthDayNano, Schema, SchemaRef, TimeUnit,
};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result, ScalarValue, TableReference, internal_err};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator,
    Projection, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TableScan, TableSource, Volatility,
};
use deltaic_batch::ZBatch;
use deltaic_ops::Comparison;

use super::intervals;
use super::provider::TableInput;
use crate::catalog::SourceTable;

/// Name of the clock among the sources of a circuit. No table has it.
pub(crate) const CLOCK: &str = "now()";
/// Its column.
const COLUMN: &str = "now";
const UTC: &str = "UTC";

/// The clock as a table: one column of one row, in the session's zone, whose days and hours count.
pub(crate) fn schema(time_zone: &str) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(COLUMN, instant(time_zone), false)]))
}

fn instant(time_zone: &str) -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some(time_zone.into()))
}

/// `now()` as a TIMESTAMP of ours: in microseconds, of no zone of its own.
pub(crate) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(Now {
        signature: Signature::nullary(Volatility::Stable),
        aliases: vec!["current_timestamp".into()],
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Now {
    signature: Signature,
    aliases: Vec<String>,
}

impl ScalarUDFImpl for Now {
    fn name(&self) -> &str {
        "now"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        internal_err!("the field of now() says more")
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name(), instant(UTC), false)))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(match info.query_execution_start_time() {
            None => ExprSimplifyResult::Original(args),
            Some(now) => {
                let now = ScalarValue::TimestampMicrosecond(
                    Some(now.timestamp_micros()),
                    Some(UTC.into()),
                );
                ExprSimplifyResult::Simplified(Expr::Literal(now, None))
            }
        })
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("now() is the clock's")
    }
}

/// The change of the clock from one time to another, in microseconds since 1970.
pub(crate) fn change(
    schema: &SchemaRef,
    before: Option<i64>,
    after: i64,
) -> deltaic_batch::Result<ZBatch> {
    let times: Vec<i64> = before.into_iter().chain([after]).collect();
    let mut weights = vec![-1; times.len() - 1];
    weights.push(1);
    let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(times).with_timezone(UTC));
    let times = cast(&times, schema.field(0).data_type())?;
    ZBatch::try_new(RecordBatch::try_new(schema.clone(), vec![times])?, weights)?.consolidate()
}

/// True for a function whose value is that of the clock.
pub(crate) fn is_clock(name: &str) -> bool {
    matches!(name, "now" | "current_date" | "current_time" | "current_timestamp")
}

/// True when an expression asks for the time.
fn asks(expr: &Expr) -> bool {
    let found =
        expr.exists(|e| Ok(matches!(e, Expr::ScalarFunction(call) if is_clock(call.func.name()))));
    found.unwrap_or(true)
}

/// A condition whose one side moves with the clock while the other depends on the row.
#[derive(Debug, Clone)]
pub(crate) struct Temporal {
    /// Of the row.
    pub(crate) value: Expr,
    pub(crate) comparison: Comparison,
    /// Of the clock alone.
    pub(crate) bound: Expr,
}

impl Temporal {
    /// The condition, if it is one.
    pub(crate) fn of(predicate: &Expr) -> Option<Self> {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = predicate else { return None };
        if let Some(moved) = Self::of_difference(left, *op, right)
            .or_else(|| Self::of_difference(right, op.swap()?, left))
        {
            return Some(moved);
        }
        let (value, op, bound) = match (asks(left), asks(right)) {
            (false, true) => (left, *op, right),
            (true, false) => (right, op.swap()?, left),
            _ => return None,
        };
        if value.any_column_refs() && !bound.any_column_refs() && !has_subquery(predicate) {
            let (value, bound) = (value.as_ref().clone(), bound.as_ref().clone());
            return Some(Self { value, comparison: comparison(op)?, bound });
        }
        None
    }

    /// `now() - ts < INTERVAL 1 DAY` as `ts > now() - INTERVAL 1 DAY`, and the like.
    fn of_difference(difference: &Expr, op: Operator, length: &Expr) -> Option<Self> {
        let Expr::Literal(ScalarValue::Decimal128(Some(length), _, 0), _) = length else {
            return None;
        };
        let nanoseconds = i64::try_from(*length).ok().filter(|length| length % 1000 == 0)?;
        let interval = IntervalMonthDayNano::new(0, 0, nanoseconds);
        let interval =
            Box::new(Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), None));
        let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) =
            without_casts(intervals::inner(difference)?)
        else {
            return None;
        };
        // Of instants, or of times without a zone, in microseconds: else not all digits are there.
        let predicate = |op, one: &Expr, arithmetic, other: &Expr| {
            let (left, right) = (Box::new(other.clone()), interval.clone());
            let bound = Box::new(Expr::BinaryExpr(BinaryExpr { left, op: arithmetic, right }));
            Expr::BinaryExpr(BinaryExpr { left: Box::new(one.clone()), op, right: bound })
        };
        match (asks(left), asks(right)) {
            (true, false) => Self::of(&predicate(op.swap()?, right, Operator::Minus, left)),
            (false, true) => Self::of(&predicate(op, left, Operator::Plus, right)),
            _ => None,
        }
    }
}

fn without_casts(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(cast) => without_casts(&cast.expr),
        other => other,
    }
}

fn comparison(op: Operator) -> Option<Comparison> {
    Some(match op {
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::LessOrEqual,
        Operator::Eq => Comparison::Equal,
        Operator::GtEq => Comparison::GreaterOrEqual,
        Operator::Gt => Comparison::Greater,
        _ => return None,
    })
}

fn has_subquery(expr: &Expr) -> bool {
    let is_subquery =
        |e: &Expr| matches!(e, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_));
    expr.exists(|e| Ok(is_subquery(e))).unwrap_or(true)
}

/// The expression with the clock's column in place of the functions.
pub(crate) fn read(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|e| {
        let Expr::ScalarFunction(call) = &e else { return Ok(Transformed::no(e)) };
        let name = call.func.name();
        if !is_clock(name) {
            return Ok(Transformed::no(e));
        }
        let now = Expr::Column(Column::new(Some(TableReference::bare(CLOCK)), COLUMN));
        let part = |to: DataType| Expr::Cast(Cast::new(Box::new(now.clone()), to));
        Ok(Transformed::yes(match name {
            "current_date" => part(DataType::Date32),
            "current_time" => part(DataType::Time64(TimeUnit::Nanosecond)),
            _ => part(instant(UTC)),
        }))
    })
}

/// The clock as a scan.
pub(crate) fn scan(schema: &SchemaRef) -> Result<LogicalPlan> {
    let table = SourceTable { schema: schema.clone(), append_only: false, rows: Some(1) };
    let input = TableInput::try_new(CLOCK.into(), &table);
    let input = input.map_err(|e| datafusion::common::plan_datafusion_err!("{e}"))?;
    let source: Arc<dyn TableSource> = Arc::new(input);
    LogicalPlanBuilder::scan(TableReference::bare(CLOCK), source, None)?.build()
}

/// The optimized plan with the clock as a table; `None` where it has no such form. Temporal
/// conditions remain, each in a filter of its own.
pub(crate) fn bind(plan: LogicalPlan, clock: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let is_recursive = plan.exists(|node| Ok(matches!(node, LogicalPlan::RecursiveQuery(_))))?;
    if is_recursive {
        return Ok(None);
    }
    let bound = plan.transform_up(|node| match node {
        LogicalPlan::TableScan(scan) => scan_without(scan, clock),
        LogicalPlan::Filter(filter) if asks(&filter.predicate) => {
            filters(split_conjunction_owned(filter.predicate), filter.input, clock)
                .map(Transformed::yes)
        }
        node if node.expressions().iter().any(asks) => beside(node, clock).map(Transformed::yes),
        node => Ok(Transformed::no(node)),
    });
    let bound = bound?.data;
    let mut is_complete = true;
    bound.apply_with_subqueries(|node| {
        let is_temporal =
            matches!(node, LogicalPlan::Filter(f) if Temporal::of(&f.predicate).is_some());
        is_complete &= is_temporal || !node.expressions().iter().any(asks);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(is_complete.then_some(bound))
}

/// A scan's conditions that ask for the time, above it.
fn scan_without(mut scan: TableScan, clock: &LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let (timed, others) = std::mem::take(&mut scan.filters).into_iter().partition(asks);
    let timed: Vec<Expr> = timed;
    scan.filters = others;
    if timed.is_empty() {
        return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
    }
    filters(timed, Arc::new(LogicalPlan::TableScan(scan)), clock).map(Transformed::yes)
}

/// Filters one above the other: plain conditions, temporal ones, those beside the clock.
fn filters(
    conditions: Vec<Expr>,
    input: Arc<LogicalPlan>,
    clock: &LogicalPlan,
) -> Result<LogicalPlan> {
    let (timed, plain): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(asks);
    let (temporal, others): (Vec<Expr>, Vec<Expr>) =
        timed.into_iter().partition(|condition| Temporal::of(condition).is_some());
    let mut plan = input;
    for condition in conjunction(plain).into_iter().chain(temporal) {
        plan = Arc::new(LogicalPlan::Filter(Filter::try_new(condition, plan)?));
    }
    match conjunction(others) {
        None => Ok(Arc::unwrap_or_clone(plan)),
        Some(condition) => {
            let filter = LogicalPlan::Filter(Filter::try_new(condition, plan)?);
            beside(filter, clock)
        }
    }
}

/// The node over its first input beside the clock's row, with its own columns.
pub(crate) fn beside(node: LogicalPlan, clock: &LogicalPlan) -> Result<LogicalPlan> {
    let schema = node.schema().clone();
    let mut inputs: Vec<LogicalPlan> = node.inputs().into_iter().cloned().collect();
    let Some(first) = inputs.first_mut() else { return Ok(node) };
    *first = LogicalPlanBuilder::from(first.clone()).cross_join(clock.clone())?.build()?;
    let names = NamePreserver::new(&node);
    let exprs = node.expressions().into_iter().map(|expr| {
        let name = names.save(&expr);
        Ok(name.restore(read(expr)?.data))
    });
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    let plan = node.with_new_exprs(exprs, inputs)?;
    if plan.schema().fields().len() == schema.fields().len() {
        return Ok(plan);
    }
    let columns = schema.iter().map(|(table, field)| Expr::from((table, field))).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}
