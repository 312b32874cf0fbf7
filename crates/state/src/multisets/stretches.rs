//! The rows around what a delta has changed: what a window reads of a partition of any size.
//!
//! A stretch is a run of rows of one group, in order, each with its weight before and after the
//! delta; rows that are gone are among them. A large group is entered by search, so that a stretch
//! costs O(log + its rows).

use std::ops::Range;

use arrow::array::{ArrayRef, UInt32Array};
use deltaic_batch::{Error, Result};

use super::blocks::Place;
use super::found::Found;
use super::rows::Rows;
use super::tiers::Tiers;
use super::{GroupRows, Multisets, Store, decoded, order_by_group};

/// The rows that a delta has changed, in the order of group and row.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Changes {
    /// Group of each.
    pub groups: Vec<u32>,
    /// A row of the delta that shows it.
    pub rows: Vec<u32>,
    /// Weights before the delta.
    pub before: Vec<i64>,
    /// Weights after it.
    pub after: Vec<i64>,
}

/// How far a stretch goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// From its start to the group's end.
    ToEnd,
    /// From its start to so many unchanged rows after the last change, and past the rows that agree
    /// with that in so many leading columns, unless these are none.
    Until(usize, usize),
    /// So many unchanged rows on either side of each change: several stretches, where changes are
    /// far from each other. It has no start.
    Around(usize),
}

/// Asks for the stretches of one group.
#[derive(Debug, Clone)]
pub struct StretchOf {
    /// Positions in [`Changes`] of all its changes.
    pub changes: Range<usize>,
    /// The row (of some given ones) after which it starts; else it starts with the group.
    pub after: Option<u32>,
    /// How far it goes. The stretch of a small group goes from one end to the other.
    pub extent: Extent,
}

/// Stretches, one after another.
#[derive(Debug, Clone)]
pub struct Stretches {
    /// What asked for each.
    pub of: Vec<u32>,
    /// Where each ends.
    pub ends: Vec<u32>,
    /// The rows, column by column.
    pub columns: Vec<ArrayRef>,
    /// Their weights before the delta.
    pub before: Vec<i64>,
    /// Their weights after it.
    pub after: Vec<i64>,
}

/// Which rows of groups to look up, next to a row of each given by its leading columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The last row before it.
    Before,
    /// All rows from it on.
    From,
}

/// Stretches whose rows are still encoded.
#[derive(Default)]
struct Encoded<R> {
    of: Vec<u32>,
    ends: Vec<u32>,
    rows: R,
    before: Vec<i64>,
    after: Vec<i64>,
}

/// Calls a macro with the tiers and the functions that encode leading columns and decode rows.
macro_rules! with_codec {
    ($store:expr, $call:ident) => {
        match $store {
            Store::One(c, t) => {
                $call!(t, |v, n| c.encode(v, n), |r, _| c.decode(r), |n| c.words_of(n))
            }
            Store::Two(c, t) => {
                $call!(t, |v, n| c.encode(v, n), |r, _| c.decode(r), |n| c.words_of(n))
            }
            Store::Three(c, t) => {
                $call!(t, |v, n| c.encode(v, n), |r, _| c.decode(r), |n| c.words_of(n))
            }
            Store::Four(c, t) => {
                $call!(t, |v, n| c.encode(v, n), |r, _| c.decode(r), |n| c.words_of(n))
            }
            Store::Bytes(c, t) => {
                $call!(t, |v, _| c.encode_leading(v), |r, n| c.decode(r, n), |_| 0)
            }
        }
    };
}

