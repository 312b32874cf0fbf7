//! Recompute by touched group: windows with PARTITION BY, and aggregate functions that cannot take back
//! a row.
//!
//! **Meaning.** `out = query(in)`, for a query that treats the rows of each group (equal in the key)
//! by themselves: `query(in) = Σ over groups query(rows of the group)`.
//!
//! **Incremental form.** Rows are kept by group. A delta touches some groups; the query runs over
//! their rows as they were and as they are now, and the difference is emitted: O(rows of the touched
//! groups) per step, whatever else there is.
//!
//! **State.** The groups with their number of rows, and all rows by group.
//!
//! **Nulls.** NULL is a key like any other, as in GROUP BY and PARTITION BY.
//!
//! **Refuses.** Rows whose integrated weight is negative: they are no table. Keys and columns of
//! types that have no order.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_ops::{
    Algebra, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext, add_weights,
};
use deltaic_state::{
    AccumulatorColumn, AccumulatorType, GroupSpec, GroupTable, MultisetColumn, MultisetSpec,
    Multisets, Slot, SlotSpec, order_by_group,
};

use super::region::Region;

/// The query runs over about so many rows at a time, but for a larger group.
const PART_ROWS: u64 = if cfg!(test) { 4 } else { 1 << 20 };

/// See the module.
#[derive(Debug)]
pub(crate) struct RecomputeTouched {
    spec: OperatorSpec,
    region: Arc<Region>,
    /// Columns of the input that make a row's group; some may come after those that the region reads.
    keys: Vec<usize>,
    /// All other columns.
    values: Vec<usize>,
    /// Schema of the rows that the region reads: the first columns of the input.
    read: SchemaRef,
}

impl RecomputeTouched {
    /// The region reads the first `width` columns of the input. Fails where a type has no order.
    pub(crate) fn try_new(
        region: Arc<Region>,
        input: SchemaRef,
        keys: Vec<usize>,
        width: usize,
        (name, detail): (&'static str, String),
    ) -> Result<Self> {
        let values: Vec<usize> = (0..width).filter(|column| !keys.contains(column)).collect();
        let data_type = |&column: &usize| input.field(column).data_type().clone();
        let column = |column| MultisetColumn {
            data_type: data_type(column),
            options: SortOptions::default(),
        };
        let key: Vec<DataType> = keys.iter().map(data_type).collect();
        let groups = GroupSpec { key, accumulators: vec![AccumulatorType::I64] };
        let rows = MultisetSpec { columns: values.iter().map(column).collect() };
        GroupTable::try_new(&groups)?;
        Multisets::try_new(&rows)?;
        let read = Arc::new(Schema::new(input.fields()[..width].to_vec()));
        let spec = OperatorSpec {
            name,
            detail,
            inputs: vec![InputSpec { schema: input, exchange: Exchange::ByKey(keys.clone()) }],
            output: region.output.clone(),
            slots: vec![SlotSpec::Groups(groups), SlotSpec::Multisets(rows)],
            algebra: Algebra::NonLinear,
            output_is_set: false,
        };
        Ok(Self { spec, region, keys, values, read })
    }

    /// The query's result over the rows of some groups, which have some.
    fn result(&self, groups: &GroupTable, rows: &Multisets, of: &[u32]) -> Result<Option<ZBatch>> {
        let found = rows.rows(of)?;
        if found.weights.is_empty() {
            return Ok(None);
        }
        let mut group_of_row = Vec::with_capacity(found.weights.len());
        for (&group, &end) in of.iter().zip(&found.ends) {
            group_of_row.resize(end as usize, group);
        }
        let key = groups.keys(&group_of_row)?;
        let column = |column: usize| -> Option<ArrayRef> {
            match self.keys.iter().position(|&key| key == column) {
                Some(at) => key.get(at).cloned(),
                None => found.columns.get(self.values.binary_search(&column).ok()?).cloned(),
            }
        };
        let columns = (0..self.read.fields().len()).map(column).collect::<Option<Vec<_>>>();
        let columns =
            columns.ok_or_else(|| Error::internal("SLOT_KIND", "a column has no place"))?;
        let options = RecordBatchOptions::new().with_row_count(Some(found.weights.len()));
        let rows = RecordBatch::try_new_with_options(self.read.clone(), columns, &options)?;
        self.region.run(&[ZBatch::try_new(rows, found.weights)?]).map(Some)
    }
}

impl Operator for RecomputeTouched {
    fn spec(&self) -> &OperatorSpec {
        &self.spec
    }

    fn step(
        &self,
        inputs: &[ZBatch],
        state: &mut [Slot],
        out: &mut dyn Output,
        _cx: &StepContext,
    ) -> Result<()> {
        let ([delta], [groups, rows]) = (inputs, state) else {
            return Err(Error::internal("SLOT_COUNT", "one input and two slots"));
        };
        if delta.is_empty() {
            return Ok(());
        }
        let (groups, rows) = (groups.groups()?, rows.multisets()?);
        let pick = |columns: &[usize]| -> Vec<ArrayRef> {
            columns.iter().map(|&column| delta.rows().column(column).clone()).collect()
        };
        let group_of_row = groups.upsert(&pick(&self.keys), delta.num_rows())?;
        let touched = groups.sort_touched(0).to_vec();
        let order = order_by_group(&group_of_row);
        let parts = parts(&touched, counts(groups)?, &group_of_row, &order);
        let mut before = Vec::with_capacity(parts.len());
        for part in &parts {
            before.push(self.result(groups, rows, &touched[part.clone()])?);
        }
        add_weights(counts_mut(groups)?, &group_of_row, delta.weights())?;
        rows.apply_in_order(&group_of_row, order, &pick(&self.values), delta.weights())?;
        for (part, before) in parts.into_iter().zip(before) {
            let after = self.result(groups, rows, &touched[part])?;
            let before = before.map(|before| before.negate()).transpose()?;
            let both: Vec<ZBatch> = after.into_iter().chain(before).collect();
            out.push(ZBatch::concat(&self.spec.output, &both)?.consolidate()?)?;
        }
        groups.settle_if(|group| rows.is_group_empty(group))
    }
}

fn counts(groups: &GroupTable) -> Result<&[i64]> {
    match groups.accumulators() {
        [AccumulatorColumn::I64(counts)] => Ok(counts),
        _ => Err(no_counts()),
    }
}

fn counts_mut(groups: &mut GroupTable) -> Result<&mut [i64]> {
    match groups.accumulators_mut() {
        [AccumulatorColumn::I64(counts)] => Ok(counts),
        _ => Err(no_counts()),
    }
}

fn no_counts() -> Error {
    Error::internal("SLOT_KIND", "groups have a counter each")
}

/// Cuts the touched groups, in order, into parts of a bounded number of rows. `order` are the rows of
/// the delta by group.
fn parts(
    touched: &[u32],
    counts: &[i64],
    group_of_row: &[u32],
    order: &[u32],
) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut rows) = (Vec::new(), 0, 0_u64);
    let mut delta = order.iter().map(|&row| group_of_row[row as usize]).peekable();
    for (at, &group) in touched.iter().enumerate() {
        let mut of_group = counts[group as usize].unsigned_abs();
        while delta.next_if_eq(&group).is_some() {
            of_group = of_group.saturating_add(1);
        }
        if at > start && rows.saturating_add(of_group) > PART_ROWS {
            parts.push(start..at);
            (start, rows) = (at, 0);
        }
        rows = rows.saturating_add(of_group);
    }
    if start < touched.len() {
        parts.push(start..touched.len());
    }
    parts
}
