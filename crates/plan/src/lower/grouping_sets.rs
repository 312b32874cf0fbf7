//! GROUPING SETS, ROLLUP and CUBE: an aggregate per set, their rows one after the other.

use std::sync::Arc;

use datafusion::common::{Column, ScalarValue};
use datafusion::functions_aggregate::count::count_all;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan};
use deltaic_batch::Result;

use super::Lowering;
use crate::errors;
use crate::session::batch::relaxed;
use crate::tree::NodeIx;

impl Lowering {
    /// `None` where there are no sets, or keys without end.
    pub(super) fn grouping_sets(&mut self, node: &Aggregate) -> Result<Option<NodeIx>> {
        let [Expr::GroupingSet(sets)] = node.group_expr.as_slice() else { return Ok(None) };
        let keys: Vec<Expr> = sets.distinct_expr().into_iter().cloned().collect();
        let sets = masks(sets, &keys);
        if keys.len() >= ID_BITS {
            return Ok(None);
        }
        let mut nodes = Vec::with_capacity(sets.len());
        for (at, &mask) in sets.iter().enumerate() {
            let ordinal = sets[..at].iter().filter(|other| **other == mask).count() as u64;
            nodes.push(self.grouping_set(node, &keys, mask, ordinal)?);
        }
        self.union_all(nodes, relaxed(node.schema.as_arrow())).map(Some)
    }

    /// The rows of one set: NULL in the columns of the mask.
    fn grouping_set(
        &mut self,
        node: &Aggregate,
        keys: &[Expr],
        mask: u64,
        ordinal: u64,
    ) -> Result<NodeIx> {
        let is_null = |at: usize| mask >> (keys.len() - 1 - at) & 1 == 1;
        let kept: Vec<Expr> = (keys.iter().enumerate())
            .filter(|(at, _)| !is_null(*at))
            .map(|(_, key)| key.clone())
            .collect();
        let (count, mut functions) = (kept.len(), node.aggr_expr.clone());
        if kept.is_empty() && functions.is_empty() {
            // One row, which some function must make.
            functions.push(count_all());
        }
        let aggregate = Aggregate::try_new(node.input.clone(), kept, functions)
            .map_err(|e| errors::planning(&e))?;
        let schema = aggregate.schema.clone();
        let column = |at: usize| Expr::Column(Column::from(schema.qualified_field(at)));
        let mut exprs = Vec::with_capacity(node.schema.fields().len());
        let mut next = 0;
        for (at, field) in node.schema.fields().iter().enumerate().take(keys.len()) {
            if is_null(at) {
                let null = ScalarValue::try_from(field.data_type());
                exprs.push(Expr::Literal(null.map_err(|e| errors::planning(&e))?, None));
            } else {
                exprs.push(column(next));
                next += 1;
            }
        }
        let id = ScalarValue::UInt64(Some(mask | ordinal << keys.len()));
        let id_type = node.schema.field(keys.len()).data_type();
        let id = id.cast_to(id_type).map_err(|e| errors::planning(&e))?;
        exprs.push(Expr::Literal(id, None));
        exprs.extend((count..count + node.aggr_expr.len()).map(column));
        let plan = LogicalPlan::Aggregate(aggregate);
        let input = self.lower(&plan)?;
        self.projection(input, &Arc::clone(&schema), &exprs, node.schema.as_ref())
    }
}

/// Bits of the number that tells sets apart.
const ID_BITS: usize = 32;

/// Of each set, a mask of the keys that it leaves out; the last key has the lowest bit, as in
/// DataFusion's grouping id.
fn masks(sets: &GroupingSet, keys: &[Expr]) -> Vec<u64> {
    let bit = |key: usize| 1_u64 << (keys.len() - 1 - key);
    let mask = |kept: &[Expr]| {
        let missing = (0..keys.len()).filter(|&key| !kept.contains(&keys[key]));
        missing.fold(0, |mask, key| mask | bit(key))
    };
    match sets {
        GroupingSet::GroupingSets(sets) => sets.iter().map(|set| mask(set)).collect(),
        GroupingSet::Rollup(exprs) => {
            (0..=exprs.len()).map(|count| mask(&exprs[..count])).collect()
        }
        GroupingSet::Cube(exprs) => {
            let subset = |subset: u64| -> Vec<Expr> {
                let chosen = exprs.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 1);
                chosen.map(|(_, expr)| expr.clone()).collect()
            };
            (0..1_u64 << exprs.len().min(ID_BITS)).map(|i| mask(&subset(i))).collect()
        }
    }
}
