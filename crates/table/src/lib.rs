//! Tables on disk in the Delta Lake protocol: data, log, versions, change feed.
//!
//! A [`Table`] is one version of a table: it is opened, scanned, and asked for its changes. A
//! [`CommitBuilder`] gathers a delta into the next version, which becomes visible at once by one
//! atomic write of a log entry. All calls are synchronous, and nothing is kept open between them.
//!
//! `docs/table-format.md` tells what lies where on disk.

mod changes;
mod commit;
mod delta;
mod files;
mod history;
mod store;
mod table;

pub use changes::Change;
pub use commit::{CommitBuilder, Prepared};
pub use delta::schema::table_schema;
pub use history::CommitSummary;
#[doc(hidden)]
pub use store::Fault;
pub use store::{Object, Storage};
pub use table::{ScanOptions, Table, TableOptions};
