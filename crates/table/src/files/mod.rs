//! Data files and change data files (Parquet), and the row indexes beside them.

mod reader;
pub(crate) mod row_index;
mod stats;
mod writer;

pub(crate) use reader::{count_rows, read_logical, read_rows};
pub(crate) use stats::{stats_json, widen};
pub(crate) use writer::{parquet_bytes, rows_per_file};
