//! Rows of many groups in one order: a list of blocks, and a directory with a lower bound of each.
//!
//! A delta is merged into the blocks that it falls into: a few rows in place, where they move the
//! rest of the block; many at once, for which it is unpacked, merged and packed again. Either way a
//! step costs O(delta) searches and at most one block per row of the delta. A block
//! that grows too long is split; when deletions have left blocks short on average, all are packed
//! anew, which as many deletions have paid for.
//!
//! The blocks of a small delta are cold, and each costs some cache misses. Several are looked at
//! before the first is worked on, so that their misses overlap.

use std::cmp::Ordering;
use std::ops::Range;

use deltaic_batch::Result;

use super::block::Block;
use super::found::Found;
use super::rows::{BLOCK_BYTES_MAX, Rows};
use super::sorted::Sorted;
use crate::arrangement::weight_overflow;

/// Rows of a block that is built from a long list. Unit tests have short blocks, and so many.
const BLOCK_ROWS: usize = if cfg!(test) { 8 } else { 256 };
/// Rows of the longest block.
const BLOCK_ROWS_MAX: usize = BLOCK_ROWS * 3 / 2;
/// Rows that blocks have on average at least, unless there are few blocks.
const BLOCK_ROWS_MIN: usize = BLOCK_ROWS / 4;
const FEW_BLOCKS: usize = 16;
/// So many blocks are replaced one after another; more in one pass over all.
const FEW_CUTS: usize = if cfg!(test) { 1 } else { 8 };
/// Blocks that are looked at before the first of them is worked on.
const AHEAD: usize = if cfg!(test) { 3 } else { 32 };
/// Up to this part of a block's rows are changed in place.
const EDIT_SHARE: usize = if cfg!(test) { 4 } else { 32 };

#[derive(Debug)]
pub(super) struct Blocks<R: Rows> {
    blocks: Vec<Box<Block<R>>>,
    /// Group of the lower bound of each block, and its row.
    first_groups: Vec<u32>,
    first_rows: R,
    rows: usize,
    heap_bytes: usize,
}

/// What takes the place of one block.
struct Cut<R: Rows> {
    index: usize,
    sorted: Sorted<R>,
}

impl<R: Rows> Default for Blocks<R> {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            first_groups: Vec::new(),
            first_rows: R::default(),
            rows: 0,
            heap_bytes: 0,
        }
    }
}

