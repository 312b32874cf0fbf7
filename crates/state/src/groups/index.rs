//! The index of a group table: from the hash of a key to numbers of groups.
//!
//! Open addressing with linear probing, twelve bytes per slot: the whole hash and the number. A
//! batch is looked up in two passes over a block of rows: the first only loads the slots, so that
//! their cache misses overlap, the second compares.

/// No group.
const EMPTY: u32 = u32::MAX;
/// Rows of a block.
const BLOCK: usize = 256;
/// Slots of the smallest table.
const SLOTS_MIN: usize = 16;

/// A slot: low and high half of the hash, number of the group.
type Slot = [u32; 3];

#[derive(Debug, Default)]
pub(super) struct GroupIndex {
    /// A power of two of them, or none.
    slots: Vec<Slot>,
    len: usize,
}

#[expect(clippy::cast_possible_truncation, reason = "the halves are meant")]
fn slot(hash: u64, group: u32) -> Slot {
    [hash as u32, (hash >> 32) as u32, group]
}

fn hash_of(slot: &Slot) -> u64 {
    u64::from(slot[1]) << 32 | u64::from(slot[0])
}

impl GroupIndex {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes held in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    /// Where a hash belongs if nothing is in its way. The upper bits are alike in all of a shard.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are meant")]
    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    /// A group of this hash, the first that there is.
    #[inline]
    pub(super) fn find(&self, hash: u64) -> Option<u32> {
        self.candidates(hash).next()
    }

    /// All groups of this hash.
    pub(super) fn candidates(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let mut at = if self.slots.is_empty() { 0 } else { self.home(hash) };
        std::iter::from_fn(move || {
            loop {
                let slot = self.slots.get(at).filter(|slot| slot[2] != EMPTY)?;
                at = self.after(at);
                if hash_of(slot) == hash {
                    return Some(slot[2]);
                }
            }
        })
    }

    /// Appends a group of each hash, or `none` where there is none.
    pub(super) fn find_all(&self, hashes: &[u64], none: u32, found: &mut Vec<u32>) {
        if self.slots.is_empty() {
            found.resize(found.len() + hashes.len(), none);
            return;
        }
        let mut loaded = [[0; 3]; BLOCK];
        for block in hashes.chunks(BLOCK) {
            for (loaded, &hash) in loaded.iter_mut().zip(block) {
                *loaded = self.slots[self.home(hash)];
            }
            found.extend(loaded.iter().zip(block).map(|(slot, &hash)| {
                if slot[2] == EMPTY {
                    none
                } else if hash_of(slot) == hash {
                    slot[2]
                } else {
                    self.find(hash).unwrap_or(none)
                }
            }));
        }
    }

    /// Adds a group; others may have the same hash.
    pub(super) fn insert(&mut self, hash: u64, group: u32) {
        // At most four of five slots are taken.
        if (self.len + 1) * 5 > self.slots.len() * 4 {
            self.grow();
        }
        self.put(slot(hash, group));
        self.len += 1;
    }

    fn put(&mut self, slot: Slot) {
        let mut at = self.home(hash_of(&slot));
        while self.slots[at][2] != EMPTY {
            at = self.after(at);
        }
        self.slots[at] = slot;
    }

    fn grow(&mut self) {
        let length = (self.slots.len() * 2).max(SLOTS_MIN);
        let old = std::mem::replace(&mut self.slots, vec![slot(0, EMPTY); length]);
        old.into_iter().filter(|slot| slot[2] != EMPTY).for_each(|slot| self.put(slot));
    }

    /// Removes a group; false if it is not there.
    pub(super) fn remove(&mut self, hash: u64, group: u32) -> bool {
        if self.slots.is_empty() {
            return false;
        }
        let mut hole = self.home(hash);
        while self.slots[hole] != slot(hash, group) {
            if self.slots[hole][2] == EMPTY {
                return false;
            }
            hole = self.after(hole);
        }
        self.len -= 1;
        // Slots behind it move up where that brings them nearer to their home, not past it.
        let mut at = self.after(hole);
        while self.slots[at][2] != EMPTY {
            let mask = self.slots.len() - 1;
            let distance = |from: usize, to: usize| to.wrapping_sub(from) & mask;
            let home = self.home(hash_of(&self.slots[at]));
            if distance(home, at) >= distance(hole, at) {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
            at = self.after(at);
        }
        self.slots[hole] = slot(0, EMPTY);
        if self.len == 0 {
            self.slots = Vec::new();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn agrees_with_a_set_of_pairs() {
        let (mut index, mut model) = (GroupIndex::default(), BTreeSet::new());
        let mut number = 7_u64;
        for step in 0..30_000 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Few hashes, so that slots are in each other's way and hashes repeat.
            let (hash, group) = ((number >> 40) % 61 * 17, u32::try_from(number >> 55).unwrap());
            let is_there = model.contains(&(hash, group));
            let shrinks = step > 15_000 && !(number >> 20).is_multiple_of(4);
            if is_there || shrinks {
                assert_eq!(index.remove(hash, group), is_there);
                model.remove(&(hash, group));
            } else if !model.iter().any(|&(_, other)| other == group) {
                index.insert(hash, group);
                model.insert((hash, group));
            }
            assert_eq!(index.len(), model.len());
            let mut found: Vec<u32> = index.candidates(hash).collect();
            found.sort_unstable();
            let expected: Vec<u32> =
                model.iter().filter(|(h, _)| *h == hash).map(|(_, g)| *g).collect();
            assert_eq!(found, expected);
        }
        let hashes: Vec<u64> = (0..1_100).collect();
        let mut found = Vec::new();
        index.find_all(&hashes, EMPTY, &mut found);
        for (hash, group) in hashes.into_iter().zip(found) {
            let is_known = model.iter().any(|(h, _)| *h == hash);
            assert_eq!(group != EMPTY, is_known);
            assert!(!is_known || model.contains(&(hash, group)));
        }
    }
}
