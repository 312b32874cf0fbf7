//! The values of all calls on one side.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow::compute::{concat, take};
use deltaic_batch::Result;

use super::carry::Carry;
use super::plan::{Extreme, Framed, Plan};
use super::side::{Side, Spans};
use super::spec::{FrameBound, WindowCall, WindowFunction, WindowSpec};
use super::{extremes, sums};
use crate::aggregate::accumulate::wrong_type;
use crate::aggregate::outcome::Groups;
use crate::aggregate::plan::Outcome;

/// What calls are computed from: rows of stretches, in schema of the input, and what comes before.
pub(super) struct Input<'a> {
    pub(super) spec: &'a WindowSpec,
    pub(super) plan: &'a Plan,
    pub(super) entries: &'a RecordBatch,
    pub(super) carry: &'a Carry,
    /// The first row of the partition of each stretch that does not start with it.
    pub(super) firsts: &'a Firsts,
}

/// First rows of partitions, in the schema of the input.
pub(super) struct Firsts {
    pub(super) rows: RecordBatch,
    /// The row for each stretch, if it has one.
    pub(super) of: Vec<Option<u32>>,
}

impl Input<'_> {
    /// One array per call, one value per row of the side.
    pub(super) fn values(&self, side: &Side) -> Result<Vec<ArrayRef>> {
        let mut values: Vec<Option<ArrayRef>> = vec![None; self.spec.calls.len()];
        let mut carried = self.carry.frames.iter();
        for framed in &self.plan.framed {
            let carried = if framed.is_running() { carried.next() } else { None };
            let spans = side.spans(framed.frame);
            let spans = (&spans, side.stretch.as_slice());
            let plan = &framed.aggregates;
            let mut accumulators = Vec::with_capacity(plan.accumulators.len());
            for (at, &accumulator) in plan.accumulators.iter().enumerate() {
                let base = carried.map(|carried| &carried.accumulators[at]);
                let sums = sums::over_spans(plan, accumulator, self.entries, side, spans, base)?;
                accumulators.push(sums);
            }
            let mut extremes = Vec::with_capacity(framed.extremes.len());
            for (at, &extreme) in framed.extremes.iter().enumerate() {
                let base = carried.map(|carried| &carried.extremes[at]);
                extremes.push(extremes::over_spans(extreme, self.entries, side, spans, base)?);
            }
            let numbers: Vec<u32> = (0_u32..).take(side.len()).collect();
            let key = |row: u32| self.partition(side, row);
            let groups = Groups {
                accumulators: &accumulators,
                numbers: &numbers,
                present: &vec![true; side.len()],
                key: &key,
            };
            for (&call, &outcome) in framed.calls.iter().zip(&plan.outcomes) {
                let output = &self.spec.calls[call].output;
                let result = groups.result(outcome, output.data_type());
                values[call] = match result.map_err(|error| error.object(output.name()))? {
                    Some(result) => Some(result),
                    None => extreme(framed, outcome).map(|at| extremes[at].clone()),
                };
            }
        }
        for (value, call) in values.iter_mut().zip(&self.spec.calls) {
            if value.is_none() {
                *value = Some(self.positional(call, side)?);
            }
        }
        values.into_iter().map(|value| value.ok_or_else(wrong_type)).collect()
    }

    /// The partition of a row, for an error.
    fn partition(&self, side: &Side, row: u32) -> Result<Vec<ArrayRef>> {
        let entry = side.rows[row as usize] as usize;
        let columns = self.spec.partition.iter();
        Ok(columns.map(|&column| self.entries.column(column).slice(entry, 1)).collect())
    }

    /// A call that tells a row's place, or the value of a row in a place.
    fn positional(&self, call: &WindowCall, side: &Side) -> Result<ArrayRef> {
        let spans = side.spans(call.frame);
        let pick = |at: u32, low: u32, high: u32| (low <= at && at < high).then_some(at);
        match &call.function {
            WindowFunction::RowNumber => Ok(self.places(side, |row, _| row)),
            WindowFunction::Rank => Ok(self.places(side, |_, peers| peers)),
            WindowFunction::DenseRank => Ok(self.dense_ranks(side)),
            WindowFunction::PercentRank => Ok(shares(side, |row, bounds| {
                let before = f64::from(side.peers[row].start - bounds.start);
                before / f64::from((bounds.end - bounds.start - 1).max(1))
            })),
            WindowFunction::CumeDist => Ok(shares(side, |row, bounds| {
                let up_to = f64::from(side.peers[row].end - bounds.start);
                up_to / f64::from(bounds.end - bounds.start)
            })),
            WindowFunction::Ntile(buckets) => Ok(ntile(side, (*buckets).max(1))),
            WindowFunction::Offset { rows, default } => {
                let row = |row: usize| {
                    let (_, bounds) = side.bounds_of(row);
                    let at = u32::try_from(i64::try_from(row).ok()?.checked_add(*rows)?).ok()?;
                    bounds.contains(&at).then_some(at)
                };
                self.picked(call, side, (0..side.len()).map(row), default.as_ref())
            }
            WindowFunction::First if call.frame.start == FrameBound::Unbounded => {
                self.first_of_partition(call, side, &spans)
            }
            WindowFunction::First => {
                let first = |(&low, &high)| pick(low, low, high);
                self.picked(call, side, spans.low.iter().zip(&spans.high).map(first), None)
            }
            WindowFunction::Last => {
                let last = |(&low, &high): (&u32, &u32)| pick(high.wrapping_sub(1), low, high);
                self.picked(call, side, spans.low.iter().zip(&spans.high).map(last), None)
            }
            WindowFunction::Nth(number) => {
                let nth = |(&low, &high): (&u32, &u32)| {
                    let at = u64::from(low).checked_add(number.checked_sub(1)?)?;
                    pick(u32::try_from(at).ok()?, low, high)
                };
                self.picked(call, side, spans.low.iter().zip(&spans.high).map(nth), None)
            }
            WindowFunction::Aggregate(_) => Err(wrong_type()),
        }
    }

    /// Places from 1, of the row that `which` picks of a row's own and the first of its peers.
    fn places(&self, side: &Side, which: impl Fn(u32, u32) -> u32) -> ArrayRef {
        let place = |row: usize| {
            let (stretch, bounds) = side.bounds_of(row);
            let within = which(row_number(row), side.peers[row].start) - bounds.start;
            self.carry.rows[stretch].cast_unsigned() + u64::from(within) + 1
        };
        Arc::new(UInt64Array::from_iter_values((0..side.len()).map(place)))
    }

    fn dense_ranks(&self, side: &Side) -> ArrayRef {
        let (mut stretch, mut rank) = (None, 0);
        let ranks = (0..side.len()).map(|row| {
            let of = side.stretch[row];
            let is_first = side.peers[row].start == row_number(row);
            if stretch != Some(of) {
                stretch = Some(of);
                rank = self.carry.dense[of as usize].cast_unsigned();
                rank += u64::from(side.rows[row] >= self.carry.continues[of as usize]);
            } else if is_first {
                rank += 1;
            }
            rank
        });
        Arc::new(UInt64Array::from_iter_values(ranks))
    }

    /// The argument in given rows of the side; the default where there is none.
    fn picked(
        &self,
        call: &WindowCall,
        side: &Side,
        rows: impl Iterator<Item = Option<u32>>,
        default: Option<&ArrayRef>,
    ) -> Result<ArrayRef> {
        let column = self.argument(call)?;
        let (column, otherwise) = match default {
            None => (column.clone(), None),
            Some(default) => {
                (concat(&[column.as_ref(), default.as_ref()])?, Some(row_number(column.len())))
            }
        };
        let entries = rows.map(|row| match row {
            Some(row) => Some(side.rows[row as usize]),
            None => otherwise,
        });
        Ok(take(&column, &entries.collect::<UInt32Array>(), None)?)
    }

    fn first_of_partition(
        &self,
        call: &WindowCall,
        side: &Side,
        spans: &Spans,
    ) -> Result<ArrayRef> {
        let column = self.argument(call)?;
        let entries = row_number(column.len());
        let firsts = self.firsts.rows.column(call.input.unwrap_or(0));
        let all = concat(&[column.as_ref(), firsts.as_ref()])?;
        let places = (0..side.len()).map(|row| {
            let (low, high) = (spans.low[row], spans.high[row]);
            match self.firsts.of[side.stretch[row] as usize] {
                Some(first) => Some(entries + first),
                None => (low < high).then(|| side.rows[low as usize]),
            }
        });
        Ok(take(&all, &places.collect::<UInt32Array>(), None)?)
    }

    fn argument(&self, call: &WindowCall) -> Result<&ArrayRef> {
        let column = call.input.and_then(|column| self.entries.columns().get(column));
        column.ok_or_else(wrong_type)
    }
}

