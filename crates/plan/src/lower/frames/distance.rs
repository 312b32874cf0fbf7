//! Frames by distance on both sides: `RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW`.
//!
//! The frame of a row is that of its place: its partition and its value of the sort column. So the
//! places, each once, meet the rows within their distance (a range join within the partition), are
//! aggregated, and every row takes what its place has. A changed row is within the distance of some
//! places, whose sums take it or leave it; no other is looked at.
//!
//! Rows without a value in the sort column are each other's frame.

use std::sync::Arc;

use arrow::datatypes::{
    DataType, Field, IntervalMonthDayNano, IntervalUnit, Schema, SchemaRef, TimeUnit,
};
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::abs;
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, ExprSchemable, Filter, LogicalPlan, Operator, Projection, Window,
    WindowFrameBound as Bound, cast, lit, when,
};
use deltaic_batch::Result;
use deltaic_ops::{
    Aggregate as AggregateOperator, AggregateCall, AggregateFunction, AggregateSpec, Comparison,
    Evaluator, JoinKind, RangeCondition, RangeJoin, RangeJoinSpec,
};

use super::calls::Calls;
use super::evaluators::{IsNull, OrZero, Within};
use crate::errors;
use crate::lower::Lowering;
use crate::session::batch::relaxed;
use crate::tree::{Kind, NodeIx};

/// How far a frame goes from its row: what is subtracted from a place for the first value, and added
/// for the last one.
struct Distance {
    back: ScalarValue,
    on: ScalarValue,
    /// What these are at most, as a length that is the same from each place.
    most_back: ScalarValue,
    most_on: ScalarValue,
    /// Type in which nothing overflows.
    computed: DataType,
}

/// Where the columns of the rows within the distance are: keys, value, bounds, then arguments.
struct Columns {
    exprs: Vec<Expr>,
}

impl Columns {
    fn number(&mut self, expr: &Expr) -> usize {
        self.exprs.iter().position(|other| other == expr).unwrap_or_else(|| {
            self.exprs.push(expr.clone());
            self.exprs.len() - 1
        })
    }
}

