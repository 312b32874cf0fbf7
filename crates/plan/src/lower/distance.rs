//! Aggregates over frames by distance: `RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW`.
//!
//! The frame of a row is that of its place: its partition and its value of the sort column. So the
//! places, each once, meet the rows within their distance (a range join within the partition), are
//! aggregated, and every row takes what its place has. A changed row is within the distance of some
//! places, whose sums take it or leave it; no other is looked at.
//!
//! Rows without a value in the sort column are each other's frame.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::WindowFunctionParams;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Distinct, Expr, ExprSchemable, Filter, LogicalPlan, Operator, Projection,
    Window, WindowFrame, WindowFrameBound as Bound, WindowFrameUnits, WindowFunctionDefinition,
    lit,
};
use deltaic_batch::Result;
use deltaic_ops::{
    Aggregate as AggregateOperator, AggregateCall, AggregateFunction, AggregateSpec, Comparison,
    Evaluator, JoinKind, RangeCondition, RangeJoin, RangeJoinSpec,
};

use super::Lowering;
use crate::errors;
use crate::session::batch::relaxed;
use crate::tree::{Kind, NodeIx};

/// How far a frame goes from its row: what is subtracted from a place for the first value, and added
/// for the last one.
struct Distance {
    back: ScalarValue,
    on: ScalarValue,
    /// Type in which nothing overflows.
    computed: DataType,
}

/// What all calls of a window node have in common, and the calls.
struct Frames<'a> {
    input: &'a LogicalPlan,
    partition: Vec<Expr>,
    key: Expr,
    distance: Distance,
    calls: Vec<Call>,
}

