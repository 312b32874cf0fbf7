//! Keyed state: group table, multisets by group and arrangement, with snapshots and memory accounting.

mod arrangement;
mod change_log;
pub mod frame;
mod groups;
mod image;
mod multisets;
mod radix;
mod slot;

pub use arrangement::{Arrangement, ArrangementSpec, Matches, RowRef, SortKey};
pub use groups::{AccumulatorColumn, AccumulatorType, ExactSum, GroupSpec, GroupTable, Sums};
pub use image::{Image, Stored};
pub use multisets::{
    Changes, Crossings, Extent, GroupRows, Moves, MultisetColumn, MultisetSpec, Multisets, Places,
    StretchOf, Stretches, order_by_group,
};
pub use slot::{Slot, SlotSpec, merge_changes};
