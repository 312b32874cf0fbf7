//! The rows of some stretches at one time, each as often as its weight says.

use std::ops::Range;

use super::spec::{FrameBound, WindowFrame};

/// Rows before or after a delta.
#[derive(Debug, Default)]
pub(super) struct Side {
    /// The entry of each row.
    pub(super) rows: Vec<u32>,
    /// The stretch of each row.
    pub(super) stretch: Vec<u32>,
    /// The rows of each stretch.
    pub(super) bounds: Vec<Range<u32>>,
    /// Where the peers of each row start and end.
    pub(super) peers: Vec<Range<u32>>,
}

/// First and last row, exclusive, that each row sees.
#[derive(Debug, Default)]
pub(super) struct Spans {
    pub(super) low: Vec<u32>,
    pub(super) high: Vec<u32>,
}

impl Side {
    /// `ends` are those of the stretches, `begins` says which entries are no peers of the one before.
    #[expect(clippy::cast_possible_truncation, reason = "rows of one step are fewer than 2^32")]
    pub(super) fn new(weights: &[i64], ends: &[u32], begins: &[bool]) -> Self {
        let mut side = Self::default();
        let mut entry = 0;
        for (stretch, &end) in (0_u32..).zip(ends) {
            let start = side.rows.len() as u32;
            let mut peers_start = start;
            while entry < end as usize {
                let now = side.rows.len() as u32;
                if begins[entry] {
                    side.close(peers_start, now);
                    peers_start = now;
                }
                let copies = usize::try_from(weights[entry]).unwrap_or(0);
                side.rows.resize(side.rows.len() + copies, entry as u32);
                side.stretch.resize(side.rows.len(), stretch);
                entry += 1;
            }
            let end = side.rows.len() as u32;
            side.close(peers_start, end);
            side.bounds.push(start..end);
        }
        side
    }

    /// The rows from one on are peers.
    fn close(&mut self, start: u32, end: u32) {
        self.peers.resize(end as usize, start..end);
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The stretch of a row, and its rows.
    pub(super) fn bounds_of(&self, row: usize) -> (usize, Range<u32>) {
        let stretch = self.stretch[row] as usize;
        (stretch, self.bounds[stretch].clone())
    }

    /// What each row sees.
    pub(super) fn spans(&self, frame: WindowFrame) -> Spans {
        let mut spans = Spans::default();
        for (row, peers) in (0_u32..).zip(&self.peers) {
            let (_, bounds) = self.bounds_of(row as usize);
            let (first, last) = if frame.peers { (peers.start, peers.end - 1) } else { (row, row) };
            let low = match frame.start {
                FrameBound::Unbounded => bounds.start,
                FrameBound::Rows(rows) => shifted(first, rows, &bounds),
            };
            let high = match frame.end {
                FrameBound::Unbounded => bounds.end,
                FrameBound::Rows(rows) => shifted(last, rows.saturating_add(1), &bounds),
            };
            spans.low.push(low);
            spans.high.push(high.max(low));
        }
        spans
    }
}

/// A row so many rows further on, or the end of the stretch on that side.
fn shifted(row: u32, by: i64, bounds: &Range<u32>) -> u32 {
    let moved = i64::from(row).saturating_add(by);
    u32::try_from(moved.max(0)).unwrap_or(u32::MAX).clamp(bounds.start, bounds.end)
}
