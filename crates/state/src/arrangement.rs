//! Arrangement: a multiset of rows by key.

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Result, ZBatch};

/// One column of the order that rows of a key are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortKey {
    /// Column of the arranged rows.
    pub column: usize,
    /// Greatest first.
    pub descending: bool,
    /// NULL before all values.
    pub nulls_first: bool,
}

/// Declares an arrangement.
#[derive(Debug, Clone)]
pub struct ArrangementSpec {
    /// Schema of the arranged rows.
    pub schema: SchemaRef,
    /// Key columns (may be empty: one key).
    pub key: Vec<usize>,
    /// Order of the rows of a key; ties, and an empty list, are ordered by the whole row's hash.
    pub order: Vec<SortKey>,
}

/// Names one arranged row until the next change of the arrangement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowRef(pub u32);

/// Result of a probe, column by column: for match `i`, probe row, arranged row, its weight.
/// Matches of one probe row are adjacent, in the arrangement's order.
#[derive(Debug, Clone, Default)]
pub struct Matches {
    /// Row number in the probing batch.
    pub probe: Vec<u32>,
    /// The arranged row.
    pub rows: Vec<RowRef>,
    /// Its weight, never zero.
    pub weights: Vec<i64>,
}

/// One shard's multiset of rows by key.
#[derive(Debug)]
pub struct Arrangement {}

impl Arrangement {
    /// Empty.
    pub fn try_new(_spec: &ArrangementSpec) -> Result<Self> {
        unimplemented!("skeleton")
    }
    /// Adds a consolidated delta (schema of the spec).
    pub fn apply(&mut self, _delta: &ZBatch) -> Result<()> {
        unimplemented!("skeleton")
    }
    /// All arranged rows whose key equals that of each probe row. `key` has the key columns of the
    /// probing batch, in the spec's order and types. NULL keys match only if `null_equals_null`.
    pub fn probe(&self, _key: &[ArrayRef], _null_equals_null: bool) -> Result<Matches> {
        unimplemented!("skeleton")
    }
    /// As [`Self::probe`], but at most the first `limit` rows of each key in the spec's order.
    pub fn probe_first(
        &self,
        _key: &[ArrayRef],
        _null_equals_null: bool,
        _limit: usize,
    ) -> Result<Matches> {
        unimplemented!("skeleton")
    }
    /// Sum of the weights of each probe row's key (0 when the key is unknown).
    pub fn key_weights(&self, _key: &[ArrayRef], _null_equals_null: bool) -> Result<Vec<i64>> {
        unimplemented!("skeleton")
    }
    /// Weight of each given whole row (0 when absent). `rows` has the spec's columns.
    pub fn row_weights(&self, _rows: &[ArrayRef]) -> Result<Vec<i64>> {
        unimplemented!("skeleton")
    }
    /// The given columns of the given rows.
    pub fn gather(&self, _rows: &[RowRef], _columns: &[usize]) -> Result<Vec<ArrayRef>> {
        unimplemented!("skeleton")
    }
    /// Everything, consolidated, in pieces of at most `rows_max` rows.
    pub fn scan(&self, _rows_max: usize) -> Result<Vec<ZBatch>> {
        unimplemented!("skeleton")
    }
    /// True without rows.
    pub fn is_empty(&self) -> bool {
        unimplemented!("skeleton")
    }
    /// Bytes held in memory.
    pub fn memory_bytes(&self) -> usize {
        unimplemented!("skeleton")
    }
    /// See [`crate::Slot::write_full`].
    pub fn write_full(&mut self) -> Result<Vec<u8>> {
        unimplemented!("skeleton")
    }
    /// See [`crate::Slot::write_changes`].
    pub fn write_changes(&mut self) -> Result<Vec<u8>> {
        unimplemented!("skeleton")
    }
    /// See [`crate::Slot::restore`].
    pub fn restore(_spec: &ArrangementSpec, _full: &[u8], _changes: &[&[u8]]) -> Result<Self> {
        unimplemented!("skeleton")
    }
}
