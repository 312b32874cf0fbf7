//! ORDER BY … LIMIT, and `row_number()` kept up to some number: the first rows of each group.

use arrow::datatypes::{DataType, Field, IntervalUnit, Schema};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::logical_expr::expr::WindowFunctionParams;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, Limit, LogicalPlan, Operator, Projection, SortExpr,
    Window,
};
use deltaic_batch::Result;
use deltaic_state::SortKey;

use super::Lowering;
use super::words::Words;
use crate::errors;
use crate::session::ties;
use crate::tree::{Kind, NodeIx};

/// The places that a LIMIT, or a condition on a row number, leaves over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    offset: u64,
    limit: u64,
}

/// The order of a top-k, in columns of its input.
struct Keys {
    partition: Vec<Expr>,
    order: Vec<SortExpr>,
}

impl Lowering {
    /// LIMIT and the ORDER BY below it; `None` where it must be recomputed.
    pub(super) fn limit(&mut self, plan: &LogicalPlan) -> Result<Option<NodeIx>> {
        match plan {
            LogicalPlan::Sort(sort) => {
                let Some(fetch) = sort.fetch else { return Ok(None) };
                let range = Range { offset: 0, limit: fetch as u64 };
                self.top_k(&sort.input, order_by(&sort.expr), range, None)
            }
            LogicalPlan::Limit(limit) => match range_of(limit) {
                Some(range) => self.limited(&limit.input, range),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// The places `range` of a plan's rows, in the order of the ORDER BY at its top.
    fn limited(&mut self, plan: &LogicalPlan, range: Range) -> Result<Option<NodeIx>> {
        match plan {
            LogicalPlan::Sort(sort) => {
                let fetch = sort.fetch.map_or(u64::MAX, |fetch| fetch as u64);
                let limit = range.limit.min(fetch.saturating_sub(range.offset));
                let range = Range { limit, ..range };
                self.top_k(&sort.input, order_by(&sort.expr), range, None)
            }
            LogicalPlan::SubqueryAlias(alias) if ties::ordered(plan) => {
                self.limited(&alias.input, range)
            }
            LogicalPlan::Projection(p) if ties::ordered(plan) => {
                let Some(input) = self.limited(&p.input, range)? else { return Ok(None) };
                self.projection(input, p.input.schema(), &p.expr, p.schema.as_ref()).map(Some)
            }
            // The order of the inner LIMIT is that of the outer one, too.
            LogicalPlan::Limit(_) => Ok(None),
            other => self.top_k(other, order_by(&[]), range, None),
        }
    }

    /// A condition on the row number of a window, of which `row_number()` is the only call; columns
    /// may be left out in between. Without `numbered` the node lacks the column of the number, the
    /// last one.
    pub(super) fn ranked(&mut self, filter: &Filter, numbered: bool) -> Result<Option<NodeIx>> {
        let Some((window, picked)) = window_below(&filter.input) else { return Ok(None) };
        let Some(keys) = row_number(window) else { return Ok(None) };
        let Some(number) = window.schema.columns().pop() else { return Ok(None) };
        let (mut range, mut others) = (Bounds::default(), Vec::new());
        for conjunct in split_conjunction(&filter.predicate) {
            if !range.narrow(conjunct, &number) {
                others.push(conjunct);
            }
        }
        let refers = |expr: &&Expr| expr.column_refs().contains(&number);
        let (Some(range), true) = (range.places(), numbered || !others.iter().any(refers)) else {
            return Ok(None);
        };
        let number_at = picked.and_then(|p| p.expr.iter().position(|expr| is(expr, &number)));
        if let (Some(picked), Some(at), false) = (picked, number_at, numbered)
            && at + 1 != picked.expr.len()
        {
            return Ok(None);
        }
        let field = window.schema.fields().last().map(|field| field.as_ref().clone());
        let node = self.top_k(&window.input, keys, range, field.filter(|_| numbered))?;
        let Some(mut node) = node else { return Ok(None) };
        for condition in others {
            node = self.filter(node, window.schema.as_ref(), condition)?;
        }
        let Some(picked) = picked else { return Ok(Some(node)) };
        if numbered {
            let output = picked.schema.as_ref();
            return self.projection(node, &window.schema, &picked.expr, output).map(Some);
        }
        let all = window.schema.columns();
        let columns = (picked.expr.iter().take(number_at.unwrap_or(picked.expr.len())))
            .map(|expr| all.iter().position(|column| is(expr, column)));
        let Some(columns) = columns.collect::<Option<Vec<usize>>>() else { return Ok(None) };
        let fields: Vec<_> =
            columns.iter().map(|&at| self.tree.schema(node).fields()[at].clone()).collect();
        Ok(Some(self.columns(node, &columns, &std::sync::Arc::new(Schema::new(fields)))))
    }

    /// The rows below a projection that does not show their number; `None` if it does, or if they
    /// are not ranked.
    pub(super) fn ranked_without_number(&mut self, p: &Projection) -> Result<Option<NodeIx>> {
        let LogicalPlan::Filter(filter) = p.input.as_ref() else { return Ok(None) };
        let Some(number) = filter.input.schema().columns().pop() else { return Ok(None) };
        if p.expr.iter().any(|expr| expr.column_refs().contains(&number)) {
            return Ok(None);
        }
        self.ranked(filter, false)
    }

    /// The node of a top-k over a plan; `None` where a column has no order.
    fn top_k(
        &mut self,
        input: &LogicalPlan,
        keys: Keys,
        range: Range,
        number: Option<Field>,
    ) -> Result<Option<NodeIx>> {
        let schema = input.schema().clone();
        let computed = |expr: &Expr| !matches!(expr, Expr::Column(_));
        let mut columns: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
        let width = columns.len();
        let mut place = |expr: &Expr| {
            let expr = expr.clone().unalias();
            columns.iter().position(|other| *other == expr).unwrap_or_else(|| {
                columns.push(expr);
                columns.len() - 1
            })
        };
        let partition: Vec<usize> = keys.partition.iter().map(&mut place).collect();
        let order: Vec<SortKey> = (keys.order.iter())
            .map(|key| SortKey {
                column: place(&key.expr),
                descending: !key.asc,
                nulls_first: key.nulls_first,
            })
            .collect();
        let mut fields = Vec::with_capacity(columns.len());
        for expr in &columns {
            let data_type = expr.get_type(&schema).map_err(|e| errors::planning(&e))?;
            if !has_order(&data_type) {
                return Ok(None);
            }
            fields.push(Field::new(expr.schema_name().to_string(), data_type, true));
        }
        let mut node = self.lower(input)?;
        if columns.iter().any(computed) {
            node = self.computed(node, &schema, &columns, fields)?;
        }
        let detail = detail(&self.words, &keys, range);
        let spec = format!("{partition:?} {order:?} {range:?} {}", number.is_some());
        let read = self.tree.schema(node).clone();
        let numbers = number.iter().map(|number| std::sync::Arc::new(number.clone()));
        let output = read.fields().iter().cloned().chain(numbers).collect::<Vec<_>>();
        let output = std::sync::Arc::new(Schema::new(output));
        let kind = Kind::TopK {
            partition,
            order,
            offset: range.offset,
            limit: range.limit,
            number: number.clone(),
        };
        let node = self.tree.add(kind, vec![node], output.clone(), detail, &spec);
        let mut shown: Vec<usize> = (0..width).collect();
        shown.extend(number.map(|_| columns.len()));
        let fields: Vec<_> = shown.iter().map(|&column| output.fields()[column].clone()).collect();
        Ok(Some(self.columns(node, &shown, &std::sync::Arc::new(Schema::new(fields)))))
    }

    /// The input's columns, and those that the order needs besides.
    pub(super) fn computed(
        &mut self,
        input: NodeIx,
        schema: &DFSchema,
        columns: &[Expr],
        fields: Vec<Field>,
    ) -> Result<NodeIx> {
        let types = DFSchema::from_unqualified_fields(fields.into(), Default::default());
        // Columns of one name from two tables cannot be told apart by name, and need not be.
        let types = match types {
            Ok(types) => types,
            Err(_) => {
                let fields = columns.iter().enumerate().map(|(i, expr)| {
                    let data_type = expr.get_type(schema).unwrap_or(DataType::Null);
                    Field::new(format!("column{i}"), data_type, true)
                });
                let fields: Vec<Field> = fields.collect();
                DFSchema::from_unqualified_fields(fields.into(), Default::default())
                    .map_err(|e| errors::planning(&e))?
            }
        };
        self.projection(input, schema, columns, &types)
    }
}

fn is(expr: &Expr, column: &Column) -> bool {
    matches!(expr, Expr::Column(other) if other == column)
}

/// The window below a filter, and the projection in between, if there is one that picks columns.
fn window_below(plan: &LogicalPlan) -> Option<(&Window, Option<&Projection>)> {
    match plan {
        LogicalPlan::Window(window) => Some((window, None)),
        LogicalPlan::Projection(p) => match p.input.as_ref() {
            LogicalPlan::Window(window) => {
                let picks = p.expr.iter().all(|expr| matches!(expr, Expr::Column(_)));
                picks.then_some((window, Some(p)))
            }
            _ => None,
        },
        _ => None,
    }
}

fn order_by(order: &[SortExpr]) -> Keys {
    Keys { partition: Vec::new(), order: order.to_vec() }
}

/// The places of a LIMIT whose numbers are known.
fn range_of(limit: &Limit) -> Option<Range> {
    let (skip, fetch) = ties::range_of(limit)?;
    let limit = fetch.map_or(u64::MAX, |fetch| fetch as u64);
    Some(Range { offset: skip as u64, limit })
}

/// Partition and order of a window that does nothing but number its rows.
fn row_number(window: &Window) -> Option<Keys> {
    let [call] = window.window_expr.as_slice() else { return None };
    let Expr::WindowFunction(function) = call.clone().unalias() else { return None };
    let WindowFunctionParams { partition_by, order_by, filter, .. } = function.params;
    let plain = function.fun.name() == "row_number" && filter.is_none();
    plain.then_some(Keys { partition: partition_by, order: order_by })
}

/// The least and the greatest number that a condition leaves over.
#[derive(Debug, Default)]
struct Bounds {
    least: u64,
    greatest: Option<u64>,
}

impl Bounds {
    /// Takes a condition in; false when it is not one that bounds the number.
    fn narrow(&mut self, condition: &Expr, number: &Column) -> bool {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else { return false };
        let (op, bound) = match (is_number(left, number), is_number(right, number)) {
            (true, false) => (Some(*op), literal(right)),
            (false, true) => (op.swap(), literal(left)),
            _ => return false,
        };
        let (Some(op), Some(bound)) = (op, bound) else { return false };
        // Numbers begin with 1; below it, there are none.
        let at = |bound: i128| u64::try_from(bound.max(0)).unwrap_or(u64::MAX);
        match op {
            Operator::Lt => self.at_most(at(bound - 1)),
            Operator::LtEq => self.at_most(at(bound)),
            Operator::Gt => self.least = self.least.max(at(bound + 1)),
            Operator::GtEq => self.least = self.least.max(at(bound)),
            Operator::Eq => {
                // Nothing has a number below 1.
                self.least = self.least.max(at(bound.max(1)));
                self.at_most(at(bound));
            }
            _ => return false,
        }
        true
    }

    fn at_most(&mut self, greatest: u64) {
        self.greatest = Some(self.greatest.map_or(greatest, |other| other.min(greatest)));
    }

    /// `None` without an upper bound.
    fn places(&self) -> Option<Range> {
        let least = self.least.max(1);
        let limit = (self.greatest?.saturating_add(1)).saturating_sub(least);
        Some(Range { offset: least - 1, limit })
    }
}

/// The number's column, perhaps as a BIGINT.
fn is_number(expr: &Expr, number: &Column) -> bool {
    match expr {
        Expr::Column(column) => column == number,
        Expr::Cast(cast) => {
            matches!(cast.field.data_type(), DataType::Int64) && is_number(&cast.expr, number)
        }
        _ => false,
    }
}

fn literal(expr: &Expr) -> Option<i128> {
    let Expr::Literal(value, _) = expr else { return None };
    match value {
        ScalarValue::Int8(v) => v.map(i128::from),
        ScalarValue::Int16(v) => v.map(i128::from),
        ScalarValue::Int32(v) => v.map(i128::from),
        ScalarValue::Int64(v) => v.map(i128::from),
        ScalarValue::UInt8(v) => v.map(i128::from),
        ScalarValue::UInt16(v) => v.map(i128::from),
        ScalarValue::UInt32(v) => v.map(i128::from),
        ScalarValue::UInt64(v) => v.map(i128::from),
        _ => None,
    }
}

/// Types whose order in state is that of batch execution.
pub(super) fn has_order(data_type: &DataType) -> bool {
    use IntervalUnit::{DayTime, MonthDayNano};
    !data_type.is_nested()
        && !matches!(data_type, DataType::Null | DataType::Interval(DayTime | MonthDayNano))
}

fn detail(words: &Words, keys: &Keys, range: Range) -> String {
    let mut text = match range.limit {
        u64::MAX => "all".to_owned(),
        limit => limit.to_string(),
    };
    if range.offset > 0 {
        text += &format!(" after {}", range.offset);
    }
    if !keys.order.is_empty() {
        let order = keys.order.iter().map(|key| words.order(key));
        text += &format!(" by {}", super::list(order));
    }
    if !keys.partition.is_empty() {
        text +=
            &format!(" per {}", super::list(keys.partition.iter().map(|expr| words.expr(expr))));
    }
    text
}
