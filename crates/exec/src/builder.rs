//! Wiring a circuit.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use deltaic_batch::{Error, Result};
use deltaic_ops::{Algebra, Operator};
use deltaic_state::SlotSpec;

use crate::Circuit;

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

/// Wires operators. Nodes are numbered in the order of their adding, which is a topological one.
#[derive(Debug, Default)]
pub struct CircuitBuilder {
    nodes: Vec<Node>,
    outputs: BTreeMap<String, usize>,
}

/// A node and its place in the circuit.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    pub(crate) schema: SchemaRef,
}

#[derive(Debug)]
pub(crate) enum NodeKind {
    /// Rows from outside.
    Source(String),
    /// Rows that an operator makes.
    Operator(OperatorNode),
}

/// An operator with its inputs.
#[derive(Debug)]
pub(crate) struct OperatorNode {
    pub(crate) operator: Arc<dyn Operator>,
    pub(crate) inputs: Vec<usize>,
    /// Stateless and linear: may be called with any part of a delta.
    pub(crate) is_stream: bool,
}

impl Node {
    /// The state that the node needs per shard.
    pub(crate) fn slots(&self) -> &[SlotSpec] {
        match &self.kind {
            NodeKind::Source(_) => &[],
            NodeKind::Operator(node) => &node.operator.spec().slots,
        }
    }
}

impl CircuitBuilder {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A named input.
    pub fn source(&mut self, name: impl Into<String>, schema: SchemaRef) -> Result<NodeId> {
        let name = name.into();
        let taken = |node: &Node| matches!(&node.kind, NodeKind::Source(other) if *other == name);
        if self.nodes.iter().any(taken) {
            return Err(misbuilt("the circuit has a source of this name already").object(name));
        }
        Ok(self.push(Node { kind: NodeKind::Source(name), schema }))
    }

    /// An operator over earlier nodes. Each input must have the types that the operator's spec
    /// declares, column by column; names may differ.
    pub fn add(&mut self, operator: Arc<dyn Operator>, inputs: &[NodeId]) -> Result<NodeId> {
        let spec = operator.spec();
        if spec.inputs.len() != inputs.len() {
            return Err(misbuilt(format!(
                "the operator has {} inputs, {} are given",
                spec.inputs.len(),
                inputs.len()
            ))
            .object(spec.name));
        }
        for (expected, &input) in spec.inputs.iter().zip(inputs) {
            let given = self.schema(input)?;
            if !same_types(&expected.schema, &given) {
                return Err(misbuilt(format!(
                    "an input of the operator is {:?}, the node given for it {:?}",
                    expected.schema.fields(),
                    given.fields()
                ))
                .object(spec.name));
            }
        }
        let is_stream = spec.slots.is_empty() && spec.algebra == Algebra::Linear;
        let schema = spec.output.clone();
        let inputs = inputs.iter().map(|id| id.0).collect();
        let kind = NodeKind::Operator(OperatorNode { operator, inputs, is_stream });
        Ok(self.push(Node { kind, schema }))
    }

    /// Names a node's output.
    pub fn output(&mut self, name: impl Into<String>, node: NodeId) -> Result<()> {
        let name = name.into();
        self.schema(node)?;
        if self.outputs.contains_key(&name) {
            return Err(misbuilt("the circuit has an output of this name already").object(name));
        }
        self.outputs.insert(name, node.0);
        Ok(())
    }

    /// Schema of a node's output.
    pub fn schema(&self, node: NodeId) -> Result<SchemaRef> {
        let node = self
            .nodes
            .get(node.0)
            .ok_or_else(|| misbuilt(format!("node {} is not part of this circuit", node.0)))?;
        Ok(node.schema.clone())
    }

    /// A circuit with empty state.
    pub fn build(self, options: CircuitOptions) -> Result<Circuit> {
        if options.shards == 0 {
            return Err(misbuilt("a circuit needs at least one shard"));
        }
        Circuit::new(self.nodes, self.outputs, options)
    }

    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() - 1)
    }
}

/// Equal types, column by column.
pub(crate) fn same_types(a: &Schema, b: &Schema) -> bool {
    a.fields().len() == b.fields().len()
        && a.fields().iter().zip(b.fields()).all(|(a, b)| a.data_type() == b.data_type())
}

fn misbuilt(message: impl Into<String>) -> Error {
    Error::internal("CIRCUIT_MISBUILT", message)
}