impl<R: Rows> Blocks<R> {
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// Bytes held in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.heap_bytes
            + self.blocks.capacity() * size_of::<Box<Block<R>>>()
            + self.blocks.len() * size_of::<Block<R>>()
            + self.first_groups.capacity() * size_of::<u32>()
            + self.first_rows.heap_bytes()
    }

    /// Adds a delta, and tells of each of its rows the weight before and after.
    pub(super) fn apply(
        &mut self,
        delta: &Sorted<R>,
        mut tell: impl FnMut(usize, i64, i64),
    ) -> Result<()> {
        if self.blocks.is_empty() || delta.len() == 0 {
            delta.weights.iter().enumerate().for_each(|(at, &weight)| tell(at, 0, weight));
            self.append(delta);
            return Ok(());
        }
        let (mut old, mut new) = (Sorted::default(), Sorted::default());
        let (mut next, mut index) = (0, 0);
        let mut cuts = Vec::new();
        let mut parts = Vec::with_capacity(AHEAD);
        while next < delta.len() {
            while parts.len() < AHEAD && next < delta.len() {
                index = self.holder(index, delta, next);
                let end = self.end_of_part(index, delta, next);
                parts.push((index, next..end));
                next = end;
            }
            self.warm(parts.iter().map(|(index, part)| (*index, delta.groups[part.start])));
            for (index, part) in parts.drain(..) {
                let Range { start: mut at, end } = part;
                if (end - at) * EDIT_SHARE <= self.blocks[index].len() {
                    at = self.edit(index, delta, at..end, &mut tell)?;
                    if at == end {
                        continue;
                    }
                }
                old.clear();
                new.clear();
                self.blocks[index].unpack(&mut old);
                merge(&old, delta, at..end, &mut new, &mut tell)?;
                self.rows = self.rows + new.len() - old.len();
                let long_bytes = new.rows.long_bytes(0..new.len());
                let is_short = long_bytes <= BLOCK_BYTES_MAX || new.len() == 1;
                if is_short && (1..=BLOCK_ROWS_MAX).contains(&new.len()) {
                    let block = Block::new(&new, 0..new.len());
                    self.heap_bytes += block.heap_bytes();
                    self.heap_bytes -= self.blocks[index].heap_bytes();
                    *self.blocks[index] = block;
                } else {
                    cuts.push(Cut { index, sorted: std::mem::take(&mut new) });
                }
            }
        }
        self.replace(cuts);
        if self.has_short_blocks() {
            let mut all = Sorted::default();
            self.unpack(&mut all);
            *self = Self::default();
            self.append(&all);
        }
        Ok(())
    }

    /// True when packing all rows anew makes far fewer blocks.
    fn has_short_blocks(&self) -> bool {
        let count = self.blocks.len();
        count > FEW_BLOCKS
            && self.rows < count * BLOCK_ROWS_MIN
            && self.heap_bytes < count * (BLOCK_BYTES_MAX / 4)
    }

    /// See [`Block::edit`].
    fn edit(
        &mut self,
        index: usize,
        delta: &Sorted<R>,
        part: Range<usize>,
        tell: &mut impl FnMut(usize, i64, i64),
    ) -> Result<usize> {
        let block = &mut self.blocks[index];
        let (rows, bytes) = (block.len(), block.heap_bytes());
        let end = block.edit(delta, part, BLOCK_ROWS_MAX, tell)?;
        self.rows = self.rows + block.len() - rows;
        self.heap_bytes = self.heap_bytes + block.heap_bytes() - bytes;
        Ok(end)
    }

    /// The block that holds row `at` of the delta, or where it belongs; not before `from`.
    fn holder(&self, from: usize, delta: &Sorted<R>, at: usize) -> usize {
        let starts_after = |index: usize| self.compare_first(index, delta, at).is_gt();
        gallop(from + 1, self.blocks.len(), |index| !starts_after(index)) - 1
    }

    /// Where the part of the delta ends that belongs to a block.
    fn end_of_part(&self, index: usize, delta: &Sorted<R>, at: usize) -> usize {
        let next = index + 1;
        if next == self.blocks.len() {
            return delta.len();
        }
        gallop(at + 1, delta.len(), |at| self.compare_first(next, delta, at).is_gt())
    }

    #[inline]
    fn compare_first(&self, index: usize, delta: &Sorted<R>, at: usize) -> Ordering {
        let groups = self.first_groups[index].cmp(&delta.groups[at]);
        groups.then_with(|| self.first_rows.compare(index, &delta.rows, at))
    }

    /// Reads what will be read of some blocks for a group each, one load not waiting for another.
    pub(super) fn warm(&self, blocks: impl Iterator<Item = (usize, u32)> + Clone) {
        if self.blocks.is_empty() {
            return;
        }
        let first = blocks.clone().fold(0, |all, (index, _)| all ^ self.blocks[index].len() as u64);
        let second = blocks.fold(0, |all, (index, group)| all ^ self.blocks[index].peek(group));
        std::hint::black_box(first ^ second);
    }

    /// Replaces blocks, in order, by what has become of them: none or several.
    fn replace(&mut self, cuts: Vec<Cut<R>>) {
        if cuts.len() <= FEW_CUTS {
            // From the last one on, so that the places of the others stay.
            for cut in cuts.into_iter().rev() {
                let mut new = Self::default();
                new.push_all(&cut.sorted);
                self.heap_bytes += new.heap_bytes;
                self.heap_bytes -= self.blocks[cut.index].heap_bytes();
                let place = cut.index..=cut.index;
                self.blocks.splice(place.clone(), new.blocks);
                self.first_groups.splice(place, new.first_groups);
                self.first_rows.replace(cut.index, &new.first_rows);
            }
            return;
        }
        let old = std::mem::take(self);
        (self.rows, self.heap_bytes) = (old.rows, old.heap_bytes);
        let mut blocks = old.blocks.into_iter().enumerate();
        let mut copied = 0;
        let keep = |this: &mut Self, from: usize, to: usize| {
            this.first_groups.extend_from_slice(&old.first_groups[from..to]);
            this.first_rows.extend(&old.first_rows, from..to);
        };
        for cut in cuts {
            let before = blocks.by_ref().take(cut.index - copied);
            self.blocks.extend(before.map(|(_, block)| block));
            keep(self, copied, cut.index);
            copied = cut.index + 1;
            if let Some((_, block)) = blocks.next() {
                self.heap_bytes -= block.heap_bytes();
            }
            self.push_all(&cut.sorted);
        }
        self.blocks.extend(blocks.map(|(_, block)| block));
        keep(self, copied, old.first_groups.len());
    }

    /// Appends rows that come after all that are there.
    pub(super) fn append(&mut self, sorted: &Sorted<R>) {
        self.rows += sorted.len();
        self.push_all(sorted);
    }

    /// Appends blocks of about equal length.
    fn push_all(&mut self, sorted: &Sorted<R>) {
        let count = sorted.len().div_ceil(BLOCK_ROWS);
        for i in 0..count {
            self.push(sorted, sorted.len() * i / count..sorted.len() * (i + 1) / count);
        }
    }

    /// Appends a block of these rows, or several if they are too long.
    fn push(&mut self, sorted: &Sorted<R>, range: Range<usize>) {
        if range.len() > 1 && sorted.rows.long_bytes(range.clone()) > BLOCK_BYTES_MAX {
            let middle = range.start.midpoint(range.end);
            self.push(sorted, range.start..middle);
            self.push(sorted, middle..range.end);
        } else {
            self.first_groups.push(sorted.groups[range.start]);
            self.first_rows.push(&sorted.rows, range.start);
            let block = Block::new(sorted, range);
            self.heap_bytes += block.heap_bytes();
            self.blocks.push(Box::new(block));
        }
    }

    /// Appends all rows.
    pub(super) fn unpack(&self, into: &mut Sorted<R>) {
        self.blocks.iter().for_each(|block| block.unpack(into));
    }

    /// True when a group has no rows.
    pub(super) fn is_empty(&self, group: u32) -> bool {
        let first = self.first_block(0, group);
        let blocks = self.blocks[first..].iter().zip(&self.first_groups[first..]).enumerate();
        let mut blocks = blocks.take_while(|(i, (_, first))| *i == 0 || **first <= group);
        blocks.all(|(_, (block, _))| block.group(group).is_empty())
    }

    /// The first block that may have rows of a group, not before `from`; 0 if there are no blocks.
    pub(super) fn first_block(&self, from: usize, group: u32) -> usize {
        let is_before = |index: usize| self.first_groups[index] < group;
        gallop(from, self.blocks.len(), is_before).max(from + 1) - 1
    }

    /// Adds the first rows of a group, as many as fill `places`; `from` is its first block.
    #[inline]
    pub(super) fn add_first(&self, group: u32, from: usize, places: i64, found: &mut Found<R>) {
        let mut free = places;
        for index in from..self.blocks.len() {
            if free <= 0 || (index > from && self.first_groups[index] > group) {
                break;
            }
            let block = &self.blocks[index];
            free = found.add(block, block.group(group), free);
        }
    }

    /// Adds the last row of a group that is not of negative weight.
    #[inline]
    pub(super) fn add_last(&self, group: u32, from: usize, found: &mut Found<R>) {
        let is_within = |index: usize| self.first_groups[index] <= group;
        let mut end = gallop(from, self.blocks.len(), is_within).max(from + 1);
        let mut free = 1;
        while free > 0 && end > from && end <= self.blocks.len() {
            let block = &self.blocks[end - 1];
            free = found.add(block, block.group(group).rev(), free);
            end -= 1;
        }
    }

    /// Adds all rows of a group.
    pub(super) fn add_all(&self, group: u32, from: usize, found: &mut Found<R>) {
        for index in from..self.blocks.len() {
            if index > from && self.first_groups[index] > group {
                break;
            }
            let block = &self.blocks[index];
            let rows = block.group(group);
            found.weights.extend(rows.clone().map(|at| block.weight(at)));
            found.rows.unpack(&block.rows, rows);
        }
    }
}

