//! Checks of every operator's contract, for tests and debugging.

use std::collections::BTreeMap;

use deltaic_batch::{Error, Result, RowEncoder, ZBatch, canonicalize};
use deltaic_ops::OperatorSpec;
use deltaic_state::Slot;

use crate::builder::{Node, NodeKind};
use crate::step::Runner;

/// A multiset of rows in their byte form.
type Rows = BTreeMap<Box<[u8]>, i64>;

/// What the checks remember.
#[derive(Debug)]
pub(crate) struct Checks {
    /// The integrated output of each node that promises a set; `None` for the others, and for all
    /// once state has been restored, since the output up to then is not known.
    sets: Vec<Option<Rows>>,
}

impl Checks {
    pub(crate) fn new(nodes: &[Node]) -> Self {
        let of_node = |node: &Node| match &node.kind {
            NodeKind::Operator(node) if node.operator.spec().output_is_set => Some(Rows::new()),
            _ => None,
        };
        Self { sets: nodes.iter().map(of_node).collect() }
    }

    /// The state has been replaced.
    pub(crate) fn forget(&mut self) {
        self.sets.iter_mut().for_each(|set| *set = None);
    }

    /// Fits the schema, is canonical, has no zero weight, keeps a set a set and repeats none of its
    /// rows.
    pub(crate) fn output(
        &mut self,
        node: usize,
        spec: &OperatorSpec,
        pieces: &[Vec<ZBatch>],
    ) -> Result<()> {
        for piece in pieces.iter().flatten() {
            check_piece(spec, piece)?;
        }
        let Some(set) = &mut self.sets[node] else { return Ok(()) };
        let mut touched = Rows::new();
        for piece in pieces.iter().flatten() {
            add(&mut touched, piece)?;
        }
        if touched.len() < pieces.iter().flatten().map(ZBatch::num_rows).sum() {
            return Err(broken(spec, "the output is said to be a set, but a step repeats a row"));
        }
        for (row, change) in touched {
            let weight = set.remove(&row).unwrap_or(0) + change;
            match weight {
                0 => {}
                1 => {
                    set.insert(row, 1);
                }
                _ => {
                    return Err(broken(
                        spec,
                        format!("the output is said to be a set, but holds a row {weight} times"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// An operator that is given nothing must leave its state alone and emit nothing.
    pub(crate) fn idle(&self, runner: &Runner<'_>, state: &mut [Vec<Slot>]) -> Result<()> {
        let inputs = runner.empty_inputs();
        for (shard, slots) in state.iter_mut().enumerate() {
            let before = footprint(slots);
            let mut out = Vec::new();
            runner.call(shard, &inputs, slots, &mut out)?;
            if out.iter().any(|piece| !piece.is_empty()) {
                return Err(broken(runner.spec(), "an empty delta gave output"));
            }
            if footprint(slots) != before {
                return Err(broken(runner.spec(), "an empty delta changed the state"));
            }
        }
        Ok(())
    }
}

fn footprint(slots: &[Slot]) -> Vec<(usize, bool)> {
    slots.iter().map(|slot| (slot.memory_bytes(), slot.is_empty())).collect()
}

fn check_piece(spec: &OperatorSpec, piece: &ZBatch) -> Result<()> {
    let schema = piece.schema();
    if schema.fields() != spec.output.fields() {
        return Err(broken(
            spec,
            format!("the output is {:?}, not {:?}", schema.fields(), spec.output.fields()),
        ));
    }
    if piece.weights().contains(&0) {
        return Err(broken(spec, "the output has a row of weight zero"));
    }
    for (column, field) in piece.rows().columns().iter().zip(schema.fields()) {
        if !std::sync::Arc::ptr_eq(column, &canonicalize(column)) {
            let name = field.name();
            return Err(broken(spec, format!("column '{name}' has floats that are not canonical")));
        }
    }
    Ok(())
}

/// Adds a batch to a multiset. A batch without columns is the row `[]`.
fn add(rows: &mut Rows, batch: &ZBatch) -> Result<()> {
    let columns = batch.rows().columns();
    let types: Vec<_> = columns.iter().map(|column| column.data_type().clone()).collect();
    let mut encoder = RowEncoder::try_new(&types)?;
    let encoded = if columns.is_empty() { None } else { Some(encoder.encode(columns)?) };
    for (index, &weight) in batch.weights().iter().enumerate() {
        let row = encoded.map_or(Box::default(), |encoded| encoded.row(index).data().into());
        *rows.entry(row).or_insert(0) += weight;
    }
    Ok(())
}

fn broken(spec: &OperatorSpec, message: impl Into<String>) -> Error {
    Error::internal("OPERATOR_CONTRACT", message)
        .object(format!("{} {}", spec.name, spec.detail).trim_end())
}
