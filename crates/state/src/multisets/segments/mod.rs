//! The rows of small groups, each group's side by side: a slot per group says where.
//!
//! A row is an integer of as few bytes as the values of all groups need; a row of weight 3 is there
//! three times. So a change reads and writes one or two cache lines: the bytes of one group, which are
//! searched and shifted in place. Values beyond the bounds so far begin a new code of at least twice
//! the room; the rows of a group are coded anew when it changes next, so that no step does more than
//! its share. What does not go (too many rows, a negative weight, values too far apart) the caller
//! keeps elsewhere: such a group is large.

mod code;
mod entry;
mod pool;

use std::ops::Range;

use self::code::{Code, bounds_of, union};
use self::entry::{Entries, Entry as _};
use self::pool::{BYTES_MAX, Pool, class_bytes, class_of};
use super::found::Found;
use super::rows::WordRows;
use super::sorted::Sorted;
use super::tiers::SmallGroups;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// See the module.
#[derive(Debug)]
pub(super) struct Segments<const W: usize> {
    /// The last one is that of all groups that are written. Each has more bits than the one before.
    codes: Vec<Code<W>>,
    /// Some rows do not fit into the last code, and none that is short enough would hold them.
    is_short: bool,
    /// By group; groups beyond are empty.
    slots: Vec<Slot>,
    pool: Pool,
    /// Different rows.
    rows: usize,
}

/// Where the rows of a group are.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    place: u32,
    /// Rows, each as often as its weight says; without any there is no segment.
    len: u16,
    class: u8,
    /// Number of the code, or [`LARGE`].
    code: u8,
}

/// Stands for the code of a group whose rows are elsewhere.
const LARGE: u8 = u8::MAX;

/// Evaluates an expression with `Entry` being the integer that rows of this stride fit into.
macro_rules! with_entry {
    ($stride:expr, $result:expr) => {
        if $stride <= size_of::<u64>() {
            type Entry = u64;
            $result
        } else {
            type Entry = u128;
            $result
        }
    };
}

impl<const W: usize> Default for Segments<W> {
    fn default() -> Self {
        Self {
            codes: Vec::new(),
            is_short: false,
            slots: Vec::new(),
            pool: Pool::default(),
            rows: 0,
        }
    }
}

impl<const W: usize> Segments<W> {
    #[inline]
    fn slot(&self, group: u32) -> Slot {
        self.slots.get(group as usize).copied().unwrap_or_default()
    }

    fn slot_mut(&mut self, group: u32) -> &mut Slot {
        let at = group as usize;
        if at >= self.slots.len() {
            // Not twice the room, since there is a slot for every group.
            if at >= self.slots.capacity() {
                self.slots.reserve_exact((at + 1 - self.slots.len()).max(self.slots.len() / 4));
            }
            self.slots.resize(at + 1, Slot::default());
        }
        &mut self.slots[at]
    }

    /// The code, and the bytes of a group that has rows.
    #[inline]
    fn read(&self, slot: Slot) -> Option<(&Code<W>, &[u8])> {
        match self.codes.get(usize::from(slot.code)) {
            Some(code) if slot.len > 0 => Some((code, self.pool.at(slot.place))),
            _ => None,
        }
    }

    /// The code that rows are written in, and its number.
    #[inline]
    fn newest(&self) -> Option<(&Code<W>, u8)> {
        let last = self.codes.len().checked_sub(1)?;
        Some((&self.codes[last], u8::try_from(last).ok()?))
    }

    /// Calls `visit` with the row and the weight of each row of a group, in order.
    fn for_each_row(&self, group: u32, mut visit: impl FnMut([u64; W], i64)) {
        let slot = self.slot(group);
        let Some((code, bytes)) = self.read(slot) else { return };
        with_entry!(code.stride, {
            let entries = Entries::<Entry>::new(bytes, slot.len.into(), code.stride);
            let mut at = 0;
            while at < entries.len() {
                let (entry, end) = entries.run(at);
                visit(code.decode(entry.code()), weight(end - at));
                at = end;
            }
        });
    }

    /// Codes the rows of a group anew, unless they are in the newest code; false if they are too long
    /// for it.
    fn renew(&mut self, group: u32) -> bool {
        let slot = self.slot(group);
        if slot.len == 0 || usize::from(slot.code) + 1 == self.codes.len() {
            return true;
        }
        let (mut rows, count) = (Sorted::default(), self.rows);
        self.for_each_row(group, |row, weight| rows.push_row(group, row, weight));
        let is_taken = self.append(&rows, 0..rows.len());
        if is_taken {
            self.pool.give_back(slot.place, slot.class);
        } else {
            *self.slot_mut(group) = slot;
        }
        self.rows = count;
        is_taken
    }

