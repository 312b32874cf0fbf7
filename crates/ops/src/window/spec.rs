//! What a window is asked to compute.

use std::fmt;

use arrow::array::ArrayRef;
use arrow::datatypes::{Field, SchemaRef};
use deltaic_state::SortKey;

use crate::AggregateFunction;

/// Declares a [`crate::Window`].
#[derive(Debug, Clone)]
pub struct WindowSpec {
    /// Schema of the input rows.
    pub input: SchemaRef,
    /// Columns of the partition; none for one partition of all rows.
    pub partition: Vec<usize>,
    /// The order within a partition; rows that are equal in it are peers.
    pub order: Vec<SortKey>,
    /// One output column each, after the columns of the input.
    pub calls: Vec<WindowCall>,
}

/// One window function call.
#[derive(Debug, Clone)]
pub struct WindowCall {
    /// The function.
    pub function: WindowFunction,
    /// Its argument, a column of the input, if it has one.
    pub input: Option<usize>,
    /// A boolean column of the input: an aggregate sees only rows where it is TRUE.
    pub filter: Option<usize>,
    /// The rows that it sees; ranking functions and `LAG` do not look at it.
    pub frame: WindowFrame,
    /// The output column.
    pub output: Field,
}

/// The functions with an incremental form.
#[derive(Debug, Clone)]
pub enum WindowFunction {
    /// `ROW_NUMBER()`, UInt64.
    RowNumber,
    /// `RANK()`, UInt64.
    Rank,
    /// `DENSE_RANK()`, UInt64.
    DenseRank,
    /// `PERCENT_RANK()`, Float64.
    PercentRank,
    /// `CUME_DIST()`, Float64.
    CumeDist,
    /// `NTILE(n)`, UInt64; `n` is positive.
    Ntile(u64),
    /// `LAG(x, -rows)` or `LEAD(x, rows)`.
    Offset {
        /// How many rows further on, or back if it is negative.
        rows: i64,
        /// The one value of this array where there is no such row; else NULL.
        default: Option<ArrayRef>,
    },
    /// `FIRST_VALUE(x)`.
    First,
    /// `LAST_VALUE(x)`.
    Last,
    /// `NTH_VALUE(x, n)`, from 1.
    Nth(u64),
    /// An aggregate function over the frame, with types as [`AggregateFunction`] says.
    Aggregate(AggregateFunction),
}

/// The rows that a call sees from a row: from a bound to a bound, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WindowFrame {
    /// The first row.
    pub start: FrameBound,
    /// The last row.
    pub end: FrameBound,
    /// The current row means all of its peers (`RANGE`, `GROUPS`); only the current row can be a
    /// bound then, or none.
    pub peers: bool,
}

/// A bound of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameBound {
    /// The partition's first row as start, its last as end.
    Unbounded,
    /// So many rows after the current one, or before it if negative.
    Rows(i64),
}

impl WindowFrame {
    /// The whole partition.
    pub const WHOLE: Self =
        Self { start: FrameBound::Unbounded, end: FrameBound::Unbounded, peers: false };
}

impl fmt::Display for WindowSpec {
    /// `SUM(amount), ROW_NUMBER() per region by day`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |column: usize| match self.input.fields().get(column) {
            Some(field) => field.name().clone(),
            None => format!("#{column}"),
        };
        for (i, call) in self.calls.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            let argument = call.input.map(name).unwrap_or_default();
            write!(f, "{separator}{}({argument})", call.function)?;
        }
        let per: Vec<String> = self.partition.iter().map(|&column| name(column)).collect();
        if !per.is_empty() {
            write!(f, " per {}", per.join(", "))?;
        }
        let by: Vec<String> = self.order.iter().map(|key| name(key.column)).collect();
        if !by.is_empty() {
            write!(f, " by {}", by.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for WindowFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RowNumber => f.write_str("ROW_NUMBER"),
            Self::Rank => f.write_str("RANK"),
            Self::DenseRank => f.write_str("DENSE_RANK"),
            Self::PercentRank => f.write_str("PERCENT_RANK"),
            Self::CumeDist => f.write_str("CUME_DIST"),
            Self::Ntile(_) => f.write_str("NTILE"),
            Self::Offset { rows, .. } if *rows < 0 => f.write_str("LAG"),
            Self::Offset { .. } => f.write_str("LEAD"),
            Self::First => f.write_str("FIRST_VALUE"),
            Self::Last => f.write_str("LAST_VALUE"),
            Self::Nth(_) => f.write_str("NTH_VALUE"),
            Self::Aggregate(function) => function.fmt(f),
        }
    }
}
