//! [`Versions`]: the rows of the target that a normal form stands for, and their difference.

use std::cmp::Ordering;

use crate::scd::ScdType;
use crate::scd::events::Events;
use crate::scd::layout::Layout;
use crate::scd::normal::{Normal, Rules};

/// An end that is still open.
pub(super) const OPEN: u32 = u32::MAX;

/// Rows of the target, by the events that give their parts.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// Keys and plain columns.
    pub(super) base: Vec<u32>,
    /// Each ignored column.
    pub(super) ignored: Vec<Vec<u32>>,
    /// Start of the version (its sequence).
    pub(super) start: Vec<u32>,
    /// End of the version (its sequence), or [`OPEN`].
    pub(super) end: Vec<u32>,
}

impl Versions {
    fn empty(layout: &Layout) -> Self {
        Self { ignored: vec![Vec::new(); layout.ignored.len()], ..Self::default() }
    }

    /// One walk over the events, by group and sequence.
    pub(super) fn new(rules: Rules<'_>, events: &Events, normal: &Normal) -> Self {
        let mut out = Self::empty(rules.layout);
        // Value of each ignored column in the present life, and the upsert before this one.
        let mut carried = vec![OPEN; normal.ignored.len()];
        let mut before: Option<u32> = None;
        for (i, &event) in normal.base.iter().enumerate() {
            let same_group = i > 0 && events.same_group(normal.base[i - 1], event);
            if !same_group || events.is_delete(event) {
                carried.fill(OPEN);
            }
            if !same_group {
                before = None;
            }
            if events.is_delete(event) {
                if before.take().is_some() {
                    out.close(rules, event);
                }
                continue;
            }
            for (column, carried) in carried.iter_mut().enumerate() {
                let source = normal.ignored[column][i];
                if *carried == OPEN || !events.is_null(rules.layout.ignored[column], source) {
                    *carried = source;
                }
            }
            let extends = match (before, rules.scd_type) {
                (None, _) => false,
                (Some(_), ScdType::Type1) => true,
                (Some(last), ScdType::Type2) => {
                    out.continues(rules.layout, events, last, event, &carried)
                }
            };
            if extends {
                out.extend(event, &carried);
            } else {
                if before.is_some() {
                    out.close(rules, event);
                }
                out.open(event, &carried);
            }
            before = Some(event);
        }
        out
    }

    fn open(&mut self, event: u32, carried: &[u32]) {
        self.base.push(event);
        self.start.push(event);
        self.end.push(OPEN);
        for (column, &source) in self.ignored.iter_mut().zip(carried) {
            column.push(source);
        }
    }

    fn extend(&mut self, event: u32, carried: &[u32]) {
        if let Some(base) = self.base.last_mut() {
            *base = event;
        }
        for (column, &source) in self.ignored.iter_mut().zip(carried) {
            if let Some(last) = column.last_mut() {
                *last = source;
            }
        }
    }

    /// Ends the last version; in type 1 a delete removes it.
    fn close(&mut self, rules: Rules<'_>, event: u32) {
        match rules.scd_type {
            ScdType::Type2 => {
                if let Some(end) = self.end.last_mut() {
                    *end = event;
                }
            }
            ScdType::Type1 => {
                self.base.pop();
                self.start.pop();
                self.end.pop();
                for column in &mut self.ignored {
                    column.pop();
                }
            }
        }
    }

    fn continues(
        &self,
        layout: &Layout,
        events: &Events,
        last: u32,
        event: u32,
        carried: &[u32],
    ) -> bool {
        events.eq_tracked(last, event)
            && layout.tracked_ignored.iter().all(|&column| {
                let last = self.ignored[column].last().copied().unwrap_or(event);
                events.cmp_ignored(column, last, carried[column]) == Ordering::Equal
            })
    }

    /// True when the rows at `at` and `other_at` of `other` are equal in all but key and start.
    fn same_row(&self, at: usize, other: &Self, other_at: usize, events: &Events) -> bool {
        let same_end = match (self.end[at], other.end[other_at]) {
            (OPEN, OPEN) => true,
            (OPEN, _) | (_, OPEN) => false,
            (a, b) => events.same_sequence(a, b),
        };
        same_end
            && events.cmp_plain(self.base[at], other.base[other_at]) == Ordering::Equal
            && self.ignored.iter().zip(&other.ignored).enumerate().all(|(column, (mine, its))| {
                events.cmp_ignored(column, mine[at], its[other_at]) == Ordering::Equal
            })
    }
}

/// The net difference of the target, as rows of `old` that go and rows of `new` that come. A row
/// is known by its group and, in type 2, its start, so that one pass over both finds all.
pub(super) fn difference(
    events: &Events,
    scd_type: ScdType,
    old: &Versions,
    new: &Versions,
) -> (Vec<usize>, Vec<usize>) {
    let by_start = scd_type == ScdType::Type2;
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    let (mut o, mut n) = (0, 0);
    while o < old.base.len() || n < new.base.len() {
        let order = match (old.start.get(o), new.start.get(n)) {
            (Some(&a), Some(&b)) => events.cmp(a, b, by_start),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        match order {
            Ordering::Less => gone.push(o),
            Ordering::Greater => come.push(n),
            Ordering::Equal if !old.same_row(o, new, n, events) => {
                gone.push(o);
                come.push(n);
            }
            Ordering::Equal => {}
        }
        o += usize::from(order.is_le());
        n += usize::from(order.is_ge());
    }
    (gone, come)
}