impl Lowering {
    /// Window aggregates of one frame by distance; `None` where the sort column has no distances.
    pub(super) fn distance_window(
        &mut self,
        plan: &LogicalPlan,
        window: &Window,
        frames: &Calls<'_>,
    ) -> Result<Option<NodeIx>> {
        let [order] = frames.order.as_slice() else { return Ok(None) };
        let (schema, frame) = (frames.input.schema(), &frames.frame);
        let key_type = order.expr.get_type(schema).map_err(|e| errors::planning(&e))?;
        // From the row's value: negative before it, in the order's direction.
        let (start, end) = (Offset::of(&frame.start_bound), Offset::of(&frame.end_bound));
        let Some(distance) = Distance::of(&key_type, start, end, order.asc) else {
            return Ok(None);
        };
        let keys = frames.partition.len();
        let planned = |plan: datafusion::common::Result<LogicalPlan>| {
            plan.map_err(|error| errors::planning(&error))
        };
        // Partition, key as it is, key as it is compared, the places that a row is in reach of,
        // arguments and filters.
        let compared = cast(order.expr.clone(), distance.computed.clone());
        let (first_place, last_place) = (
            reach(&compared, Operator::Minus, &distance.most_on, &distance.computed),
            reach(&compared, Operator::Plus, &distance.most_back, &distance.computed),
        );
        let (first_place, last_place) = (planned_expr(first_place)?, planned_expr(last_place)?);
        let mut columns = Columns { exprs: frames.partition.clone() };
        columns.exprs.extend([order.expr.clone(), compared.clone(), first_place, last_place]);
        let (key, value, least_place, greatest_place) = (keys, keys + 1, keys + 2, keys + 3);
        let fields: Vec<_> = plan.schema().fields().iter().rev().take(frames.calls.len()).collect();
        let calls: Vec<AggregateCall> = (frames.calls.iter().zip(fields.into_iter().rev()))
            .map(|(call, field)| AggregateCall {
                function: call.function,
                distinct: false,
                input: call.argument.as_ref().map(|argument| columns.number(argument)),
                filter: call.filter.as_ref().map(|filter| columns.number(filter)),
                output: field.as_ref().clone().with_nullable(true),
            })
            .collect();
        let named = |exprs: &[Expr]| -> Vec<Expr> {
            (exprs.iter().enumerate())
                .map(|(at, expr)| expr.clone().unalias().alias(format!("c{at}")))
                .collect()
        };
        let project = |exprs: Vec<Expr>, input: Arc<LogicalPlan>| {
            Projection::try_new(exprs, input).map(LogicalPlan::Projection)
        };
        let all = Arc::new(frames.input.clone());
        let rows_plan = planned(project(named(&columns.exprs), all.clone()))?;
        let placed = planned(
            Filter::try_new(order.expr.clone().is_not_null(), all).map(LogicalPlan::Filter),
        )?;
        let place_exprs = named(&columns.exprs[..=value]);
        let places = planned(project(place_exprs, Arc::new(placed)))?;
        let places = LogicalPlan::Distinct(Distinct::All(Arc::new(places)));
        let column = |at: usize| Expr::Column(places.schema().columns()[at].clone());
        let bounds = [
            moved(&column(value), Operator::Minus, &distance.back),
            moved(&column(value), Operator::Plus, &distance.on),
        ];
        let place_exprs: Vec<Expr> = (0..=value).map(column).chain(bounds).collect();
        let places_plan = planned(project(named(&place_exprs), Arc::new(places)))?;
        let (least, greatest) = (value + 1, value + 2);
        let rows = self.lower(&rows_plan)?;
        let places = self.lower(&places_plan)?;
        let (row_schema, place_schema) =
            (self.tree.schema(rows).clone(), self.tree.schema(places).clone());
        let width = row_schema.fields().len();
        let pair = Arc::new(Schema::new(
            row_schema.fields().iter().chain(place_schema.fields()).cloned().collect::<Vec<_>>(),
        ));
        let range = |left, comparison, right| RangeCondition { left, comparison, right };
        let spec = RangeJoinSpec {
            left: row_schema.clone(),
            right: place_schema,
            on: (0..keys).map(|key| (key, key)).collect(),
            null_equals_null: true,
            values: (value, value),
            ranges: vec![
                range(value, Comparison::GreaterOrEqual, least),
                range(value, Comparison::LessOrEqual, greatest),
                range(least_place, Comparison::LessOrEqual, value),
                range(greatest_place, Comparison::GreaterOrEqual, value),
            ],
            condition: Arc::new(Within { value, least: width + least, greatest: width + greatest }),
            detail: format!(
                "within {} before and {} behind {}",
                distance.back,
                distance.on,
                self.words.expr(&order.expr)
            ),
        };
        let place_keys: Vec<usize> = (width..=width + key).collect();
        let declared = |input: SchemaRef, keys: Vec<usize>| AggregateSpec {
            input,
            keys,
            calls: calls.clone(),
        };
        if RangeJoin::try_new(spec.clone()).is_err()
            || AggregateOperator::try_new(declared(pair.clone(), place_keys.clone())).is_err()
        {
            return Ok(None);
        }
        let about = format!("{spec:?}");
        let kind = Kind::RangeJoin {
            on: spec.on,
            null_equals_null: true,
            values: spec.values,
            ranges: spec.ranges,
            condition: spec.condition,
        };
        let pairs = self.tree.add(kind, vec![rows, places], pair, spec.detail, &about);
        let shown = self.shown(&window.window_expr);
        let by_place = self.aggregated(pairs, place_keys, &calls, &shown);
        let values = match order.expr.nullable(schema).unwrap_or(true) {
            false => by_place,
            true => {
                let by_nothing = self.without_place(rows, (keys, key), &calls, &shown);
                let schema = self.tree.schema(by_place).clone();
                self.union_all(vec![by_place, by_nothing], schema)?
            }
        };
        // Each row beside what its place has.
        let input = self.lower(frames.input)?;
        let side_keys = frames.partition.iter().chain([&order.expr]);
        let side = self.side(input, frames.input, side_keys)?;
        let joined = self.beside_values(&side.keys, side.node, values);
        let left = self.tree.schema(side.node).fields().len();
        let output = relaxed(plan.schema().as_arrow());
        let mut picked: Vec<(Arc<dyn Evaluator>, Field)> = Vec::new();
        for (at, field) in output.fields().iter().enumerate() {
            let evaluator: Arc<dyn Evaluator> = match at.checked_sub(side.width) {
                None => Arc::new(deltaic_ops::ColumnRef(at)),
                Some(call) => {
                    let column = left + keys + 1 + call;
                    match calls[call].function {
                        AggregateFunction::CountStar | AggregateFunction::Count => {
                            Arc::new(OrZero(column))
                        }
                        _ => Arc::new(deltaic_ops::ColumnRef(column)),
                    }
                }
            };
            picked.push((evaluator, field.as_ref().clone()));
        }
        let about = format!("{picked:?}");
        let kind = Kind::Project { columns: picked };
        Ok(Some(self.tree.add(kind, vec![joined], output, shown, &about)))
    }

