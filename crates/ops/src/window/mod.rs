//! Window functions over ordered partitions, at a cost that follows what a change affects.
//!
//! **Meaning**: each row of the input, as often as its weight says, with the value of each call over
//! the rows of its partition in the order of the sort columns; ties stand in the order of the other
//! columns, ascending, NULL first. Frames that go by `RANGE` or `GROUPS` see ties as peers.
//!
//! **Incremental form**: a change affects the rows around it: those whose frames reach it, or all
//! after it for a running value, unless what was added and taken away is equal. The rows of such a
//! stretch are read, with as many rows on either side as their frames see, and each call is computed
//! over them as they were and as they are now; rows whose values differ are emitted. At the ends of
//! a stretch frames are cut short, alike before and after, so that nothing is emitted there.
//! A running value is taken up at a checkpoint ([`carry`]). O(rows affected + reach + one span
//! between checkpoints) per change; a partition of few rows is read whole.
//!
//! **State**: slot 0, the partitions with their number of rows; slot 1, all rows of each partition in
//! order; slot 2, if there are running values, the checkpoints of large partitions.
//!
//! **Nulls**: NULL is a partition of its own; the sort columns say where it stands.
//!
//! **Negative counts**: a row of negative weight is not there.
//!
//! **Refuses**: frames by distance (`RANGE` with an offset), `DISTINCT`, `IGNORE NULLS`,
//! and functions that are not in [`WindowFunction`].

mod carry;
mod emit;
mod extremes;
mod plan;
mod side;
mod spec;
mod sums;
mod values;

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, make_comparator};
use arrow::compute::{SortOptions, concat, take_arrays};
use arrow::datatypes::Schema;
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::{
    AccumulatorColumn, AccumulatorType, Changes, Extent, GroupSpec, GroupTable, MultisetColumn,
    MultisetSpec, Multisets, Slot, SlotSpec, SortKey, StretchOf, Stretches, order_by_group,
};

use crate::aggregate::accumulate::Selection;
use crate::multiplicity::add_weights;
use crate::{Algebra, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext, input};
use carry::Carry;
use emit::emit;
use plan::Plan;
use side::Side;
pub use spec::{FrameBound, WindowCall, WindowFrame, WindowFunction, WindowSpec};
use values::{Firsts, Input};

/// Partitions of up to so many rows are read whole.
const SMALL_ROWS: i64 = if cfg!(test) { 6 } else { 512 };
/// Stretches are computed together up to about so many rows.
const PART_ROWS: i64 = if cfg!(test) { 12 } else { 1 << 16 };

/// The window operator.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::datatypes::{DataType, Field, Schema};
/// # use deltaic_batch::ZBatch;
/// # use deltaic_ops::{
/// #     AggregateFunction, FrameBound, Operator, StepContext, Window, WindowCall, WindowFrame,
/// #     WindowFunction, WindowSpec,
/// # };
/// # use deltaic_state::{Slot, SortKey};
/// let schema = Arc::new(Schema::new(vec![
///     Field::new("day", DataType::Int64, true),
///     Field::new("amount", DataType::Int64, true),
/// ]));
/// let total = WindowCall {
///     function: WindowFunction::Aggregate(AggregateFunction::Sum),
///     input: Some(1),
///     filter: None,
///     frame: WindowFrame {
///         start: FrameBound::Unbounded,
///         end: FrameBound::Rows(0),
///         peers: true,
///     },
///     output: Field::new("total", DataType::Int64, true),
/// };
/// let window = Window::try_new(WindowSpec {
///     input: schema.clone(),
///     partition: vec![],
///     order: vec![SortKey { column: 0, descending: false, nulls_first: false }],
///     calls: vec![total],
/// })?;
/// let mut state: Vec<Slot> =
///     window.spec().slots.iter().map(Slot::try_new).collect::<Result<_, _>>()?;
///
/// let mut step = |epoch, delta: &str| -> Result<String, deltaic_batch::Error> {
///     let mut out: Vec<ZBatch> = Vec::new();
///     let delta = ZBatch::parse(&schema, delta)?;
///     window.step(&[delta], &mut state, &mut out, &StepContext { epoch, shard: 0, shards: 1 })?;
///     Ok(out.iter().map(ToString::to_string).collect())
/// };
/// assert_eq!(step(0, "+ 1 | 10\n+ 3 | 30")?, "+ 1 | 10 | 10\n+ 3 | 30 | 40\n");
/// assert_eq!(step(1, "+ 2 | 5")?, "- 3 | 30 | 40\n+ 2 | 5 | 15\n+ 3 | 30 | 45\n");
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
#[derive(Debug)]
pub struct Window {
    window: WindowSpec,
    plan: Plan,
    /// The columns of the multisets: all but those of the partition, in their order.
    values: Vec<usize>,
    /// Options of those, and how many of them are sort columns.
    options: Vec<SortOptions>,
    peers: usize,
    spec: OperatorSpec,
}

