//! What the programs of all systems share: input columns, schedule, clock, checksum, report.
//!
//! Every system is given the same columns in memory and drains the view's delta to a checksum; the
//! clock runs from the one to the other. Reading files stays outside.

mod check;
mod clock;
mod column;
mod memory;
mod report;
mod schedule;
mod workload;

pub use check::{Check, row_hash};
pub use clock::{Clock, Spent};
pub use column::{Column, Texts, customer_text, text_customer, text_word};
pub use report::{Report, Step};
pub use schedule::{System, run};
pub use workload::{Arguments, Input, Workload};

/// What goes wrong here, goes wrong for good.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Microseconds of a day.
pub const DAY: i64 = 86_400_000_000;
/// `c_mktsegment = 'BUILDING'`, as a code.
pub const BUILDING: i64 = 1;
/// 1995-03-15, in days since 1970.
pub const MARCH_15: i64 = 9204;
/// The status that the filter of [`Workload::Epochs`] drops, as a code.
pub const CANCELLED: i64 = 4;
