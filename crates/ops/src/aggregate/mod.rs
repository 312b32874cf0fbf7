//! Aggregate: one row per group of equal keys, or one row in all when there are no keys.
//!
//! **Meaning**: for each key of the input, the key and the value of each call over the group's
//! rows, as often as their weights say. Without key columns there is exactly one row from the first
//! epoch on, over no rows too.
//!
//! **Incremental form**: every call but MIN and MAX is a function of sums over the group's rows, so
//! that a delta adds to them or takes from them. A step reads the results of the touched groups,
//! adds, reads them again, and emits the old and the new row of a group where they differ. O(rows of
//! the delta); MIN and MAX look up the first or last value of each touched group, and DISTINCT the
//! values of the delta, O(log) per row of it.
//!
//! **State**: slot 0 is a group table: per group its number of rows and the calls' accumulators.
//! Then MIN, MAX and calls with DISTINCT share one slot per argument and filter: the values of each
//! group in order, with their number. A group is dropped when all that is kept of it is zero.
//!
//! **Nulls**: NULL is a key of its own. Calls pass over NULL arguments; SUM, AVG, MIN, MAX,
//! BOOL_AND and BOOL_OR of none are NULL, COUNT is 0.
//!
//! **Arithmetic**: sums are exact whatever the order of rows (see [`deltaic_state::ExactSum`] for
//! floats), and it is the finished sum that must fit its type.
//!
//! **Negative counts**: while a group's number of rows is not above zero, as when a row is retracted
//! before it comes, the group is kept in state but has no row in the output.
//!
//! **Refuses**: calls without a row in the table at [`AggregateFunction`].

pub(crate) mod accumulate;
mod division;
mod emit;
mod extremes;
pub(crate) mod outcome;
pub(crate) mod plan;
mod spec;

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::{
    AccumulatorColumn, Crossings, GroupSpec, GroupTable, MultisetColumn, MultisetSpec, Slot,
    SlotSpec,
};

use crate::input;
use crate::{Algebra, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext};
use accumulate::{Selection, masked_weights};
use emit::{PIECE_GROUPS_MAX, Results, emit};
use extremes::Extremes;
use outcome::Groups;
use plan::{Outcome, Plan, column_type};
pub use spec::{AggregateCall, AggregateFunction, AggregateSpec};

/// Rows of a delta that are accumulated at a time, so that what is worked out on the way stays in the
/// cache.
const PART_ROWS: usize = if cfg!(test) { 3 } else { 1 << 16 };

/// The aggregate operator.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::datatypes::{DataType, Field, Schema};
/// # use deltaic_batch::ZBatch;
/// # use deltaic_ops::{Aggregate, AggregateCall, AggregateFunction, AggregateSpec};
/// # use deltaic_ops::{Operator, StepContext};
/// # use deltaic_state::Slot;
/// let schema = Arc::new(Schema::new(vec![
///     Field::new("region", DataType::Utf8, true),
///     Field::new("amount", DataType::Int64, true),
/// ]));
/// let total = AggregateCall {
///     function: AggregateFunction::Sum,
///     distinct: false,
///     input: Some(1),
///     filter: None,
///     output: Field::new("total", DataType::Int64, true),
/// };
/// let spec = AggregateSpec { input: schema.clone(), keys: vec![0], calls: vec![total] };
/// let aggregate = Aggregate::try_new(spec)?;
/// let mut state: Vec<Slot> =
///     aggregate.spec().slots.iter().map(Slot::try_new).collect::<Result<_, _>>()?;
///
/// let mut step = |epoch, delta: &str| -> Result<String, deltaic_batch::Error> {
///     let mut out: Vec<ZBatch> = Vec::new();
///     let delta = ZBatch::parse(&schema, delta)?;
///     aggregate.step(&[delta], &mut state, &mut out, &StepContext { epoch, shard: 0, shards: 1 })?;
///     Ok(out.iter().map(ToString::to_string).collect())
/// };
/// assert_eq!(step(0, "+ EU | 3\n+ EU | 4")?, "+ EU | 7\n");
/// assert_eq!(step(1, "- EU | 3")?, "- EU | 7\n+ EU | 4\n");
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
#[derive(Debug)]
pub struct Aggregate {
    keys: Vec<usize>,
    plan: Plan,
    /// Output types of the calls.
    output_types: Vec<DataType>,
    spec: OperatorSpec,
}