impl Multisets {
    /// As [`Multisets::apply`]; returns what has changed.
    pub fn apply_changes(
        &mut self,
        groups: &[u32],
        order: Vec<u32>,
        values: &[ArrayRef],
        weights: &[i64],
    ) -> Result<Changes> {
        self.prepare(groups, values, weights)?;
        // Those of one group are told in order.
        let mut told = Vec::new();
        self.store.apply((groups, order), values, weights, |row, before, after| {
            told.push((row, before, after));
        })?;
        let of: Vec<u32> = told.iter().map(|(row, _, _)| groups[*row as usize]).collect();
        let order = order_by_group(&of);
        let told = || order.iter().map(|&at| told[at as usize]);
        Ok(Changes {
            groups: order.iter().map(|&at| of[at as usize]).collect(),
            rows: told().map(|(row, _, _)| row).collect(),
            before: told().map(|(_, before, _)| before).collect(),
            after: told().map(|(_, _, after)| after).collect(),
        })
    }

    /// For each group and a row of it (by its columns): the row that is `back` rows before it, or the
    /// first one that agrees with it in the `peers` leading columns, if there are peers, whichever
    /// comes first; one more back if the row is not there. Only of groups that are large, and where
    /// that is not their first row: positions of the groups, and the rows.
    pub fn starts(
        &self,
        groups: &[u32],
        rows: &[ArrayRef],
        back: usize,
        peers: Option<usize>,
    ) -> Result<(Vec<u32>, Vec<ArrayRef>)> {
        macro_rules! starts {
            ($tiers:expr, $encode:expr, $decode:expr, $words:expr) => {{
                let encode = $encode;
                let full = encode(rows, groups.len())?;
                let leading =
                    peers.map(|peers| encode(&rows[..peers], groups.len())).transpose()?;
                let (of, found) = $tiers.starts(groups, &full, back, leading.as_ref());
                let columns = decoded(found, $decode)?.columns;
                Ok((of, columns))
            }};
        }
        with_codec!(&self.store, starts)
    }

    /// For each group the last row before the one that has these leading columns; none or one each.
    pub fn before(&self, groups: &[u32], leading: &[ArrayRef]) -> Result<GroupRows> {
        self.next(groups, leading, Next::Before)
    }

    /// For each group all rows from the one on that has these leading columns.
    pub fn from(&self, groups: &[u32], leading: &[ArrayRef]) -> Result<GroupRows> {
        self.next(groups, leading, Next::From)
    }

    fn next(&self, groups: &[u32], leading: &[ArrayRef], which: Next) -> Result<GroupRows> {
        macro_rules! next {
            ($tiers:expr, $encode:expr, $decode:expr, $words:expr) => {{
                let encode = $encode;
                let rows = encode(leading, groups.len())?;
                decoded($tiers.next(groups, &rows, which == Next::Before), $decode)
            }};
        }
        with_codec!(&self.store, next)
    }

    /// The stretches that are asked for, after a delta of these `values` brought these changes.
    /// `starts` are rows that requests refer to.
    pub fn stretches(
        &self,
        changes: &Changes,
        values: &[ArrayRef],
        starts: &[ArrayRef],
        of: &[StretchOf],
    ) -> Result<Stretches> {
        let Some(range) = range_of(of) else { return Err(nothing()) };
        let shown = UInt32Array::from(changes.rows[range.clone()].to_vec());
        let values = arrow::compute::take_arrays(values, &shown, None)?;
        let count = starts.first().map_or(0, |column| column.len());
        let peers = of.iter().find_map(|one| match one.extent {
            Extent::Until(_, peers) if peers > 0 => Some(peers),
            _ => None,
        });
        macro_rules! stretches {
            ($tiers:expr, $encode:expr, $decode:expr, $words:expr) => {{
                let encode = $encode;
                let changed = encode(&values, range.len())?;
                let starts = encode(starts, count)?;
                let leading = match peers {
                    Some(peers) => encode(&values[..peers], range.len())?,
                    None => Default::default(),
                };
                let words = ($words)(peers.unwrap_or(0));
                let mut out = Encoded::default();
                for (at, one) in (0_u32..).zip(of) {
                    let delta = Delta {
                        changes,
                        first: range.start,
                        rows: &changed,
                        leading: &leading,
                        words,
                    };
                    let start = one.after.map(|row| (&starts, row as usize));
                    out.add(at, $tiers, &delta, one, start);
                }
                let columns = ($decode)(&out.rows, out.before.len())?;
                let Encoded { of, ends, before, after, .. } = out;
                Ok(Stretches { of, ends, columns, before, after })
            }};
        }
        with_codec!(&self.store, stretches)
    }
}

