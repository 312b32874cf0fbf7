//! How a view is refreshed.

use std::fmt;

/// How a view is or was refreshed; names as in Lakeflow's event log, plus ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Technique {
    /// Nothing changed.
    NoOp,
    /// Only appended rows, linear plan.
    AppendOnly,
    /// Row-level changes through filters, projections, joins.
    RowBased,
    /// Retractable aggregates.
    GroupAggregate,
    /// Aggregates by touched group.
    GenericAggregate,
    /// Windows.
    WindowFunction,
    /// Rows enter and leave as time passes.
    Temporal,
    /// A query that reads its own result.
    Recursive,
    /// Recompute.
    CompleteRecompute,
    /// Part of the plan is recomputed and diffed.
    Hybrid,
}

impl Technique {
    /// The name in the event log (`GROUP_AGGREGATE`).
    pub fn name(self) -> &'static str {
        match self {
            Self::NoOp => "NO_OP",
            Self::AppendOnly => "APPEND_ONLY",
            Self::RowBased => "ROW_BASED",
            Self::GroupAggregate => "GROUP_AGGREGATE",
            Self::GenericAggregate => "GENERIC_AGGREGATE",
            Self::WindowFunction => "WINDOW_FUNCTION",
            Self::Temporal => "TEMPORAL",
            Self::Recursive => "RECURSIVE",
            Self::CompleteRecompute => "COMPLETE_RECOMPUTE",
            Self::Hybrid => "HYBRID",
        }
    }
}

impl fmt::Display for Technique {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