impl Window {
    /// Checks `spec`; user errors (`UNSUPPORTED_AGGREGATE`, `UNSUPPORTED_TYPE`,
    /// `UNSUPPORTED_WINDOW`) say what has no incremental form here.
    pub fn try_new(spec: WindowSpec) -> Result<Self> {
        let plan = Plan::try_new(&spec)?;
        let (values, peers, rows) = multiset(&spec)?;
        let key = |&column: &usize| spec.input.field(column).data_type().clone();
        let groups = GroupSpec {
            key: spec.partition.iter().map(key).collect(),
            accumulators: vec![AccumulatorType::I64],
        };
        let options = rows.columns.iter().map(|column| column.options).collect();
        let mut slots = vec![SlotSpec::Groups(groups), SlotSpec::Multisets(rows.clone())];
        if plan.needs.carries() {
            slots.push(SlotSpec::Multisets(carry::spec(&rows, &plan, &spec)));
        }
        // Refuses what cannot be a key or in order.
        slots.iter().try_for_each(|slot| Slot::try_new(slot).map(drop))?;
        let exchange = match spec.partition.as_slice() {
            [] => Exchange::Single,
            partition => Exchange::ByKey(partition.to_vec()),
        };
        let fields = spec.input.fields().iter().cloned();
        let calls = spec.calls.iter().map(|call| Arc::new(call.output.clone()));
        let operator = OperatorSpec {
            name: "Window",
            detail: spec.to_string(),
            inputs: vec![InputSpec { schema: spec.input.clone(), exchange }],
            output: Arc::new(Schema::new(fields.chain(calls).collect::<Vec<_>>())),
            slots,
            algebra: Algebra::NonLinear,
            output_is_set: false,
        };
        Ok(Self { window: spec, plan, values, options, peers, spec: operator })
    }

    /// Whole rows from partitions and values, one of each per row.
    fn rows(&self, groups: &GroupTable, of: &[u32], values: &[ArrayRef]) -> Result<RecordBatch> {
        let key = groups.keys(of)?;
        let mut columns: Vec<Option<ArrayRef>> = vec![None; self.window.input.fields().len()];
        for (&column, values) in self.window.partition.iter().zip(key) {
            columns[column] = Some(values);
        }
        for (&column, values) in self.values.iter().zip(values) {
            columns[column] = Some(values.clone());
        }
        let columns = columns.into_iter().collect::<Option<Vec<ArrayRef>>>();
        let columns = columns.ok_or_else(|| misused("a column is missing"))?;
        let options = RecordBatchOptions::new().with_row_count(Some(of.len()));
        Ok(RecordBatch::try_new_with_options(self.window.input.clone(), columns, &options)?)
    }
}

/// The columns that are kept in order, how many of them are sort columns, and the order.
fn multiset(spec: &WindowSpec) -> Result<(Vec<usize>, usize, MultisetSpec)> {
    let (mut values, mut columns) = (Vec::new(), Vec::new());
    let ties = (0..spec.input.fields().len()).map(|column| SortKey {
        column,
        descending: false,
        nulls_first: true,
    });
    let mut peers = 0;
    for (at, key) in spec.order.iter().copied().chain(ties).enumerate() {
        if values.contains(&key.column) || spec.partition.contains(&key.column) {
            continue;
        }
        let field = spec.input.fields().get(key.column);
        let field = field.ok_or_else(|| misused("a sort column is not of the input"))?;
        let options = SortOptions { descending: key.descending, nulls_first: key.nulls_first };
        values.push(key.column);
        columns.push(MultisetColumn { data_type: field.data_type().clone(), options });
        peers += usize::from(at < spec.order.len());
    }
    Ok((values, peers, MultisetSpec { columns }))
}

fn misused(what: &str) -> Error {
    Error::internal("WINDOW_STATE", what)
}

impl Operator for Window {
    fn spec(&self) -> &OperatorSpec {
        &self.spec
    }

    fn needs_consolidated(&self) -> bool {
        false
    }

