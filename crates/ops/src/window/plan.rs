//! From calls to what is computed, how far a change reaches, and what is carried from row to row.

use arrow::datatypes::DataType;
use deltaic_batch::{Error, Result};
use deltaic_state::AccumulatorType;

use super::spec::{FrameBound, WindowFrame, WindowFunction, WindowSpec};
use crate::aggregate::plan::{Outcome, Plan as Aggregates, Values};
use crate::{AggregateCall, AggregateSpec};

/// The aggregates over one frame.
#[derive(Debug)]
pub(super) struct Framed {
    pub(super) frame: WindowFrame,
    pub(super) aggregates: Aggregates,
    /// Positions of its calls, in the order of the outcomes.
    pub(super) calls: Vec<usize>,
    /// MIN and MAX, each once.
    pub(super) extremes: Vec<Extreme>,
}

/// How far the effect of a change reaches.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Needs {
    /// Rows on either side of a change whose values it may change, and rows that those see.
    pub(super) reach: usize,
    /// All peers of a change are affected.
    pub(super) peers: bool,
    /// All rows after a change are affected, unless nothing adds up to a difference.
    pub(super) cumulative: bool,
    /// Whether it adds up can be told from the change alone.
    pub(super) invertible: bool,
    /// The whole partition is affected.
    pub(super) whole: bool,
}

/// The least or the greatest value of a column, where a filter is TRUE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extreme {
    pub(super) values: Values,
    pub(super) greatest: bool,
}

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) framed: Vec<Framed>,
    pub(super) needs: Needs,
    /// `DENSE_RANK` is asked for.
    pub(super) dense: bool,
    /// The first value of a partition is asked for.
    pub(super) first: bool,
}

impl Extreme {
    /// That of an outcome, if it is one.
    pub(super) fn of(aggregates: &Aggregates, outcome: Outcome) -> Option<Self> {
        let Outcome::Extreme { values, greatest } = outcome else { return None };
        aggregates.multisets.get(values).map(|&values| Self { values, greatest })
    }
}

impl Framed {
    /// What it computes at a row is carried on to the next.
    pub(super) fn is_running(&self) -> bool {
        self.frame.start == FrameBound::Unbounded && self.frame.end != FrameBound::Unbounded
    }
}

impl Plan {
    pub(super) fn try_new(spec: &WindowSpec) -> Result<Self> {
        let mut framed: Vec<Framed> = Vec::new();
        let frames = spec.calls.iter().enumerate().filter_map(|(at, call)| match call.function {
            WindowFunction::Aggregate(function) => Some((at, function, call)),
            _ => None,
        });
        let mut calls: Vec<(WindowFrame, Vec<usize>, Vec<AggregateCall>)> = Vec::new();
        for (at, function, call) in frames {
            let aggregate = AggregateCall {
                function,
                distinct: false,
                input: call.input,
                filter: call.filter,
                output: call.output.clone(),
            };
            match calls.iter_mut().find(|(frame, _, _)| *frame == call.frame) {
                Some((_, positions, calls)) => {
                    positions.push(at);
                    calls.push(aggregate);
                }
                None => calls.push((call.frame, vec![at], vec![aggregate])),
            }
        }
        for (frame, positions, calls) in calls {
            let aggregates = Aggregates::try_new(&AggregateSpec {
                input: spec.input.clone(),
                keys: Vec::new(),
                calls,
            })?;
            let mut extremes = Vec::new();
            for outcome in &aggregates.outcomes {
                if let Some(extreme) = Extreme::of(&aggregates, *outcome)
                    && !extremes.contains(&extreme)
                {
                    extremes.push(extreme);
                }
            }
            framed.push(Framed { frame, aggregates, calls: positions, extremes });
        }
        let dense = spec.calls.iter().any(|c| matches!(c.function, WindowFunction::DenseRank));
        let first = spec.calls.iter().any(|call| {
            let from_start = call.frame.start == FrameBound::Unbounded;
            matches!(call.function, WindowFunction::First) && from_start
        });
        let needs = needs(spec, &framed)?;
        Ok(Self { framed, needs, dense, first })
    }

