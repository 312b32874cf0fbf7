//! All rows of the multisets in two tiers: those of small groups side by side, group by group, where a
//! change costs one or two cache misses; those of large groups, and all that the first tier does not
//! take, in the list of blocks. A group is in one of them.

use std::fmt::Debug;
use std::ops::Range;

use deltaic_batch::Result;

use super::blocks::Blocks;
use super::found::Found;
use super::rows::Rows;
use super::sorted::Sorted;

/// Groups that are looked at before the first of them is worked on, so that their cache misses overlap.
const AHEAD: usize = if cfg!(test) { 3 } else { 32 };

/// The tier of small groups. An empty group is small.
pub(super) trait SmallGroups<R: Rows>: Default + Debug + Send + Sync {
    /// Is told the rows of a delta beforehand.
    fn make_room(&mut self, rows: &R);

    /// True when all groups are large.
    fn is_off(&self) -> bool;

    fn is_large(&self, group: u32) -> bool;

    /// An empty group becomes small.
    fn set_small(&mut self, group: u32);

    /// Reads what will be read of some groups, one load not waiting for another.
    fn warm(&self, groups: impl Iterator<Item = u32> + Clone);

    /// Takes all rows of an empty group, or none of them, and the group is large.
    fn append(&mut self, rows: &Sorted<R>, run: Range<usize>) -> bool;

    /// Adds rows of a small group, and tells of each its weight before and after. Returns the
    /// position of the first that it does not take, or the end of the run.
    fn add(
        &mut self,
        delta: &Sorted<R>,
        run: Range<usize>,
        tell: &mut impl FnMut(usize, i64, i64),
    ) -> usize;

    /// Moves the rows of a group elsewhere: it is large now.
    fn evict(&mut self, group: u32, into: &mut Sorted<R>);

    /// See [`Tiers::first`].
    fn add_first(&self, group: u32, places: i64, found: &mut Found<R>);

    /// See [`Tiers::last`].
    fn add_last(&self, group: u32, found: &mut Found<R>);

    /// See [`Tiers::all`].
    fn add_all(&self, group: u32, found: &mut Found<R>);

    fn is_empty(&self, group: u32) -> bool;

    /// Appends all rows.
    fn unpack(&self, into: &mut Sorted<R>);

    /// Number of different rows.
    fn len(&self) -> usize;

    fn heap_bytes(&self) -> usize;
}

/// Both tiers.
#[derive(Debug)]
pub(super) struct Tiers<R: Rows> {
    small: R::Small,
    large: Blocks<R>,
}

impl<R: Rows> Default for Tiers<R> {
    fn default() -> Self {
        Self { small: R::Small::default(), large: Blocks::default() }
    }
}

impl<R: Rows> Tiers<R> {
    /// Number of different rows.
    pub(super) fn len(&self) -> usize {
        self.small.len() + self.large.len()
    }