    fn step(
        &self,
        inputs: &[ZBatch],
        state: &mut [Slot],
        out: &mut dyn Output,
        _cx: &StepContext,
    ) -> Result<()> {
        let delta = input(inputs, 0)?;
        if delta.is_empty() {
            return Ok(());
        }
        let [groups, rows, checkpoints @ ..] = state else {
            return Err(Error::internal("SLOT_COUNT", "a window has two or three slots"));
        };
        let (groups, rows) = (groups.groups()?, rows.multisets()?);
        let checkpoints = checkpoints.first_mut().map(Slot::multisets).transpose()?;
        let pick = |columns: &[usize]| -> Vec<ArrayRef> {
            columns.iter().map(|&column| delta.rows().column(column).clone()).collect()
        };
        let group_of_row = groups.upsert(&pick(&self.window.partition), delta.num_rows())?;
        let [AccumulatorColumn::I64(counts)] = groups.accumulators_mut() else {
            return Err(Error::internal("SLOT_KIND", "a window has one counter"));
        };
        add_weights(counts, &group_of_row, delta.weights())?;
        let values = pick(&self.values);
        let order = order_by_group(&group_of_row);
        let changes = rows.apply_changes(&group_of_row, order, &values, delta.weights())?;
        let mut step =
            Step { window: self, groups, rows, checkpoints, changes: &changes, values: &values };
        for part in step.parts()? {
            step.run(&part, delta.rows(), out)?;
        }
        groups.settle_if(|group| rows.is_group_empty(group))
    }
}

/// The changes of one partition.
#[derive(Debug, Clone)]
struct Touched {
    group: u32,
    /// Positions in the changes.
    changes: Range<usize>,
    /// More rows than are read whole.
    is_large: bool,
}

/// One step, after the rows have taken the delta.
struct Step<'a> {
    window: &'a Window,
    groups: &'a GroupTable,
    rows: &'a Multisets,
    checkpoints: Option<&'a mut Multisets>,
    changes: &'a Changes,
    /// The columns of the delta that the rows are made of.
    values: &'a [ArrayRef],
}

/// Where the stretches of a part start: behind checkpoints.
struct Starts {
    /// The checkpoints, all columns.
    columns: Vec<ArrayRef>,
    /// For each partition its checkpoint, if it starts with one.
    after: Vec<Option<u32>>,
    /// Checkpoints from the start on, which the step makes anew: partition and columns.
    old_groups: Vec<u32>,
    old: Vec<ArrayRef>,
    old_weights: Vec<i64>,
}

