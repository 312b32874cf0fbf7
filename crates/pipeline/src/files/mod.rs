//! Reading files: `read_files(…)` from its options to record batches.
//!
//! A file is listed ([`listing`]), its text is decoded ([`text`]), split into rows ([`csv`],
//! [`json`]) and each column is converted to its type ([`convert`]); [`reader`] puts this together
//! and decides what happens to malformed rows. Types that nobody declared come from [`infer`].

mod convert;
mod csv;
mod infer;
mod json;
mod json_columns;
mod listing;
mod malformed;
mod metadata;
mod options;
mod parquet;
mod pattern;
mod reader;
mod schema;
#[cfg(test)]
mod tests;
mod text;
mod version;

pub(crate) use listing::{FileEntry, list};
pub(crate) use metadata::{METADATA, metadata_field};
pub(crate) use options::FileOptions;
pub(crate) use parquet::table_schema;
pub(crate) use reader::read_file;
pub(crate) use schema::{FileSchema, StoredSchema, resolve_schema};
pub use version::{FileVersions, VersionPattern};
