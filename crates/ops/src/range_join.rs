//! Range join: pairs of rows whose values compare as asked, without equal keys.
//!
//! **Meaning**: the pairs `l ⋈ r` for which the condition is TRUE, with the product of their weights. Of the
//! condition, some comparisons of a column of the left side with one of the right side are known
//! (`l.at >= r.start AND l.at < r.end`).
//!
//! **Incremental form**: bilinear, `ΔL ⋈ R + (L + ΔL) ⋈ ΔR`. Both sides are kept in the order of the value
//! that is compared, so that a row of a delta meets the rows between its bounds alone. O(rows of the
//! delta · log + rows between the bounds): of the right side those that one bound on its value lets
//! through, of the left side those between both.
//!
//! **State**: slot 0, the left rows in order of their value, slot 1, the right rows; rows without a
//! value match nothing and are not kept.
//!
//! **Nulls**: a comparison with NULL is not TRUE.
//!
//! **Refuses**: columns of types without an order.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, DynComparator, RecordBatch, UInt32Array, make_comparator};
use arrow::compute::SortOptions;
use arrow::compute::kernels::boolean;
use arrow::datatypes::{Field, Schema, SchemaRef};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::{MultisetColumn, MultisetSpec, Multisets, Slot, SlotSpec};

use crate::{Algebra, Comparison, Evaluator, Exchange, InputSpec, Operator, OperatorSpec, Output};
use crate::{StepContext, input, selection};

/// All rows are in one group.
const GROUP: u32 = 0;
/// Most pairs that are looked at at a time.
const PAIRS_MAX: usize = if cfg!(test) { 7 } else { 1 << 16 };
/// A search costs about as much as reading so many rows.
const ROWS_PER_SEARCH: usize = if cfg!(test) { 2 } else { 256 };

/// `left op right`, each a column of its side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeCondition {
    /// Column of the left side.
    pub left: usize,
    /// How it compares with the right one.
    pub comparison: Comparison,
    /// Column of the right side.
    pub right: usize,
}

/// Declares a range join.
#[derive(Debug, Clone)]
pub struct RangeJoinSpec {
    /// Schema of the left input.
    pub left: SchemaRef,
    /// Schema of the right input.
    pub right: SchemaRef,
    /// What is known of the condition; at least one comparison.
    pub ranges: Vec<RangeCondition>,
    /// The whole condition, over the columns of both sides.
    pub condition: Arc<dyn Evaluator>,
    /// One line of explain.
    pub detail: String,
}

/// One side: where its rows are, and what bounds them.
#[derive(Debug)]
struct Side {
    schema: SchemaRef,
    /// The column that its state is in order of.
    value: usize,
    /// Its columns in the order of the state: the value, then the others.
    columns: Vec<usize>,
    /// Columns of the other side that are least and greatest values, one at most of each.
    from: Option<usize>,
    to: Option<usize>,
}

impl Side {
    fn new(schema: &SchemaRef, value: usize) -> Self {
        let others = (0..schema.fields().len()).filter(|&column| column != value);
        let columns = [value].into_iter().chain(others).collect();
        Self { schema: schema.clone(), value, columns, from: None, to: None }
    }

    fn slot(&self) -> SlotSpec {
        let column = |&column: &usize| MultisetColumn {
            data_type: self.schema.field(column).data_type().clone(),
            options: SortOptions::default(),
        };
        SlotSpec::Multisets(MultisetSpec { columns: self.columns.iter().map(column).collect() })
    }

    /// The rows that have a value.
    fn valued(&self, delta: &ZBatch) -> Result<ZBatch> {
        selection::filter(delta, &boolean::is_not_null(delta.rows().column(self.value))?)
    }

    fn apply(&self, rows: &mut Multisets, delta: &ZBatch) -> Result<()> {
        let columns = self.columns.iter().map(|&column| delta.rows().column(column).clone());
        let columns: Vec<ArrayRef> = columns.collect();
        rows.apply(&vec![GROUP; delta.num_rows()], &columns, delta.weights())
    }

    /// Columns in the order of the state as those of the side.
    fn restored(&self, columns: Vec<ArrayRef>) -> Vec<ArrayRef> {
        let mut restored = columns.clone();
        for (&column, values) in self.columns.iter().zip(columns) {
            restored[column] = values;
        }
        restored
    }
}

