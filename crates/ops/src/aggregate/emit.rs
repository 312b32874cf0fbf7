//! Emission: the rows of touched groups before and after a step, where they differ.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Result, ZBatch};

use crate::Output;

/// Groups per output piece; each has two rows at most.
pub(super) const PIECE_GROUPS_MAX: usize = 1 << 13;

/// The results of some groups at one time.
#[derive(Debug)]
pub(super) struct Results {
    /// Which groups have a row.
    pub(super) present: Vec<bool>,
    /// One column per call; none at all if no group has a row.
    pub(super) columns: Vec<ArrayRef>,
}

/// Pushes the old row (−1) and the new row (+1) of each group whose row changed. All columns have
/// one value per group, of which there are [`PIECE_GROUPS_MAX`] at most.
pub(super) fn emit(
    schema: &SchemaRef,
    key: &[ArrayRef],
    before: &Results,
    after: &Results,
    out: &mut dyn Output,
) -> Result<()> {
    let changed = changed(before, after)?;
    let (old, new) = (before.rows(&changed), after.rows(&changed));
    if old.is_empty() && new.is_empty() {
        return Ok(());
    }
    out.push(piece(schema, key, (before, old), (after, new))?)
}

impl Results {
    /// The groups that have a row and changed.
    fn rows(&self, changed: &[bool]) -> Vec<u32> {
        let rows = (0_u32..).zip(self.present.iter().zip(changed));
        rows.filter(|(_, (present, changed))| **present && **changed).map(|(row, _)| row).collect()
    }
}

/// Which groups have another row than before.
fn changed(before: &Results, after: &Results) -> Result<Vec<bool>> {
    let present = before.present.iter().zip(&after.present);
    let mut changed: Vec<bool> = present.map(|(before, after)| before != after).collect();
    for (before, after) in before.columns.iter().zip(&after.columns) {
        let same = not_distinct(before, after)?;
        let same = same.values().iter();
        changed.iter_mut().zip(same).for_each(|(changed, same)| *changed |= !same);
    }
    Ok(changed)
}

fn piece(
    schema: &SchemaRef,
    key: &[ArrayRef],
    (before, old): (&Results, Vec<u32>),
    (after, new): (&Results, Vec<u32>),
) -> Result<ZBatch> {
    let mut weights = vec![-1; old.len()];
    weights.resize(old.len() + new.len(), 1);
    let all_new = old.is_empty() && new.len() == after.present.len();
    let columns = if all_new {
        key.iter().chain(&after.columns).cloned().collect()
    } else {
        let both: UInt32Array = old.iter().chain(&new).copied().collect::<Vec<_>>().into();
        let mut columns = arrow::compute::take_arrays(key, &both, None)?;
        let from_old = old.iter().map(|&row| (0, row as usize));
        let from_new = new.iter().map(|&row| (1, row as usize));
        let places: Vec<(usize, usize)> = from_old.chain(from_new).collect();
        for call in 0..before.columns.len().max(after.columns.len()) {
            // Where no group has a row at one time, no place refers to its column.
            let (old, new) = match (before.columns.get(call), after.columns.get(call)) {
                (Some(old), Some(new)) => (old, new),
                (Some(only), None) | (None, Some(only)) => (only, only),
                (None, None) => continue,
            };
            columns.push(arrow::compute::interleave(&[old.as_ref(), new.as_ref()], &places)?);
        }
        columns
    };
    let options = RecordBatchOptions::new().with_row_count(Some(weights.len()));
    ZBatch::try_new(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?, weights)
}
