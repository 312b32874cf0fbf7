//! The rows of one key in the overlay, kept in order: insertion, removal and search cost about a
//! logarithm plus a copy within a small block, also for a key with a million rows.

/// Rows of a block before it is split.
const BLOCK_ROWS: usize = 512;

/// Row numbers in the order that the caller's comparisons say.
#[derive(Debug)]
pub(super) enum SortedRows {
    /// At most one row, which most keys have.
    One(Option<u32>),
    /// Blocks, none of them empty.
    Blocks(Vec<Vec<u32>>),
}

/// A place in [`SortedRows`]: block and index within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(usize, usize);

impl SortedRows {
    /// No rows.
    pub(super) fn new() -> Self {
        Self::One(None)
    }

    fn block(&self, block: usize) -> &[u32] {
        match self {
            Self::One(row) if block == 0 => row.as_slice(),
            Self::One(_) => &[],
            Self::Blocks(blocks) => blocks.get(block).map_or(&[], Vec::as_slice),
        }
    }

    /// The first place whose row is not less.
    pub(super) fn lower_bound(&self, is_less: impl Fn(u32) -> bool) -> Place {
        let block = match self {
            Self::One(_) => 0,
            Self::Blocks(blocks) => {
                let ends_before = |b: &Vec<u32>| b.last().is_some_and(|&row| is_less(row));
                blocks.partition_point(ends_before)
            }
        };
        Place(block, self.block(block).partition_point(|&row| is_less(row)))
    }

    /// The row at a place, if there is one.
    pub(super) fn get(&self, place: Place) -> Option<u32> {
        self.block(place.0).get(place.1).copied()
    }

    /// The place after one that holds a row.
    pub(super) fn after(&self, place: Place) -> Place {
        let Place(block, at) = place;
        if at + 1 < self.block(block).len() { Place(block, at + 1) } else { Place(block + 1, 0) }
    }

    /// Puts `row` before the row at `place`; returns how many bytes more the heap holds.
    pub(super) fn insert(&mut self, place: Place, row: u32) -> usize {
        match self {
            Self::One(one @ None) => {
                *one = Some(row);
                0
            }
            Self::One(Some(one)) => {
                let rows = if place.1 == 0 { [row, *one] } else { [*one, row] };
                *self = Self::Blocks(vec![rows.to_vec()]);
                size_of::<Vec<u32>>() + size_of_val(&rows)
            }
            Self::Blocks(blocks) => insert_into(blocks, place, row),
        }
    }

    /// Removes the row at `place`; returns how many bytes less the heap holds.
    pub(super) fn remove(&mut self, place: Place) -> usize {
        match self {
            Self::One(row) => {
                *row = None;
                0
            }
            Self::Blocks(blocks) => {
                blocks[place.0].remove(place.1);
                if blocks[place.0].is_empty() { block_bytes(&blocks.remove(place.0)) } else { 0 }
            }
        }
    }

    /// All rows in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (one, blocks): (&[u32], &[Vec<u32>]) = match self {
            Self::One(row) => (row.as_slice(), &[]),
            Self::Blocks(blocks) => (&[], blocks),
        };
        one.iter().chain(blocks.iter().flatten()).copied()
    }
}

fn block_bytes(block: &Vec<u32>) -> usize {
    block.capacity() * size_of::<u32>()
}

fn insert_into(blocks: &mut Vec<Vec<u32>>, place: Place, row: u32) -> usize {
    let list = |blocks: &Vec<Vec<u32>>| blocks.capacity() * size_of::<Vec<u32>>();
    let list_before = list(blocks);
    // A place past the end belongs to the end of the last block.
    let Place(block, at) = match blocks.last() {
        Some(last) if place.0 == blocks.len() => Place(blocks.len() - 1, last.len()),
        Some(_) => place,
        None => {
            blocks.push(vec![row]);
            return list(blocks) - list_before + block_bytes(&blocks[0]);
        }
    };
    let before = block_bytes(&blocks[block]);
    blocks[block].insert(at, row);
    let mut after = block_bytes(&blocks[block]);
    if blocks[block].len() > BLOCK_ROWS {
        let upper = blocks[block].split_off(BLOCK_ROWS / 2);
        after += block_bytes(&upper);
        blocks.insert(block + 1, upper);
    }
    list(blocks) - list_before + after - before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_sorted_through_insertions_and_removals() {
        let mut rows = SortedRows::new();
        let mut model = std::collections::BTreeSet::new();
        let mut number = 1_u32;
        let mut bytes = 0;
        for step in 0..20_000 {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let row = number >> 18;
            let place = rows.lower_bound(|r| r < row);
            if rows.get(place) == Some(row) {
                bytes -= rows.remove(place);
                assert!(model.remove(&row));
            } else if step < 10_000 || number.is_multiple_of(3) {
                bytes += rows.insert(place, row);
                assert!(model.insert(row));
            }
        }
        assert!(rows.iter().eq(model.iter().copied()));
        let SortedRows::Blocks(blocks) = &rows else { panic!("one row") };
        let blocks_bytes: usize = blocks.iter().map(block_bytes).sum();
        assert_eq!(bytes, blocks_bytes + blocks.capacity() * size_of::<Vec<u32>>());
        let mut place = rows.lower_bound(|_| false);
        for &row in &model {
            assert_eq!(rows.get(place), Some(row));
            place = rows.after(place);
        }
        assert_eq!(rows.get(place), None);
        for row in model {
            rows.remove(rows.lower_bound(|r| r < row));
        }
        assert_eq!(rows.iter().count(), 0);
        rows.insert(rows.lower_bound(|r| r < 5), 5);
        assert!(rows.iter().eq([5]));
    }
}
