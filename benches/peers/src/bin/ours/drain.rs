//! A view's delta added to the checksum, column by column.

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use arrow::datatypes::{Int64Type, UInt64Type};
use arrow::error::ArrowError;
use deltaic_batch::{Result, ZBatch};
use peers_harness::{Check, Workload, row_hash, text_customer, text_word};
use rayon::prelude::*;

/// A delta of more rows is shared by all threads.
const PART_ROWS_MIN: usize = 4096;

/// Adds the rows of a delta.
pub fn add(check: &mut Check, workload: Workload, delta: &ZBatch) -> Result<()> {
    let length = delta.num_rows().div_ceil(rayon::current_num_threads()).max(PART_ROWS_MIN);
    let starts: Vec<usize> = (0..delta.num_rows()).step_by(length).collect();
    let sum_of =
        |start: usize| sum(workload, &delta.slice(start, length.min(delta.num_rows() - start)));
    let sums: Vec<Check> = match starts.as_slice() {
        [] => Vec::new(),
        [start] => vec![sum_of(*start)?],
        _ => starts.into_par_iter().map(sum_of).collect::<Result<_>>()?,
    };
    for sum in sums {
        *check = Check {
            rows: check.rows + sum.rows,
            sum: check.sum.wrapping_add(sum.sum),
            drained: check.drained + sum.drained,
        };
    }
    Ok(())
}

fn sum(workload: Workload, delta: &ZBatch) -> Result<Check> {
    let columns = hashed_columns(workload, delta.rows().columns())?;
    let mut values: [&[i64]; 5] = [&[]; 5];
    for (values, column) in values.iter_mut().zip(&columns) {
        *values = column.values();
    }
    let weights: &[i64] = delta.weights();
    let mut sums = (0_i64, 0_i64);
    let at = |values: &[i64], i: usize| values.get(i).copied().unwrap_or(0);
    for (i, weight) in weights.iter().enumerate() {
        let hash = row_hash(values.map(|values| at(values, i)));
        sums = (sums.0 + weight, sums.1.wrapping_add(hash.wrapping_mul(*weight)));
    }
    let drained = i64::try_from(weights.len()).unwrap_or(i64::MAX);
    Ok(Check { rows: sums.0, sum: sums.1, drained })
}

/// The numbers that are hashed, in their order; what is left out counts as zero.
fn hashed_columns(workload: Workload, columns: &[ArrayRef]) -> Result<Vec<Int64Array>> {
    let number = |i: usize| numbers(&columns[i]);
    Ok(match workload {
        Workload::W2 => {
            let (days, tiers) = (number(0)?, tiers(&columns[1])?);
            let key = |(day, tier): (&i64, &i64)| day * 16 + tier;
            let keys = days.values().iter().zip(tiers.values()).map(key);
            vec![Int64Array::from_iter_values(keys), number(2)?, number(3)?]
        }
        Workload::W3 => vec![number(0)?, number(3)?, number(1)?, number(2)?],
        Workload::W5 => vec![number(0)?, number(1)?],
        // customer, place, amount, order
        Workload::W6 => vec![customers(&columns[0])?, number(3)?, number(1)?, number(2)?],
        _ => {
            let values = (1..columns.len()).map(number);
            std::iter::once(customers(&columns[0])).chain(values).collect::<Result<_>>()?
        }
    })
}

fn numbers(column: &ArrayRef) -> Result<Int64Array> {
    if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
        return Ok(numbers.clone());
    }
    match column.as_primitive_opt::<UInt64Type>() {
        Some(numbers) => Ok(numbers.unary(u64::cast_signed)),
        None => Err(ArrowError::CastError(format!("{} is no number", column.data_type())).into()),
    }
}

fn customers(column: &ArrayRef) -> Result<Int64Array> {
    match column.as_any().downcast_ref::<StringArray>() {
        Some(texts) => Ok(coded(texts, text_customer)),
        None => numbers(column),
    }
}

/// Codes of tiers, −1 for NULL.
fn tiers(column: &ArrayRef) -> Result<Int64Array> {
    if let Some(texts) = column.as_any().downcast_ref::<StringArray>() {
        return Ok(coded(texts, text_word));
    }
    let tiers = numbers(column)?;
    Ok(match tiers.null_count() {
        0 => tiers,
        _ => Int64Array::from_iter_values(tiers.iter().map(|tier| tier.unwrap_or(-1))),
    })
}

fn coded(texts: &StringArray, code: impl Fn(&str) -> i64) -> Int64Array {
    Int64Array::from_iter_values(texts.iter().map(|text| text.map_or(-1, &code)))
}
