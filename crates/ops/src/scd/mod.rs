//! The SCD merge: change events in, the exact changes of a dimension out.

mod merge;
mod spec;

pub use merge::{ConflictExample, Conflicts, ScdMerge};
pub use spec::{END_AT, KIND_DELETE, KIND_TRUNCATE, KIND_UPSERT, START_AT, ScdSpec, ScdType};