    /// Types of what is carried beside the number of rows and peers: accumulators, then extremes, of
    /// each running frame.
    pub(super) fn carried(&self, spec: &WindowSpec) -> Vec<DataType> {
        let mut types = Vec::new();
        for framed in self.framed.iter().filter(|framed| framed.is_running()) {
            let kinds = framed.aggregates.accumulators.iter().map(|a| a.kind.stored_as());
            types.extend(kinds);
            let extremes = framed.extremes.iter();
            types.extend(extremes.map(|e| spec.input.field(e.values.input).data_type().clone()));
        }
        types
    }
}

/// Adds up what the calls need.
fn needs(spec: &WindowSpec, framed: &[Framed]) -> Result<Needs> {
    let mut needs = Needs { invertible: true, ..Needs::default() };
    for call in &spec.calls {
        let frame = call.frame;
        match &call.function {
            WindowFunction::RowNumber => needs.cumulative = true,
            WindowFunction::Rank => (needs.cumulative, needs.peers) = (true, true),
            WindowFunction::DenseRank => {
                (needs.cumulative, needs.peers, needs.invertible) = (true, true, false);
            }
            // They depend on how many rows there are.
            WindowFunction::PercentRank | WindowFunction::CumeDist | WindowFunction::Ntile(_) => {
                needs.whole = true;
            }
            WindowFunction::Offset { rows, .. } => needs.reach_to(*rows)?,
            WindowFunction::First | WindowFunction::Nth(_) | WindowFunction::Aggregate(_) => {
                needs.frame(frame, false)?;
                if !matches!(call.function, WindowFunction::Aggregate(_)) {
                    needs.invertible &= frame.start != FrameBound::Unbounded;
                }
                if matches!(call.function, WindowFunction::Nth(_)) {
                    // The n-th row of a partition may be anywhere before.
                    needs.whole |= frame.start == FrameBound::Unbounded;
                }
            }
            WindowFunction::Last => needs.frame(frame, true)?,
        }
    }
    // Where a row is emitted all of its calls must be right: near a change for some and among its
    // peers for others would go on without end. Who asks had better ask twice.
    needs.whole |= needs.peers && needs.reach > 0;
    // Without an order all rows of a partition are peers.
    needs.whole |= needs.peers && spec.order.iter().all(|key| spec.partition.contains(&key.column));
    let is_extreme = |framed: &Framed| framed.is_running() && !framed.extremes.is_empty();
    needs.invertible &= !framed.iter().any(is_extreme);
    Ok(needs)
}

impl Needs {
    fn reach_to(&mut self, rows: i64) -> Result<()> {
        let rows = usize::try_from(rows.unsigned_abs()).ok().filter(|&rows| rows <= 1 << 31);
        let rows = rows.ok_or_else(|| Error::user("UNSUPPORTED_WINDOW", "an offset above 2^31"))?;
        self.reach = self.reach.saturating_add(rows);
        Ok(())
    }

    fn frame(&mut self, frame: WindowFrame, only_its_end: bool) -> Result<()> {
        self.peers |= frame.peers;
        match frame.start {
            FrameBound::Unbounded => self.cumulative |= !only_its_end,
            FrameBound::Rows(rows) => self.reach_to(rows)?,
        }
        match frame.end {
            FrameBound::Unbounded => self.whole = true,
            FrameBound::Rows(rows) => self.reach_to(rows)?,
        }
        Ok(())
    }

    /// State is carried from row to row, so that there is something to take up again.
    pub(super) fn carries(&self) -> bool {
        (self.cumulative || self.peers) && !self.whole
    }
}

/// Kind of an accumulator, by position.
pub(super) fn kinds(framed: &Framed) -> impl Iterator<Item = AccumulatorType> + '_ {
    framed.aggregates.accumulators.iter().map(|accumulator| accumulator.kind)
}
