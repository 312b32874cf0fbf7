//! Shards: hash ranges, and cutting a batch along them.

use arrow::array::UInt32Array;

use crate::{Error, Result, ZBatch};

/// The shard of a row hash: the range of all hashes is cut into `shards` equal parts, in order, so
/// that re-sharding is cutting. The number of shards must not be 0.
///
/// ```
/// assert_eq!(deltaic_batch::shard_of(0, 4), 0);
/// assert_eq!(deltaic_batch::shard_of(1 << 63, 4), 2);
/// assert_eq!(deltaic_batch::shard_of(u64::MAX, 3), 2);
/// ```
#[expect(clippy::cast_possible_truncation, reason = "the result is below `shards`")]
pub fn shard_of(hash: u64, shards: usize) -> usize {
    ((u128::from(hash) * shards as u128) >> 64) as usize
}

impl ZBatch {
    /// One batch per shard: row `i` goes to shard `shard_of_row[i]`, in the order of the rows.
    pub fn partition(&self, shard_of_row: &[u32], shards: usize) -> Result<Vec<Self>> {
        if shard_of_row.len() != self.num_rows() {
            let (rows, given) = (self.num_rows(), shard_of_row.len());
            return Err(Error::internal("BATCH_LENGTH", format!("{rows} rows, {given} shards")));
        }
        let mut counts = vec![0_usize; shards];
        for &shard in shard_of_row {
            *counts.get_mut(shard as usize).ok_or_else(|| {
                Error::internal("SHARD_RANGE", format!("shard {shard} of {shards}"))
            })? += 1;
        }
        let mut rows: Vec<Vec<u32>> = counts.iter().map(|&n| Vec::with_capacity(n)).collect();
        (0..).zip(shard_of_row).for_each(|(row, &shard)| rows[shard as usize].push(row));
        let cut = |rows: Vec<u32>| match rows.len() {
            0 => Ok(Self::empty(self.schema())),
            n if n == self.num_rows() => Ok(self.clone()),
            _ => self.take(&UInt32Array::from(rows)),
        };
        rows.into_iter().map(cut).collect()
    }
}
