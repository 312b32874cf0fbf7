//! Hybrid refresh: a part of a query that has no incremental form is recomputed over its
//! integrated inputs, and the difference to its last output is emitted, so that everything above it
//! stays incremental.

mod operator;
mod region;

pub(crate) use operator::Recompute;
pub(crate) use region::{Hole, Order, Region, RegionInput};
