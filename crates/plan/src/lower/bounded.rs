//! Rows compared with one value that a query computes, as in `price > (SELECT avg(price) …)`.

use datafusion::common::JoinType;
use datafusion::logical_expr::{Join, LogicalPlan, Projection};
use deltaic_batch::Result;
use deltaic_ops::{DynamicFilter, DynamicFilterSpec};

use super::Lowering;
use super::range_join::compared;
use crate::tree::{Kind, NodeIx};

impl Lowering {
    /// A projection of columns of the one side of a join whose other side is one row that only bounds
    /// it, as a projection of a filter that moves with that row; `None` for others.
    pub(super) fn bounded(&mut self, projection: &Projection) -> Result<Option<NodeIx>> {
        let LogicalPlan::Join(join) = projection.input.as_ref() else { return Ok(None) };
        let Some((rows, bound)) = sides(join) else { return Ok(None) };
        let of_rows = |column: &&datafusion::common::Column| rows.schema().has_column(column);
        if !projection.expr.iter().all(|expr| expr.column_refs().iter().all(of_rows)) {
            return Ok(None);
        }
        let condition = join.filter.as_ref();
        let found = condition.and_then(|c| compared(c, rows.schema(), bound.schema()));
        let (Some((value, comparison, limit)), Some(condition)) = (found, condition) else {
            return Ok(None);
        };
        let left = self.lower(rows)?;
        let left = self.side(left, rows, std::iter::once(value))?;
        let right = self.lower(bound)?;
        let right = self.side(right, bound, std::iter::once(limit))?;
        let limits = self.tree.schema(right.node).project(&right.keys)?.into();
        let limit = self.columns(right.node, &right.keys, &limits);
        let (input, detail) = (self.tree.schema(left.node).clone(), self.words.expr(condition));
        let &[value] = left.keys.as_slice() else { return Ok(None) };
        let declared = DynamicFilterSpec {
            input: input.clone(),
            value,
            comparison,
            bound: limits,
            detail: detail.clone(),
        };
        if DynamicFilter::try_new(declared).is_err() {
            return Ok(None);
        }
        let spec = format!("{value} {comparison:?}");
        let kind = Kind::Bounded { value, comparison, temporal: false };
        let node = self.tree.add(kind, vec![left.node, limit], input, detail, &spec);
        let kept: Vec<usize> = (0..left.width).collect();
        let schema = crate::session::batch::relaxed(rows.schema().as_arrow());
        let node = self.columns(node, &kept, &schema);
        self.projection(node, rows.schema(), &projection.expr, projection.schema.as_ref()).map(Some)
    }
}

/// The side with rows, and the one with one row always.
fn sides(join: &Join) -> Option<(&LogicalPlan, &LogicalPlan)> {
    if join.join_type != JoinType::Inner || !join.on.is_empty() {
        return None;
    }
    match (is_one_row(&join.left), is_one_row(&join.right)) {
        (_, true) => Some((&join.left, &join.right)),
        (true, false) => Some((&join.right, &join.left)),
        _ => None,
    }
}

fn is_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(node) => node.group_expr.is_empty(),
        LogicalPlan::Projection(node) => is_one_row(&node.input),
        LogicalPlan::SubqueryAlias(node) => is_one_row(&node.input),
        _ => false,
    }
}
