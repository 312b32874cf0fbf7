//! Rows of some groups that were looked up.

use super::rows::WordRows;

/// Rows and weights, and where the rows of each group end.
#[derive(Debug, Default)]
pub(super) struct Found<R> {
    pub(super) ends: Vec<u32>,
    pub(super) rows: R,
    pub(super) weights: Vec<i64>,
}

impl<R> Found<R> {
    #[expect(clippy::cast_possible_truncation, reason = "rows of one step are fewer than 2^32")]
    pub(super) fn end_group(&mut self) {
        self.ends.push(self.weights.len() as u32);
    }
}

impl<const W: usize> Found<WordRows<W>> {
    #[inline]
    pub(super) fn push(&mut self, row: [u64; W], weight: i64) {
        self.rows.0.push(row);
        self.weights.push(weight);
    }
}