/// The changes that all requests together cover; they are in order.
fn range_of(of: &[StretchOf]) -> Option<Range<usize>> {
    let (first, last) = (of.first()?, of.last()?);
    Some(first.changes.start..last.changes.end)
}

fn nothing() -> Error {
    Error::internal("WINDOW_STATE", "no stretch is asked for")
}

/// The changes of a step, encoded.
struct Delta<'a, R> {
    changes: &'a Changes,
    /// Position of the first encoded one.
    first: usize,
    rows: &'a R,
    /// Leading columns of each, in as many words.
    leading: &'a R,
    words: usize,
}

/// A walk over the rows of one group beside its changes.
struct Walk<'a, 'b, R> {
    delta: &'a Delta<'b, R>,
    /// Next change, and the end of the group's.
    next: usize,
    end: usize,
    /// Unchanged rows since the last change of this stretch, if it had one.
    calm: Option<usize>,
}

impl<R: Rows> Walk<'_, '_, R> {
    /// Order of the next change and a row.
    fn compare(&self, rows: &R, at: usize) -> std::cmp::Ordering {
        self.delta.rows.compare(self.next - self.delta.first, rows, at)
    }

    /// Whether the stretch may end behind a row.
    fn is_over(&self, extent: Extent, rows: &R, at: usize) -> bool {
        let (Some(calm), is_last) = (self.calm, self.next == self.end) else { return false };
        match extent {
            Extent::ToEnd => false,
            Extent::Around(reach) => calm >= if is_last { reach } else { 2 * reach + 1 },
            Extent::Until(reach, 0) => is_last && calm >= reach,
            Extent::Until(reach, _) => {
                let last = self.end - 1 - self.delta.first;
                let (leading, words) = (self.delta.leading, self.delta.words);
                is_last && calm >= reach && !rows.begins_with(at, leading, last, words)
            }
        }
    }
}

impl<R: Rows> Encoded<R> {
    fn add(
        &mut self,
        number: u32,
        tiers: &Tiers<R>,
        delta: &Delta<'_, R>,
        one: &StretchOf,
        start: Option<(&R, usize)>,
    ) {
        let Range { start: next, end } = one.changes;
        let group = delta.changes.groups[next];
        let mut walk = Walk { delta, next, end, calm: None };
        let Some(blocks) = tiers.blocks_of(group) else {
            let rows = tiers.all(&[group]);
            self.walk(&mut walk, &rows, Extent::ToEnd);
            self.finish(number, &mut walk);
            return;
        };
        while walk.next < end {
            let mut place = match (one.extent, start) {
                (Extent::Around(reach), _) => {
                    let (place, _) = blocks.seek(group, delta.rows, walk.next - delta.first);
                    blocks.back(group, place, reach)
                }
                (_, Some((rows, at))) => blocks.seek_after(group, rows, at),
                (_, None) => blocks.start_of(group),
            };
            walk.calm = None;
            let mut rows: Found<R> = Found::default();
            loop {
                rows.rows.clear();
                rows.weights.clear();
                let Some(next) = blocks.read(group, place, &mut rows) else {
                    // What is left of the changes is gone from the group's end.
                    self.finish(number, &mut walk);
                    break;
                };
                place = next;
                if self.walk(&mut walk, &rows, one.extent) {
                    self.end_stretch(number);
                    break;
                }
            }
        }
    }

