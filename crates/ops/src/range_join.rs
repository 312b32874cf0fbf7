//! Range join: pairs of rows whose values compare as asked, of equal keys or without any.
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
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, DynComparator, RecordBatch, UInt32Array, make_comparator};
use arrow::compute::SortOptions;
use arrow::compute::kernels::boolean;
use arrow::datatypes::{Field, Schema, SchemaRef};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::{
    AccumulatorColumn, AccumulatorType, GroupRows, GroupSpec, GroupTable, MultisetColumn,
    MultisetSpec, Multisets, Slot, SlotSpec,
};

use crate::multiplicity::add_weights;
use crate::{Algebra, Comparison, Evaluator, Exchange, InputSpec, Operator, OperatorSpec, Output};
use crate::{StepContext, input, selection};

/// Most pairs that are looked at at a time.
const PAIRS_MAX: usize = if cfg!(test) { 7 } else { 1 << 16 };
/// A search costs about as much as reading so many rows.
const ROWS_PER_SEARCH: i64 = if cfg!(test) { 2 } else { 256 };
/// Most rows of the other side that are read at a time, but for a group that has more.
const READ_ROWS_MAX: i64 = if cfg!(test) { 9 } else { 1 << 16 };

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
    /// Columns of either side that are equal.
    pub on: Vec<(usize, usize)>,
    /// NULL equals NULL in them.
    pub null_equals_null: bool,
    /// The column of either side that its rows are kept in the order of.
    pub values: (usize, usize),
    /// What is known of the condition; comparisons of the value of one side with any column of the other
    /// bound the search.
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
    /// Its key columns; rows with a NULL in them match nothing, if asked for.
    key: Vec<usize>,
    drops_null_keys: bool,
    /// The column that its state is in order of.
    value: usize,
    /// Its columns in the order of the state: the value, then the others.
    columns: Vec<usize>,
    /// Columns of the other side that are least and greatest values, one at most of each.
    from: Option<usize>,
    to: Option<usize>,
}

impl Side {
    fn new(schema: &SchemaRef, value: usize, key: Vec<usize>, drops_null_keys: bool) -> Self {
        let others = (0..schema.fields().len()).filter(|&column| column != value);
        let columns = [value].into_iter().chain(others).collect();
        Self { schema: schema.clone(), key, drops_null_keys, value, columns, from: None, to: None }
    }

    fn slot(&self) -> SlotSpec {
        let column = |&column: &usize| MultisetColumn {
            data_type: self.schema.field(column).data_type().clone(),
            options: SortOptions::default(),
        };
        SlotSpec::Multisets(MultisetSpec { columns: self.columns.iter().map(column).collect() })
    }

    /// The rows that may match.
    fn valued(&self, delta: &ZBatch) -> Result<ZBatch> {
        let mut keep = boolean::is_not_null(delta.rows().column(self.value))?;
        for &column in self.key.iter().filter(|_| self.drops_null_keys) {
            keep = boolean::and(&keep, &boolean::is_not_null(delta.rows().column(column))?)?;
        }
        selection::filter(delta, &keep)
    }

    fn pick(&self, delta: &ZBatch, columns: &[usize]) -> Vec<ArrayRef> {
        columns.iter().map(|&column| delta.rows().column(column).clone()).collect()
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
        let RangeJoinSpec { left, right, on, null_equals_null, values, ranges, condition, detail } =
            spec;
        if values.0 >= left.fields().len() || values.1 >= right.fields().len() {
            return Err(misused("a range join compares columns that are not there"));
        }
        let (left_key, right_key) = on.iter().copied().unzip();
        let mut l = Side::new(&left, values.0, left_key, !null_equals_null);
        let mut r = Side::new(&right, values.1, right_key, !null_equals_null);
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
        let key = l.key.iter().map(|&key| left.field(key).data_type().clone()).collect();
        let accumulators = vec![AccumulatorType::I64; 2];
        let groups = SlotSpec::Groups(GroupSpec { key, accumulators });
        let slots = vec![groups, l.slot(), r.slot()];
        slots.iter().try_for_each(|slot| Slot::try_new(slot).map(drop))?;
        let fields = left.fields().iter().chain(right.fields());
        let fields: Vec<Field> = fields.map(|field| field.as_ref().clone()).collect();
        let spread = |schema: SchemaRef, key: &[usize]| {
            let exchange = match key {
                [] => Exchange::Single,
                key => Exchange::ByKey(key.to_vec()),
            };
            InputSpec { schema, exchange }
        };
        let operator = OperatorSpec {
            name: "RangeJoin",
            detail,
            inputs: vec![spread(left, &l.key), spread(right, &r.key)],
            output: Arc::new(Schema::new(fields)),
            slots,
            algebra: Algebra::Bilinear,
            output_is_set: false,
        };
        Ok(Self { left: l, right: r, condition, spec: operator })
    }