/// A place among the rows of a group: a block, and a row of it. Places are in the order of the rows; that
/// behind the last row is in the block after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    block: usize,
    row: usize,
}

/// Places in a group that has rows here.
impl<R: Rows> Blocks<R> {
    pub(super) fn start_of(&self, group: u32) -> Place {
        self.normal(group, Place { block: self.first_block(0, group), row: 0 })
    }

    /// The first row that is not before row `at` of some rows, and whether it is that row.
    pub(super) fn seek(&self, group: u32, rows: &R, at: usize) -> (Place, bool) {
        let is_before = |index: usize| {
            let groups = self.first_groups[index].cmp(&group);
            groups.then_with(|| self.first_rows.compare(index, rows, at)).is_le()
        };
        let block = gallop(0, self.blocks.len(), is_before).max(1) - 1;
        let span = self.span(block, group);
        if span.is_empty() {
            return (self.normal(group, Place { block, row: 0 }), false);
        }
        let (row, is_there) = R::find_packed(&self.blocks[block].rows, span, rows, at);
        (self.normal(group, Place { block, row }), is_there)
    }

    /// The place after a row.
    pub(super) fn after(&self, group: u32, place: Place) -> Place {
        self.normal(group, Place { row: place.row + 1, ..place })
    }

    /// The place so many rows before, or the first one.
    pub(super) fn back(&self, group: u32, place: Place, rows: usize) -> Place {
        let (mut place, mut left) = (place, rows);
        loop {
            let there = place.row - self.span(place.block, group).start.min(place.row);
            if left <= there {
                return Place { row: place.row - left, ..place };
            }
            left -= there;
            let first = Place { row: place.row - there, ..place };
            let Some(previous) = self.block_before(place.block, group) else { return first };
            place = Place { block: previous, row: self.span(previous, group).end };
        }
    }

