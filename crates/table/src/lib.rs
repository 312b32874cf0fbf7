//! Tables on disk in the Delta Lake protocol: data, log, versions, change feed.
//!
//! All calls are synchronous; object-store I/O runs on a small runtime inside [`Storage`].

mod storage;
mod table;

pub use storage::Storage;
pub use table::{Change, CommitBuilder, CommitSummary, Prepared, ScanOptions, Table, TableOptions};
