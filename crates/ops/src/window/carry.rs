//! What is carried from row to row: kept every few hundred rows of a large partition, so that a scan
//! can be taken up there.
//!
//! A checkpoint is a row of the partition, all of its columns in order, and what is true behind it:
//! the number of rows and of peer groups, and the accumulators and extremes of each running frame.
//! It stays true when its row goes, as long as nothing before it changes.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::{SortOptions, take};
use arrow::datatypes::{DataType, Int64Type};
use deltaic_batch::{Error, Result};
use deltaic_state::{AccumulatorColumn, MultisetColumn, MultisetSpec};

use super::plan::{Plan, kinds};
use super::side::{Side, Spans};
use super::spec::WindowSpec;
use super::{extremes, sums};
use crate::aggregate::accumulate::wrong_type;

/// Rows from one checkpoint to the next.
pub(super) const CHECKPOINT_ROWS: usize = if cfg!(test) { 5 } else { 256 };

/// What is true before the first row of each stretch.
#[derive(Debug)]
pub(super) struct Carry {
    pub(super) rows: Vec<i64>,
    pub(super) dense: Vec<i64>,
    /// The entries before this one are peers of the row before their stretch; none if it is 0.
    pub(super) continues: Vec<u32>,
    /// Of each running frame.
    pub(super) frames: Vec<FrameCarry>,
}

/// One accumulator and one extreme per stretch.
#[derive(Debug)]
pub(super) struct FrameCarry {
    pub(super) accumulators: Vec<AccumulatorColumn>,
    pub(super) extremes: Vec<ArrayRef>,
}

/// The checkpoints' columns: those of a row in order, then what is carried.
pub(super) fn spec(row: &MultisetSpec, plan: &Plan, spec: &WindowSpec) -> MultisetSpec {
    let mut types = vec![DataType::Int64, DataType::Int64];
    types.extend(plan.carried(spec));
    let carried = types
        .into_iter()
        .map(|data_type| MultisetColumn { data_type, options: SortOptions::default() });
    MultisetSpec { columns: row.columns.iter().cloned().chain(carried).collect() }
}

impl Carry {
    /// From the carried columns of some checkpoints; `of` is that of each stretch, if it starts with
    /// one, else nothing is carried.
    pub(super) fn read(
        plan: &Plan,
        columns: &[ArrayRef],
        of: &[Option<u32>],
        continues: Vec<u32>,
    ) -> Result<Self> {
        let places: UInt32Array = of.iter().copied().collect();
        let numbers: Vec<u32> =
            (0_u32..).zip(of).filter(|(_, c)| c.is_some()).map(|(i, _)| i).collect();
        let there: UInt32Array = of.iter().copied().flatten().collect::<Vec<_>>().into();
        let mut columns = columns.iter();
        let mut next = || columns.next().ok_or_else(missing);
        let mut count = || -> Result<Vec<i64>> {
            let column = take(next()?, &places, None)?;
            let column = column.as_primitive_opt::<Int64Type>().ok_or_else(wrong_type)?;
            Ok(column.iter().map(|value| value.unwrap_or(0)).collect())
        };
        let (rows, dense) = (count()?, count()?);
        let mut frames = Vec::new();
        for framed in plan.framed.iter().filter(|framed| framed.is_running()) {
            let mut accumulators = Vec::new();
            for kind in kinds(framed) {
                let mut column = AccumulatorColumn::new(kind);
                column.resize(of.len());
                column.scatter(&take(next()?, &there, None)?, &numbers)?;
                accumulators.push(column);
            }
            let extremes = (framed.extremes.iter())
                .map(|_| Ok(take(next()?, &places, None)?))
                .collect::<Result<_>>()?;
            frames.push(FrameCarry { accumulators, extremes });
        }
        Ok(Self { rows, dense, continues, frames })
    }

    /// What is true behind some rows of a side, in order: the carried columns of checkpoints.
    pub(super) fn behind(
        &self,
        plan: &Plan,
        entries: &RecordBatch,
        side: &Side,
        rows: &[u32],
    ) -> Result<Vec<ArrayRef>> {
        let stretch: Vec<u32> = rows.iter().map(|&row| side.stretch[row as usize]).collect();
        let start = |&stretch: &u32| side.bounds[stretch as usize].start;
        let spans = Spans {
            low: stretch.iter().map(start).collect(),
            high: rows.iter().map(|row| row + 1).collect(),
        };
        let count = rows.iter().zip(&stretch).map(|(&row, stretch)| {
            self.rows[*stretch as usize] + i64::from(row + 1 - start(stretch))
        });
        let mut columns: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from_iter_values(count)), self.peer_groups(side, rows)];
        let spans = (&spans, stretch.as_slice());
        let numbers: Vec<u32> = (0_u32..).take(rows.len()).collect();
        let running = plan.framed.iter().filter(|framed| framed.is_running());
        for (framed, carried) in running.zip(&self.frames) {
            let plan = &framed.aggregates;
            for (&accumulator, base) in plan.accumulators.iter().zip(&carried.accumulators) {
                let sums = sums::over_spans(plan, accumulator, entries, side, spans, Some(base))?;
                columns.push(sums.gather(&numbers));
            }
            for (&extreme, base) in framed.extremes.iter().zip(&carried.extremes) {
                columns.push(extremes::over_spans(extreme, entries, side, spans, Some(base))?);
            }
        }
        Ok(columns)
    }

    /// Groups of peers up to each row and including its own.
    fn peer_groups(&self, side: &Side, rows: &[u32]) -> ArrayRef {
        let (mut at, mut groups) = (0_usize, 0_i64);
        let mut counts = Vec::with_capacity(rows.len());
        for &row in rows {
            while at <= row as usize {
                let (stretch, bounds) = side.bounds_of(at);
                if bounds.start as usize == at {
                    let continues = side.rows[at] < self.continues[stretch];
                    groups = self.dense[stretch] + i64::from(!continues);
                } else if side.peers[at].start as usize == at {
                    groups += 1;
                }
                at += 1;
            }
            counts.push(groups);
        }
        Arc::new(Int64Array::from(counts))
    }
}

/// Rows of a side behind which checkpoints are set in stretches that want them, each the last copy
/// of its entry.
pub(super) fn places(side: &Side, is_wanted: &[bool]) -> Vec<u32> {
    let mut places = Vec::new();
    for (bounds, &is_wanted) in side.bounds.iter().zip(is_wanted) {
        let mut last = bounds.start as usize;
        for row in bounds.clone().filter(|_| is_wanted) {
            let entry = side.rows[row as usize];
            let is_last_copy = row + 1 == bounds.end || side.rows[row as usize + 1] != entry;
            if is_last_copy && row as usize + 1 - last >= CHECKPOINT_ROWS {
                places.push(row);
                last = row as usize + 1;
            }
        }
    }
    places
}

fn missing() -> Error {
    Error::internal("WINDOW_STATE", "a checkpoint lacks a column")
}
