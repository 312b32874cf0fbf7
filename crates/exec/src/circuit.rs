//! The circuit: nodes, their state, and the synchronous driver.

use std::collections::BTreeMap;

use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::Slot;

use crate::CircuitOptions;
use crate::builder::{Node, NodeKind, same_types};
use crate::checks::Checks;
use crate::delta::{Delta, relabelled};
use crate::step::{Runner, sum_of_inputs};

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

/// A circuit and its state.
///
/// [`Circuit::step`] runs the nodes in topological order, each over all shards before the next one.
/// An operator that no input reaches is not called, except in the first epoch.
///
/// State can be written whole and by changes, and put into a circuit that was built the same way:
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::datatypes::{DataType, Field, Schema};
/// # use deltaic_batch::ZBatch;
/// # use deltaic_exec::{Circuit, CircuitBuilder, CircuitOptions};
/// # use deltaic_ops::Distinct;
/// # let schema = Arc::new(Schema::new(vec![Field::new("name", DataType::Utf8, true)]));
/// let build = || -> Result<Circuit, deltaic_batch::Error> {
///     let mut builder = CircuitBuilder::new();
///     let names = builder.source("names", schema.clone())?;
///     let distinct = builder.add(Arc::new(Distinct::try_new(schema.clone())?), &[names])?;
///     builder.output("distinct", distinct)?;
///     builder.build(CircuitOptions::default())
/// };
/// let names = |text: &str| -> Result<_, deltaic_batch::Error> {
///     Ok(vec![("names".to_owned(), ZBatch::parse(&schema, text)?)])
/// };
/// let mut first = build()?;
/// let full = first.write_full()?;
/// first.step(names("+ ann\n+ bo")?)?;
/// let changes = first.write_changes()?;
///
/// let mut second = build()?;
/// second.restore(&full, &[changes])?;
/// let out = second.step(names("+ ann\n- bo")?)?;
/// assert_eq!(out["distinct"].to_string(), "- bo\n");
/// assert_eq!(second.epoch(), 2);
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
#[derive(Debug)]
pub struct Circuit {
    pub(crate) nodes: Vec<Node>,
    pub(crate) outputs: BTreeMap<String, usize>,
    pub(crate) options: CircuitOptions,
    /// Node, shard, slot.
    pub(crate) state: Vec<Vec<Vec<Slot>>>,
    pub(crate) epoch: u64,
    pub(crate) checks: Option<Checks>,
    pub(crate) rows: Vec<RowCounts>,
    /// Nodes whose delta nobody needs after this node has run.
    frees: Vec<Vec<usize>>,
    /// The deltas of an epoch; all `None` between steps.
    deltas: Vec<Option<Delta>>,
    /// Why the state cannot be used any more.
    poisoned: Option<Error>,
}

/// Physical rows in and out of a node.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowCounts {
    pub(crate) rows_in: u64,
    pub(crate) rows_out: u64,
}

impl Circuit {
    pub(crate) fn new(
        nodes: Vec<Node>,
        outputs: BTreeMap<String, usize>,
        options: CircuitOptions,
    ) -> Result<Self> {
        let mut circuit = Self {
            frees: last_uses(&nodes, &outputs),
            deltas: nodes.iter().map(|_| None).collect(),
            rows: vec![RowCounts::default(); nodes.len()],
            checks: options.checks.then(|| Checks::new(&nodes)),
            state: Vec::new(),
            epoch: 0,
            poisoned: None,
            nodes,
            outputs,
            options,
        };
        circuit.state = circuit.empty_state()?;
        Ok(circuit)
    }

    fn empty_state(&self) -> Result<Vec<Vec<Vec<Slot>>>> {
        let of_node = |node: &Node| -> Result<Vec<Vec<Slot>>> {
            let slots = || node.slots().iter().map(Slot::try_new).collect();
            (0..self.options.shards).map(|_| slots()).collect()
        };
        self.nodes.iter().map(of_node).collect()
    }

    /// One epoch: a delta per source (missing ones are empty, several of one source add up) in,
    /// a consolidated delta per output out.
    ///
    /// Wrong input (a source that does not exist, other columns) is refused and changes nothing.
    /// After an error of an operator the state is unusable: every later call fails until
    /// [`Circuit::restore`].
    pub fn step(&mut self, inputs: Vec<(String, ZBatch)>) -> Result<BTreeMap<String, ZBatch>> {
        self.check_usable()?;
        let inputs = self.sorted_inputs(inputs)?;
        let result = self.run(inputs);
        self.deltas.iter_mut().for_each(|delta| *delta = None);
        match &result {
            Ok(_) => self.epoch += 1,
            Err(error) => self.poisoned = Some(error.clone()),
        }
        result
    }

