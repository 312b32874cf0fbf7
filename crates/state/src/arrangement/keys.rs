//! The distinct keys of a base run: sorted by hash, under a directory of hash ranges.

use super::base::NONE;
use super::run::row_number;

/// Hashes that are looked up at once: what one pass loads, the next finds in the cache.
const BLOCK: usize = 512;
/// Keys of a bucket that are scanned; more are searched by halving.
const SCAN_MAX: u32 = 8;

/// Distinct keys by hash, with the range of each one's rows.
#[derive(Debug)]
pub(super) struct Keys {
    /// One more than there are keys: the rows of a key end where the next one's start.
    entries: Vec<Key>,
    /// First key of each bucket and one more; a bucket is a range of hashes.
    directory: Vec<u32>,
    least_hash: u64,
    shift: u32,
}

/// A key: its hash and its first row, side by side. The hash is in halves, to lie closer.
#[derive(Debug, Clone, Copy)]
struct Key {
    hash: [u32; 2],
    start: u32,
}

impl Key {
    #[expect(clippy::cast_possible_truncation, reason = "each half in turn is wanted")]
    fn new(hash: u64, start: u32) -> Self {
        Self { hash: [(hash >> 32) as u32, hash as u32], start }
    }

    #[inline]
    fn hash(self) -> u64 {
        u64::from(self.hash[0]) << 32 | u64::from(self.hash[1])
    }
}

impl Keys {
    /// Keys that start at the rows `starts`, in order of their hashes.
    pub(super) fn new(row_hashes: &[u64], starts: &[u32]) -> Self {
        let mut entries = Vec::with_capacity(starts.len() + 1);
        entries.extend(starts.iter().map(|&row| Key::new(row_hashes[row as usize], row)));
        let hash_at = |at: usize| entries.get(at).map_or(0, |key: &Key| key.hash());
        let least_hash = hash_at(0);
        let span = hash_at(entries.len().saturating_sub(1)) - least_hash;
        let bucket_bits = entries.len().next_power_of_two().trailing_zeros();
        let span_bits = 64 - span.leading_zeros();
        let shift = span_bits.saturating_sub(bucket_bits);
        let buckets = usize::try_from(span >> shift).unwrap_or(0) + 1;
        let mut directory = vec![0_u32; buckets + 1];
        for key in &entries {
            directory[usize::try_from((key.hash() - least_hash) >> shift).unwrap_or(0) + 1] += 1;
        }
        let mut sum = 0;
        for first in &mut directory {
            sum += *first;
            *first = sum;
        }
        entries.push(Key::new(u64::MAX, row_number(row_hashes.len())));
        Self { entries, directory, least_hash, shift }
    }

    /// The first key of each row's hash, or [`NONE`].
    pub(super) fn find_all(&self, hashes: &[u64], rows: &[u32]) -> Vec<u32> {
        let mut found = Vec::with_capacity(rows.len());
        let mut buckets = [(0_u64, 0_u32, 0_u32); BLOCK];
        let mut first = [0_u64; BLOCK];
        for rows in rows.chunks(BLOCK) {
            for (bucket, &row) in buckets.iter_mut().zip(rows) {
                let hash = hashes[row as usize];
                let (start, end) = self.bucket(hash);
                *bucket = (hash, start, end);
            }
            for (first, &(_, start, _)) in first.iter_mut().zip(&buckets[..rows.len()]) {
                *first = self.entries[start as usize].hash();
            }
            for (&(hash, start, end), &first) in buckets[..rows.len()].iter().zip(&first) {
                let is_first = first == hash && start < end;
                found.push(if is_first { start } else { self.search(hash, start, end) });
            }
        }
        found
    }

    /// The keys of the bucket of a hash; of another bucket when the hash is out of range.
    #[inline]
    fn bucket(&self, hash: u64) -> (u32, u32) {
        let last = self.directory.len() - 2;
        let bucket = hash.wrapping_sub(self.least_hash) >> self.shift;
        let bucket = usize::try_from(bucket).unwrap_or(last).min(last);
        (self.directory[bucket], self.directory[bucket + 1])
    }

    fn search(&self, hash: u64, start: u32, end: u32) -> u32 {
        let keys = &self.entries[start as usize..end as usize];
        let at = if end - start <= SCAN_MAX {
            keys.iter().position(|key| key.hash() >= hash).unwrap_or(keys.len())
        } else {
            keys.partition_point(|key| key.hash() < hash)
        };
        if keys.get(at).is_some_and(|key| key.hash() == hash) {
            start + row_number(at)
        } else {
            NONE
        }
    }

    /// Number of keys.
    pub(super) fn len(&self) -> u32 {
        row_number(self.entries.len() - 1)
    }

    /// Hash of a key.
    pub(super) fn hash(&self, key: u32) -> u64 {
        self.entries[key as usize].hash()
    }

    /// Rows of a key.
    #[inline]
    pub(super) fn rows(&self, key: u32) -> std::ops::Range<u32> {
        self.entries[key as usize].start..self.entries[key as usize + 1].start
    }

    /// The key hash of each row.
    pub(super) fn row_hashes(&self) -> Vec<u64> {
        self.hashes_of(&(0..self.entries[self.entries.len() - 1].start))
    }

    /// The key hashes of the rows of some keys.
    pub(super) fn hashes_of(&self, rows: &std::ops::Range<u32>) -> Vec<u64> {
        let mut hashes = Vec::with_capacity(rows.len());
        let first = self.entries.partition_point(|key| key.start < rows.start);
        for keys in self.entries[first..].windows(2).take_while(|k| k[0].start < rows.end) {
            hashes.resize((keys[1].start - rows.start) as usize, keys[0].hash());
        }
        hashes
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Key>() + self.directory.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_and_others_are_not() {
        let spread = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut crowded: Vec<u64> = (0..3_000).map(|i| (1 << 60) + i * 2).collect();
        crowded.extend([u64::MAX - 1, u64::MAX]);
        let mut even: Vec<u64> = (1..3_000).map(|i| spread(i) & !1).collect();
        even.sort_unstable();
        for hashes in [vec![], vec![0], vec![u64::MAX], crowded, even] {
            // Every third key has two rows.
            let rows: Vec<u64> = hashes
                .iter()
                .zip(0..)
                .flat_map(|(&h, i)| vec![h; 1 + usize::from(i % 3 == 0)])
                .collect();
            let begins = |&row: &u32| row == 0 || rows[row as usize] != rows[row as usize - 1];
            let starts: Vec<u32> = (0..row_number(rows.len())).filter(begins).collect();
            let keys = Keys::new(&rows, &starts);
            let all: Vec<u32> = (0..row_number(hashes.len())).collect();
            assert_eq!(keys.find_all(&hashes, &all), all);
            assert_eq!(keys.len() as usize, hashes.len());
            assert_eq!(keys.row_hashes(), rows);
            let others: Vec<u64> = hashes
                .iter()
                .flat_map(|h| [h.wrapping_add(1), h.wrapping_sub(1)])
                .chain([0, 1, u64::MAX, 1 << 63])
                .filter(|h| hashes.binary_search(h).is_err())
                .collect();
            let all: Vec<u32> = (0..row_number(others.len())).collect();
            assert!(keys.find_all(&others, &all).iter().all(|&key| key == NONE));
        }
    }
}