    /// Adds rows of one group, until one does not go.
    fn add_as<E: entry::Entry>(
        &mut self,
        delta: &Sorted<WordRows<W>>,
        run: Range<usize>,
        tell: &mut impl FnMut(usize, i64, i64),
    ) -> usize {
        let group = delta.groups[run.start];
        if !self.renew(group) {
            return run.start;
        }
        let mut slot = *self.slot_mut(group);
        let Some((&code, number)) = self.newest() else { return run.start };
        let stride = code.stride;
        let mut done = run.start;
        for at in run {
            if self.is_short && !code.holds(&delta.rows.0[at]) {
                break;
            }
            let entry = E::new(code.encode(&delta.rows.0[at]));
            let bytes = if slot.len > 0 { self.pool.at(slot.place) } else { &[] };
            let found = Entries::<E>::new(bytes, slot.len.into(), stride).find(entry);
            let (before, change) = (weight(found.len()), delta.weights[at]);
            let after = before.saturating_add(change);
            let count = usize::try_from(change.unsigned_abs()).unwrap_or(usize::MAX);
            let len = if change < 0 { 0 } else { usize::from(slot.len).saturating_add(count) };
            if after < 0 || len.saturating_mul(stride) > BYTES_MAX {
                break;
            }
            tell(at, before, after);
            self.rows = self.rows + usize::from(after > 0) - usize::from(before > 0);
            if change < 0 {
                slot.remove(&mut self.pool, found.start..found.start + count, stride);
            } else {
                slot.insert(&mut self.pool, found.end, entry, count, stride);
            }
            done = at + 1;
        }
        slot.code = number;
        self.slots[group as usize] = slot;
        done
    }
}

impl Slot {
    /// Makes room for so many more rows at a place, and writes them.
    fn insert<E: entry::Entry>(
        &mut self,
        pool: &mut Pool,
        at: usize,
        entry: E,
        count: usize,
        stride: usize,
    ) {
        let len = usize::from(self.len);
        let bytes = (len + count) * stride;
        if self.len == 0 || bytes > class_bytes(self.class) {
            self.move_to(pool, class_of(bytes), stride);
        }
        let segment = pool.at_mut(self.place);
        segment.copy_within(at * stride..len * stride, (at + count) * stride);
        for at in at..at + count {
            entry.write(&mut segment[at * stride..], E::mask(stride));
        }
        self.len = short(len + count);
    }

    /// Removes rows; a segment that is mostly empty then is changed for a shorter one.
    fn remove(&mut self, pool: &mut Pool, rows: Range<usize>, stride: usize) {
        let len = usize::from(self.len);
        let left = len - rows.len();
        if left == 0 {
            pool.give_back(self.place, self.class);
            *self = Self::default();
            return;
        }
        let segment = pool.at_mut(self.place);
        segment.copy_within(rows.end * stride..len * stride, rows.start * stride);
        self.len = short(left);
        let shorter = class_of(left * stride * 2);
        if shorter < self.class / 2 {
            self.move_to(pool, shorter, stride);
        }
    }

    /// Moves the rows to a segment of another class.
    fn move_to(&mut self, pool: &mut Pool, class: u8, stride: usize) {
        let place = pool.take(class);
        if self.len > 0 {
            pool.copy(self.place, place, usize::from(self.len) * stride);
            pool.give_back(self.place, self.class);
        }
        (self.place, self.class) = (place, class);
    }
}

impl<const W: usize> SmallGroups<WordRows<W>> for Segments<W> {
    fn make_room(&mut self, rows: &WordRows<W>) {
        let Some(mut bounds) = bounds_of(rows) else { return };
        if let Some((code, _)) = self.newest() {
            if code.holds(&bounds.0) && code.holds(&bounds.1) {
                return;
            }
            bounds = union(bounds, code.bounds());
        }
        match Code::try_new(bounds) {
            Some(code) if self.codes.len() < usize::from(LARGE) => self.codes.push(code),
            _ => self.is_short = true,
        }
    }

    fn is_off(&self) -> bool {
        false
    }

    #[inline]
    fn is_large(&self, group: u32) -> bool {
        self.slot(group).code == LARGE
    }

    fn set_small(&mut self, group: u32) {
        *self.slot_mut(group) = Slot::default();
    }

    fn warm(&self, groups: impl Iterator<Item = u32> + Clone) {
        if self.slots.is_empty() {
            return;
        }
        let first = groups.clone().fold(0, |all, group| all ^ self.slot(group).len);
        let second = groups.fold(0, |all, group| {
            let slot = self.slot(group);
            let Some((code, bytes)) = self.read(slot) else { return all };
            let end = usize::from(slot.len) * code.stride;
            (0..end).step_by(LINE_BYTES).chain([end]).fold(all, |all, at| all ^ bytes[at])
        });
        std::hint::black_box((first, second));
    }

