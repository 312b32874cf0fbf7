//! Random numbers without state: number `i` of stream `s` is the same on every machine.

/// A stream of 64-bit numbers (splitmix64 over the index).
#[derive(Debug, Clone, Copy)]
pub struct Stream(pub u64);

impl Stream {
    /// Number `index` of the stream.
    pub fn number(self, index: usize) -> u64 {
        let start = self.0.wrapping_mul(0x632B_E59B_D9B4_E019);
        let mut z = (index as u64).wrapping_add(start).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    #[expect(clippy::cast_precision_loss, reason = "53 bits are left")]
    pub fn unit(self, index: usize) -> f64 {
        (self.number(index) >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// `count` numbers, uniform in `0..bound`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "bounds are far below 2^53"
    )]
    pub fn below(self, count: usize, bound: i64) -> Vec<i64> {
        (0..count).map(|i| (self.unit(i) * bound as f64) as i64).collect()
    }

    /// `count` keys of `0..keys`, where the key of rank `r` has a share of about `r^(-2/3)`: the
    /// hottest of a million has 1 % of the rows. Hot keys are scattered.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "keys are far below 2^53"
    )]
    pub fn skewed(self, count: usize, keys: i64) -> Vec<i64> {
        let rank = |i| ((self.unit(i).powf(3.0) * keys as f64) as i64).min(keys - 1);
        (0..count).map(|i| (rank(i) * 611_953 + 7) % keys).collect()
    }

    /// `0..count` in the order of the stream's numbers.
    pub fn order(self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_cached_key(|&i| self.number(i));
        order
    }
}
