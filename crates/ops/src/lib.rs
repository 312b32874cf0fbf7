//! The incremental operators: one folder or file each.

mod aggregate;
mod column;
mod distinct;
mod dynamic_filter;
mod filter;
mod join;
mod multiplicity;
mod operator;
mod ordered;
mod project;
mod range_join;
mod recursion;
mod scd;
mod selection;
mod top_k;
mod union_all;
mod window;

pub use aggregate::{Aggregate, AggregateCall, AggregateFunction, AggregateSpec};
pub use column::ColumnRef;
pub use distinct::Distinct;
pub use dynamic_filter::{Comparison, DynamicFilter, DynamicFilterSpec};
pub use filter::Filter;
pub use join::{Join, JoinKind, JoinSpec};
pub use multiplicity::add_weights;
pub use operator::{
    Algebra, Evaluator, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext,
};
pub use project::Project;
pub use range_join::{RangeCondition, RangeJoin, RangeJoinSpec};
pub use recursion::{ROUNDS_MAX, Recursion, RecursionSpec, StepInput, StepNode};
pub use scd::{
    ConflictExample, Conflicts, END_AT, KIND_DELETE, KIND_TRUNCATE, KIND_UPSERT, START_AT,
    ScdMerge, ScdSpec, ScdType, SnapshotDifference, snapshot_difference,
};
pub use top_k::{TopK, TopKSpec};
pub use union_all::UnionAll;
pub use window::{FrameBound, Window, WindowCall, WindowFrame, WindowFunction, WindowSpec};

use deltaic_batch::{Error, Result, ZBatch};

/// The delta of input `i`; an internal error when the driver gave fewer.
pub(crate) fn input(inputs: &[ZBatch], i: usize) -> Result<&ZBatch> {
    inputs.get(i).ok_or_else(|| {
        Error::internal("INPUT_COUNT", format!("input {i} of {} was not given", inputs.len()))
    })
}

/// An expression returned another number of values than rows.
pub(crate) fn evaluated_length(values: usize, rows: usize) -> Error {
    Error::internal("EVALUATED_LENGTH", format!("{values} values for {rows} rows"))
}
