//! The pairs of a delta of one side with the rows of the other, in bounded blocks.

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{FilterBuilder, take};
use deltaic_batch::{Error, Result};
use deltaic_state::{GroupRows, Multisets};

use super::keyed::Keyed;
use super::side::Place;
use super::spec::Join;
use crate::{Output, selection};

/// Rows of one piece of output.
pub(super) const PIECE_ROWS: usize = 1 << 16;
/// Rows of the other side that are read at once, but for a larger group.
pub(super) const FOUND_ROWS: u64 = 1 << 17;

/// A delta of one side that looks for its matches in the other side's rows.
pub(super) struct Probe<'a> {
    pub(super) join: &'a Join,
    pub(super) keyed: &'a Keyed<'a>,
    /// The other side's rows.
    pub(super) other: &'a Multisets,
    /// Sum of the weights of the other side's rows, by group.
    pub(super) totals: &'a [i64],
}

/// Pairs that match: a row of the delta and one of the other side.
#[derive(Default)]
pub(super) struct Pairs {
    /// Row numbers of the delta.
    pub(super) probe: Vec<u32>,
    /// The other side's rows, numbered in the order in which the probe reads them.
    pub(super) rows: Vec<usize>,
    /// Weights of the other side's rows.
    pub(super) weights: Vec<i64>,
    /// With a residual, left columns, then right ones; else the output's columns.
    pub(super) columns: Vec<ArrayRef>,
}

impl Probe<'_> {
    /// Hands all matching pairs to `visit`, block by block.
    pub(super) fn for_each_block(&self, mut visit: impl FnMut(&Pairs) -> Result<()>) -> Result<()> {
        let mut base = 0;
        let (mut probe, mut rows) = (Vec::new(), Vec::new());
        for part in self.keyed.parts(self.totals, FOUND_ROWS) {
            let found = self.other.rows(&self.keyed.groups[part.clone()])?;
            let mut flush = |probe: &mut Vec<u32>, rows: &mut Vec<u32>| {
                let pairs = self.pairs(probe, rows, &found, base)?;
                probe.clear();
                rows.clear();
                if pairs.probe.is_empty() { Ok(()) } else { visit(&pairs) }
            };
            let mut start = 0;
            for (at, &end) in part.zip(&found.ends) {
                for &row in self.keyed.rows(at) {
                    let mut from = start;
                    while from < end {
                        let room = u32::try_from(PIECE_ROWS - probe.len()).unwrap_or(0);
                        let to = end.min(from.saturating_add(room));
                        rows.extend(from..to);
                        probe.resize(rows.len(), row);
                        from = to;
                        if probe.len() >= PIECE_ROWS {
                            flush(&mut probe, &mut rows)?;
                        }
                    }
                }
                start = end;
            }
            flush(&mut probe, &mut rows)?;
            base += found.weights.len();
        }
        Ok(())
    }

    /// Per row of the delta, the sum of the weights of the rows that match it.
    pub(super) fn match_weights(&self) -> Result<Vec<i64>> {
        if self.join.residual.is_none() {
            let groups = self.keyed.group_of_row.iter();
            return Ok(groups.map(|&group| self.totals[group as usize]).collect());
        }
        let mut sums = vec![0_i64; self.keyed.delta.num_rows()];
        self.for_each_block(|pairs| {
            for (&probe, &weight) in pairs.probe.iter().zip(&pairs.weights) {
                let sum = &mut sums[probe as usize];
                *sum = sum.checked_add(weight).ok_or_else(weight_overflow)?;
            }
            Ok(())
        })?;
        Ok(sums)
    }

    /// Gathers one block, and keeps the pairs for which the residual is TRUE.
    fn pairs(&self, probe: &[u32], rows: &[u32], found: &GroupRows, base: usize) -> Result<Pairs> {
        let side = self.keyed.side;
        let own = self.keyed.delta.rows().columns();
        let all: Vec<usize>;
        let wanted = match self.join.residual {
            None => &self.join.columns,
            Some(_) => {
                all = (0..self.join.pair.fields().len()).collect();
                &all
            }
        };
        let (own_rows, other_rows) = (Picked::new(probe), Picked::new(rows));
        let columns = wanted.iter().map(|&column| {
            let (is_left, column) = self.join.locate(column);
            if is_left == side.is_left {
                return own_rows.of(&own[column]);
            }
            match self.join.other(side).place(column) {
                // Keys are equal, so that those of the delta serve.
                Place::Key(position) => own_rows.of(&own[side.key[position]]),
                Place::Value(position) => other_rows.of(&found.columns[position]),
            }
        });
        let columns = columns.collect::<Result<_>>()?;
        let pairs = Pairs {
            probe: probe.to_vec(),
            rows: rows.iter().map(|&row| base + row as usize).collect(),
            weights: rows.iter().map(|&row| found.weights[row as usize]).collect(),
            columns,
        };
        match &self.join.residual {
            Some(residual) if !probe.is_empty() => {
                let options = RecordBatchOptions::new().with_row_count(Some(probe.len()));
                let batch = RecordBatch::try_new_with_options(
                    self.join.pair.clone(),
                    pairs.columns.clone(),
                    &options,
                )?;
                pairs.filter(&selection::evaluate(residual.as_ref(), &batch)?)
            }
            _ => Ok(pairs),
        }
    }

    /// Emits pairs with the product of both weights.
    pub(super) fn emit(&self, pairs: &Pairs, out: &mut dyn Output) -> Result<()> {
        let delta = self.keyed.delta.weights();
        let weights: Vec<i64> = (pairs.probe.iter().zip(&pairs.weights))
            .map(|(&probe, &weight)| delta[probe as usize].checked_mul(weight))
            .collect::<Option<_>>()
            .ok_or_else(weight_overflow)?;
        let columns = match self.join.residual {
            None => pairs.columns.clone(),
            Some(_) => self.join.columns.iter().map(|&c| pairs.columns[c].clone()).collect(),
        };
        self.join.emit(columns, weights, out)
    }
}

