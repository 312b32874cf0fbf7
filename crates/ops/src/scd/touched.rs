//! Which kept events a step has to look at.

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::{concat, take};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::Arrangement;

use crate::scd::codes::Codes;
use crate::scd::events::Events;
use crate::scd::layout::Layout;

/// Rows per piece when all of the state is read.
const SCAN_ROWS: usize = 65_536;

/// The kept events of the keys that `incoming` touches, with the incoming ones.
pub(super) fn of_keys(
    layout: &Layout,
    kept: &Arrangement,
    incoming: Vec<ArrayRef>,
) -> Result<Events> {
    let (group, first) = group_by_key(layout, &incoming)?;
    let first = UInt32Array::from(first);
    let keys: Result<Vec<ArrayRef>, _> =
        layout.keys.iter().map(|&at| take(&incoming[at], &first, None)).collect();
    let matches = kept.probe(&keys?, true)?;
    let all: Vec<usize> = (0..incoming.len()).collect();
    let columns = kept.gather(&matches.rows, &all)?;
    let mut groups = matches.probe;
    groups.extend(group);
    let count = row_number(matches.rows.len())?;
    Events::try_new(layout, concat_columns(&columns, &incoming)?, count, groups)
}

/// All kept events, with the incoming ones.
pub(super) fn all(layout: &Layout, kept: &Arrangement, incoming: &[ArrayRef]) -> Result<Events> {
    let kept = ZBatch::concat(&layout.schema, &kept.scan(SCAN_ROWS)?)?;
    let columns = concat_columns(kept.rows().columns(), incoming)?;
    let (group, _) = group_by_key(layout, &columns)?;
    Events::try_new(layout, columns, row_number(kept.num_rows())?, group)
}

/// Numbers the distinct keys in their order: the number of each row's key, and one row per key.
fn group_by_key(layout: &Layout, columns: &[ArrayRef]) -> Result<(Vec<u32>, Vec<u32>)> {
    let codes = Codes::of(columns, &layout.keys)?;
    let count = row_number(columns[layout.sequence()].len())?;
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_by(|&a, &b| codes.cmp(a, b));
    let mut group = vec![0; order.len()];
    let mut first: Vec<u32> = Vec::new();
    let mut number = 0;
    for (i, &row) in order.iter().enumerate() {
        if i == 0 || !codes.eq(order[i - 1], row) {
            number = row_number(first.len())?;
            first.push(row);
        }
        group[row as usize] = number;
    }
    Ok((group, first))
}

fn concat_columns(first: &[ArrayRef], second: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let pair = |(a, b): (&ArrayRef, &ArrayRef)| Ok(concat(&[a.as_ref(), b.as_ref()])?);
    first.iter().zip(second).map(pair).collect()
}

fn row_number(rows: usize) -> Result<u32> {
    u32::try_from(rows).map_err(|_| {
        Error::internal("SCD_STEP_ROWS", "more than 2^32 change events meet in one step")
    })
}
