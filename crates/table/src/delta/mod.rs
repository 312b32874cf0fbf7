//! The Delta protocol: actions, types, deletion vectors, log, snapshot, checkpoints.
//!
//! Specification: <https://github.com/delta-io/delta/blob/master/PROTOCOL.md>.

pub(crate) mod actions;
pub(crate) mod checkpoint;
pub(crate) mod conform;
pub(crate) mod deletion_vector;
pub(crate) mod features;
pub(crate) mod log;
pub(crate) mod schema;
pub(crate) mod snapshot;
pub(crate) mod z85;