    /// The batches of each source, in the source's schema.
    fn sorted_inputs(&self, inputs: Vec<(String, ZBatch)>) -> Result<Vec<(usize, ZBatch)>> {
        let mut sorted = Vec::with_capacity(inputs.len());
        for (name, batch) in inputs {
            let is_named =
                |node: &Node| matches!(&node.kind, NodeKind::Source(source) if *source == name);
            let Some(index) = self.nodes.iter().position(is_named) else {
                return Err(
                    Error::internal("CIRCUIT_INPUT", "the circuit has no such source").object(name)
                );
            };
            let schema = &self.nodes[index].schema;
            if !same_types(schema, &batch.schema()) {
                return Err(Error::internal(
                    "CIRCUIT_INPUT",
                    format!(
                        "the source has the columns {:?}, the batch {:?}",
                        schema.fields(),
                        batch.schema().fields()
                    ),
                )
                .object(name));
            }
            if !batch.is_empty() {
                let batch = relabelled(batch, schema).map_err(|e| e.object(name))?;
                sorted.push((index, batch));
            }
        }
        Ok(sorted)
    }

    fn run(&mut self, inputs: Vec<(usize, ZBatch)>) -> Result<BTreeMap<String, ZBatch>> {
        for (index, delta) in sum_of_inputs(inputs, self.options.shards)? {
            let rows = delta.rows() as u64;
            self.rows[index].rows_in += rows;
            self.rows[index].rows_out += rows;
            self.deltas[index] = Some(delta);
        }
        for index in 0..self.nodes.len() {
            if let NodeKind::Operator(node) = &self.nodes[index].kind {
                let runner = Runner {
                    index,
                    node,
                    nodes: &self.nodes,
                    frees: &self.frees[index],
                    epoch: self.epoch,
                    shards: self.options.shards,
                };
                let (delta, counts) =
                    runner.run(&mut self.deltas, &mut self.state[index], self.checks.as_mut())?;
                self.rows[index].rows_in += counts.rows_in;
                self.rows[index].rows_out += counts.rows_out;
                self.deltas[index] = delta;
            }
            for &free in &self.frees[index] {
                self.deltas[free] = None;
            }
        }
        let mut outputs = BTreeMap::new();
        for (name, &index) in &self.outputs {
            let schema = &self.nodes[index].schema;
            let delta = match &mut self.deltas[index] {
                Some(delta) => delta.whole(schema)?,
                None => ZBatch::empty(schema.clone()),
            };
            outputs.insert(name.clone(), delta);
        }
        Ok(outputs)
    }

    pub(crate) fn check_usable(&self) -> Result<()> {
        match &self.poisoned {
            None => Ok(()),
            Some(cause) => Err(Error::internal(
                "CIRCUIT_POISONED",
                format!("an earlier step failed and left the state unusable: {cause}"),
            )
            .hint("restore the circuit from stored state")),
        }
    }

    /// Replaces the state, as of the given epoch.
    pub(crate) fn reset(&mut self, state: Vec<Vec<Vec<Slot>>>, epoch: u64) {
        self.state = state;
        self.epoch = epoch;
        self.poisoned = None;
        self.rows.fill(RowCounts::default());
        if let Some(checks) = &mut self.checks {
            checks.forget();
        }
    }

    /// Names and schemas of the sources.
    pub fn sources(&self) -> Vec<(String, SchemaRef)> {
        let source = |node: &Node| match &node.kind {
            NodeKind::Source(name) => Some((name.clone(), node.schema.clone())),
            NodeKind::Operator(_) => None,
        };
        self.nodes.iter().filter_map(source).collect()
    }

    /// Number of epochs done.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Bytes of state.
    pub fn state_bytes(&self) -> usize {
        self.slots().map(Slot::memory_bytes).sum()
    }

    /// True when no operator holds state (law *undo*).
    pub fn state_is_empty(&self) -> bool {
        self.slots().all(Slot::is_empty)
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.state.iter().flatten().flatten()
    }

    /// Per node, in topological order.
    pub fn metrics(&self) -> Vec<NodeMetrics> {
        let of_node = |((node, rows), state): ((&Node, &RowCounts), &Vec<Vec<Slot>>)| NodeMetrics {
            name: match &node.kind {
                NodeKind::Source(_) => "Source",
                NodeKind::Operator(node) => node.operator.spec().name,
            },
            rows_in: rows.rows_in,
            rows_out: rows.rows_out,
            state_bytes: state.iter().flatten().map(Slot::memory_bytes).sum(),
        };
        self.nodes.iter().zip(&self.rows).zip(&self.state).map(of_node).collect()
    }
}

/// Per node, the nodes whose delta it is the last to read. What an output reads stays.
fn last_uses(nodes: &[Node], outputs: &BTreeMap<String, usize>) -> Vec<Vec<usize>> {
    let mut last: Vec<usize> = (0..nodes.len()).collect();
    for (index, node) in nodes.iter().enumerate() {
        if let NodeKind::Operator(node) = &node.kind {
            node.inputs.iter().for_each(|&input| last[input] = index);
        }
    }
    let mut frees = vec![Vec::new(); nodes.len()];
    for (index, last) in last.into_iter().enumerate() {
        if !outputs.values().any(|&output| output == index) {
            frees[last].push(index);
        }
    }
    frees
}
