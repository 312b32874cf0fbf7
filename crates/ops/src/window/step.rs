//! One step: which stretches the changes affect, their values before and after, and the checkpoints.

use std::cmp::Ordering;
use std::ops::Range;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, make_comparator};
use arrow::compute::{concat, take_arrays};
use deltaic_batch::{Error, Result};
use deltaic_state::{
    AccumulatorColumn, Changes, Extent, GroupTable, Multisets, StretchOf, Stretches,
};

use super::carry::{self, Carry};
use super::emit::emit;
use super::side::Side;
use super::values::{Firsts, Input};
use super::{Window, misused};
use crate::Output;
use crate::aggregate::accumulate::Selection;

/// Partitions of up to so many rows are read whole.
const SMALL_ROWS: i64 = if cfg!(test) { 6 } else { 512 };
/// Stretches are computed together up to about so many rows.
const PART_ROWS: i64 = if cfg!(test) { 12 } else { 1 << 16 };

/// The changes of one partition.
#[derive(Debug, Clone)]
pub(super) struct Touched {
    group: u32,
    /// Positions in the changes.
    changes: Range<usize>,
    /// More rows than are read whole.
    is_large: bool,
}

/// One step, after the rows have taken the delta.
pub(super) struct Step<'a> {
    pub(super) window: &'a Window,
    pub(super) groups: &'a GroupTable,
    pub(super) rows: &'a Multisets,
    pub(super) checkpoints: Option<&'a mut Multisets>,
    pub(super) changes: &'a Changes,
    /// The columns of the delta that the rows are made of.
    pub(super) values: &'a [ArrayRef],
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
    pub(super) fn parts(&self) -> Result<Vec<Vec<Touched>>> {
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

    /// Emits what the changes of some partitions change, and renews their checkpoints.
    pub(super) fn run(
        &mut self,
        part: &[Touched],
        delta: &RecordBatch,
        out: &mut dyn Output,
    ) -> Result<()> {
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
                Extent::Until(needs.reach, if needs.peers { self.window.rows.sorted_by } else { 0 })
            };
            StretchOf { changes: touched.changes.clone(), after: starts.after[at], extent }
        };
        let requests: Vec<StretchOf> = part.iter().enumerate().map(request).collect();
        let width = self.window.rows.values.len();
        let row_columns = &starts.columns[..width];
        let stretches = self.rows.stretches(self.changes, self.values, row_columns, &requests)?;
        let group_of_stretch = |at: usize| part[stretches.of[at] as usize].group;
        let mut groups = Vec::with_capacity(stretches.before.len());
        for (at, &end) in stretches.ends.iter().enumerate() {
            groups.resize(end as usize, group_of_stretch(at));
        }
        let entries = self.window.whole_rows(self.groups, &groups, &stretches.columns)?;
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
        let order = &stretches.columns[..self.window.rows.sorted_by];
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
        let large: Vec<u32> =
            (0_u32..).zip(part).filter(|(_, t)| t.is_large).map(|(at, _)| at).collect();
        let touched = |&at: &u32| &part[at as usize];
        let groups: Vec<u32> = large.iter().map(|at| touched(at).group).collect();
        let first = |at: &u32| self.changes.rows[touched(at).changes.start];
        let firsts: UInt32Array = large.iter().map(first).collect::<Vec<_>>().into();
        let firsts = take_arrays(self.values, &firsts, None)?;
        let needs = self.window.plan.needs;
        let peers = needs.peers.then_some(self.window.rows.sorted_by);
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
        let width = self.window.rows.values.len();
        let mut continues = vec![0; after.len()];
        if self.window.plan.dense && after.iter().any(Option::is_some) {
            let compare =
                self.compare(&stretches.columns, &starts.columns, self.window.rows.sorted_by)?;
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
        let kept = &self.window.rows.multisets.columns;
        let of_columns = (left.iter().zip(right).zip(kept).take(columns))
            .map(|((left, right), column)| Ok(make_comparator(left, right, column.options)?));
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
        // Most windows do not ask for them.
        let is_wanted = |after: &Option<u32>| after.is_some() && self.window.plan.first;
        let groups: Vec<u32> = (stretches.of.iter().zip(after))
            .filter(|(_, after)| is_wanted(after))
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
            rows: self.window.whole_rows(self.groups, &of_row, &found.columns)?,
            of: after.iter().map(|after| is_wanted(after).then(&mut number)).collect(),
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
        let compare =
            self.compare(&starts.old, &stretches.columns, self.window.rows.values.len())?;
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
