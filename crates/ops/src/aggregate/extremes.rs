//! MIN and MAX: the first or last value of each group.

use arrow::array::{Array, ArrayRef, UInt32Array};
use deltaic_batch::Result;
use deltaic_state::Multisets;

/// The least or greatest value of each group; NULL where it has none. The groups are in ascending
/// order.
pub(super) fn extreme_values(
    values: &Multisets,
    groups: &[u32],
    greatest: bool,
) -> Result<ArrayRef> {
    let found = if greatest { values.last(groups)? } else { values.first(groups, 1)? };
    let [column] = found.columns.as_slice() else {
        return Err(super::accumulate::wrong_type());
    };
    if column.len() == groups.len() {
        return Ok(column.clone());
    }
    let mut start = 0;
    let places = found.ends.iter().map(|&end| {
        let place = (start < end).then_some(start);
        start = end;
        place
    });
    Ok(arrow::compute::take(column, &places.collect::<UInt32Array>(), None)?)
}
