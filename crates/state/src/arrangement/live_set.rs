//! A set of row numbers that finds its next member in a few steps, however wide the gap.

/// Bits of the members, and above them, per word of 64 bits, whether it has any; three levels.
#[derive(Debug, Default)]
pub(super) struct LiveSet {
    levels: [Vec<u64>; 3],
    count: usize,
}

impl LiveSet {
    /// The set of the rows with a nonzero weight.
    pub(super) fn of_weights(weights: &[i64]) -> Self {
        let words = |n: usize| n.div_ceil(64);
        let (one, two) = (words(weights.len()), words(words(weights.len())));
        let levels = [vec![0; one], vec![0; two], vec![0; words(two)]];
        let mut set = Self { levels, count: 0 };
        weights.iter().enumerate().filter(|(_, w)| **w != 0).for_each(|(row, _)| set.insert(row));
        set
    }

    /// Number of members.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds a row that is not a member.
    pub(super) fn insert(&mut self, row: usize) {
        self.count += 1;
        let mut at = row;
        for level in &mut self.levels {
            level[at / 64] |= 1 << (at % 64);
            at /= 64;
        }
    }

    /// Removes a member.
    pub(super) fn remove(&mut self, row: usize) {
        self.count -= 1;
        let mut at = row;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// The least member that is not below `from`.
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let mut from = from;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get(from / 64)? & (u64::MAX << (from % 64));
            if word != 0 {
                let found = (from / 64) * 64 + word.trailing_zeros() as usize;
                return self.descend(height, found);
            }
            from = from / 64 + 1;
        }
        // Beyond 2^18 rows the top level has several words.
        let top = &self.levels[2];
        let word = (from..top.len()).find(|&word| top[word] != 0)?;
        self.descend(2, word * 64 + top[word].trailing_zeros() as usize)
    }

    fn descend(&self, height: usize, found: usize) -> Option<usize> {
        let below = |found: usize, level: &Vec<u64>| {
            level.get(found).map(|word| found * 64 + word.trailing_zeros() as usize)
        };
        self.levels[..height].iter().rev().try_fold(found, below)
    }

    /// Bytes held in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.levels.iter().map(|level| level.capacity() * 8).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_agrees_with_a_scan_over_all_gaps() {
        const ROWS: usize = 600_000;
        let mut weights = vec![0; ROWS];
        let members = [0, 1, 63, 64, 4_095, 4_096, 262_143, 262_144, 530_000, ROWS - 1];
        members.iter().for_each(|&row| weights[row] = -1);
        let mut set = LiveSet::of_weights(&weights);
        assert_eq!(set.len(), members.len());
        for from in members.iter().flat_map(|&m| [m.saturating_sub(1), m, m + 1]) {
            let wanted = members.iter().copied().find(|&m| m >= from);
            assert_eq!(set.next(from), wanted, "from {from}");
        }
        members[..9].iter().for_each(|&row| set.remove(row));
        assert_eq!((set.next(0), set.next(ROWS)), (Some(ROWS - 1), None));
        set.insert(70_000);
        assert_eq!(set.next(5), Some(70_000));
        set.remove(70_000);
        set.remove(ROWS - 1);
        assert_eq!((set.next(0), set.len()), (None, 0));
        assert_eq!(LiveSet::default().next(0), None);
    }
}