    /// Bytes held in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.small.heap_bytes() + self.large.memory_bytes()
    }

    /// To be called with the rows of a delta, in any order, before any of them is added.
    pub(super) fn make_room(&mut self, rows: &R) {
        self.small.make_room(rows);
    }

    /// Appends rows whose groups come after all that are there.
    pub(super) fn append(&mut self, rows: &Sorted<R>) {
        let mut large = Vec::new();
        for_each_run(&rows.groups, |run| {
            if !self.small.append(rows, run.clone()) {
                push_range(&mut large, run);
            }
        });
        match large.as_slice() {
            [] => {}
            [all] if all.len() == rows.len() => self.large.append(rows),
            _ => self.large.append(&rows.parts(&large)),
        }
    }

    /// Adds a delta, and tells of each of its rows the weight before and after.
    pub(super) fn apply(
        &mut self,
        delta: &Sorted<R>,
        mut tell: impl FnMut(usize, i64, i64),
    ) -> Result<()> {
        let mut evicted = Sorted::default();
        let mut large = Vec::new();
        let mut runs: Vec<Range<usize>> = Vec::with_capacity(AHEAD);
        let mut work = |this: &mut Self, runs: &mut Vec<Range<usize>>| {
            this.small.warm(runs.iter().map(|run| delta.groups[run.start]));
            for run in runs.drain(..) {
                let group = delta.groups[run.start];
                let mut start = run.start;
                if !this.small.is_large(group) {
                    start = this.small.add(delta, run.clone(), &mut tell);
                    if start < run.end {
                        this.small.evict(group, &mut evicted);
                    }
                }
                push_range(&mut large, start..run.end);
            }
        };
        for_each_run(&delta.groups, |run| {
            runs.push(run);
            if runs.len() == AHEAD {
                work(self, &mut runs);
            }
        });
        work(self, &mut runs);
        self.large.apply(&evicted, |_, _, _| ())?;
        self.apply_to_large(delta, &large, tell)
    }

    fn apply_to_large(
        &mut self,
        delta: &Sorted<R>,
        parts: &[Range<usize>],
        mut tell: impl FnMut(usize, i64, i64),
    ) -> Result<()> {
        match parts {
            [] => return Ok(()),
            [all] if all.len() == delta.len() => self.large.apply(delta, tell)?,
            _ => {
                let sources: Vec<usize> = parts.iter().cloned().flatten().collect();
                let tell = |at: usize, before, after| tell(sources[at], before, after);
                self.large.apply(&delta.parts(parts), tell)?;
            }
        }
        if self.small.is_off() {
            return Ok(());
        }
        for part in parts {
            for_each_run(&delta.groups[part.clone()], |run| {
                let run = part.start + run.start..part.start + run.end;
                let group = delta.groups[run.start];
                if delta.weights[run].iter().any(|&w| w < 0) && self.large.is_empty(group) {
                    self.small.set_small(group);
                }
            });
        }
        Ok(())
    }

    /// All rows, in the order of group and row within each tier.
    pub(super) fn unpack(&self) -> Sorted<R> {
        let mut all = Sorted::default();
        self.small.unpack(&mut all);
        self.large.unpack(&mut all);
        all
    }

    /// True when a group has no rows.
    pub(super) fn is_empty(&self, group: u32) -> bool {
        if self.small.is_large(group) {
            self.large.is_empty(group)
        } else {
            self.small.is_empty(group)
        }
    }

    /// Where the rows of a group are, if it is large and has some.
    pub(super) fn blocks_of(&self, group: u32) -> Option<&Blocks<R>> {
        (self.small.is_large(group) && !self.large.is_empty(group)).then_some(&self.large)
    }

    /// Calls `visit` with each group and, if it is large, the first block that may have rows of it.
    /// The groups are in ascending order.
    fn for_each_group(&self, groups: &[u32], mut visit: impl FnMut(u32, Option<usize>)) {
        let mut from = 0;
        let mut firsts = Vec::with_capacity(AHEAD);
        for groups in groups.chunks(AHEAD) {
            self.small.warm(groups.iter().copied());
            firsts.clear();
            for &group in groups.iter().filter(|group| self.small.is_large(**group)) {
                from = self.large.first_block(from, group);
                firsts.push((from, group));
            }
            self.large.warm(firsts.iter().copied());
            let mut large = firsts.iter().peekable();
            for &group in groups {
                let first = large.next_if(|(_, large)| *large == group);
                visit(group, first.map(|(from, _)| *from));
            }
        }
    }

    /// The first rows of each group, as many as fill `places` (a row of weight 2 fills two; a row of
    /// negative weight is passed over). The groups are in ascending order.
    pub(super) fn first(&self, groups: &[u32], places: i64) -> Found<R> {
        let mut found = Found::default();
        self.for_each_group(groups, |group, from| self.add_first(group, from, places, &mut found));
        found
    }

    /// The last row of each group that is not of negative weight. The groups are in ascending order.
    pub(super) fn last(&self, groups: &[u32]) -> Found<R> {
        let mut found = Found::default();
        self.for_each_group(groups, |group, from| self.add_last(group, from, &mut found));
        found
    }

    /// [`Self::first`] and [`Self::last`] at once, one row each.
    pub(super) fn ends(&self, groups: &[u32]) -> (Found<R>, Found<R>) {
        let (mut first, mut last) = (Found::default(), Found::default());
        self.for_each_group(groups, |group, from| {
            self.add_first(group, from, 1, &mut first);
            self.add_last(group, from, &mut last);
        });
        (first, last)
    }

    /// All rows of each group. The groups are in ascending order.
    pub(super) fn all(&self, groups: &[u32]) -> Found<R> {
        let mut found = Found::default();
        self.for_each_group(groups, |group, from| {
            match from {
                Some(from) => self.large.add_all(group, from, &mut found),
                None => self.small.add_all(group, &mut found),
            }
            found.end_group();
        });
        found
    }

    #[inline]
    fn add_first(&self, group: u32, from: Option<usize>, places: i64, found: &mut Found<R>) {
        match from {
            Some(from) => self.large.add_first(group, from, places, found),
            None => self.small.add_first(group, places, found),
        }
        found.end_group();
    }

    #[inline]
    fn add_last(&self, group: u32, from: Option<usize>, found: &mut Found<R>) {
        match from {
            Some(from) => self.large.add_last(group, from, found),
            None => self.small.add_last(group, found),
        }
        found.end_group();
    }
}

/// Calls `visit` with the rows of each group.
fn for_each_run(groups: &[u32], mut visit: impl FnMut(Range<usize>)) {
    let mut start = 0;
    while start < groups.len() {
        let group = groups[start];
        let end = start + groups[start..].iter().take_while(|&&other| other == group).count();
        visit(start..end);
        start = end;
    }
}

/// Appends a range to a list of ranges in order, or to the last one.
fn push_range(ranges: &mut Vec<Range<usize>>, range: Range<usize>) {
    match ranges.last_mut() {
        _ if range.is_empty() => {}
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

/// For rows that are all kept in blocks.
#[derive(Debug, Default)]
pub(super) struct NoSmallGroups;

impl<R: Rows> SmallGroups<R> for NoSmallGroups {
    fn make_room(&mut self, _rows: &R) {}

    fn is_off(&self) -> bool {
        true
    }

    fn is_large(&self, _group: u32) -> bool {
        true
    }

    fn set_small(&mut self, _group: u32) {}

    fn warm(&self, _groups: impl Iterator<Item = u32> + Clone) {}

    fn append(&mut self, _rows: &Sorted<R>, _run: Range<usize>) -> bool {
        false
    }

    fn add(
        &mut self,
        _delta: &Sorted<R>,
        run: Range<usize>,
        _tell: &mut impl FnMut(usize, i64, i64),
    ) -> usize {
        run.start
    }

    fn evict(&mut self, _group: u32, _into: &mut Sorted<R>) {}

    fn add_first(&self, _group: u32, _places: i64, _found: &mut Found<R>) {}

    fn add_last(&self, _group: u32, _found: &mut Found<R>) {}

    fn add_all(&self, _group: u32, _found: &mut Found<R>) {}

    fn is_empty(&self, _group: u32) -> bool {
        true
    }

    fn unpack(&self, _into: &mut Sorted<R>) {}

    fn len(&self) -> usize {
        0
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}