    /// Takes a delta of one side: its pairs with the rows of the other, and into the state.
    fn absorb(
        &self,
        delta: &ZBatch,
        of_left: bool,
        state: &mut State<'_>,
        out: &mut dyn Output,
    ) -> Result<()> {
        if delta.is_empty() {
            return Ok(());
        }
        let side = if of_left { &self.left } else { &self.right };
        let groups = state.groups.upsert(&side.pick(delta, &side.key), delta.num_rows())?;
        let (mine, theirs) = if of_left {
            (&mut *state.left, &*state.right)
        } else {
            (&mut *state.right, &*state.left)
        };
        self.meet(delta, of_left, &groups, (state.groups, theirs), out)?;
        mine.apply(&groups, &side.pick(delta, &side.columns), delta.weights())?;
        match &mut state.groups.accumulators_mut()[usize::from(!of_left)] {
            AccumulatorColumn::I64(counts) => add_weights(counts, &groups, delta.weights()),
            _ => Err(Error::internal("SLOT_KIND", "a range join counts rows")),
        }
    }

    /// The pairs of a delta of one side with the rows of the other.
    fn meet(
        &self,
        delta: &ZBatch,
        of_left: bool,
        groups: &[u32],
        (table, rows): (&GroupTable, &Multisets),
        out: &mut dyn Output,
    ) -> Result<()> {
        let side = if of_left { &self.right } else { &self.left };
        let AccumulatorColumn::I64(counts) = &table.accumulators()[usize::from(of_left)] else {
            return Err(Error::internal("SLOT_KIND", "a range join counts rows"));
        };
        let bound = |column: Option<usize>| column.map(|c| delta.rows().column(c).clone());
        let bounds = Bounds { from: bound(side.from), to: bound(side.to) };
        let mut probes: Vec<u32> = (0..number(delta.num_rows()))
            .filter(|&row| bounds.all().all(|bound| bound.is_valid(row as usize)))
            .collect();
        probes.sort_by_key(|&row| groups[row as usize]);
        let mut pairs = Pairs { join: self, delta, of_left, probe: Vec::new(), found: Vec::new() };
        // Groups that are read as a whole, and their probes.
        let (mut whole, mut read): (Vec<&[u32]>, i64) = (Vec::new(), 0);
        for run in probes.chunk_by(|&a, &b| groups[a as usize] == groups[b as usize]) {
            let Some(&first) = run.first() else { continue };
            let group = groups[first as usize];
            let size = counts[group as usize].max(0);
            let worth =
                ROWS_PER_SEARCH.saturating_mul(i64::try_from(run.len()).unwrap_or(i64::MAX));
            if size > worth {
                for &row in run {
                    let at = row as usize;
                    let (from, to) =
                        (slice(bounds.from.as_ref(), at), slice(bounds.to.as_ref(), at));
                    let some = rows.between(group, from.as_deref(), to.as_deref())?;
                    pairs.add(row, 0..some.weights.len(), &some, out)?;
                    pairs.emit(&some, out)?;
                }
                continue;
            }
            if read + size > READ_ROWS_MAX && !whole.is_empty() {
                pairs.of_whole(&std::mem::take(&mut whole), groups, rows, &bounds, out)?;
                read = 0;
            }
            whole.push(run);
            read += size;
        }
        pairs.of_whole(&whole, groups, rows, &bounds, out)
    }
}

/// The state slots by what they are for.
struct State<'a> {
    groups: &'a mut GroupTable,
    left: &'a mut Multisets,
    right: &'a mut Multisets,
}

/// Least and greatest values for each row of a delta.
struct Bounds {
    from: Option<ArrayRef>,
    to: Option<ArrayRef>,
}

impl Bounds {
    fn all(&self) -> impl Iterator<Item = &ArrayRef> {
        [&self.from, &self.to].into_iter().flatten()
    }
}

fn slice(bound: Option<&ArrayRef>, row: usize) -> Option<Vec<ArrayRef>> {
    bound.map(|bound| vec![bound.slice(row, 1)])
}

/// Rows of groups, each in the order of its values, searched by bounds.
struct Found {
    from: Option<DynComparator>,
    to: Option<DynComparator>,
}

impl Found {
    fn new(rows: &GroupRows, bounds: &Bounds) -> Result<Self> {
        let Some(values) = rows.columns.first() else {
            return Err(misused("rows without a value"));
        };
        let comparator = |bound: &Option<ArrayRef>| {
            let bound = bound.as_ref();
            bound.map(|b| make_comparator(values, b, SortOptions::default())).transpose()
        };
        Ok(Self { from: comparator(&bounds.from)?, to: comparator(&bounds.to)? })
    }

