//! Inner joins without equal keys whose condition compares columns of both sides.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use deltaic_batch::Result;
use deltaic_ops::{Comparison, RangeCondition, RangeJoin, RangeJoinSpec};

use super::Lowering;
use crate::errors;
use crate::evaluator::Expression;
use crate::tree::{Kind, NodeIx};

/// The sides of a join, and its condition.
pub(super) struct RangeSides<'a> {
    pub(super) left: (&'a LogicalPlan, NodeIx),
    pub(super) right: (&'a LogicalPlan, NodeIx),
    pub(super) condition: &'a Expr,
}

impl Lowering {
    /// The join as a range join; `None` if nothing in its condition compares both sides.
    pub(super) fn range_join(
        &mut self,
        sides: &RangeSides<'_>,
        output: &SchemaRef,
    ) -> Result<Option<NodeIx>> {
        let RangeSides { left: (left, left_node), right: (right, right_node), condition } = *sides;
        let ranges: Vec<_> = split_conjunction(condition)
            .into_iter()
            .filter_map(|conjunct| compared(conjunct, left.schema(), right.schema()))
            .collect();
        if ranges.is_empty() {
            return Ok(None);
        }
        let l = self.side(left_node, left, ranges.iter().map(|range| range.0))?;
        let r = self.side(right_node, right, ranges.iter().map(|range| range.2))?;
        let pairs = l.keys.iter().zip(&r.keys).zip(&ranges);
        let mut ranges: Vec<RangeCondition> = pairs
            .map(|((&left, &right), &(_, comparison, _))| RangeCondition {
                left,
                comparison,
                right,
            })
            .collect();
        // Most bounds are on the value of the left side that most of them are on.
        let bounds = ranges.clone();
        let on_left =
            |range: &RangeCondition| bounds.iter().filter(|other| other.left == range.left).count();
        ranges.sort_by_key(|range| std::cmp::Reverse(on_left(range)));
        let Some(values) = ranges.first().map(|range| (range.left, range.right)) else {
            return Ok(None);
        };
        let (ls, rs) = (self.tree.schema(l.node).clone(), self.tree.schema(r.node).clone());
        let pair = left.schema().join(right.schema()).map_err(|e| errors::planning(&e))?;
        let shift = ls.fields().len() - l.width;
        let physical = self.residual(condition, &pair, l.width, shift)?;
        let spec = format!("{ranges:?} {physical:?}");
        let evaluator = Expression::evaluator(physical, DataType::Boolean);
        let detail = self.words.expr(condition);
        let declared = RangeJoinSpec {
            left: ls.clone(),
            right: rs.clone(),
            on: Vec::new(),
            null_equals_null: false,
            values,
            ranges: ranges.clone(),
            condition: evaluator.clone(),
            detail: detail.clone(),
        };
        if RangeJoin::try_new(declared).is_err() {
            return Ok(None);
        }
        let fields = ls.fields().iter().chain(rs.fields()).map(|field| field.as_ref().clone());
        let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        let kind = Kind::RangeJoin {
            on: Vec::new(),
            null_equals_null: false,
            values,
            ranges,
            condition: evaluator,
        };
        let node = self.tree.add(kind, vec![l.node, r.node], schema, detail, &spec);
        let right_start = ls.fields().len();
        let kept: Vec<usize> = (0..l.width).chain(right_start..right_start + r.width).collect();
        Ok(Some(self.columns(node, &kept, output)))
    }
}

/// `left op right` with an expression of each side, whichever stands first.
pub(super) fn compared<'a>(
    conjunct: &'a Expr,
    left: &DFSchema,
    right: &DFSchema,
) -> Option<(&'a Expr, Comparison, &'a Expr)> {
    let Expr::BinaryExpr(BinaryExpr { left: one, op, right: other }) = conjunct else {
        return None;
    };
    let is_of = |expr: &Expr, schema: &DFSchema| {
        let columns = expr.column_refs();
        !columns.is_empty() && columns.into_iter().all(|column| schema.has_column(column))
    };
    let (l, op, r) = match (is_of(one, left), is_of(other, right)) {
        (true, true) => (one, *op, other),
        _ if is_of(one, right) && is_of(other, left) => (other, op.swap()?, one),
        _ => return None,
    };
    let comparison = match op {
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::LessOrEqual,
        Operator::GtEq => Comparison::GreaterOrEqual,
        Operator::Gt => Comparison::Greater,
        _ => return None,
    };
    Some((l, comparison, r))
}
