//! The circuit: operators wired to sources and outputs, and the synchronous driver.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use deltaic_batch::{Result, ZBatch};
use deltaic_ops::Operator;

/// A node of a circuit under construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// How a circuit runs.
#[derive(Debug, Clone)]
pub struct CircuitOptions {
    /// Number of state partitions; kept with stored state.
    pub shards: usize,
    /// Check every operator's contract at every step (schema, canonical form, weight sign where a
    /// set is promised, idle does nothing).
    pub checks: bool,
}

impl Default for CircuitOptions {
    fn default() -> Self {
        Self { shards: 2, checks: cfg!(debug_assertions) }
    }
}

/// What a node did since the circuit was built or restored.
#[derive(Debug, Clone, Default)]
pub struct NodeMetrics {
    /// Operator name.
    pub name: &'static str,
    /// Physical rows in.
    pub rows_in: u64,
    /// Physical rows out.
    pub rows_out: u64,
    /// Bytes of state.
    pub state_bytes: usize,
}

/// Bytes of one slot of one shard.
#[derive(Debug, Clone)]
pub struct SlotImage {
    /// Node number.
    pub node: usize,
    /// Slot number in the operator's spec.
    pub slot: usize,
    /// Shard.
    pub shard: usize,
    /// Bytes as [`deltaic_state::Slot`] writes them.
    pub bytes: Vec<u8>,
}

/// All slots of a circuit at one epoch.
#[derive(Debug, Clone)]
pub struct SlotImages {
    /// Number of epochs done.
    pub epoch: u64,
    /// Number of shards.
    pub shards: usize,
    /// Full images or changes.
    pub images: Vec<SlotImage>,
}

/// Wires operators.
#[derive(Debug, Default)]
pub struct CircuitBuilder {}

impl CircuitBuilder {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// A named input.
    pub fn source(&mut self, _name: impl Into<String>, _schema: SchemaRef) -> Result<NodeId> {
        unimplemented!("skeleton")
    }
    /// An operator over earlier nodes; schemas must fit.
    pub fn add(&mut self, _operator: Arc<dyn Operator>, _inputs: &[NodeId]) -> Result<NodeId> {
        unimplemented!("skeleton")
    }
    /// Names a node's output.
    pub fn output(&mut self, _name: impl Into<String>, _node: NodeId) -> Result<()> {
        unimplemented!("skeleton")
    }
    /// Schema of a node's output.
    pub fn schema(&self, _node: NodeId) -> Result<SchemaRef> {
        unimplemented!("skeleton")
    }
    /// A circuit with empty state.
    pub fn build(self, _options: CircuitOptions) -> Result<Circuit> {
        unimplemented!("skeleton")
    }
}

/// A circuit and its state.
#[derive(Debug)]
pub struct Circuit {}

impl Circuit {
    /// One epoch: a delta per source (missing ones are empty, several of one source add up) in,
    /// a consolidated delta per output out.
    pub fn step(&mut self, _inputs: Vec<(String, ZBatch)>) -> Result<BTreeMap<String, ZBatch>> {
        unimplemented!("skeleton")
    }
    /// Names and schemas of the sources.
    pub fn sources(&self) -> Vec<(String, SchemaRef)> {
        unimplemented!("skeleton")
    }
    /// Number of epochs done.
    pub fn epoch(&self) -> u64 {
        unimplemented!("skeleton")
    }
    /// Bytes of state.
    pub fn state_bytes(&self) -> usize {
        unimplemented!("skeleton")
    }
    /// True when no operator holds state (law *undo*).
    pub fn state_is_empty(&self) -> bool {
        unimplemented!("skeleton")
    }
    /// Per node, in topological order.
    pub fn metrics(&self) -> Vec<NodeMetrics> {
        unimplemented!("skeleton")
    }
    /// Full images of all slots.
    pub fn write_full(&mut self) -> Result<SlotImages> {
        unimplemented!("skeleton")
    }
    /// Changes of all slots since the last write; slots without change are left out.
    pub fn write_changes(&mut self) -> Result<SlotImages> {
        unimplemented!("skeleton")
    }
    /// Puts stored state into a freshly built circuit: full images and later changes in order.
    /// The number of shards must be the same.
    pub fn restore(&mut self, _full: &SlotImages, _changes: &[SlotImages]) -> Result<()> {
        unimplemented!("skeleton")
    }
}
