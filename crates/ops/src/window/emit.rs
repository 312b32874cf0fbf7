//! Emission: rows whose values are no longer what they were.

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Result, ZBatch};

use super::side::Side;
use crate::Output;

/// Most rows of one output piece.
const PIECE_ROWS_MAX: usize = 1 << 14;

/// Rows of both sides that are copies of one entry, and rows that only one side has.
#[derive(Default)]
struct Pairs {
    old: Vec<u32>,
    new: Vec<u32>,
    gone: Vec<u32>,
    come: Vec<u32>,
}

/// Pushes the rows that are gone or have other values, and those that have come in their place.
pub(super) fn emit(
    schema: &SchemaRef,
    entries: &RecordBatch,
    (old, old_values): (&Side, &[ArrayRef]),
    (new, new_values): (&Side, &[ArrayRef]),
    out: &mut dyn Output,
) -> Result<()> {
    let Pairs { old: pairs_old, new: pairs_new, mut gone, mut come } = pairs(old, new);
    let (at_old, at_new) =
        (UInt32Array::from(pairs_old.clone()), UInt32Array::from(pairs_new.clone()));
    let mut differs = vec![false; pairs_old.len()];
    for (old, new) in old_values.iter().zip(new_values) {
        let same = not_distinct(&take(old, &at_old, None)?, &take(new, &at_new, None)?)?;
        differs.iter_mut().zip(same.values()).for_each(|(differs, same)| *differs |= !same);
    }
    let picked = |rows: &[u32]| -> Vec<u32> {
        rows.iter().zip(&differs).filter(|(_, differs)| **differs).map(|(&row, _)| row).collect()
    };
    gone.extend(picked(&pairs_old));
    come.extend(picked(&pairs_new));
    for (side, values, rows, weight) in [(old, old_values, gone, -1), (new, new_values, come, 1)] {
        for rows in rows.chunks(PIECE_ROWS_MAX) {
            let of: UInt32Array =
                rows.iter().map(|&row| side.rows[row as usize]).collect::<Vec<_>>().into();
            let rows = UInt32Array::from(rows.to_vec());
            let mut columns = arrow::compute::take_arrays(entries.columns(), &of, None)?;
            for column in values {
                columns.push(take(column, &rows, None)?);
            }
            let batch = RecordBatch::try_new(schema.clone(), columns)?;
            out.push(ZBatch::try_new(batch, vec![weight; rows.len()])?)?;
        }
    }
    Ok(())
}

/// Copies of an entry are paired in order.
fn pairs(old: &Side, new: &Side) -> Pairs {
    let mut pairs = Pairs::default();
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        let entry = |side: &Side, at: usize| side.rows.get(at).copied().unwrap_or(u32::MAX);
        let (left, right) = (entry(old, i), entry(new, j));
        let (at_old, at_new) = (row_number(i), row_number(j));
        if left < right {
            pairs.gone.push(at_old);
            i += 1;
        } else if left > right {
            pairs.come.push(at_new);
            j += 1;
        } else {
            pairs.old.push(at_old);
            pairs.new.push(at_new);
            (i, j) = (i + 1, j + 1);
        }
    }
    pairs
}

fn row_number(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}
