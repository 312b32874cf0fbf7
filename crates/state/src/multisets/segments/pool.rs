//! Room for segments: chunks of bytes, cut into segments of few different lengths; a segment that is
//! given back serves the next one of its length.

/// A segment starts at a multiple of so many bytes.
const UNIT_BYTES: usize = 4;
/// Units of a chunk.
const CHUNK_UNITS: usize = if cfg!(test) { 64 } else { 1 << 16 };
/// Bytes after the last segment of a chunk, so that an integer can be read in one go.
const PADDING_BYTES: usize = 16;
/// Units of a segment, by class.
const CLASS_UNITS: [u32; 24] =
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128];
/// Bytes of the longest segment. Unit tests have short ones, and so many long groups.
pub(super) const BYTES_MAX: usize = if cfg!(test) { 32 } else { 128 * UNIT_BYTES };

#[derive(Debug)]
pub(super) struct Pool {
    /// All but the last one are full.
    chunks: Vec<Vec<u8>>,
    /// Units of the last chunk that are in use or given back.
    used: usize,
    /// Segments that were given back, by class.
    free: [Vec<u32>; CLASS_UNITS.len()],
}

impl Default for Pool {
    fn default() -> Self {
        // No chunk is like a last one that is full.
        Self { chunks: Vec::new(), used: CHUNK_UNITS, free: Default::default() }
    }
}

/// Bytes of a segment of a class.
#[inline]
pub(super) fn class_bytes(class: u8) -> usize {
    CLASS_UNITS[usize::from(class)] as usize * UNIT_BYTES
}

/// The class of the shortest segment of at least so many bytes.
#[inline]
pub(super) fn class_of(bytes: usize) -> u8 {
    let units = bytes.div_ceil(UNIT_BYTES);
    #[expect(clippy::cast_possible_truncation, reason = "there are few classes")]
    match units {
        0..=8 => units.saturating_sub(1) as u8,
        _ => CLASS_UNITS.partition_point(|&class| (class as usize) < units) as u8,
    }
}

impl Pool {
    /// A segment of a class; its bytes are whatever they are.
    pub(super) fn take(&mut self, class: u8) -> u32 {
        if let Some(place) = self.free[usize::from(class)].pop() {
            return place;
        }
        let units = CLASS_UNITS[usize::from(class)] as usize;
        if self.used + units > CHUNK_UNITS {
            // The first chunk grows as it is used, since most multisets are small.
            let bytes = if self.chunks.is_empty() { 0 } else { CHUNK_UNITS * UNIT_BYTES };
            self.chunks.push(Vec::with_capacity(bytes + PADDING_BYTES));
            self.used = 0;
        }
        let chunk = self.chunks.len() - 1;
        let place = chunk * CHUNK_UNITS + self.used;
        self.used += units;
        self.chunks[chunk].resize(self.used * UNIT_BYTES + PADDING_BYTES, 0);
        #[expect(clippy::cast_possible_truncation, reason = "a shard has less than 16 GiB")]
        {
            place as u32
        }
    }

    /// Takes a segment back.
    pub(super) fn give_back(&mut self, place: u32, class: u8) {
        self.free[usize::from(class)].push(place);
    }

    /// The bytes from the start of a segment on.
    #[inline]
    pub(super) fn at(&self, place: u32) -> &[u8] {
        let place = place as usize;
        &self.chunks[place / CHUNK_UNITS][place % CHUNK_UNITS * UNIT_BYTES..]
    }

    /// As [`Self::at`].
    #[inline]
    pub(super) fn at_mut(&mut self, place: u32) -> &mut [u8] {
        let place = place as usize;
        &mut self.chunks[place / CHUNK_UNITS][place % CHUNK_UNITS * UNIT_BYTES..]
    }

    /// Copies the first bytes of a segment to another one.
    pub(super) fn copy(&mut self, from: u32, to: u32, bytes: usize) {
        let (old, new) = (from as usize, to as usize);
        let (old_chunk, new_chunk) = (old / CHUNK_UNITS, new / CHUNK_UNITS);
        let (old_start, new_start) =
            (old % CHUNK_UNITS * UNIT_BYTES, new % CHUNK_UNITS * UNIT_BYTES);
        if old_chunk == new_chunk {
            self.chunks[old_chunk].copy_within(old_start..old_start + bytes, new_start);
        } else if let Ok([source, target]) = self.chunks.get_disjoint_mut([old_chunk, new_chunk]) {
            let source = &source[old_start..old_start + bytes];
            target[new_start..new_start + bytes].copy_from_slice(source);
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        let chunks = self.chunks.iter().map(Vec::capacity).sum::<usize>();
        let free = self.free.iter().map(Vec::capacity).sum::<usize>() * size_of::<u32>();
        chunks + free + self.chunks.capacity() * size_of::<Vec<u8>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_is_the_shortest_that_is_long_enough() {
        for bytes in 1..=BYTES_MAX.max(512) {
            let class = class_of(bytes);
            assert!(class_bytes(class) >= bytes);
            assert!(class == 0 || class_bytes(class - 1) < bytes);
        }
    }

    #[test]
    fn segments_do_not_overlap_and_are_used_again() {
        let mut pool = Pool::default();
        let places: Vec<(u32, u8)> = (0..200_u8).map(|i| (pool.take(i % 5), i % 5)).collect();
        for (i, &(place, class)) in (0..).zip(&places) {
            pool.at_mut(place)[..class_bytes(class)].fill(i);
        }
        for (i, &(place, class)) in (0..).zip(&places) {
            assert!(pool.at(place)[..class_bytes(class)].iter().all(|byte| *byte == i));
        }
        let (first, class) = places[7];
        pool.give_back(first, class);
        assert_eq!(pool.take(class), first);
        pool.copy(places[3].0, places[198].0, 8);
        pool.copy(places[4].0, places[3].0, 8);
        assert_eq!(pool.at(places[198].0)[..8], [3; 8]);
        assert_eq!(pool.at(places[3].0)[..8], [4; 8]);
    }
}