impl Aggregate {
    /// Checks `spec`; a user error (`UNSUPPORTED_AGGREGATE`) says which call has no incremental
    /// form here.
    pub fn try_new(spec: AggregateSpec) -> Result<Self> {
        let key_types =
            spec.keys.iter().map(|&key| column_type(&spec, key).cloned()).collect::<Result<_>>()?;
        let plan = Plan::try_new(&spec)?;
        let slots = slots(&spec, &plan, key_types);
        // Refuses what cannot be a key.
        slots.iter().try_for_each(|slot| Slot::try_new(slot).map(drop))?;
        let keys = spec.keys.iter().map(|&key| spec.input.field(key).clone());
        let calls = spec.calls.iter().map(|call| call.output.clone());
        let output = Arc::new(Schema::new(keys.chain(calls).collect::<Vec<Field>>()));
        let exchange = match spec.keys.as_slice() {
            [] => Exchange::Single,
            keys => Exchange::ByKey(keys.to_vec()),
        };
        let operator = OperatorSpec {
            name: "Aggregate",
            detail: spec.to_string(),
            inputs: vec![InputSpec { schema: spec.input.clone(), exchange }],
            output,
            slots,
            algebra: Algebra::NonLinear,
            output_is_set: true,
        };
        let output_types = spec.calls.iter().map(|call| call.output.data_type().clone()).collect();
        Ok(Self { keys: spec.keys, plan, output_types, spec: operator })
    }

    /// Adds the delta to the accumulators and multisets.
    fn accumulate(
        &self,
        SplitState { groups, multisets }: &mut SplitState<'_>,
        delta: &ZBatch,
        group_of_row: &[u32],
    ) -> Result<()> {
        let rows = delta.rows();
        let mut crossings = Vec::with_capacity(multisets.len());
        for (i, (values, slot)) in self.plan.multisets.iter().zip(multisets.iter_mut()).enumerate()
        {
            let weights = masked_weights(rows, Some(values.input), values.filter, delta.weights())?;
            let (slot, column) = (slot.multisets()?, &[rows.column(values.input).clone()]);
            if self.plan.sources.iter().any(|source| source.distinct == Some(i)) {
                crossings.push(slot.apply_crossings(group_of_row, column, &weights)?);
            } else {
                slot.apply(group_of_row, column, &weights)?;
                crossings.push(Crossings::default());
            }
        }
        for (i, source) in self.plan.sources.iter().enumerate() {
            let selection = match source.distinct {
                None => Selection::of_source(source, rows, group_of_row, delta.weights())?,
                Some(distinct) => Selection::of_crossings(&crossings[distinct], group_of_row),
            };
            let accumulators = groups.accumulators_mut().iter_mut().zip(&self.plan.accumulators);
            for (column, accumulator) in accumulators.filter(|(_, a)| a.source == i) {
                selection.add_to(column, accumulator.measure, rows)?;
            }
        }
        Ok(())
    }

    /// The results of groups, in ascending order, as they are now. `always` says that they have a
    /// row without rows of the input, too.
    fn results(
        &self,
        SplitState { groups, multisets }: &mut SplitState<'_>,
        numbers: &[u32],
        always: bool,
    ) -> Result<Results> {
        let Some(AccumulatorColumn::I64(rows)) = groups.accumulators().first() else {
            return Err(accumulate::wrong_type());
        };
        let present: Vec<bool> =
            numbers.iter().map(|&group| always || rows[group as usize] > 0).collect();
        if !present.contains(&true) {
            return Ok(Results { present, columns: Vec::new() });
        }
        let key = |group: u32| groups.keys(&[group]);
        let accumulators = groups.accumulators();
        let view = Groups { accumulators, numbers, present: &present, key: &key };
        let mut extremes = Extremes::new(&self.plan, numbers);
        let calls = self.plan.outcomes.iter().zip(&self.output_types).zip(self.call_names());
        let columns = calls.map(|((outcome, output), name)| {
            let column = match *outcome {
                Outcome::Extreme { values, greatest } => {
                    extremes.values(multisets[values].multisets()?, values, greatest)
                }
                other => {
                    view.result(other, output).and_then(|c| c.ok_or_else(accumulate::wrong_type))
                }
            };
            column.map_err(|error| error.object(name))
        });
        let columns = columns.collect::<Result<_>>()?;
        Ok(Results { present, columns })
    }

