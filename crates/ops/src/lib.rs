//! The incremental operators: one folder or file each.

mod operator;

pub use operator::{
    Algebra, Evaluator, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext,
};
