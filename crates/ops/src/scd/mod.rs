//! The SCD merge: change events in, the exact changes of a dimension out.

mod codes;
mod conflict;
mod events;
mod gather;
mod incoming;
mod layout;
mod merge;
mod normal;
mod retention;
mod sequence;
mod snapshot;
mod spec;
mod stretch;
#[cfg(test)]
mod tests;
mod touched;
mod values;
mod versions;

pub use conflict::{ConflictExample, Conflicts};
pub use merge::ScdMerge;
pub use snapshot::{SnapshotDifference, snapshot_difference};
pub use spec::{END_AT, KIND_DELETE, KIND_TRUNCATE, KIND_UPSERT, START_AT, ScdSpec, ScdType};
