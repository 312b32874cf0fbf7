//! What the names in a query stand for.

use std::collections::BTreeMap;

use arrow::datatypes::SchemaRef;

/// A table that a query may name.
#[derive(Debug, Clone)]
pub struct SourceTable {
    /// Schema of its rows.
    pub schema: SchemaRef,
    /// Rows are only ever added.
    pub append_only: bool,
    /// Rows now, for the cost rule.
    pub rows: Option<u64>,
}

/// What a name in a query stands for.
#[derive(Debug, Clone)]
pub enum Source {
    /// A table.
    Table(SourceTable),
    /// A query over the same sources, inlined where it is read.
    View {
        /// Its text.
        sql: String,
    },
}

/// Sources by (lower-case, unquoted, dot-joined) name.
pub type Sources = BTreeMap<String, Source>;
