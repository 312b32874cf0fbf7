//! [`Normal`]: the events that matter, in normal form. Two sets of events that can never again be
//! told apart have the same normal form, so that the form is a function of the set alone.
//!
//! * One upsert per group and sequence. Of several, the greatest plain values win as a whole; a
//!   column under IGNORE NULL UPDATES takes its own greatest value, NULL being the least. Both are
//!   maxima, so that no order of arrival shows.
//! * Type 2: a delete hides the upserts of its sequence. Everything else is kept.
//! * Type 1: of a key only what can still decide. Without ignored columns that is its last event;
//!   with them, its last delete, its last upsert, and the last upsert that fills each column.

use std::cmp::Ordering;
use std::ops::Range;

use crate::scd::ScdType;
use crate::scd::events::Events;
use crate::scd::layout::Layout;

/// Events in order. `base[i]` names the event that gives key, sequence, kind and plain columns;
/// `ignored[c][i]` the one that gives the `c`-th ignored column.
#[derive(Debug, Default)]
pub(super) struct Normal {
    pub(super) base: Vec<u32>,
    pub(super) ignored: Vec<Vec<u32>>,
}

/// What bounds and rules apply.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) layout: &'a Layout,
    pub(super) scd_type: ScdType,
    /// Events that a truncate has removed.
    pub(super) dead: Option<&'a [bool]>,
}

impl Normal {
    /// Normal form of the events that `pick` accepts. `clash` hears of every upsert that disagrees
    /// with another one of its sequence.
    pub(super) fn new(
        rules: Rules<'_>,
        events: &Events,
        pick: impl Fn(u32) -> bool,
        mut clash: impl FnMut(u32),
    ) -> Self {
        let mut merged = Self::empty(rules.layout);
        let mut group = 0;
        for &event in &events.order {
            if !pick(event) || rules.dead.is_some_and(|dead| dead[event as usize]) {
                continue;
            }
            let last = merged.base.last().copied();
            if last.is_some_and(|last| !events.same_group(last, event)) {
                merged.close_group(rules, events, group);
                group = merged.base.len();
            }
            match last.filter(|&last| events.same_sequence(last, event)) {
                Some(last) if events.is_delete(last) == events.is_delete(event) => {
                    if !events.is_delete(event) && merged.merge(rules.layout, events, event) {
                        clash(event);
                    }
                }
                Some(_) if rules.scd_type == ScdType::Type2 => {}
                _ => merged.push(event),
            }
        }
        merged.close_group(rules, events, group);
        merged
    }

    fn empty(layout: &Layout) -> Self {
        Self { base: Vec::new(), ignored: vec![Vec::new(); layout.ignored.len()] }
    }

    fn push(&mut self, event: u32) {
        self.base.push(event);
        self.ignored.iter_mut().for_each(|column| column.push(event));
    }

    /// Merges an upsert into the last one; true when the two disagree.
    fn merge(&mut self, layout: &Layout, events: &Events, event: u32) -> bool {
        let mut disagree = false;
        if let Some(base) = self.base.last_mut() {
            let order = events.cmp_plain(event, *base);
            disagree |= order != Ordering::Equal;
            if order == Ordering::Greater {
                *base = event;
            }
        }
        for (at, column) in self.ignored.iter_mut().enumerate() {
            let Some(best) = column.last_mut() else { continue };
            let order = events.cmp_ignored(at, event, *best);
            let null = |event| events.is_null(layout.ignored[at], event);
            disagree |= order != Ordering::Equal && !null(event) && !null(*best);
            if order == Ordering::Greater {
                *best = event;
            }
        }
        disagree
    }

    /// Type 1: drops what can no longer decide from the group that starts at `from`.
    fn close_group(&mut self, rules: Rules<'_>, events: &Events, from: usize) {
        let end = self.base.len();
        if rules.scd_type == ScdType::Type2 || end - from < 2 {
            return;
        }
        let life = self.base[from..]
            .iter()
            .rposition(|&event| events.is_delete(event))
            .map_or(from, |delete| from + delete);
        let mut keep = vec![false; end - from];
        keep[end - from - 1] = true;
        if !self.ignored.is_empty() {
            keep[life - from] |= events.is_delete(self.base[life]);
            for (at, column) in self.ignored.iter().enumerate() {
                let fills = |&i: &usize| {
                    !events.is_delete(self.base[i])
                        && !events.is_null(rules.layout.ignored[at], column[i])
                };
                if let Some(last) = (life..end).rev().find(fills) {
                    keep[last - from] = true;
                }
            }
        }
        retain(&mut self.base, from, &keep);
        self.ignored.iter_mut().for_each(|column| retain(column, from, &keep));
    }

    /// Without the events that no event at or above `watermark` can give another meaning: those up to
    /// a delete below it, and in type 2 those before the run of the last upsert below it, whose
    /// versions have ended for good.
    pub(super) fn unsettled(&self, rules: Rules<'_>, events: &Events, watermark: u64) -> Self {
        let mut kept = Self::empty(rules.layout);
        let (mut start, count) = (0, self.base.len());
        while start < count {
            let first = self.base[start];
            let same = |&&event: &&u32| events.same_group(first, event);
            let end = start + self.base[start..].iter().take_while(same).count();
            let from = match events.partial.contains(&events.group[first as usize]) {
                true => start,
                false => self.unsettled_from(rules, events, watermark, start..end),
            };
            kept.base.extend_from_slice(&self.base[from..end]);
            for (kept, column) in kept.ignored.iter_mut().zip(&self.ignored) {
                kept.extend_from_slice(&column[from..end]);
            }
            start = end;
        }
        kept
    }

    /// The first event of a group that is not settled.
    fn unsettled_from(
        &self,
        rules: Rules<'_>,
        events: &Events,
        watermark: u64,
        group: Range<usize>,
    ) -> usize {
        let is_old = |&at: &usize| events.is_below(self.base[at], watermark);
        let old = group.clone().take_while(is_old).count();
        let old = group.start..group.start + old;
        let delete = old.clone().rev().find(|&at| events.is_delete(self.base[at]));
        let life = delete.map_or(old.start, |delete| delete + 1);
        if rules.scd_type == ScdType::Type1 || !self.ignored.is_empty() || life == old.end {
            return life;
        }
        let mut run = old.end - 1;
        while run > life && events.eq_tracked(self.base[run - 1], self.base[run]) {
            run -= 1;
        }
        run
    }

    /// True when the event at `at` is the event `event` as it stands, with nothing merged in.
    pub(super) fn is_plainly(&self, at: usize, event: u32) -> bool {
        self.base[at] == event && self.ignored.iter().all(|column| column[at] == event)
    }
}

/// Drops the elements from `from` on that are not to be kept.
fn retain(list: &mut Vec<u32>, from: usize, keep: &[bool]) {
    let mut write = from;
    for (offset, &kept) in keep.iter().enumerate() {
        if kept {
            list[write] = list[from + offset];
            write += 1;
        }
    }
    list.truncate(write);
}
