//! The incremental operators: one folder or file each.

mod aggregate;
mod distinct;
mod operator;
mod scd;

pub use aggregate::{Aggregate, AggregateCall, AggregateFunction, AggregateSpec};
pub use distinct::Distinct;
pub use operator::{
    Algebra, Evaluator, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext,
};
pub use scd::{
    ConflictExample, Conflicts, END_AT, KIND_DELETE, KIND_TRUNCATE, KIND_UPSERT, START_AT,
    ScdMerge, ScdSpec, ScdType,
};
