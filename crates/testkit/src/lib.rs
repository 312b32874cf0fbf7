//! Generators, oracles and the law suite (for tests only).
//!
//! A law test draws a [`Query`] and the [`Epoch`]s of changes of its tables from byte [`Tape`]s (so
//! that shrinking the bytes shrinks both), runs the query in a circuit, and has [`check_laws`]
//! compare it with [`Query::eval`], a definition over sorted maps that shares no code with the
//! kernel. With the feature `planner`, `run_in_datafusion` is a second oracle: the batch result of the
//! same SQL.

mod build;
mod data;
#[cfg(feature = "planner")]
mod datafusion;
mod laws;
mod query;
mod scd;
mod tape;
mod value;

pub use build::build_circuit;
pub use data::{Epoch, draw_epochs, integrate, table_columns, table_names, table_schema};
#[cfg(feature = "planner")]
pub use datafusion::{run_in_datafusion, sources};
pub use laws::{Law, Subject, check_laws};
pub use query::{
    Aggregate, Column, Compare, Expr, Form, Frame, JoinKind, Kind, Nested, OrderKey, Predicate,
    Query, Root, SetOperation, TopK, WindowCall, Windows, draw_query,
};
pub use scd::{Event, EventKind, ScdRules, replay};
pub use tape::Tape;
pub use value::{
    Bag, Row, Value, add_bag, add_row, bag_to_delta, batch_rows, column_values, to_bag, to_delta,
};
