//! Stretches: of a key with many kept events, only those around the new ones are read (type 2).
//!
//! A new event can change the version that it falls into, the next one, and their neighbours'
//! limits. A stretch therefore goes from the first event of the run before the new event to the
//! first event that surely starts a version after it. That last event starts the same version
//! before and after the step, so that its (cut off) version cancels in the difference. Runs are of
//! equal tracked columns; with IGNORE NULL UPDATES, where values flow on, of whole lives.

use std::cmp::Ordering;
use std::ops::Range;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::Int8Type;
use arrow::row::{RowConverter, Rows, SortField};
use deltaic_batch::Result;
use deltaic_state::{Arrangement, RowRef};

use crate::scd::codes::Codes;
use crate::scd::incoming::is_delete;
use crate::scd::layout::Layout;

/// Keys with fewer kept events are read whole.
const WHOLE_MAX: usize = 64;
/// Rows looked at together in a search.
const BLOCK: usize = 16;

/// Disjoint ascending stretches, and for each new event the number of its stretch.
pub(super) type Stretches = (Vec<Range<usize>>, Vec<usize>);

/// Finds stretches among the kept events of one key, given in order.
pub(super) struct Finder<'a> {
    layout: &'a Layout,
    kept: &'a Arrangement,
    converter: RowConverter,
    sequences: Rows,
}

impl<'a> Finder<'a> {
    /// For the given new events.
    pub(super) fn try_new(
        layout: &'a Layout,
        kept: &'a Arrangement,
        incoming: &[ArrayRef],
    ) -> Result<Self> {
        let sequence = &incoming[layout.sequence()];
        let converter = RowConverter::new(vec![SortField::new(sequence.data_type().clone())])?;
        let sequences = converter.convert_columns(std::slice::from_ref(sequence))?;
        Ok(Self { layout, kept, converter, sequences })
    }

    /// The stretches of `rows` around the new events `new`, which are in order of their sequences.
    /// `None`: read all rows.
    pub(super) fn stretches(&self, rows: &[RowRef], new: &[u32]) -> Result<Option<Stretches>> {
        if rows.len() <= WHOLE_MAX || rows.len() < BLOCK * new.len() {
            return Ok(None);
        }
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut number = Vec::with_capacity(new.len());
        for &event in new {
            let (below, above) = self.split(rows, event)?;
            // Inside the last stretch, with its last event after the next one: nothing to extend.
            let inside = found.last().is_some_and(|last| above + 1 < last.end);
            if !inside {
                let start = below.checked_sub(1).map_or(Ok(0), |at| self.run_start(rows, at))?;
                let end = self.run_end(rows, above)?;
                match found.last_mut() {
                    Some(last) if start < last.end => last.end = last.end.max(end),
                    _ => found.push(start..end),
                }
            }
            number.push(found.len() - 1);
        }
        Ok(Some((found, number)))
    }

    /// Number of rows below the event's sequence, and at or below it.
    fn split(&self, rows: &[RowRef], event: u32) -> Result<(usize, usize)> {
        let below = self.count_below(rows, event)?;
        let at = rows.get(below..=below).unwrap_or_default();
        let same = self.compare(at, event)?.first() == Some(&Ordering::Equal);
        Ok((below, below + usize::from(same)))
    }

    /// Number of rows below the event's sequence: a search with several pivots at a time.
    fn count_below(&self, rows: &[RowRef], event: u32) -> Result<usize> {
        let below = |orders: &[Ordering]| orders.iter().take_while(|o| o.is_lt()).count();
        let (mut low, mut high) = (0, rows.len());
        while high - low > BLOCK {
            let step = (high - low) / BLOCK;
            let pivots: Vec<usize> = (1..BLOCK).map(|i| low + i * step).collect();
            let pivot_rows: Vec<RowRef> = pivots.iter().map(|&at| rows[at]).collect();
            let count = below(&self.compare(&pivot_rows, event)?);
            if count < pivots.len() {
                high = pivots[count];
            }
            if count > 0 {
                low = pivots[count - 1] + 1;
            }
        }
        Ok(low + below(&self.compare(&rows[low..high], event)?))
    }

    /// How the sequence of each row compares with that of the event.
    fn compare(&self, rows: &[RowRef], event: u32) -> Result<Vec<Ordering>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let sequences = self.kept.gather(rows, &[self.layout.sequence()])?;
        let sequences = self.converter.convert_columns(&sequences)?;
        let event = self.sequences.row(event as usize);
        Ok(sequences.iter().map(|row| row.cmp(&event)).collect())
    }

    /// First row of the run that the row at `at` belongs to.
    fn run_start(&self, rows: &[RowRef], at: usize) -> Result<usize> {
        let mut start = at;
        let mut length = BLOCK;
        loop {
            let from = start.saturating_sub(length);
            let links = self.links(&rows[from..=start])?;
            match links.iter().rposition(|&linked| !linked) {
                Some(cut) => return Ok(from + cut + 1),
                None if from == 0 => return Ok(0),
                None => start = from,
            }
            length *= 2;
        }
    }

    /// End of the stretch whose last run has the row at `at`: after the row that follows the run.
    fn run_end(&self, rows: &[RowRef], at: usize) -> Result<usize> {
        if at >= rows.len() {
            return Ok(rows.len());
        }
        let mut end = at;
        let mut length = BLOCK;
        loop {
            let to = (end + length).min(rows.len() - 1);
            let links = self.links(&rows[end..=to])?;
            match links.iter().position(|&linked| !linked) {
                Some(cut) => return Ok(end + cut + 2),
                None if to + 1 == rows.len() => return Ok(rows.len()),
                None => end = to,
            }
            length *= 2;
        }
    }

    /// For each row but the last, whether it is in one run with the next one.
    fn links(&self, rows: &[RowRef]) -> Result<Vec<bool>> {
        let mut columns = vec![self.layout.kind()];
        columns.extend(&self.layout.tracked_plain);
        let columns = self.kept.gather(rows, &columns)?;
        let kinds = columns[0].as_primitive::<Int8Type>().values().clone();
        let tracked = Codes::try_new(&columns[1..])?;
        let lives = !self.layout.ignored.is_empty();
        let linked = |(i, pair): (u32, &[i8])| {
            !is_delete(pair[0]) && !is_delete(pair[1]) && (lives || tracked.eq(i, i + 1))
        };
        Ok((0..).zip(kinds.windows(2)).map(linked).collect())
    }
}