/// The range join operator.
#[derive(Debug)]
pub struct RangeJoin {
    left: Side,
    right: Side,
    condition: Arc<dyn Evaluator>,
    spec: OperatorSpec,
}

impl RangeJoin {
    /// Checks `spec`; a user error (`UNSUPPORTED_TYPE`) if a column has no order.
    pub fn try_new(spec: RangeJoinSpec) -> Result<Self> {
        let RangeJoinSpec { left, right, ranges, condition, detail } = spec;
        let Some(first) = ranges.first() else {
            return Err(misused("a range join compares nothing"));
        };
        let (mut l, mut r) = (Side::new(&left, first.left), Side::new(&right, first.right));
        for range in &ranges {
            let types = (left.fields().get(range.left), right.fields().get(range.right));
            let (Some(one), Some(other)) = types else {
                return Err(misused("a range join compares columns that are not there"));
            };
            if one.data_type() != other.data_type() {
                return Err(misused("a range join compares two types"));
            }
            let (rises, falls) = match range.comparison {
                Comparison::Less | Comparison::LessOrEqual => (false, true),
                Comparison::Equal => (true, true),
                Comparison::GreaterOrEqual | Comparison::Greater => (true, false),
            };
            if range.left == l.value {
                l.from = l.from.or(rises.then_some(range.right));
                l.to = l.to.or(falls.then_some(range.right));
            }
            if range.right == r.value {
                r.from = r.from.or(falls.then_some(range.left));
                r.to = r.to.or(rises.then_some(range.left));
            }
        }
        let slots = vec![l.slot(), r.slot()];
        slots.iter().try_for_each(|slot| Slot::try_new(slot).map(drop))?;
        let fields = left.fields().iter().chain(right.fields());
        let fields: Vec<Field> = fields.map(|field| field.as_ref().clone()).collect();
        let single = |schema: SchemaRef| InputSpec { schema, exchange: Exchange::Single };
        let operator = OperatorSpec {
            name: "RangeJoin",
            detail,
            inputs: vec![single(left), single(right)],
            output: Arc::new(Schema::new(fields)),
            slots,
            algebra: Algebra::Bilinear,
            output_is_set: false,
        };
        Ok(Self { left: l, right: r, condition, spec: operator })
    }

    /// The pairs of a delta of one side with the rows of the other.
    fn meet(
        &self,
        delta: &ZBatch,
        of_left: bool,
        rows: &Multisets,
        out: &mut dyn Output,
    ) -> Result<()> {
        let side = if of_left { &self.right } else { &self.left };
        let bound = |column: Option<usize>| column.map(|c| delta.rows().column(c).clone());
        let (from, to) = (bound(side.from), bound(side.to));
        let bounds = || [&from, &to].into_iter().flatten();
        let has_bounds = |row: &usize| bounds().all(|bound| bound.is_valid(*row));
        let probes: Vec<usize> = (0..delta.num_rows()).filter(has_bounds).collect();
        let mut pairs = Pairs { join: self, delta, of_left, probe: Vec::new(), found: Vec::new() };
        if probes.len().saturating_mul(ROWS_PER_SEARCH) >= rows.len() {
            // All rows are read once, and searched as they lie.
            let all = rows.rows(&[GROUP])?;
            let found = Found::new(&all.columns, from.as_ref(), to.as_ref())?;
            for &row in &probes {
                pairs.add(row, found.range(row), &all.columns, &all.weights, out)?;
            }
            return pairs.emit(&all.columns, &all.weights, out);
        }
        for &row in &probes {
            let one = |bound: &Option<ArrayRef>| bound.as_ref().map(|bound| [bound.slice(row, 1)]);
            let (from, to) = (one(&from), one(&to));
            let some = rows.between(
                GROUP,
                from.as_ref().map(<[ArrayRef; 1]>::as_slice),
                to.as_ref().map(<[ArrayRef; 1]>::as_slice),
            )?;
            pairs.add(row, 0..some.weights.len(), &some.columns, &some.weights, out)?;
            pairs.emit(&some.columns, &some.weights, out)?;
        }
        Ok(())
    }
}

