//! A delta of one side whose keys have been looked up.

use std::ops::Range;

use deltaic_batch::{Result, ZBatch};
use deltaic_state::{GroupTable, order_by_group};

use super::side::Side;

/// Rows by number of their key's group.
pub(super) struct Keyed<'a> {
    pub(super) side: &'a Side,
    pub(super) delta: &'a ZBatch,
    /// Group of each row.
    pub(super) group_of_row: Vec<u32>,
    /// The groups, each once, in ascending order.
    pub(super) groups: Vec<u32>,
    /// Where the rows of each group end in the order.
    ends: Vec<usize>,
    /// Rows in the order of their groups.
    pub(super) order: Vec<u32>,
}

impl<'a> Keyed<'a> {
    /// Looks up the keys of `delta`, none of which is NULL unless NULL matches NULL.
    pub(super) fn new(side: &'a Side, delta: &'a ZBatch, table: &mut GroupTable) -> Result<Self> {
        let group_of_row = table.upsert(&side.key_of(delta.rows()), delta.num_rows())?;
        let order = order_by_group(&group_of_row);
        let (mut groups, mut ends) = (Vec::new(), Vec::new());
        for (at, &row) in order.iter().enumerate() {
            let group = group_of_row[row as usize];
            if groups.last() == Some(&group)
                && let Some(end) = ends.last_mut()
            {
                *end = at + 1;
            } else {
                groups.push(group);
                ends.push(at + 1);
            }
        }
        Ok(Self { side, delta, group_of_row, groups, ends, order })
    }

    /// The rows of the `at`-th group.
    pub(super) fn rows(&self, at: usize) -> &[u32] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.order[start..self.ends[at]]
    }

    /// The groups in parts whose rows, by their `totals`, are about as many as `rows_max`.
    pub(super) fn parts(&self, totals: &[i64], rows_max: u64) -> Vec<Range<usize>> {
        parts(&self.groups, totals, rows_max)
    }
}

/// Cuts a list of groups into parts, see [`Keyed::parts`].
pub(super) fn parts(groups: &[u32], totals: &[i64], rows_max: u64) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut rows) = (Vec::new(), 0, 0);
    for (at, &group) in groups.iter().enumerate() {
        let of_group = totals[group as usize].unsigned_abs().saturating_add(1);
        if rows > 0 && rows + of_group > rows_max {
            parts.push(start..at);
            (start, rows) = (at, 0);
        }
        rows = rows.saturating_add(of_group);
    }
    if start < groups.len() {
        parts.push(start..groups.len());
    }
    parts
}
