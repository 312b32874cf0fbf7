//! Accumulators over spans of rows: differences of running sums, or, of floats, a sum that moves.

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, i256};
use deltaic_batch::{Error, Result};
use deltaic_state::{AccumulatorColumn, ExactSum, Sums};

use super::side::{Side, Spans};
use crate::aggregate::accumulate::{Selection, masked_weights, wrong_type};
use crate::aggregate::plan::{Accumulator, Measure, Plan};

/// What one accumulator is over each span. `stretch` is that of each span; `base`, one accumulator
/// per stretch, is added to it.
pub(super) fn over_spans(
    plan: &Plan,
    accumulator: Accumulator,
    entries: &RecordBatch,
    side: &Side,
    (spans, stretch): (&Spans, &[u32]),
    base: Option<&AccumulatorColumn>,
) -> Result<AccumulatorColumn> {
    let source = plan.sources[accumulator.source];
    let ones = vec![1_i64; entries.num_rows()];
    let mut each = AccumulatorColumn::new(accumulator.kind);
    if let (AccumulatorColumn::Exact(_), Measure::Sum(column)) = (&each, accumulator.measure) {
        let counted = masked_weights(entries, source.not_null, source.filter, &ones)?;
        let values = arrow::compute::cast(entries.column(column), &DataType::Float64)?;
        let base = match base {
            None => None,
            Some(AccumulatorColumn::Exact(base)) => Some(base.as_slice()),
            Some(_) => return Err(wrong_type()),
        };
        return floats(&values, &counted, side, (spans, stretch), base);
    }
    // What each entry adds.
    let groups: Vec<u32> = (0..row_count(entries.num_rows())?).collect();
    each.resize(entries.num_rows());
    let selection = Selection::of_source(&source, entries, &groups, &ones)?;
    selection.add_to(&mut each, accumulator.measure, entries)?;
    let pairs = || spans.low.iter().zip(&spans.high).zip(stretch);
    Ok(match (each, base) {
        (AccumulatorColumn::I64(each), base) => {
            let base = match base {
                None => None,
                Some(AccumulatorColumn::I64(base)) => Some(base),
                Some(_) => return Err(wrong_type()),
            };
            let running = running(side, 0_i64, |sum, entry| sum.wrapping_add(each[entry]));
            let value = |((&low, &high), &stretch): ((&u32, &u32), &u32)| {
                let base = base.map_or(0, |base| base[stretch as usize]);
                base.wrapping_add(running[high as usize]).wrapping_sub(running[low as usize])
            };
            AccumulatorColumn::I64(pairs().map(value).collect())
        }
        (AccumulatorColumn::I128(each), base) => {
            let base = match base {
                None => None,
                Some(AccumulatorColumn::I128(base)) => Some(base),
                Some(_) => return Err(wrong_type()),
            };
            let add = |sum: i128, entry: usize| sum.wrapping_add(each.get(row_number(entry)));
            let running = running(side, 0_i128, add);
            let mut sums = Sums::default();
            sums.resize(stretch.len());
            for (at, ((&low, &high), &stretch)) in (0_u32..).zip(pairs()) {
                let sum = running[high as usize].wrapping_sub(running[low as usize]);
                sums.add(at, base.map_or(0, |base| base.get(stretch)).wrapping_add(sum));
            }
            AccumulatorColumn::I128(sums)
        }
        (AccumulatorColumn::I256(each), base) => {
            let base = match base {
                None => None,
                Some(AccumulatorColumn::I256(base)) => Some(base),
                Some(_) => return Err(wrong_type()),
            };
            let running = running(side, i256::ZERO, |sum, entry| sum.wrapping_add(each[entry]));
            let value = |((&low, &high), &stretch): ((&u32, &u32), &u32)| {
                let base = base.map_or(i256::ZERO, |base| base[stretch as usize]);
                base.wrapping_add(running[high as usize]).wrapping_sub(running[low as usize])
            };
            AccumulatorColumn::I256(pairs().map(value).collect())
        }
        (AccumulatorColumn::Exact(_), _) => return Err(wrong_type()),
    })
}

/// The sum before each row, and that behind the last.
fn running<T: Copy>(side: &Side, zero: T, add: impl Fn(T, usize) -> T) -> Vec<T> {
    let mut running = Vec::with_capacity(side.len() + 1);
    let mut sum = zero;
    running.push(sum);
    for &entry in &side.rows {
        sum = add(sum, entry as usize);
        running.push(sum);
    }
    running
}

/// Exact sums of floats, which rows enter at one end of a span and leave at the other.
fn floats(
    values: &ArrayRef,
    counted: &[i64],
    side: &Side,
    (spans, stretch): (&Spans, &[u32]),
    base: Option<&[ExactSum]>,
) -> Result<AccumulatorColumn> {
    let values = values.as_primitive_opt::<Float64Type>().ok_or_else(wrong_type)?.values();
    let mut sums = Vec::with_capacity(stretch.len());
    let (mut sum, mut low, mut high, mut last) = (ExactSum::default(), 0, 0, None);
    let add = |sum: &mut ExactSum, row: u32, sign: i64| {
        let entry = side.rows[row as usize] as usize;
        // What lies beneath a NULL may be no number.
        if counted[entry] != 0 {
            sum.add(values[entry], sign);
        }
    };
    for ((&from, &to), &stretch) in spans.low.iter().zip(&spans.high).zip(stretch) {
        if last != Some(stretch) {
            last = Some(stretch);
            sum = base.map_or_else(ExactSum::default, |base| base[stretch as usize].clone());
            (low, high) = (from, from);
        }
        (high..to).for_each(|row| add(&mut sum, row, 1));
        high = high.max(to);
        (low..from).for_each(|row| add(&mut sum, row, -1));
        low = low.max(from);
        sums.push(sum.clone());
    }
    Ok(AccumulatorColumn::Exact(sums))
}

fn row_number(entry: usize) -> u32 {
    u32::try_from(entry).unwrap_or(u32::MAX)
}

fn row_count(rows: usize) -> Result<u32> {
    u32::try_from(rows).map_err(|_| Error::data("TOO_MANY_ROWS", "more than 2^32 rows of a step"))
}
