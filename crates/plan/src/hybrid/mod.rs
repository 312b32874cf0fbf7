//! Parts of a query that DataFusion computes, inside a circuit: regions. A linear one runs over the
//! delta ([`PerRow`]); one that treats groups of rows by themselves, over the touched groups
//! ([`RecomputeTouched`]). Any other is hybrid refresh ([`Recompute`]): it is recomputed over its
//! integrated inputs, and the difference to its last output is emitted, so that everything above it
//! stays incremental.

mod operator;
mod per_row;
mod region;
mod touched;

pub(crate) use operator::Recompute;
pub(crate) use per_row::PerRow;
pub(crate) use region::{Hole, Order, Region, RegionInput};
pub(crate) use touched::RecomputeTouched;
