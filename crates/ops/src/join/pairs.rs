//! Phase one and two of a join: match row numbers, then gather columns, in bounded blocks.

use std::ops::Range;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{FilterBuilder, take_arrays};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::{Arrangement, Matches, RowRef};

use super::side::Side;
use super::spec::Join;
use crate::{Output, selection};

/// Rows of one piece of output.
const PIECE_ROWS: usize = 1 << 16;
/// Rows of the first probe of a delta; later probes follow the number of matches seen.
const FIRST_PROBE_ROWS: usize = 1 << 12;
/// Rows of the greatest probe.
const PROBE_ROWS_MAX: usize = 1 << 17;
/// Matches that a probe aims at.
const PROBE_MATCHES: usize = 1 << 18;

/// A delta of one side that looks for its matches in the other side's state.
pub(super) struct Probe<'a> {
    pub(super) join: &'a Join,
    /// The side of the delta.
    pub(super) side: &'a Side,
    /// The delta; its key may not be NULL unless NULL matches NULL.
    pub(super) delta: &'a ZBatch,
    /// The other side's rows.
    pub(super) other: &'a Arrangement,
}

/// Pairs that match: row `probe[i]` of the delta and the other side's row `rows[i]`.
#[derive(Default)]
pub(super) struct Pairs {
    /// Row numbers of the delta.
    pub(super) probe: Vec<u32>,
    /// The other side's rows.
    pub(super) rows: Vec<RowRef>,
    /// Weights of the other side's rows.
    pub(super) weights: Vec<i64>,
    /// Left columns, then right ones.
    pub(super) columns: Vec<ArrayRef>,
}

impl Probe<'_> {
    /// Hands all matching pairs to `visit`, block by block.
    pub(super) fn for_each_block(&self, mut visit: impl FnMut(&Pairs) -> Result<()>) -> Result<()> {
        let rows = self.delta.num_rows();
        let (mut start, mut length) =
            (0, if self.side.key.is_empty() { 1 } else { FIRST_PROBE_ROWS });
        while start < rows {
            let taken = length.min(rows - start);
            let slice = self.delta.rows().slice(start, taken);
            let key = self.side.key_of(&slice);
            let matches = self.other.probe(&key, self.join.null_equals_null)?;
            let found = matches.probe.len();
            for from in (0..found).step_by(PIECE_ROWS) {
                let block = from..(from + PIECE_ROWS).min(found);
                let pairs = self.pairs(start, &slice, &matches, block)?;
                if !pairs.probe.is_empty() {
                    visit(&pairs)?;
                }
            }
            start += taken;
            length = next_probe(taken, found);
        }
        Ok(())
    }

    /// Per row of the delta, the sum of the weights of the rows that match it.
    pub(super) fn match_weights(&self) -> Result<Vec<i64>> {
        if self.join.residual.is_none() {
            let key = self.side.key_of(self.delta.rows());
            return self.other.key_weights(&key, self.join.null_equals_null);
        }
        let mut sums = vec![0_i64; self.delta.num_rows()];
        self.for_each_block(|pairs| {
            for (&probe, &weight) in pairs.probe.iter().zip(&pairs.weights) {
                let sum = &mut sums[probe as usize];
                *sum = sum.checked_add(weight).ok_or_else(weight_overflow)?;
            }
            Ok(())
        })?;
        Ok(sums)
    }

    /// Gathers one block of the matches of `slice`, which starts at row `start` of the delta, and
    /// keeps the pairs for which the residual is TRUE.
    fn pairs(
        &self,
        start: usize,
        slice: &RecordBatch,
        matches: &Matches,
        block: Range<usize>,
    ) -> Result<Pairs> {
        let in_slice = &matches.probe[block.clone()];
        let rows = matches.rows[block.clone()].to_vec();
        let weights = matches.weights[block].to_vec();
        let own = take_rows(slice, in_slice)?;
        let other = self.partners(&rows, &own)?;
        let columns: Vec<ArrayRef> = if self.side.is_left {
            own.into_iter().chain(other).collect()
        } else {
            other.into_iter().chain(own).collect()
        };
        let start = u32::try_from(start).map_err(|_| too_many_rows())?;
        let probe = in_slice.iter().map(|&i| i + start).collect();
        let pairs = Pairs { probe, rows, weights, columns };
        match &self.join.residual {
            None => Ok(pairs),
            Some(residual) => {
                let options = RecordBatchOptions::new().with_row_count(Some(pairs.probe.len()));
                let batch = RecordBatch::try_new_with_options(
                    self.join.pair.clone(),
                    pairs.columns.clone(),
                    &options,
                )?;
                pairs.filter(&selection::evaluate(residual.as_ref(), &batch)?)
            }
        }
    }

    /// The other side's columns of matching rows. Keys are equal, so that those of the delta serve.
    fn partners(&self, rows: &[RowRef], own: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        let other = self.join.other(self.side);
        let mut values = self.other.gather(rows, &other.values())?.into_iter();
        let column = |column: usize| match other.key.iter().position(|&key| key == column) {
            Some(key) => own.get(self.side.key[key]).cloned(),
            None => values.next(),
        };
        (0..other.schema.fields().len())
            .map(column)
            .collect::<Option<_>>()
            .ok_or_else(|| Error::internal("JOIN_COLUMNS", "a gathered column is missing"))
    }

    /// Emits pairs with the product of both weights.
    pub(super) fn emit(&self, pairs: &Pairs, out: &mut dyn Output) -> Result<()> {
        let delta = self.delta.weights();
        let weights: Vec<i64> = (pairs.probe.iter().zip(&pairs.weights))
            .map(|(&probe, &weight)| delta[probe as usize].checked_mul(weight))
            .collect::<Option<_>>()
            .ok_or_else(weight_overflow)?;
        self.join.emit(pairs.columns.clone(), weights, out)
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

/// Rows of the next probe: as many as will find about [`PROBE_MATCHES`] matches, and at most eight
/// times as many as the last one.
fn next_probe(rows: usize, matches: usize) -> usize {
    let fitting = rows.saturating_mul(PROBE_MATCHES) / matches.max(1);
    fitting.min(rows.saturating_mul(8)).clamp(1, PROBE_ROWS_MAX)
}

/// The given rows of each column; no copy when they are a contiguous range.
fn take_rows(rows: &RecordBatch, indices: &[u32]) -> Result<Vec<ArrayRef>> {
    let first = indices.first().copied().unwrap_or(0);
    if (first..).zip(indices).all(|(expected, &i)| expected == i) {
        return Ok(rows.slice(first as usize, indices.len()).columns().to_vec());
    }
    Ok(take_arrays(rows.columns(), &UInt32Array::from(indices.to_vec()), None)?)
}

pub(super) fn weight_overflow() -> Error {
    Error::data("WEIGHT_OVERFLOW", "the weight of a joined row exceeds 64 bits")
}

fn too_many_rows() -> Error {
    Error::internal("BATCH_LENGTH", "a delta of more than 2^32 rows")
}