    fn aggregated(
        &mut self,
        input: NodeIx,
        keys: Vec<usize>,
        calls: &[AggregateCall],
        shown: &str,
    ) -> NodeIx {
        let from = self.tree.schema(input).clone();
        let fields = keys.iter().map(|&key| from.field(key).clone());
        let fields = fields.chain(calls.iter().map(|call| call.output.clone()));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        let spec = format!("{keys:?} {calls:?}");
        let kind = Kind::Aggregate { keys, calls: calls.to_vec() };
        self.tree.add(kind, vec![input], schema, format!("{shown} by place"), &spec)
    }

    /// The aggregates of rows without a value, per partition, as rows of a place that is NULL.
    fn without_place(
        &mut self,
        rows: NodeIx,
        (keys, key): (usize, usize),
        calls: &[AggregateCall],
        shown: &str,
    ) -> NodeIx {
        let schema = self.tree.schema(rows).clone();
        let predicate = Arc::new(IsNull(key));
        let kind = Kind::Filter { predicate };
        let about = format!("null {key}");
        let detail = "sort column IS NULL".into();
        let unplaced = self.tree.add(kind, vec![rows], schema.clone(), detail, &about);
        // The key is a group of its own: NULL.
        let by: Vec<usize> = (0..=keys).collect();
        self.aggregated(unplaced, by, calls, shown)
    }

    fn beside_values(&mut self, keys: &[usize], rows: NodeIx, values: NodeIx) -> NodeIx {
        let fields: Vec<_> = (self.tree.schema(rows).fields().iter())
            .chain(self.tree.schema(values).fields())
            .cloned()
            .collect();
        let on: Vec<(usize, usize)> = keys.iter().copied().zip(0..).collect();
        let spec = format!("Left {on:?} true");
        let kind = Kind::Join { kind: JoinKind::Left, on, null_equals_null: true, residual: None };
        let output = Arc::new(Schema::new(fields));
        self.tree.add(kind, vec![rows, values], output, "same place".into(), &spec)
    }
}

/// `expr op by`, where `by` is something.
pub(super) fn moved(expr: &Expr, op: Operator, by: &ScalarValue) -> Expr {
    let (left, right) = (Box::new(expr.clone()), Box::new(lit(by.clone())));
    Expr::BinaryExpr(BinaryExpr { left, op, right })
}

/// A distance on one side: how far, and whether before the row.
struct Offset {
    by: ScalarValue,
    before: bool,
}

impl Offset {
    /// `None` for the row itself.
    fn of(bound: &Bound) -> Option<Self> {
        match bound {
            Bound::CurrentRow => None,
            Bound::Preceding(by) => Some(Self { by: by.clone(), before: true }),
            Bound::Following(by) => Some(Self { by: by.clone(), before: false }),
        }
    }
}