    /// Of the rows of a group, those between the bounds of a row of the delta, the bounds among them.
    fn range(&self, row: u32, group: Range<usize>) -> Range<usize> {
        let first = |compare: &DynComparator, wanted: fn(Ordering) -> bool| {
            let (mut low, mut high) = (group.start, group.end);
            while low < high {
                let middle = usize::midpoint(low, high);
                let is_before = wanted(compare(middle, row as usize));
                if is_before { low = middle + 1 } else { high = middle }
            }
            low
        };
        let start = self.from.as_ref().map_or(group.start, |c| first(c, Ordering::is_lt));
        let end = self.to.as_ref().map_or(group.end, |c| first(c, Ordering::is_le));
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
    /// The pairs of runs of rows with the rows of their groups, which are read at once.
    fn of_whole(
        &mut self,
        runs: &[&[u32]],
        groups: &[u32],
        rows: &Multisets,
        bounds: &Bounds,
        out: &mut dyn Output,
    ) -> Result<()> {
        let of: Vec<u32> = runs.iter().map(|run| groups[run[0] as usize]).collect();
        if of.is_empty() {
            return Ok(());
        }
        let all = rows.rows(&of)?;
        let found = Found::new(&all, bounds)?;
        let mut start = 0;
        for (run, &end) in runs.iter().zip(&all.ends) {
            for &row in *run {
                self.add(row, found.range(row, start..end as usize), &all, out)?;
            }
            start = end as usize;
        }
        self.emit(&all, out)
    }

    /// Adds a row of the delta with a range of found rows.
    fn add(
        &mut self,
        row: u32,
        range: Range<usize>,
        rows: &GroupRows,
        out: &mut dyn Output,
    ) -> Result<()> {
        for at in range {
            self.probe.push(row);
            self.found.push(number(at));
            if self.probe.len() >= PAIRS_MAX {
                self.emit(rows, out)?;
            }
        }
        Ok(())
    }

    /// Emits those for which the condition holds.
    fn emit(&mut self, rows: &GroupRows, out: &mut dyn Output) -> Result<()> {
        if self.probe.is_empty() {
            return Ok(());
        }
        let probe = UInt32Array::from(std::mem::take(&mut self.probe));
        let found = UInt32Array::from(std::mem::take(&mut self.found));
        let side = if self.of_left { &self.join.right } else { &self.join.left };
        let mine = arrow::compute::take_arrays(self.delta.rows().columns(), &probe, None)?;
        let theirs = side.restored(arrow::compute::take_arrays(&rows.columns, &found, None)?);
        let (left, right) = if self.of_left { (mine, theirs) } else { (theirs, mine) };
        let pairs = left.into_iter().chain(right).collect();
        let batch = RecordBatch::try_new(self.join.spec.output.clone(), pairs)?;
        let mut products = Vec::with_capacity(probe.len());
        for (&one, &other) in probe.values().iter().zip(found.values()) {
            let (one, other) = (self.delta.weights()[one as usize], rows.weights[other as usize]);
            products.push(one.checked_mul(other).ok_or_else(|| {
                Error::data("WEIGHT_OVERFLOW", "a count of rows exceeds 64 bits")
            })?);
        }
        let keep = selection::evaluate(self.join.condition.as_ref(), &batch)?;
        out.push(selection::filter(&ZBatch::try_new(batch, products)?, &keep)?)
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
        let [groups, left, right] = state else {
            return Err(Error::internal("SLOT_COUNT", "a range join has three slots"));
        };
        let (groups, left, right) = (groups.groups()?, left.multisets()?, right.multisets()?);
        let mut state = State { groups, left, right };
        let (l, r) = (self.left.valued(input(inputs, 0)?)?, self.right.valued(input(inputs, 1)?)?);
        self.absorb(&l, true, &mut state, out)?;
        self.absorb(&r, false, &mut state, out)?;
        let State { groups, left, right } = state;
        groups.settle_if(|group| left.is_group_empty(group) && right.is_group_empty(group))
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

    fn join(on: Vec<(usize, usize)>, null_equals_null: bool) -> RangeJoin {
        let range = |comparison, right| RangeCondition { left: 1, comparison, right };
        let ranges = vec![range(Comparison::GreaterOrEqual, 0), range(Comparison::Less, 1)];
        let (left, right) = (schema(&["id", "at"]), schema(&["from", "to"]));
        RangeJoin::try_new(RangeJoinSpec {
            left,
            right,
            on,
            null_equals_null,
            values: (1, 0),
            ranges,
            condition: Arc::new(Within),
            detail: String::new(),
        })
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
            is_keyed in any::<bool>(),
        ) {
            // An id is a few values then, that of the interval's end.
            let join = join(if is_keyed { vec![(0, 1)] } else { Vec::new() }, true);
            let mut state: Vec<Slot> =
                join.spec().slots.iter().map(|slot| Slot::try_new(slot).unwrap()).collect();
            let mut sides: [BTreeMap<Pair, i64>; 2] = Default::default();
            let mut emitted: BTreeMap<String, i64> = BTreeMap::new();
            for (at, changes) in steps.into_iter().enumerate() {
                let mut deltas: [BTreeMap<Pair, i64>; 2] = Default::default();
                // After a large step, some of a few rows.
                let few = if at % 2 == 1 { 3 } else { usize::MAX };
                for (is_left, one, other, weight) in changes.into_iter().take(few) {
                    let end = |value: Option<i64>| value.map(|value| value % 3 + 30);
                    let (one, other) = match (is_keyed, is_left) {
                        (false, _) => (one, other),
                        (true, true) => (end(one), other),
                        (true, false) => (one, end(other)),
                    };
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
                        if is_keyed && id != to {
                            continue;
                        }
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
