//! The Z-set batch: an Arrow [`RecordBatch`] with an `i64` weight per row.
//!
//! A batch that is a change is a *delta*: weight +1 inserts a row, −1 deletes one copy of it, an
//! update is both. All other crates speak in these batches.

mod error;
mod zbatch;

pub use error::{Error, ErrorClass, Location, Result};
pub use zbatch::ZBatch;
