//! What a system's output adds up to.

/// Weight and checksum of all rows of the view, as the sum of the deltas that were drained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Check {
    /// Rows of the view.
    pub rows: i64,
    /// Sum of the rows' hashes.
    pub sum: i64,
    /// Physical rows of the deltas; systems may differ in it.
    pub drained: i64,
}

impl Check {
    /// Adds a row of the view's delta.
    #[inline]
    pub fn add(&mut self, hash: i64, weight: i64) {
        self.rows += weight;
        self.sum = self.sum.wrapping_add(hash.wrapping_mul(weight));
        self.drained += 1;
    }

    /// Adds what another worker has drained.
    pub fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        self.sum = self.sum.wrapping_add(other.sum);
        self.drained += other.drained;
    }
}

/// Hash of a row of up to five numbers, linear so that SQL can compute the sum as well.
#[inline]
pub fn row_hash(row: [i64; 5]) -> i64 {
    let [a, b, c, d, e] = row;
    (a.wrapping_mul(11))
        .wrapping_add(b)
        .wrapping_add(c.wrapping_mul(3))
        .wrapping_add(d.wrapping_mul(5))
        .wrapping_add(e.wrapping_mul(7))
}