    fn append(&mut self, rows: &Sorted<WordRows<W>>, run: Range<usize>) -> bool {
        let group = rows.groups[run.start];
        let Some((&code, number)) = self.newest() else {
            self.slot_mut(group).code = LARGE;
            return false;
        };
        let stride = code.stride;
        let mut total = 0_usize;
        for &weight in &rows.weights[run.clone()] {
            let count = usize::try_from(weight).unwrap_or(usize::MAX);
            total = total.saturating_add(count);
        }
        let bytes = total.saturating_mul(stride);
        let fits = !self.is_short || rows.rows.0[run.clone()].iter().all(|row| code.holds(row));
        if bytes > BYTES_MAX || !fits {
            self.slot_mut(group).code = LARGE;
            return false;
        }
        // With some room, so that the next row does not most often move all.
        let class = class_of((bytes + bytes / 8).min(BYTES_MAX));
        let place = self.pool.take(class);
        let segment = self.pool.at_mut(place);
        with_entry!(stride, {
            let mask = Entry::mask(stride);
            let mut at = 0;
            for (row, &weight) in rows.rows.0[run.clone()].iter().zip(&rows.weights[run.clone()]) {
                let entry = Entry::new(code.encode(row));
                for _ in 0..weight {
                    entry.write(&mut segment[at * stride..], mask);
                    at += 1;
                }
            }
        });
        self.rows += run.len();
        *self.slot_mut(group) = Slot { place, len: short(total), class, code: number };
        true
    }

    fn add(
        &mut self,
        delta: &Sorted<WordRows<W>>,
        run: Range<usize>,
        tell: &mut impl FnMut(usize, i64, i64),
    ) -> usize {
        match self.newest() {
            Some((code, _)) if code.stride <= size_of::<u64>() => {
                self.add_as::<u64>(delta, run, tell)
            }
            _ => self.add_as::<u128>(delta, run, tell),
        }
    }

    fn evict(&mut self, group: u32, into: &mut Sorted<WordRows<W>>) {
        let rows = into.len();
        self.for_each_row(group, |row, weight| into.push_row(group, row, weight));
        self.rows -= into.len() - rows;
        let slot = self.slot(group);
        if slot.len > 0 {
            self.pool.give_back(slot.place, slot.class);
        }
        *self.slot_mut(group) = Slot { code: LARGE, ..Slot::default() };
    }

    #[inline]
    fn add_first(&self, group: u32, places: i64, found: &mut Found<WordRows<W>>) {
        let slot = self.slot(group);
        if let Some((code, bytes)) = self.read(slot) {
            with_entry!(code.stride, {
                let entries = Entries::<Entry>::new(bytes, slot.len.into(), code.stride);
                let (mut at, mut free) = (0, places);
                while at < entries.len() && free > 0 {
                    let (entry, end) = entries.run(at);
                    found.push(code.decode(entry.code()), weight(end - at));
                    free = free.saturating_sub(weight(end - at));
                    at = end;
                }
            });
        }
    }

    #[inline]
    fn add_last(&self, group: u32, found: &mut Found<WordRows<W>>) {
        let slot = self.slot(group);
        if let Some((code, bytes)) = self.read(slot) {
            with_entry!(code.stride, {
                let entries = Entries::<Entry>::new(bytes, slot.len.into(), code.stride);
                let last = entries.get(entries.len() - 1);
                let count = entries.len() - entries.find(last).start;
                found.push(code.decode(last.code()), weight(count));
            });
        }
    }

    fn add_all(&self, group: u32, found: &mut Found<WordRows<W>>) {
        self.for_each_row(group, |row, weight| found.push(row, weight));
    }

    fn is_empty(&self, group: u32) -> bool {
        self.slot(group).len == 0
    }

    fn unpack(&self, into: &mut Sorted<WordRows<W>>) {
        for (group, _) in (0..).zip(&self.slots) {
            self.for_each_row(group, |row, weight| into.push_row(group, row, weight));
        }
    }

    fn len(&self) -> usize {
        self.rows
    }

    fn heap_bytes(&self) -> usize {
        self.pool.heap_bytes() + self.slots.capacity() * size_of::<Slot>()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a segment has fewer bytes")]
fn short(len: usize) -> u16 {
    len as u16
}

#[expect(clippy::cast_possible_wrap, reason = "a segment has fewer bytes")]
fn weight(count: usize) -> i64 {
    count as i64
}