/// Rows in the order of their values, searched by bounds.
struct Found {
    len: usize,
    from: Option<DynComparator>,
    to: Option<DynComparator>,
}

impl Found {
    fn new(columns: &[ArrayRef], from: Option<&ArrayRef>, to: Option<&ArrayRef>) -> Result<Self> {
        let Some(values) = columns.first() else { return Err(misused("rows without a value")) };
        let comparator = |bound: Option<&ArrayRef>| {
            bound.map(|b| make_comparator(values, b, SortOptions::default())).transpose()
        };
        Ok(Self { len: values.len(), from: comparator(from)?, to: comparator(to)? })
    }

    /// The rows between the bounds of a row of the delta, the bounds among them.
    fn range(&self, row: usize) -> std::ops::Range<usize> {
        let first = |compare: &DynComparator, wanted: fn(Ordering) -> bool| {
            let (mut low, mut high) = (0, self.len);
            while low < high {
                let middle = usize::midpoint(low, high);
                if wanted(compare(middle, row)) { low = middle + 1 } else { high = middle }
            }
            low
        };
        let start = self.from.as_ref().map_or(0, |compare| first(compare, Ordering::is_lt));
        let end = self.to.as_ref().map_or(self.len, |compare| first(compare, Ordering::is_le));
        start..end.max(start)
    }
}

/// Pairs to be looked at: rows of the delta and of some found rows.
struct Pairs<'a> {
    join: &'a RangeJoin,
    delta: &'a ZBatch,
    of_left: bool,
    probe: Vec<u32>,
    found: Vec<u32>,
}

impl Pairs<'_> {
    /// Adds a row of the delta with a range of found rows.
    fn add(
        &mut self,
        row: usize,
        range: std::ops::Range<usize>,
        columns: &[ArrayRef],
        weights: &[i64],
        out: &mut dyn Output,
    ) -> Result<()> {
        for at in range {
            self.probe.push(number(row));
            self.found.push(number(at));
            if self.probe.len() >= PAIRS_MAX {
                self.emit(columns, weights, out)?;
            }
        }
        Ok(())
    }

    /// Emits those for which the condition holds.
    fn emit(&mut self, columns: &[ArrayRef], weights: &[i64], out: &mut dyn Output) -> Result<()> {
        if self.probe.is_empty() {
            return Ok(());
        }
        let probe = UInt32Array::from(std::mem::take(&mut self.probe));
        let found = UInt32Array::from(std::mem::take(&mut self.found));
        let side = if self.of_left { &self.join.right } else { &self.join.left };
        let mine = arrow::compute::take_arrays(self.delta.rows().columns(), &probe, None)?;
        let theirs = side.restored(arrow::compute::take_arrays(columns, &found, None)?);
        let (left, right) = if self.of_left { (mine, theirs) } else { (theirs, mine) };
        let pairs = left.into_iter().chain(right).collect();
        let rows = RecordBatch::try_new(self.join.spec.output.clone(), pairs)?;
        let mut products = Vec::with_capacity(probe.len());
        for (&one, &other) in probe.values().iter().zip(found.values()) {
            let (one, other) = (self.delta.weights()[one as usize], weights[other as usize]);
            products.push(one.checked_mul(other).ok_or_else(|| {
                Error::data("WEIGHT_OVERFLOW", "a count of rows exceeds 64 bits")
            })?);
        }
        let keep = selection::evaluate(self.join.condition.as_ref(), &rows)?;
        out.push(selection::filter(&ZBatch::try_new(rows, products)?, &keep)?)
    }
}