impl Step<'_> {
    /// The touched partitions, in parts of a bounded number of rows.
    fn parts(&self) -> Result<Vec<Vec<Touched>>> {
        let [AccumulatorColumn::I64(counts)] = self.groups.accumulators() else {
            return Err(Error::internal("SLOT_KIND", "a window has one counter"));
        };
        let (mut parts, mut part, mut rows) = (Vec::new(), Vec::new(), 0);
        let groups = &self.changes.groups;
        let mut start = 0;
        while start < groups.len() {
            let group = groups[start];
            let end = start + groups[start..].iter().take_while(|&&other| other == group).count();
            let changed = i64::try_from(end - start).unwrap_or(i64::MAX);
            let count = counts[group as usize].saturating_add(changed).max(0);
            let is_large = count > SMALL_ROWS;
            let needs = self.window.plan.needs;
            let read = match is_large && !needs.whole && !needs.carries() {
                true => {
                    changed.saturating_mul(i64::try_from(2 * needs.reach + 1).unwrap_or(i64::MAX))
                }
                false => count,
            };
            if !part.is_empty() && rows + read > PART_ROWS {
                parts.push(std::mem::take(&mut part));
                rows = 0;
            }
            rows = rows.saturating_add(read);
            part.push(Touched { group, changes: start..end, is_large });
            start = end;
        }
        if !part.is_empty() {
            parts.push(part);
        }
        Ok(parts)
    }

    fn run(&mut self, part: &[Touched], delta: &RecordBatch, out: &mut dyn Output) -> Result<()> {
        let starts = self.starts(part)?;
        let is_calm = self.is_calm(part, delta)?;
        let needs = self.window.plan.needs;
        let request = |(at, touched): (usize, &Touched)| {
            let extent = if needs.whole || !touched.is_large {
                Extent::ToEnd
            } else if !needs.carries() {
                Extent::Around(needs.reach)
            } else if needs.cumulative && !is_calm[at] {
                Extent::ToEnd
            } else {
                Extent::Until(needs.reach, if needs.peers { self.window.peers } else { 0 })
            };
            StretchOf { changes: touched.changes.clone(), after: starts.after[at], extent }
        };
        let requests: Vec<StretchOf> = part.iter().enumerate().map(request).collect();
        let width = self.window.values.len();
        let row_columns = &starts.columns[..width];
        let stretches = self.rows.stretches(self.changes, self.values, row_columns, &requests)?;
        let group_of_stretch = |at: usize| part[stretches.of[at] as usize].group;
        let mut groups = Vec::with_capacity(stretches.before.len());
        for (at, &end) in stretches.ends.iter().enumerate() {
            groups.resize(end as usize, group_of_stretch(at));
        }
        let entries = self.window.rows(self.groups, &groups, &stretches.columns)?;
        let begins = self.begins(&stretches)?;
        let old = Side::new(&stretches.before, &stretches.ends, &begins);
        let new = Side::new(&stretches.after, &stretches.ends, &begins);
        let after: Vec<Option<u32>> =
            stretches.of.iter().map(|&of| starts.after[of as usize]).collect();
        let carry = self.carry(&starts, &stretches, &after, &begins)?;
        let firsts = self.firsts(part, &stretches, &after)?;
        let input = Input {
            spec: &self.window.window,
            plan: &self.window.plan,
            entries: &entries,
            carry: &carry,
            firsts: &firsts,
        };
        let (old_values, new_values) = (input.values(&old)?, input.values(&new)?);
        let output = &self.window.spec.output;
        emit(output, &entries, (&old, &old_values), (&new, &new_values), out)?;
        self.set_checkpoints(part, &requests, starts, &stretches, (&entries, &new, &carry))
    }

    /// Which entries are no peers of the one before.
    fn begins(&self, stretches: &Stretches) -> Result<Vec<bool>> {
        let mut begins = vec![false; stretches.before.len()];
        let order = &stretches.columns[..self.window.peers];
        if !order.is_empty() && !begins.is_empty() {
            for range in arrow::compute::partition(order)?.ranges() {
                begins[range.start] = true;
            }
        }
        let starts = [0].into_iter().chain(stretches.ends.iter().copied());
        for start in starts {
            if let Some(begins) = begins.get_mut(start as usize) {
                *begins = true;
            }
        }
        Ok(begins)
    }

    /// Where to take up the large partitions of a part.
    fn starts(&self, part: &[Touched]) -> Result<Starts> {
        let mut starts = Starts {
            columns: self.no_rows(),
            after: vec![None; part.len()],
            old_groups: Vec::new(),
            old: Vec::new(),
            old_weights: Vec::new(),
        };
        let Some(checkpoints) = &self.checkpoints else { return Ok(starts) };
        starts.columns = checkpoints.rows(&[])?.columns;
        let large: Vec<u32> =
            (0_u32..).zip(part).filter(|(_, t)| t.is_large).map(|(at, _)| at).collect();
        let touched = |&at: &u32| &part[at as usize];
        let groups: Vec<u32> = large.iter().map(|at| touched(at).group).collect();
        let first = |at: &u32| self.changes.rows[touched(at).changes.start];
        let firsts: UInt32Array = large.iter().map(first).collect::<Vec<_>>().into();
        let firsts = take_arrays(self.values, &firsts, None)?;
        let needs = self.window.plan.needs;
        let peers = needs.peers.then_some(self.window.peers);
        let (of, from) = self.rows.starts(&groups, &firsts, needs.reach, peers)?;
        let started: Vec<u32> = of.iter().map(|&at| groups[at as usize]).collect();
        let found = checkpoints.before(&started, &from)?;
        let mut row = 0;
        for (&at, &end) in of.iter().zip(&found.ends) {
            if end > row {
                starts.after[large[at as usize] as usize] = Some(row);
            }
            row = end;
        }
        starts.columns = found.columns;
        // What comes after is made anew; of the other partitions all.
        let mut is_started = vec![false; part.len()];
        of.iter().for_each(|&at| is_started[large[at as usize] as usize] = true);
        let others: Vec<u32> = (part.iter().zip(&is_started))
            .filter(|(touched, started)| !**started && !checkpoints.is_group_empty(touched.group))
            .map(|(touched, _)| touched.group)
            .collect();
        let mut parts: Vec<Vec<ArrayRef>> = Vec::new();
        for (groups, found) in
            [(&started, checkpoints.from(&started, &from)?), (&others, checkpoints.rows(&others)?)]
        {
            let mut row = 0;
            for (&group, &end) in groups.iter().zip(&found.ends) {
                starts.old_groups.resize(starts.old_groups.len() + (end - row) as usize, group);
                row = end;
            }
            starts.old_weights.extend(&found.weights);
            parts.push(found.columns);
        }
        starts.old = joined(&parts)?;
        Ok(starts)
    }

    /// No row of the multisets.
    fn no_rows(&self) -> Vec<ArrayRef> {
        self.values.iter().map(|column| column.slice(0, 0)).collect()
    }

    /// In which partitions the changes add up to nothing for the running values.
    fn is_calm(&self, part: &[Touched], delta: &RecordBatch) -> Result<Vec<bool>> {
        let plan = &self.window.plan;
        if !plan.needs.cumulative || !plan.needs.invertible {
            return Ok(vec![false; part.len()]);
        }
        let Some((first, last)) = part.first().zip(part.last()) else { return Ok(Vec::new()) };
        let range = first.changes.start..last.changes.end;
        let rows: UInt32Array = self.changes.rows[range.clone()].to_vec().into();
        let columns = take_arrays(delta.columns(), &rows, None)?;
        let options = RecordBatchOptions::new().with_row_count(Some(range.len()));
        let rows = RecordBatch::try_new_with_options(delta.schema(), columns, &options)?;
        let there = |weight: &i64| (*weight).max(0);
        let weights: Vec<i64> = (self.changes.before[range.clone()].iter())
            .zip(&self.changes.after[range.clone()])
            .map(|(before, after)| there(after) - there(before))
            .collect();
        let mut of = Vec::with_capacity(range.len());
        for (at, touched) in (0_u32..).zip(part) {
            of.resize(touched.changes.end - range.start, at);
        }
        let mut counts = vec![0_i64; part.len()];
        of.iter().zip(&weights).for_each(|(&at, weight)| counts[at as usize] += weight);
        let mut is_calm: Vec<bool> = counts.iter().map(|&count| count == 0).collect();
        for framed in plan.framed.iter().filter(|framed| framed.is_running()) {
            for accumulator in &framed.aggregates.accumulators {
                let source = &framed.aggregates.sources[accumulator.source];
                let selection = Selection::of_source(source, &rows, &of, &weights)?;
                let mut sums = AccumulatorColumn::new(accumulator.kind);
                sums.resize(part.len());
                selection.add_to(&mut sums, accumulator.measure, &rows)?;
                is_calm.iter_mut().enumerate().for_each(|(at, calm)| *calm &= sums.is_zero(at));
            }
        }
        Ok(is_calm)
    }

    /// What is true before each stretch.
    fn carry(
        &self,
        starts: &Starts,
        stretches: &Stretches,
        after: &[Option<u32>],
        begins: &[bool],
    ) -> Result<Carry> {
        let width = self.window.values.len();
        let mut continues = vec![0; after.len()];
        if self.window.plan.dense && after.iter().any(Option::is_some) {
            let compare = self.compare(&stretches.columns, &starts.columns, self.window.peers)?;
            let first_entries = [0].into_iter().chain(stretches.ends.iter().copied());
            for ((continues, after), first) in continues.iter_mut().zip(after).zip(first_entries) {
                let Some(checkpoint) = after else { continue };
                let first = first as usize;
                if first < begins.len() && compare(first, *checkpoint as usize).is_eq() {
                    let peers = begins[first + 1..].iter().take_while(|begins| !**begins).count();
                    *continues = row_number(first + 1 + peers);
                }
            }
        }
        if self.checkpoints.is_some() {
            let columns = &starts.columns[width..];
            return Carry::read(&self.window.plan, columns, after, continues);
        }
        let count = after.len();
        Ok(Carry { rows: vec![0; count], dense: vec![0; count], continues, frames: Vec::new() })
    }

    /// Compares rows of two lists by their first columns, in the order of the rows.
    fn compare(
        &self,
        left: &[ArrayRef],
        right: &[ArrayRef],
        columns: usize,
    ) -> Result<impl Fn(usize, usize) -> Ordering> {
        let of_columns = (left.iter().zip(right).zip(&self.window.options).take(columns))
            .map(|((left, right), &options)| Ok(make_comparator(left, right, options)?));
        let of_columns = of_columns.collect::<Result<Vec<_>>>()?;
        Ok(move |i, j| {
            let orders = of_columns.iter().map(|compare| compare(i, j));
            orders.fold(Ordering::Equal, Ordering::then)
        })
    }

    /// The first rows of partitions whose stretches do not start with them.
    fn firsts(
        &self,
        part: &[Touched],
        stretches: &Stretches,
        after: &[Option<u32>],
    ) -> Result<Firsts> {
        let groups: Vec<u32> = (stretches.of.iter().zip(after))
            .filter(|(_, after)| after.is_some())
            .map(|(&of, _)| part[of as usize].group)
            .collect();
        let found = self.rows.first(&groups, 1)?;
        let of_row: Vec<u32> = found.ends.iter().zip(&groups).map(|(_, &group)| group).collect();
        if found.weights.len() != groups.len() {
            return Err(misused("a partition has checkpoints but no row"));
        }
        let mut next = 0;
        let mut number = || {
            next += 1;
            next - 1
        };
        Ok(Firsts {
            rows: self.window.rows(self.groups, &of_row, &found.columns)?,
            of: after.iter().map(|after| after.map(|_| number())).collect(),
        })
    }

    /// Replaces the checkpoints that the step has passed.
    fn set_checkpoints(
        &mut self,
        part: &[Touched],
        requests: &[StretchOf],
        starts: Starts,
        stretches: &Stretches,
        (entries, new, carry): (&RecordBatch, &Side, &Carry),
    ) -> Result<()> {
        let passed = self.passed(part, requests, &starts, stretches)?;
        let is_wanted: Vec<bool> =
            stretches.of.iter().map(|&of| part[of as usize].is_large).collect();
        let Some(checkpoints) = self.checkpoints.as_deref_mut() else { return Ok(()) };
        let places = carry::places(new, &is_wanted);
        let carried = carry.behind(&self.window.plan, entries, new, &places)?;
        let at: UInt32Array =
            places.iter().map(|&row| new.rows[row as usize]).collect::<Vec<_>>().into();
        let mut columns = take_arrays(&stretches.columns, &at, None)?;
        columns.extend(carried);
        let mut groups: Vec<u32> = (places.iter())
            .map(|&row| new.stretch[row as usize])
            .map(|stretch| part[stretches.of[stretch as usize] as usize].group)
            .collect();
        let mut weights = vec![1_i64; groups.len()];
        let old: UInt32Array = passed.clone().into();
        if !passed.is_empty() {
            columns = joined(&[columns, take_arrays(&starts.old, &old, None)?])?;
            groups.extend(passed.iter().map(|&row| starts.old_groups[row as usize]));
            weights.extend(passed.iter().map(|&row| -starts.old_weights[row as usize]));
        }
        if groups.is_empty() {
            return Ok(());
        }
        checkpoints.apply(&groups, &columns, &weights)
    }

    /// The old checkpoints that lie in stretches, or whose partitions have none any more.
    fn passed(
        &self,
        part: &[Touched],
        requests: &[StretchOf],
        starts: &Starts,
        stretches: &Stretches,
    ) -> Result<Vec<u32>> {
        if starts.old_groups.is_empty() {
            return Ok(Vec::new());
        }
        // Of a partition with checkpoints there is one stretch.
        let mut last_entry = vec![None; part.len()];
        for (&of, &end) in stretches.of.iter().zip(&stretches.ends) {
            last_entry[of as usize] = end.checked_sub(1);
        }
        let compare = self.compare(&starts.old, &stretches.columns, self.window.values.len())?;
        let is_passed = |row: usize| {
            let group = starts.old_groups[row];
            let Ok(at) = part.binary_search_by_key(&group, |touched| touched.group) else {
                return false;
            };
            match (requests[at].extent, last_entry[at]) {
                (Extent::Until(..), Some(last)) => compare(row, last as usize).is_le(),
                _ => true,
            }
        };
        Ok((0..starts.old_groups.len()).filter(|&row| is_passed(row)).map(row_number).collect())
    }
}

/// Lists of columns, one behind another.
fn joined(parts: &[Vec<ArrayRef>]) -> Result<Vec<ArrayRef>> {
    let Some(first) = parts.first() else { return Ok(Vec::new()) };
    (0..first.len())
        .map(|column| {
            let parts: Vec<&dyn arrow::array::Array> =
                parts.iter().map(|part| part[column].as_ref()).collect();
            Ok(concat(&parts)?)
        })
        .collect()
}

fn row_number(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
