//! Group table: columnar accumulators by key, updated in place.

use arrow::datatypes::DataType;
use deltaic_batch::Result;

/// Declares a group table.
#[derive(Debug, Clone)]
pub struct GroupSpec {
    /// Types of the key columns (may be empty: one group).
    pub key: Vec<DataType>,
}

/// One shard's groups.
#[derive(Debug)]
pub struct GroupTable {}

impl GroupTable {
    /// Empty.
    pub fn try_new(_spec: &GroupSpec) -> Result<Self> {
        unimplemented!("skeleton")
    }
    /// True without groups.
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
    pub fn restore(_spec: &GroupSpec, _full: &[u8], _changes: &[&[u8]]) -> Result<Self> {
        unimplemented!("skeleton")
    }
}