impl Distance {
    fn of(
        key: &DataType,
        start: Option<Offset>,
        end: Option<Offset>,
        ascending: bool,
    ) -> Option<Self> {
        let computed = computed_type(key)?;
        // What is subtracted for the first value is positive before the row, and added for the last
        // one behind it. In a falling order, what is before has greater values.
        let signed = |offset: Option<Offset>, before: bool| -> Option<ScalarValue> {
            match offset {
                None => zero(&computed),
                Some(offset) => {
                    let by = amount(&offset.by, &computed)?;
                    if offset.before == before { Some(by) } else { by.arithmetic_negate().ok() }
                }
            }
        };
        let (back, on) = match ascending {
            true => (signed(start, true)?, signed(end, false)?),
            false => (signed(end, false)?, signed(start, true)?),
        };
        let (most_back, most_on) = (at_most(&back, &computed)?, at_most(&on, &computed)?);
        Some(Self { back, on, most_back, most_on, computed })
    }
}

/// The type that places of a sort column are computed in, wide enough for every place and distance.
pub(super) fn computed_type(key: &DataType) -> Option<DataType> {
    match key {
        integer if integer.is_integer() => Some(DataType::Decimal128(38, 0)),
        DataType::Decimal128(precision, scale) if *precision < 38 => {
            Some(DataType::Decimal128(38, *scale))
        }
        DataType::Date32 | DataType::Timestamp(_, _) | DataType::Float64 => Some(key.clone()),
        _ => None,
    }
}

fn zero(data_type: &DataType) -> Option<ScalarValue> {
    match data_type {
        DataType::Decimal128(_, _) | DataType::Float64 => ScalarValue::new_zero(data_type).ok(),
        _ => ScalarValue::new_zero(&DataType::Interval(IntervalUnit::MonthDayNano)).ok(),
    }
}

/// As far as any place that is at such a distance: beyond it by what rounding may take, for floats.
fn reach(
    key: &Expr,
    op: Operator,
    by: &ScalarValue,
    computed: &DataType,
) -> datafusion::common::Result<Expr> {
    let exact = moved(key, op, by);
    if computed != &DataType::Float64 {
        return Ok(exact);
    }
    let size = |expr: Expr| abs(expr) * lit(4.0 * f64::EPSILON) + lit(f64::MIN_POSITIVE);
    let slack = size(key.clone()) + size(lit(by.clone()));
    let (left, right) = (Box::new(exact), Box::new(slack));
    let beyond = Expr::BinaryExpr(BinaryExpr { left, op, right });
    // Infinities and NaN are at no distance from anything else.
    let is_infinite = abs(key.clone()).eq(lit(f64::INFINITY));
    when(is_infinite, key.clone()).otherwise(beyond)
}

fn planned_expr(expr: datafusion::common::Result<Expr>) -> Result<Expr> {
    expr.map_err(|error| errors::planning(&error))
}

/// A distance in the type that it is computed in.
pub(super) fn amount(by: &ScalarValue, computed: &DataType) -> Option<ScalarValue> {
    match computed {
        DataType::Date32 | DataType::Timestamp(_, _) => {
            by.cast_to(&DataType::Interval(IntervalUnit::MonthDayNano)).ok()
        }
        _ => by.cast_to(computed).ok(),
    }
}

/// The greatest length that a distance has anywhere: a month is not always as long, a day neither in
/// a zone with summer time, and of less than the type's unit some is lost.
fn at_most(by: &ScalarValue, computed: &DataType) -> Option<ScalarValue> {
    const DAY: i64 = 86_400_000_000_000;
    let ScalarValue::IntervalMonthDayNano(Some(by)) = by else { return Some(by.clone()) };
    let (unit, has_zone) = match computed {
        DataType::Timestamp(TimeUnit::Second, zone) => (1_000_000_000, zone.is_some()),
        DataType::Timestamp(TimeUnit::Millisecond, zone) => (1_000_000, zone.is_some()),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => (1_000, zone.is_some()),
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => (1, zone.is_some()),
        _ => (i64::MAX, false),
    };
    let is_exact = by.months == 0 && by.nanoseconds % unit == 0 && (by.days == 0 || !has_zone);
    let most = match is_exact {
        true => *by,
        false => {
            let month = if by.months > 0 { 31 } else { 28 };
            let days = i64::from(by.months) * month
                + i64::from(by.days)
                + by.nanoseconds.div_euclid(DAY)
                + 3;
            IntervalMonthDayNano::new(0, i32::try_from(days).ok()?, 0)
        }
    };
    Some(ScalarValue::IntervalMonthDayNano(Some(most)))
}
