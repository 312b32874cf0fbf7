//! `first_value`, `last_value` and `nth_value` with an order: the row in that place of each group.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, NullTreatment};
use datafusion::logical_expr::{Aggregate, Expr, Filter, LogicalPlan, Projection, SortExpr};
use deltaic_batch::Result;
use deltaic_ops::{TopK, TopKSpec};
use deltaic_state::SortKey;

use super::Lowering;
use crate::errors;
use crate::session::ties;
use crate::tree::{Kind, NodeIx};

/// Which row, by an order.
struct Pick {
    value: Expr,
    filter: Option<Expr>,
    order: Vec<SortExpr>,
    /// Rows before it.
    offset: u64,
}

impl Lowering {
    /// The keys and the value of a call that picks a row of each group that has one; `None` for other
    /// calls.
    pub(super) fn picked_row(&mut self, node: &Aggregate, call: &Expr) -> Result<Option<NodeIx>> {
        let Some(pick) = Pick::of(node, call) else { return Ok(None) };
        let keys = node.group_expr.len();
        let named = |at: usize, expr: &Expr| expr.clone().alias(format!("c{at}"));
        let values = node.group_expr.iter().chain([&pick.value]);
        let all = values.chain(pick.order.iter().map(|key| &key.expr));
        let exprs: Vec<Expr> = all.enumerate().map(|(at, expr)| named(at, expr)).collect();
        let plan = || {
            let input = match pick.filter.clone() {
                Some(filter) => {
                    Arc::new(LogicalPlan::Filter(Filter::try_new(filter, node.input.clone())?))
                }
                None => node.input.clone(),
            };
            Projection::try_new(exprs, input).map(LogicalPlan::Projection)
        };
        let input = self.lower(&plan().map_err(|e| errors::planning(&e))?)?;
        let schema = self.tree.schema(input).clone();
        let order: Vec<SortKey> = (pick.order.iter().enumerate())
            .map(|(at, key)| SortKey {
                column: keys + 1 + at,
                descending: !key.asc,
                nulls_first: key.nulls_first,
            })
            .collect();
        let partition: Vec<usize> = (0..keys).collect();
        let spec = TopKSpec {
            input: schema.clone(),
            partition: partition.clone(),
            order: order.clone(),
            offset: pick.offset,
            limit: 1,
            number: None,
        };
        if TopK::try_new(spec).is_err() {
            return Ok(None);
        }
        let shown = self.shown([call]);
        let detail = match keys {
            0 => shown,
            _ => format!("{shown} by {}", self.shown(&node.group_expr)),
        };
        let spec = format!("{partition:?} {order:?} {} 1 false", pick.offset);
        let kind = Kind::TopK { partition, order, offset: pick.offset, limit: 1, number: None };
        let row = self.tree.add(kind, vec![input], schema.clone(), detail, &spec);
        let columns: Vec<usize> = (0..=keys).collect();
        let output = Arc::new(schema.project(&columns)?);
        Ok(Some(self.columns(row, &columns, &output)))
    }
}

impl Pick {
    fn of(node: &Aggregate, call: &Expr) -> Option<Self> {
        let Expr::AggregateFunction(AggregateFunction { func, params }) = call.clone().unalias()
        else {
            return None;
        };
        let AggregateFunctionParams { args, distinct, filter, order_by, null_treatment } = params;
        if distinct {
            return None;
        }
        // The same in all rows of a group, its keys order nothing.
        let is_key = |key: &SortExpr| node.group_expr.contains(&key.expr);
        let order = ties::total(&node.input, order_by);
        let mut order: Vec<SortExpr> = order.into_iter().filter(|key| !is_key(key)).collect();
        let place = match (func.name(), args.as_slice()) {
            ("first_value", [_]) => 1,
            ("last_value", [_]) => -1,
            ("nth_value", [_, Expr::Literal(ScalarValue::Int64(Some(place)), _)]) => *place,
            _ => return None,
        };
        if place < 0 {
            order = order.into_iter().map(reversed).collect();
        }
        let offset = place.unsigned_abs().checked_sub(1)?;
        let value = args.into_iter().next()?;
        let known = value.clone().is_not_null();
        let filter = match (filter.map(|filter| *filter), null_treatment) {
            (Some(filter), Some(NullTreatment::IgnoreNulls)) => Some(filter.and(known)),
            (None, Some(NullTreatment::IgnoreNulls)) => Some(known),
            (filter, _) => filter,
        };
        Some(Self { value, filter, order, offset })
    }
}

fn reversed(key: SortExpr) -> SortExpr {
    SortExpr { asc: !key.asc, nulls_first: !key.nulls_first, ..key }
}
