//! The rows in the first places of each group, and how a delta changes them: top-k.
//!
//! A row of weight 2 takes two places. Only the places from an offset to a limit count. Either the
//! rows there are told apart by themselves, or, numbered, by themselves and their place.

use std::cmp::Ordering;

use arrow::array::ArrayRef;
use deltaic_batch::Result;

use super::found::Found;
use super::rows::Rows;
use super::tiers::Tiers;
use super::{Multisets, Store};

/// Which places of each group count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// Places that are passed over.
    pub offset: u64,
    /// The number of places after them.
    pub limit: u64,
    /// Rows are told apart by their places, too.
    pub numbered: bool,
}

/// Rows that have come into the places (+) or left them (−).
#[derive(Debug, Clone)]
pub struct Moves {
    /// Group of each row.
    pub groups: Vec<u32>,
    /// The rows, column by column.
    pub columns: Vec<ArrayRef>,
    /// Place of each row, from 1; empty unless numbered.
    pub numbers: Vec<u64>,
    /// Sign and, unless numbered, number of places.
    pub weights: Vec<i64>,
}

/// Moves whose rows are still encoded.
#[derive(Default)]
struct Encoded<R> {
    groups: Vec<u32>,
    rows: R,
    numbers: Vec<u64>,
    weights: Vec<i64>,
}

impl Places {
    /// The places of a row whose first one, from 0, is `start`, as a range.
    fn clip(self, start: i64, weight: i64) -> (i64, i64) {
        let offset = i64::try_from(self.offset).unwrap_or(i64::MAX);
        let end = offset.saturating_add(i64::try_from(self.limit).unwrap_or(i64::MAX));
        (start.max(offset), start.saturating_add(weight).min(end))
    }

    fn end(self) -> i64 {
        i64::try_from(self.offset.saturating_add(self.limit)).unwrap_or(i64::MAX)
    }
}

impl Multisets {
    /// Adds a delta, as [`Multisets::apply`] does, and tells what changes in the places of the
    /// `touched` groups, which are in ascending order.
    pub fn apply_to_places(
        &mut self,
        groups: &[u32],
        values: &[ArrayRef],
        weights: &[i64],
        touched: &[u32],
        places: Places,
    ) -> Result<Moves> {
        self.prepare(groups, values, weights)?;
        let count = groups.len();
        macro_rules! moves {
            ($tiers:expr, $rows:expr, $decode:expr) => {{
                let moves = apply($tiers, (groups, &$rows, weights), touched, places)?;
                let columns = $decode(&moves.rows, moves.weights.len())?;
                let Encoded { groups, numbers, weights, .. } = moves;
                Ok(Moves { groups, columns, numbers, weights })
            }};
        }
        match &mut self.store {
            Store::One(codec, tiers) => {
                moves!(tiers, codec.encode(values, count)?, |rows, _| codec.decode(rows))
            }
            Store::Two(codec, tiers) => {
                moves!(tiers, codec.encode(values, count)?, |rows, _| codec.decode(rows))
            }
            Store::Three(codec, tiers) => {
                moves!(tiers, codec.encode(values, count)?, |rows, _| codec.decode(rows))
            }
            Store::Four(codec, tiers) => {
                moves!(tiers, codec.encode(values, count)?, |rows, _| codec.decode(rows))
            }
            Store::Bytes(codec, tiers) => {
                moves!(tiers, codec.encode(values)?, |rows, count| codec.decode(rows, count))
            }
        }
    }
}

fn apply<R: Rows>(
    tiers: &mut Tiers<R>,
    (groups, rows, weights): (&[u32], &R, &[i64]),
    touched: &[u32],
    places: Places,
) -> Result<Encoded<R>> {
    let before = tiers.first(touched, places.end());
    super::add(tiers, (groups, super::order_by_group(groups)), rows, weights, |_, _, _| ())?;
    let after = tiers.first(touched, places.end());
    let mut moves = Encoded::default();
    let (mut old, mut new) = (0, 0);
    for ((&group, &old_end), &new_end) in touched.iter().zip(&before.ends).zip(&after.ends) {
        let (old_end, new_end) = (old_end as usize, new_end as usize);
        let sides = (Side::new(&before, old..old_end), Side::new(&after, new..new_end));
        if places.numbered {
            moves.add_numbered(group, sides, places);
        } else {
            moves.add_unnumbered(group, sides, places);
        }
        (old, new) = (old_end, new_end);
    }
    Ok(moves)
}

/// The rows of one group at one time, walked from the first place on.
struct Side<'a, R> {
    found: &'a Found<R>,
    at: usize,
    end: usize,
    /// First place of the row at `at`, from 0.
    place: i64,
}

impl<'a, R: Rows> Side<'a, R> {
    fn new(found: &'a Found<R>, rows: std::ops::Range<usize>) -> Self {
        Self { found, at: rows.start, end: rows.end, place: 0 }
    }

    fn is_done(&self) -> bool {
        self.at == self.end
    }

    /// The places of the current row that count.
    fn clipped(&self, places: Places) -> (i64, i64) {
        places.clip(self.place, self.found.weights[self.at])
    }

    fn next_row(&mut self) {
        self.place = self.place.saturating_add(self.found.weights[self.at]);
        self.at += 1;
    }

    /// Goes to the row in a place.
    fn seek(&mut self, place: i64) {
        while !self.is_done() && self.place.saturating_add(self.found.weights[self.at]) <= place {
            self.next_row();
        }
    }
}

impl<R: Rows> Encoded<R> {
    fn add(&mut self, group: u32, side: &Side<'_, R>, weight: i64) {
        self.groups.push(group);
        self.rows.push(&side.found.rows, side.at);
        self.weights.push(weight);
    }

    /// Both sides are in order: one walk finds the rows of either and of both.
    fn add_unnumbered(
        &mut self,
        group: u32,
        (mut old, mut new): (Side<'_, R>, Side<'_, R>),
        places: Places,
    ) {
        let length = |(from, to): (i64, i64)| (to - from).max(0);
        while !old.is_done() || !new.is_done() {
            let order = if old.is_done() {
                Ordering::Greater
            } else if new.is_done() {
                Ordering::Less
            } else {
                old.found.rows.compare(old.at, &new.found.rows, new.at)
            };
            let before = if order.is_le() { length(old.clipped(places)) } else { 0 };
            let after = if order.is_ge() { length(new.clipped(places)) } else { 0 };
            if before != after {
                let side = if order.is_le() { &old } else { &new };
                self.add(group, side, after - before);
            }
            if order.is_le() {
                old.next_row();
            }
            if order.is_ge() {
                new.next_row();
            }
        }
    }

    fn add_numbered(
        &mut self,
        group: u32,
        (mut old, mut new): (Side<'_, R>, Side<'_, R>),
        places: Places,
    ) {
        let mut place = places.clip(0, 0).0;
        loop {
            old.seek(place);
            new.seek(place);
            if (old.is_done() && new.is_done()) || place >= places.end() {
                return;
            }
            let is_same = !old.is_done()
                && !new.is_done()
                && old.found.rows.compare(old.at, &new.found.rows, new.at).is_eq();
            place += 1;
            if is_same {
                continue;
            }
            for (side, weight) in [(&old, -1), (&new, 1)] {
                if !side.is_done() {
                    self.add(group, side, weight);
                    self.numbers.push(place.cast_unsigned());
                }
            }
        }
    }
}