fn number(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

fn misused(what: &str) -> Error {
    Error::internal("RANGE_JOIN", what)
}

impl Operator for RangeJoin {
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
        let [left, right] = state else {
            return Err(Error::internal("SLOT_COUNT", "a range join has two slots"));
        };
        let (left, right) = (left.multisets()?, right.multisets()?);
        let l = self.left.valued(input(inputs, 0)?)?;
        let r = self.right.valued(input(inputs, 1)?)?;
        if !l.is_empty() {
            self.meet(&l, true, right, out)?;
            self.left.apply(left, &l)?;
        }
        if !r.is_empty() {
            self.meet(&r, false, left, out)?;
            self.right.apply(right, &r)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow::compute::kernels::cmp;
    use arrow::datatypes::DataType;
    use proptest::prelude::*;

    use super::*;

    /// `from <= at AND at < to`, the columns of the pair being id, at, from, to.
    #[derive(Debug)]
    struct Within;

    impl Evaluator for Within {
        fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
            let (at, from, to) = (batch.column(1), batch.column(2), batch.column(3));
            Ok(Arc::new(boolean::and_kleene(&cmp::lt_eq(from, at)?, &cmp::lt(at, to)?)?))
        }
    }

    fn schema(names: &[&str]) -> SchemaRef {
        let field = |name: &&str| Field::new(*name, DataType::Int64, true);
        Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()))
    }

    fn join() -> RangeJoin {
        let range = |comparison, right| RangeCondition { left: 1, comparison, right };
        let ranges = vec![range(Comparison::GreaterOrEqual, 0), range(Comparison::Less, 1)];
        let (left, right) = (schema(&["id", "at"]), schema(&["from", "to"]));
        let condition = Arc::new(Within);
        RangeJoin::try_new(RangeJoinSpec { left, right, ranges, condition, detail: String::new() })
            .unwrap()
    }

    type Pair = (Option<i64>, Option<i64>);

    fn text(rows: &BTreeMap<Pair, i64>) -> String {
        let shown = |value: Option<i64>| value.map_or("NULL".to_owned(), |v| v.to_string());
        let line = |((one, other), weight): (&Pair, &i64)| {
            format!("{weight:+} {} | {}\n", shown(*one), shown(*other))
        };
        rows.iter().filter(|(_, weight)| **weight != 0).map(line).collect()
    }

    fn value() -> impl Strategy<Value = Option<i64>> {
        prop::option::weighted(0.95, 0..60_i64)
    }

    proptest! {
        #[test]
        fn equals_the_definition(
            steps in prop::collection::vec(
                prop::collection::vec((any::<bool>(), value(), value(), -1..3_i64), 0..40),
                1..8,
            ),
        ) {
            let join = join();
            let mut state: Vec<Slot> =
                join.spec().slots.iter().map(|slot| Slot::try_new(slot).unwrap()).collect();
            let mut sides: [BTreeMap<Pair, i64>; 2] = Default::default();
            let mut emitted: BTreeMap<String, i64> = BTreeMap::new();
            for (at, changes) in steps.into_iter().enumerate() {
                let mut deltas: [BTreeMap<Pair, i64>; 2] = Default::default();
                // After a large step, some of a few rows.
                let few = if at % 2 == 1 { 3 } else { usize::MAX };
                for (is_left, one, other, weight) in changes.into_iter().take(few) {
                    let side = usize::from(!is_left);
                    let known = sides[side].entry((one, other)).or_insert(0);
                    let weight = weight.max(-*known);
                    *known += weight;
                    *deltas[side].entry((one, other)).or_insert(0) += weight;
                }
                let inputs = [
                    ZBatch::parse(&schema(&["id", "at"]), &text(&deltas[0])).unwrap(),
                    ZBatch::parse(&schema(&["from", "to"]), &text(&deltas[1])).unwrap(),
                ];
                let mut out: Vec<ZBatch> = Vec::new();
                let cx = StepContext { epoch: 1, shard: 0, shards: 1 };
                join.step(&inputs, &mut state, &mut out, &cx).unwrap();
                for piece in out {
                    for (line, weight) in piece.to_string().lines().zip(piece.weights().iter()) {
                        let row = line.split_once(' ').unwrap().1.to_owned();
                        *emitted.entry(row).or_insert(0) += weight;
                    }
                }
                emitted.retain(|_, weight| *weight != 0);
                let mut expected: BTreeMap<String, i64> = BTreeMap::new();
                for (&(id, at), l) in &sides[0] {
                    for (&(from, to), r) in &sides[1] {
                        let (Some(at), Some(from), Some(to)) = (at, from, to) else { continue };
                        if from <= at && at < to && l * r != 0 {
                            let id = id.map_or("NULL".to_owned(), |id| id.to_string());
                            expected.insert(format!("{id} | {at} | {from} | {to}"), l * r);
                        }
                    }
                }
                prop_assert_eq!(&emitted, &expected);
            }
        }
    }
}