    /// The last block before one that has rows of a group.
    fn block_before(&self, block: usize, group: u32) -> Option<usize> {
        let mut block = block;
        // Deletions may have left blocks whose lower bound is of a group that they have no row of.
        while self.first_groups.get(block).is_none_or(|&first| first >= group) {
            block = block.checked_sub(1)?;
            if !self.span(block, group).is_empty() {
                return Some(block);
            }
        }
        None
    }

    /// Adds the rows from a place to the end of its block, and gives the place after them; `None`
    /// behind the last row.
    pub(super) fn read(&self, group: u32, place: Place, found: &mut Found<R>) -> Option<Place> {
        let span = self.span(place.block, group);
        let rows = place.row.max(span.start)..span.end;
        if rows.is_empty() {
            return None;
        }
        let block = &self.blocks[place.block];
        found.weights.extend(rows.clone().map(|at| block.weight(at)));
        found.rows.unpack(&block.rows, rows);
        Some(self.normal(group, Place { block: place.block + 1, row: 0 }))
    }

    /// False behind the last row.
    pub(super) fn is_row(&self, group: u32, place: Place) -> bool {
        self.span(place.block, group).contains(&place.row)
    }

    /// Adds the row in a place; false behind the last row.
    pub(super) fn add_one(&self, group: u32, place: Place, found: &mut Found<R>) -> bool {
        if !self.is_row(group, place) {
            return false;
        }
        let block = &self.blocks[place.block];
        found.weights.push(block.weight(place.row));
        found.rows.unpack(&block.rows, place.row..place.row + 1);
        true
    }

    /// The rows of a group in a block; none if there is no such block.
    fn span(&self, block: usize, group: u32) -> Range<usize> {
        self.blocks.get(block).map_or(0..0, |block| block.group(group))
    }

    /// The same place, in the block that its row is in.
    fn normal(&self, group: u32, place: Place) -> Place {
        let mut place = place;
        loop {
            let span = self.span(place.block, group);
            if place.row < span.end {
                return Place { row: place.row.max(span.start), ..place };
            }
            let is_end = |block: usize| self.first_groups.get(block).is_none_or(|&g| g > group);
            if is_end(place.block) {
                return Place { row: 0, ..place };
            }
            place = Place { block: place.block + 1, row: 0 };
        }
    }
}

impl<R: Rows> Found<R> {
    /// Adds rows of a block until no place is free; returns how many are left.
    #[inline]
    fn add(&mut self, block: &Block<R>, rows: impl Iterator<Item = usize>, free: i64) -> i64 {
        let mut free = free;
        for at in rows {
            if free <= 0 {
                break;
            }
            let weight = block.weight(at);
            if weight > 0 {
                self.rows.unpack(&block.rows, at..at + 1);
                self.weights.push(weight);
                free = free.saturating_sub(weight);
            }
        }
        free
    }
}

/// Merges part of a delta into the rows of a block.
fn merge<R: Rows>(
    old: &Sorted<R>,
    delta: &Sorted<R>,
    part: Range<usize>,
    new: &mut Sorted<R>,
    tell: &mut impl FnMut(usize, i64, i64),
) -> Result<()> {
    let mut copied = 0;
    for at in part {
        let group = delta.groups[at];
        let is_before = |place: usize| {
            let groups = old.groups[place].cmp(&group);
            groups.then_with(|| old.rows.compare(place, &delta.rows, at)).is_lt()
        };
        let place = gallop(copied, old.len(), is_before);
        new.extend(old, copied..place);
        copied = place;
        let is_there = place < old.len()
            && old.groups[place] == group
            && old.rows.compare(place, &delta.rows, at).is_eq();
        let before = if is_there { old.weights[place] } else { 0 };
        let after = before.checked_add(delta.weights[at]).ok_or_else(weight_overflow)?;
        tell(at, before, after);
        copied += usize::from(is_there);
        if after != 0 {
            new.push(delta, at, after);
        }
    }
    new.extend(old, copied..old.len());
    Ok(())
}

/// The first index from `from` on for which `is_before` is false, all before it being true: looks
/// at near ones first.
#[inline]
fn gallop(from: usize, len: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut step) = (from, 1);
    while low + step <= len && is_before(low + step - 1) {
        low += step;
        step *= 2;
    }
    let mut high = (low + step - 1).min(len);
    while low < high {
        let middle = low.midpoint(high);
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
