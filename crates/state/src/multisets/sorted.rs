//! Rows with group and weight, in the order of group and row, each once.

use std::ops::Range;

use deltaic_batch::Result;

use super::rows::{Rows, WordRows};
use crate::arrangement::weight_overflow;
use crate::radix::sort_by_number;

/// Rows that are sorted at a time, but for a larger group.
const WINDOW_ROWS: usize = if cfg!(test) { 16 } else { 1 << 16 };

/// A list of rows; the columns are of equal length.
#[derive(Debug, Default, Clone)]
pub(super) struct Sorted<R> {
    pub(super) groups: Vec<u32>,
    pub(super) rows: R,
    pub(super) weights: Vec<i64>,
}

impl<R: Rows> Sorted<R> {
    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn clear(&mut self) {
        self.groups.clear();
        self.rows.clear();
        self.weights.clear();
    }

    #[inline]
    pub(super) fn extend(&mut self, other: &Self, range: Range<usize>) {
        self.groups.extend_from_slice(&other.groups[range.clone()]);
        self.weights.extend_from_slice(&other.weights[range.clone()]);
        self.rows.extend(&other.rows, range);
    }

    #[inline]
    pub(super) fn push(&mut self, other: &Self, at: usize, weight: i64) {
        self.groups.push(other.groups[at]);
        self.weights.push(weight);
        self.rows.push(&other.rows, at);
    }

    /// Some parts of the list.
    pub(super) fn parts(&self, parts: &[Range<usize>]) -> Self {
        let mut list = Self::default();
        parts.iter().for_each(|part| list.extend(self, part.clone()));
        list
    }
}

impl<const W: usize> Sorted<WordRows<W>> {
    #[inline]
    pub(super) fn push_row(&mut self, group: u32, row: [u64; W], weight: i64) {
        self.groups.push(group);
        self.rows.0.push(row);
        self.weights.push(weight);
    }
}

/// Sorts a delta, adds up equal rows, and leaves those out whose weights cancel out. Hands the rows to
/// `take` in order, some thousand at a time, never cutting a group; with each, the position in the
/// delta of its first copy.
/// `order` are the rows by group, as [`order_by_group`] gives them.
pub(super) fn sort<R: Rows>(
    groups: &[u32],
    mut order: Vec<u32>,
    rows: &R,
    weights: &[i64],
    mut take: impl FnMut(&Sorted<R>, &[u32]) -> Result<()>,
) -> Result<()> {
    let (mut sorted, mut gathered): (Sorted<R>, R) = Default::default();
    let (mut ends, mut sources) = (Vec::new(), Vec::new());
    let mut start = 0;
    while start < order.len() {
        ends.clear();
        let mut end = start;
        while end < order.len() && end - start < WINDOW_ROWS {
            let group = groups[order[end] as usize];
            end += order[end..].iter().take_while(|&&at| groups[at as usize] == group).count();
            ends.push(end - start);
        }
        let window = &mut order[start..end];
        rows.sort_runs(window, &ends, &mut gathered);
        sorted.clear();
        sources.clear();
        let mut from = 0;
        for &end in &ends {
            let group = groups[window[from] as usize];
            while from < end {
                let mut weight = weights[window[from] as usize];
                let mut to = from + 1;
                while to < end && gathered.compare(from, &gathered, to).is_eq() {
                    let more = weights[window[to] as usize];
                    weight = weight.checked_add(more).ok_or_else(weight_overflow)?;
                    to += 1;
                }
                if weight != 0 {
                    sorted.groups.push(group);
                    sorted.weights.push(weight);
                    sorted.rows.push(&gathered, from);
                    sources.push(window[from]);
                }
                from = to;
            }
        }
        take(&sorted, &sources)?;
        start = end;
    }
    Ok(())
}

/// Positions of rows by group; within a group in their order.
///
/// ```
/// assert_eq!(deltaic_state::order_by_group(&[7, 2, 7, 0]), [3, 1, 0, 2]);
/// ```
pub fn order_by_group(groups: &[u32]) -> Vec<u32> {
    let entry = |(at, group): (u32, &u32)| u64::from(*group) << 32 | u64::from(at);
    let mut entries: Vec<u64> = (0..).zip(groups).map(entry).collect();
    sort_by_number(&mut entries, |entry| (entry >> 32) as u32);
    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    entries.into_iter().map(|entry| entry as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_add_up_and_cancel_out() {
        let rows = WordRows(vec![[5_u64], [3], [5], [3], [9], [1]]);
        let mut windows = 0;
        let groups = [7, 7, 7, 2, 7, 7];
        let order = order_by_group(&groups);
        let taken = sort(&groups, order, &rows, &[1, 2, -1, 1, 0, -4], |sorted, sources| {
            assert_eq!(sorted.groups, [2, 7, 7]);
            assert_eq!(sorted.rows.0, [[3], [1], [3]]);
            assert_eq!(sorted.weights, [1, -4, 2]);
            assert_eq!(sources, [3, 5, 1]);
            windows += 1;
            Ok(())
        });
        taken.unwrap();
        assert_eq!(windows, 1);
        let full = WordRows(vec![[5_u64], [5]]);
        let error = sort(&[0, 0], vec![0, 1], &full, &[i64::MAX, 1], |_, _| Ok(())).unwrap_err();
        assert_eq!(error.code(), "WEIGHT_OVERFLOW");
    }
}
