//! The incremental operators: one folder or file each.

mod aggregate;
mod distinct;
mod operator;

pub use aggregate::{Aggregate, AggregateCall, AggregateFunction, AggregateSpec};
pub use distinct::Distinct;
pub use operator::{
    Algebra, Evaluator, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext,
};
