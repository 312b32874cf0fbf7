//! Runs: rows with weights, key hashes and sort keys, and how runs are sorted and merged.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use deltaic_batch::{Error, Result};

use super::layout::{Layout, SortKeys};

/// Row numbers have one bit less than a word: the other tells base and overlay apart.
pub(super) const ROWS_MAX: usize = 1 << 31;

/// Rows of an arrangement with what is known of each.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) columns: Vec<ArrayRef>,
    pub(super) weights: Vec<i64>,
    /// Hash of each row's key.
    pub(super) hashes: Vec<u64>,
    pub(super) sort: SortKeys,
}

impl Run {
    /// Rows with their hashes and sort keys worked out.
    pub(super) fn try_new(
        layout: &Layout,
        columns: Vec<ArrayRef>,
        weights: Vec<i64>,
    ) -> Result<Self> {
        check_row_count(weights.len())?;
        let hashes = layout.key_hashes(&columns, weights.len())?;
        let sort = layout.sort_keys(&columns, weights.len())?;
        Ok(Self { columns, weights, hashes, sort })
    }

    pub(super) fn len(&self) -> usize {
        self.weights.len()
    }

    fn compare(&self, a: u32, b: u32) -> Ordering {
        let hashes = self.hashes[a as usize].cmp(&self.hashes[b as usize]);
        hashes.then_with(|| self.sort.compare(a, &self.sort, b))
    }

    /// True when adjacent rows agree in key hash and sort key, as equal ones do.
    pub(super) fn may_repeat_rows(&self) -> bool {
        (1..row_number(self.len())).any(|row| self.compare(row - 1, row).is_eq())
    }

    /// The rows by key hash and sort key. Keys of one hash may be mixed up among each other.
    pub(super) fn sorted(self, layout: &Layout) -> Result<Self> {
        if (1..row_number(self.len())).all(|row| self.compare(row - 1, row).is_le()) {
            return Ok(self);
        }
        self.sorted_part(layout, &(0..row_number(self.len())).collect::<Vec<u32>>())
    }

    /// As [`Self::sorted`], of the rows at `rows` alone, and holding on to no buffer of these.
    pub(super) fn sorted_part(&self, layout: &Layout, rows: &[u32]) -> Result<Self> {
        let entries = rows.iter().map(|&row| (self.hashes[row as usize], row)).collect();
        self.take(layout, order_by_hash(entries, |a, b| self.sort.compare(a, &self.sort, b)))
    }

    /// The rows by key hash, key and sort key: for keys that share a hash.
    pub(super) fn sorted_by_key(self, layout: &Layout) -> Result<Self> {
        let Some(keys) = layout.key_bytes(&self.columns)? else { return self.sorted(layout) };
        let mut order: Vec<u32> = (0..row_number(self.len())).collect();
        let key = |row: u32| (self.hashes[row as usize], keys.row(row as usize));
        order.sort_by(|&a, &b| {
            key(a).cmp(&key(b)).then_with(|| self.sort.compare(a, &self.sort, b))
        });
        self.take(layout, order)
    }

    /// The rows at `rows`.
    pub(super) fn take(&self, layout: &Layout, rows: Vec<u32>) -> Result<Self> {
        let weights = rows.iter().map(|&r| self.weights[r as usize]).collect();
        let hashes = rows.iter().map(|&r| self.hashes[r as usize]).collect();
        let mut sort = layout.empty_sort_keys();
        rows.iter().for_each(|&r| sort.push(&self.sort, r));
        let columns = take_owned(&self.columns, rows)?;
        Ok(Self { columns, weights, hashes, sort })
    }

    /// The rows of two sorted runs, sorted, without those of weight 0.
    pub(super) fn merge(layout: &Layout, left: &Self, right: &Self) -> Result<Self> {
        let count = left.len() + right.len();
        check_row_count(count)?;
        let mut order: Vec<(usize, usize)> = Vec::with_capacity(count);
        let mut weights = Vec::with_capacity(count);
        let mut hashes = Vec::with_capacity(count);
        let mut sort = layout.empty_sort_keys();
        let mut keep = |run: &Self, side: usize, row: u32| {
            let at = row as usize;
            if run.weights[at] != 0 {
                order.push((side, at));
                weights.push(run.weights[at]);
                hashes.push(run.hashes[at]);
                sort.push(&run.sort, row);
            }
        };
        let (left_end, right_end) = (row_number(left.len()), row_number(right.len()));
        let (mut l, mut r) = (0, 0);
        while l < left_end && r < right_end {
            let hashes = left.hashes[l as usize].cmp(&right.hashes[r as usize]);
            if hashes.then_with(|| left.sort.compare(l, &right.sort, r)).is_le() {
                keep(left, 0, l);
                l += 1;
            } else {
                keep(right, 1, r);
                r += 1;
            }
        }
        (l..left_end).for_each(|row| keep(left, 0, row));
        (r..right_end).for_each(|row| keep(right, 1, row));
        let columns = interleave_owned(&[&left.columns, &right.columns], &order)?;
        Ok(Self { columns, weights, hashes, sort })
    }
}

