//! Keyed state: group table and arrangement, with snapshots and memory accounting.

mod arrangement;
pub mod frame;
mod groups;
mod slot;

pub use arrangement::{Arrangement, ArrangementSpec, Matches, RowRef, SortKey};
pub use groups::{AccumulatorColumn, AccumulatorType, ExactSum, GroupSpec, GroupTable};
pub use slot::{Slot, SlotSpec};