impl Pairs {
    fn filter(self, keep: &BooleanArray) -> Result<Self> {
        let kept = keep.true_count();
        if kept == keep.len() {
            return Ok(self);
        }
        if kept == 0 {
            return Ok(Self::default());
        }
        fn select<T: Copy>(values: &[T], keep: &BooleanArray) -> Vec<T> {
            keep.values().set_indices().map(|i| values[i]).collect()
        }
        let filter = FilterBuilder::new(keep).optimize().build();
        let columns = self.columns.iter().map(|c| filter.filter(c)).collect::<Result<_, _>>()?;
        Ok(Self {
            probe: select(&self.probe, keep),
            rows: select(&self.rows, keep),
            weights: select(&self.weights, keep),
            columns,
        })
    }
}

/// Rows to be gathered from several columns.
struct Picked {
    length: usize,
    /// The first row, if they are a contiguous range, which need not be copied.
    range_from: Option<usize>,
    indices: UInt32Array,
}

impl Picked {
    fn new(rows: &[u32]) -> Self {
        let first = rows.first().copied().unwrap_or(0);
        let is_range = (first..).zip(rows).all(|(expected, &row)| expected == row);
        let indices = if is_range { Vec::new() } else { rows.to_vec() };
        let range_from = is_range.then_some(first as usize);
        Self { length: rows.len(), range_from, indices: indices.into() }
    }

    fn of(&self, column: &ArrayRef) -> Result<ArrayRef> {
        match self.range_from {
            Some(first) => Ok(column.slice(first, self.length)),
            None => Ok(take(column, &self.indices, None)?),
        }
    }
}

pub(super) fn weight_overflow() -> Error {
    Error::data("WEIGHT_OVERFLOW", "the weight of a joined row exceeds 64 bits")
}