/// Row counts are checked by [`check_row_count`] before they get here.
pub(super) fn row_number(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

pub(super) fn check_row_count(count: usize) -> Result<()> {
    if count < ROWS_MAX {
        return Ok(());
    }
    Err(Error::user("STATE_TOO_LARGE", "one shard's state exceeds 2^31 rows")
        .hint("run with more shards"))
}

/// The rows at `rows`, holding on to no buffer of `columns`.
pub(super) fn take_owned(columns: &[ArrayRef], rows: Vec<u32>) -> Result<Vec<ArrayRef>> {
    let rows = UInt32Array::from(rows);
    let take = |column: &ArrayRef| {
        Ok(compact(arrow::compute::take(column, &rows, None).map_err(too_large)?))
    };
    columns.iter().map(take).collect()
}

/// The rows at `(source, row)`, holding on to no buffer of the sources.
pub(super) fn interleave_owned(
    sources: &[&Vec<ArrayRef>],
    order: &[(usize, usize)],
) -> Result<Vec<ArrayRef>> {
    let width = sources.first().map_or(0, |columns| columns.len());
    let column = |c: usize| {
        let arrays: Vec<&dyn Array> = sources.iter().map(|s| s[c].as_ref()).collect();
        Ok(compact(arrow::compute::interleave(&arrays, order).map_err(too_large)?))
    };
    (0..width).map(column).collect()
}

fn too_large(error: ArrowError) -> Error {
    match error {
        ArrowError::OffsetOverflowError(_) => {
            Error::user("STATE_TOO_LARGE", "one shard's strings or lists exceed their type's range")
                .hint("run with more shards, or cast the column to a large type")
        }
        other => other.into(),
    }
}

/// String views share their sources' buffers, whole; copies what is seen of them.
fn compact(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => std::sync::Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => std::sync::Arc::new(array.as_binary_view().gc()),
        _ => array,
    }
}

/// Row numbers of `(hash, row)` sorted by hash, then by `tie`: two counting passes over the top bits, which hashes
/// fill evenly, and a comparison sort within what they leave together.
fn order_by_hash(mut entries: Vec<(u64, u32)>, tie: impl Fn(u32, u32) -> Ordering) -> Vec<u32> {
    const PASS_BITS: u32 = 11;
    const SMALL_ROWS: usize = 4096;
    let compare = |a: &(u64, u32), b: &(u64, u32)| a.0.cmp(&b.0).then_with(|| tie(a.1, b.1));
    if entries.len() < SMALL_ROWS {
        entries.sort_unstable_by(compare);
    } else {
        let mut other = vec![(0, 0); entries.len()];
        counting_pass(&entries, &mut other, 64 - 2 * PASS_BITS, PASS_BITS);
        counting_pass(&other, &mut entries, 64 - PASS_BITS, PASS_BITS);
        let prefix = |entry: &(u64, u32)| entry.0 >> (64 - 2 * PASS_BITS);
        entries
            .chunk_by_mut(|a, b| prefix(a) == prefix(b))
            .for_each(|c| c.sort_unstable_by(compare));
    }
    entries.into_iter().map(|(_, row)| row).collect()
}

/// One pass of a radix sort: stable, by the `bits` bits from `shift`.
fn counting_pass(from: &[(u64, u32)], to: &mut [(u64, u32)], shift: u32, bits: u32) {
    let mask = (1 << bits) - 1;
    let digit = |hash: u64| usize::try_from(hash >> shift & mask).unwrap_or(0);
    let mut starts = vec![0_usize; 1 << bits];
    from.iter().for_each(|entry| starts[digit(entry.0)] += 1);
    let mut sum = 0;
    for start in &mut starts {
        sum += std::mem::replace(start, sum);
    }
    for entry in from {
        let start = &mut starts[digit(entry.0)];
        to[*start] = *entry;
        *start += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_ordered_with_ties() {
        for count in [10_u32, 10_000] {
            let hashes: Vec<u64> =
                (0..count).map(|i| u64::from(i / 2 * 40_503 % 977) << 50).collect();
            let order = order_by_hash(hashes.iter().copied().zip(0..).collect(), |a, b| b.cmp(&a));
            let mut wanted: Vec<u32> = (0..count).collect();
            wanted.sort_by_key(|&i| (hashes[i as usize], std::cmp::Reverse(i)));
            assert_eq!(order, wanted);
        }
    }
}