    /// One step over a delta in parts. The old row of a group is read before the first part that
    /// touches it, the new one after the last.
    fn step_parts(
        &self,
        pieces: &[ZBatch],
        state: &mut [Slot],
        out: &mut dyn Output,
        cx: &StepContext,
    ) -> Result<()> {
        let is_global = self.keys.is_empty();
        let begins = is_global && cx.is_first() && cx.shard == 0;
        if pieces.iter().all(ZBatch::is_empty) && !begins {
            return Ok(());
        }
        let mut state = self.split_state(state)?;
        let had_row = is_global && !cx.is_first();
        let mut before = Vec::new();
        if begins {
            // The one group is there without rows, too.
            state.groups.upsert(&[], 1)?;
            self.read_before(&mut state, 0, had_row, &mut before)?;
        }
        let part_rows = if self.plan.multisets.is_empty() { PART_ROWS } else { usize::MAX };
        for delta in pieces.iter().flat_map(|piece| parts(piece, part_rows)) {
            let key: Vec<ArrayRef> =
                self.keys.iter().map(|&k| delta.rows().column(k).clone()).collect();
            let seen = state.groups.touched().len();
            let group_of_row = state.groups.upsert(&key, delta.num_rows())?;
            self.read_before(&mut state, seen, had_row, &mut before)?;
            self.accumulate(&mut state, &delta, &group_of_row)?;
        }
        for (groups, before) in before {
            let after = self.results(&mut state, &groups, is_global)?;
            let key = state.groups.keys(&groups)?;
            emit(&self.spec.output, &key, &before, &after, out)?;
        }
        state.settle()
    }

    /// Reads the results of the groups touched after the first `seen`, in the order of their numbers,
    /// so that everything is read from one end to the other.
    fn read_before(
        &self,
        state: &mut SplitState<'_>,
        seen: usize,
        had_row: bool,
        before: &mut Vec<(Vec<u32>, Results)>,
    ) -> Result<()> {
        let touched = state.groups.sort_touched(seen).to_vec();
        for groups in touched.chunks(PIECE_GROUPS_MAX) {
            let results = self.results(state, groups, had_row)?;
            before.push((groups.to_vec(), results));
        }
        Ok(())
    }

    fn call_names(&self) -> impl Iterator<Item = &str> {
        self.spec.output.fields().iter().skip(self.keys.len()).map(|field| field.name().as_str())
    }

    fn split_state<'a>(&self, state: &'a mut [Slot]) -> Result<SplitState<'a>> {
        let expected = self.spec.slots.len();
        match state.split_first_mut() {
            Some((groups, multisets)) if multisets.len() + 1 == expected => {
                Ok(SplitState { groups: groups.groups()?, multisets })
            }
            _ => Err(Error::internal("SLOT_COUNT", format!("an aggregate has {expected} slots"))),
        }
    }
}

/// The state slots by what they are for.
struct SplitState<'a> {
    groups: &'a mut GroupTable,
    multisets: &'a mut [Slot],
}

impl SplitState<'_> {
    /// Ends the step: drops the touched groups of which nothing is kept.
    fn settle(self) -> Result<()> {
        let multisets = self.multisets.iter_mut().map(|slot| slot.multisets());
        let multisets = multisets.collect::<Result<Vec<_>>>()?;
        self.groups.settle_if(|group| multisets.iter().all(|m| m.is_group_empty(group)))
    }
}

impl Operator for Aggregate {
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
        cx: &StepContext,
    ) -> Result<()> {
        self.step_parts(std::slice::from_ref(input(inputs, 0)?), state, out, cx)
    }

    fn step_pieces(
        &self,
        inputs: Vec<Vec<ZBatch>>,
        state: &mut [Slot],
        out: &mut dyn Output,
        cx: &StepContext,
    ) -> Result<()> {
        let pieces = inputs.into_iter().next().unwrap_or_default();
        if self.plan.multisets.is_empty() {
            return self.step_parts(&pieces, state, out, cx);
        }
        // Values are sorted, and so better taken at once.
        let whole = ZBatch::concat(&self.spec.inputs[0].schema, &pieces)?;
        drop(pieces);
        self.step_parts(&[whole], state, out, cx)
    }
}

/// A delta in parts of so many rows.
fn parts(delta: &ZBatch, rows: usize) -> impl Iterator<Item = ZBatch> + '_ {
    let starts = (0..delta.num_rows()).step_by(rows);
    starts.map(move |start| delta.slice(start, rows.min(delta.num_rows() - start)))
}

/// The state slots: groups, then the values of MIN, MAX and DISTINCT calls.
fn slots(spec: &AggregateSpec, plan: &Plan, key: Vec<DataType>) -> Vec<SlotSpec> {
    let accumulators = plan.accumulators.iter().map(|accumulator| accumulator.kind).collect();
    let multisets = plan.multisets.iter().map(|values| {
        let data_type = spec.input.field(values.input).data_type().clone();
        let options = SortOptions::default();
        SlotSpec::Multisets(MultisetSpec { columns: vec![MultisetColumn { data_type, options }] })
    });
    let groups = SlotSpec::Groups(GroupSpec { key, accumulators });
    [groups].into_iter().chain(multisets).collect()
}

#[cfg(test)]
mod tests;