/// A fraction per row, of the row and the rows of its partition.
fn shares(side: &Side, share: impl Fn(usize, Range<u32>) -> f64) -> ArrayRef {
    let value = |row: usize| share(row, side.bounds_of(row).1);
    Arc::new(Float64Array::from_iter_values((0..side.len()).map(value)))
}

/// Buckets of sizes that differ by one at most, the larger ones first.
fn ntile(side: &Side, buckets: u64) -> ArrayRef {
    let bucket = |row: usize| {
        let (_, bounds) = side.bounds_of(row);
        let count = u64::from(bounds.end - bounds.start);
        let at = u64::from(row_number(row) - bounds.start);
        let (size, larger) = (count / buckets, count % buckets);
        let in_larger = larger * (size + 1);
        match at < in_larger {
            true => at / (size + 1) + 1,
            false => larger + (at - in_larger) / size.max(1) + 1,
        }
    };
    Arc::new(UInt64Array::from_iter_values((0..side.len()).map(bucket)))
}

/// Which of a frame's extremes a call asks for.
fn extreme(framed: &Framed, outcome: Outcome) -> Option<usize> {
    let wanted = Extreme::of(&framed.aggregates, outcome)?;
    framed.extremes.iter().position(|extreme| *extreme == wanted)
}

fn row_number(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}