    /// Takes rows and the changes among them; true when the stretch is over.
    fn walk(&mut self, walk: &mut Walk<'_, '_, R>, found: &Found<R>, extent: Extent) -> bool {
        for at in 0..found.weights.len() {
            while walk.next < walk.end && walk.compare(&found.rows, at).is_lt() {
                self.take_change(walk);
            }
            if walk.next < walk.end && walk.compare(&found.rows, at).is_eq() {
                self.take_change(walk);
            } else {
                self.rows.push(&found.rows, at);
                self.before.push(found.weights[at]);
                self.after.push(found.weights[at]);
                walk.calm = walk.calm.map(|calm| calm + 1);
            }
            if walk.is_over(extent, &found.rows, at) {
                return true;
            }
        }
        false
    }

    fn take_change(&mut self, walk: &mut Walk<'_, '_, R>) {
        self.rows.push(walk.delta.rows, walk.next - walk.delta.first);
        self.before.push(walk.delta.changes.before[walk.next]);
        self.after.push(walk.delta.changes.after[walk.next]);
        walk.next += 1;
        walk.calm = Some(0);
    }

    fn finish(&mut self, number: u32, walk: &mut Walk<'_, '_, R>) {
        while walk.next < walk.end {
            self.take_change(walk);
        }
        self.end_stretch(number);
    }

    #[expect(clippy::cast_possible_truncation, reason = "rows of one step are fewer than 2^32")]
    fn end_stretch(&mut self, number: u32) {
        self.of.push(number);
        self.ends.push(self.before.len() as u32);
    }
}

impl<R: Rows> Tiers<R> {
    /// See [`Multisets::starts`].
    fn starts(
        &self,
        groups: &[u32],
        rows: &R,
        back: usize,
        leading: Option<&R>,
    ) -> (Vec<u32>, Found<R>) {
        let (mut of, mut found) = (Vec::new(), Found::default());
        for (at, &group) in groups.iter().enumerate() {
            let Some(blocks) = self.blocks_of(group) else { continue };
            let (place, is_there) = blocks.seek(group, rows, at);
            let mut place = blocks.back(group, place, back + usize::from(!is_there));
            if let Some(leading) = leading {
                place = place.min(blocks.seek(group, leading, at).0);
            }
            if place > blocks.start_of(group) && blocks.add_one(group, place, &mut found) {
                #[expect(clippy::cast_possible_truncation, reason = "groups are of 32 bits")]
                of.push(at as u32);
                found.end_group();
            }
        }
        (of, found)
    }

    /// The last row of each group before a row, or all from it on.
    fn next(&self, groups: &[u32], rows: &R, is_before: bool) -> Found<R> {
        let mut found = Found::default();
        for (at, &group) in groups.iter().enumerate() {
            if let Some(blocks) = self.blocks_of(group) {
                let (place, _) = blocks.seek(group, rows, at);
                if is_before {
                    let before = blocks.back(group, place, 1);
                    if before < place {
                        blocks.add_one(group, before, &mut found);
                    }
                } else {
                    let mut place = place;
                    while let Some(next) = blocks.read(group, place, &mut found) {
                        place = next;
                    }
                }
            } else {
                let all = self.all(&[group]);
                let count = all.weights.len();
                let is_less = |&i: &usize| all.rows.compare(i, rows, at).is_lt();
                let first = (0..count).take_while(is_less).count();
                let wanted = if is_before { first.saturating_sub(1)..first } else { first..count };
                found.rows.extend(&all.rows, wanted.clone());
                found.weights.extend_from_slice(&all.weights[wanted]);
            }
            found.end_group();
        }
        found
    }
}

impl<R: Rows> super::blocks::Blocks<R> {
    /// The first row of a group after a row.
    fn seek_after(&self, group: u32, rows: &R, at: usize) -> Place {
        let (place, is_there) = self.seek(group, rows, at);
        if is_there { self.after(group, place) } else { place }
    }
}