struct Call {
    function: AggregateFunction,
    argument: Option<Expr>,
    filter: Option<Expr>,
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
    /// Window aggregates of one frame by distance; `None` for others.
    pub(super) fn distance_window(
        &mut self,
        plan: &LogicalPlan,
        window: &Window,
    ) -> Result<Option<NodeIx>> {
        if let Some(apart) = apart(window).map_err(|e| errors::planning(&e))? {
            return self.lower(&apart).map(Some);
        }
        let Some(frames) = Frames::of(window) else { return Ok(None) };
        let keys = frames.partition.len();
        let planned = |plan: datafusion::common::Result<LogicalPlan>| {
            plan.map_err(|error| errors::planning(&error))
        };
        // Partition, key as it is, key as it is compared, the places that a row is in reach of,
        // arguments and filters.
        let compared = frames.compared();
        let (first_place, last_place) = (
            moved(&compared, Operator::Minus, &frames.distance.on),
            moved(&compared, Operator::Plus, &frames.distance.back),
        );
        let mut columns = Columns { exprs: frames.partition.clone() };
        columns.exprs.extend([frames.key.clone(), compared.clone(), first_place, last_place]);
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
            Filter::try_new(frames.key.clone().is_not_null(), all).map(LogicalPlan::Filter),
        )?;
        let place_exprs = named(&columns.exprs[..=value]);
        let places = planned(project(place_exprs, Arc::new(placed)))?;
        let places = LogicalPlan::Distinct(Distinct::All(Arc::new(places)));
        let column = |at: usize| Expr::Column(places.schema().columns()[at].clone());
        let bounds = [
            moved(&column(value), Operator::Minus, &frames.distance.back),
            moved(&column(value), Operator::Plus, &frames.distance.on),
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
                frames.distance.back,
                frames.distance.on,
                self.words.expr(&frames.key)
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
        let values = match frames.key.nullable(frames.input.schema()).unwrap_or(true) {
            false => by_place,
            true => {
                let by_nothing = self.without_place(rows, (keys, key), &calls, &shown);
                let schema = self.tree.schema(by_place).clone();
                self.union_all(vec![by_place, by_nothing], schema)?
            }
        };
        // Each row beside what its place has.
        let input = self.lower(frames.input)?;
        let side_keys = frames.partition.iter().chain([&frames.key]);
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

/// Calls by distance in window nodes of their own, one for each frame, above those of the others;
/// `None` where there is nothing to take apart.
fn apart(window: &Window) -> datafusion::common::Result<Option<LogicalPlan>> {
    let mut nodes: Vec<(Option<WindowFrame>, Vec<Expr>)> = Vec::new();
    for expr in &window.window_expr {
        let alone = Window::try_new(vec![expr.clone()], window.input.clone())?;
        let frame = match (Frames::of(&alone), expr.clone().unalias()) {
            (Some(_), Expr::WindowFunction(call)) => Some(call.params.window_frame),
            _ => None,
        };
        match nodes.iter_mut().find(|(other, _)| *other == frame) {
            Some((_, exprs)) => exprs.push(expr.clone()),
            None => nodes.push((frame, vec![expr.clone()])),
        }
    }
    if nodes.len() < 2 {
        return Ok(None);
    }
    nodes.sort_by_key(|(frame, _)| frame.is_some());
    let mut plan = window.input.clone();
    for (_, exprs) in nodes {
        plan = Arc::new(LogicalPlan::Window(Window::try_new(exprs, plan)?));
    }
    let columns = window.schema.iter().map(Expr::from).collect();
    Ok(Some(LogicalPlan::Projection(Projection::try_new(columns, plan)?)))
}

/// `expr op by`, where `by` is something.
fn moved(expr: &Expr, op: Operator, by: &ScalarValue) -> Expr {
    let (left, right) = (Box::new(expr.clone()), Box::new(lit(by.clone())));
    Expr::BinaryExpr(BinaryExpr { left, op, right })
}

impl<'a> Frames<'a> {
    fn of(window: &'a Window) -> Option<Self> {
        let (mut common, mut calls) = (None, Vec::new());
        for expr in &window.window_expr {
            let Expr::WindowFunction(call) = expr.clone().unalias() else { return None };
            let WindowFunctionParams {
                args,
                partition_by,
                order_by,
                window_frame,
                filter,
                distinct,
                null_treatment,
            } = call.params;
            let own = (partition_by, order_by, window_frame);
            if common.get_or_insert_with(|| own.clone()) != &own
                || distinct
                || null_treatment.is_some()
                || matches!(call.fun, WindowFunctionDefinition::WindowUDF(_))
            {
                return None;
            }
            let function = super::aggregate::function(call.fun.name(), &args, false)?;
            let argument = match function {
                AggregateFunction::CountStar => None,
                _ => Some(args.into_iter().next()?),
            };
            calls.push(Call { function, argument, filter: filter.map(|filter| *filter) });
        }
        let (partition, order, frame) = common?;
        let [order] = order.as_slice() else { return None };
        if frame.units != WindowFrameUnits::Range {
            return None;
        }
        let input = window.input.as_ref();
        let data_type = order.expr.get_type(input.schema()).ok()?;
        // From the row's value: negative before it, in the order's direction.
        let start = Offset::of(&frame.start_bound)?;
        let end = Offset::of(&frame.end_bound)?;
        if start.is_none() && end.is_none() {
            return None;
        }
        let distance = Distance::of(&data_type, start, end, order.asc)?;
        Some(Self { input, partition, key: order.expr.clone(), distance, calls })
    }

    /// The key in the type that it is compared in.
    fn compared(&self) -> Expr {
        let cast = Cast::new(Box::new(self.key.clone()), self.distance.computed.clone());
        Expr::Cast(cast)
    }
}

/// A distance on one side: how far, and whether before the row.
struct Offset {
    by: ScalarValue,
    before: bool,
}

impl Offset {
    /// `None` for a bound that is none; an inner `None` for the row itself.
    #[expect(clippy::option_option, reason = "no such frame, and no distance, are two things")]
    fn of(bound: &Bound) -> Option<Option<Self>> {
        match bound {
            Bound::CurrentRow => Some(None),
            Bound::Preceding(by) | Bound::Following(by) if by.is_null() => None,
            Bound::Preceding(by) => Some(Some(Self { by: by.clone(), before: true })),
            Bound::Following(by) => Some(Some(Self { by: by.clone(), before: false })),
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
        let computed = match key {
            // Wide enough for every place and distance.
            integer if integer.is_integer() => DataType::Decimal128(38, 0),
            DataType::Decimal128(precision, scale) if *precision < 38 => {
                DataType::Decimal128(38, *scale)
            }
            DataType::Date32 | DataType::Timestamp(_, _) => key.clone(),
            _ => return None,
        };
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
        Some(Self { back, on, computed })
    }
}

fn zero(data_type: &DataType) -> Option<ScalarValue> {
    match data_type {
        DataType::Decimal128(_, _) => ScalarValue::new_zero(data_type).ok(),
        _ => ScalarValue::new_zero(&DataType::Interval(IntervalUnit::MonthDayNano)).ok(),
    }
}

/// A distance in the type that it is computed in; `None` where taking it back does not undo it.
fn amount(by: &ScalarValue, computed: &DataType) -> Option<ScalarValue> {
    match computed {
        DataType::Decimal128(_, _) => by.cast_to(computed).ok(),
        _ => {
            let interval = DataType::Interval(IntervalUnit::MonthDayNano);
            match by.cast_to(&interval).ok()? {
                // A month is not always as long back, and less than the type's unit is lost.
                ScalarValue::IntervalMonthDayNano(Some(by)) => {
                    let unit = match computed {
                        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
                        DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
                        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
                        DataType::Timestamp(TimeUnit::Nanosecond, _) => 1,
                        _ => i64::MAX,
                    };
                    let is_exact = by.months == 0 && by.nanoseconds % unit == 0;
                    is_exact.then_some(ScalarValue::IntervalMonthDayNano(Some(by)))
                }
                _ => None,
            }
        }
    }
}

/// A value lies between two others.
#[derive(Debug)]
struct Within {
    value: usize,
    least: usize,
    greatest: usize,
}

impl Evaluator for Within {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        use arrow::compute::kernels::{boolean, cmp};
        let value = batch.column(self.value);
        let from = cmp::gt_eq(value, batch.column(self.least))?;
        let to = cmp::lt_eq(value, batch.column(self.greatest))?;
        Ok(Arc::new(boolean::and_kleene(&from, &to)?))
    }
}

/// A column has no value.
#[derive(Debug)]
struct IsNull(usize);

impl Evaluator for IsNull {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        Ok(Arc::new(arrow::compute::is_null(batch.column(self.0))?))
    }

    fn cannot_fail(&self) -> bool {
        true
    }
}

/// A count, which is zero of no rows.
#[derive(Debug)]
struct OrZero(usize);

impl Evaluator for OrZero {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let counts = batch.column(self.0);
        let zero = ScalarValue::new_zero(counts.data_type()).map_err(errors::execution)?;
        let zero = zero.to_scalar().map_err(errors::execution)?;
        let missing = arrow::compute::is_null(counts)?;
        Ok(arrow::compute::kernels::zip::zip(&missing, &zero, counts)?)
    }
}
