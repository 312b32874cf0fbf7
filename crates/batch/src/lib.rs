//! The Z-set batch: an Arrow [`RecordBatch`] with an `i64` weight per row.
//!
//! A batch that is a change is a *delta*: weight +1 inserts a row, −1 deletes one copy of it, an
//! update is both. All other crates speak in these batches.

mod canonical;
mod consolidate;
mod equal;
mod error;
mod hash;
mod mix;
#[cfg(test)]
mod model_tests;
mod partition;
mod rows;
mod text;
mod zbatch;

pub use canonical::canonicalize;
pub use equal::equal_pairs;
pub use error::{Error, ErrorClass, Location, Result};
pub use hash::{hash_columns, hash_is_exact, hash128_rows, null_hash};
pub use partition::shard_of;
pub use rows::RowEncoder;
pub use zbatch::ZBatch;
