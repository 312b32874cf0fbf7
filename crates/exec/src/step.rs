//! One node in one epoch: its inputs brought together, its operator called per shard.

use std::collections::BTreeMap;

use deltaic_batch::{Error, ErrorClass, Result, ZBatch};
use deltaic_ops::{OperatorSpec, StepContext};
use deltaic_state::Slot;
use rayon::prelude::*;

use crate::builder::{Node, OperatorNode};
use crate::checks::Checks;
use crate::circuit::RowCounts;
use crate::delta::{Delta, PARALLEL_ROWS, relabelled};

/// The sources' deltas in canonical form.
pub(crate) fn sum_of_inputs(
    inputs: Vec<(usize, ZBatch)>,
    shards: usize,
) -> Result<Vec<(usize, Delta)>> {
    let mut by_source: BTreeMap<usize, Vec<ZBatch>> = BTreeMap::new();
    for (index, batch) in inputs {
        by_source.entry(index).or_default().push(batch.canonical()?);
    }
    let mut deltas = Vec::with_capacity(by_source.len());
    for (index, batches) in by_source {
        let delta = Delta::of_source(batches, shards);
        if delta.rows() > 0 {
            deltas.push((index, delta));
        }
    }
    Ok(deltas)
}

/// Runs one operator in one epoch.
pub(crate) struct Runner<'a> {
    pub(crate) index: usize,
    pub(crate) node: &'a OperatorNode,
    pub(crate) nodes: &'a [Node],
    /// Nodes whose delta nobody reads after this one.
    pub(crate) frees: &'a [usize],
    pub(crate) epoch: u64,
    pub(crate) shards: usize,
}

/// Pieces per shard.
type Pieces = Vec<Vec<ZBatch>>;

impl Runner<'_> {
    /// The operator's delta, `None` when it is empty.
    pub(crate) fn run(
        &self,
        deltas: &mut [Option<Delta>],
        state: &mut [Vec<Slot>],
        checks: Option<&mut Checks>,
    ) -> Result<(Option<Delta>, RowCounts)> {
        let rows_in = self.node.inputs.iter().filter_map(|&i| deltas[i].as_ref()).map(Delta::rows);
        let rows_in: usize = rows_in.sum();
        if rows_in == 0 && self.epoch > 0 {
            if let Some(checks) = checks {
                checks.idle(self, state)?;
            }
            return Ok((None, RowCounts::default()));
        }
        let is_stream = self.node.is_stream && rows_in > 0;
        let pieces = if is_stream {
            self.stream(deltas, rows_in >= PARALLEL_ROWS)?
        } else {
            self.keyed(deltas, state, rows_in >= PARALLEL_ROWS)?
        };
        let is_sound = |&input: &usize| deltas[input].as_ref().is_none_or(Delta::is_sound);
        let from_sound = is_stream && self.node.inputs.iter().all(is_sound);
        if let Some(checks) = checks {
            checks.output(self.index, self.spec(), &pieces)?;
        }
        let delta = Delta::of_operator(pieces, from_sound, self.spec().output_is_set);
        let counts = RowCounts { rows_in: rows_in as u64, rows_out: delta.rows() as u64 };
        Ok(((delta.rows() > 0).then_some(delta), counts))
    }

    pub(crate) fn spec(&self) -> &OperatorSpec {
        self.node.operator.spec()
    }

    /// Calls a stateless linear operator with each piece of each input by itself.
    fn stream(&self, deltas: &mut [Option<Delta>], is_parallel: bool) -> Result<Pieces> {
        if self.node.operator.needs_consolidated() {
            for &input in &self.node.inputs {
                if let Some(delta) = &mut deltas[input] {
                    delta.make_sound(&self.nodes[input].schema)?;
                }
            }
        }
        let deltas = &*deltas;
        let of_shard = |shard: usize| -> Result<Vec<ZBatch>> {
            let mut out = Vec::new();
            let mut inputs = self.empty_inputs();
            for (position, &input) in self.node.inputs.iter().enumerate() {
                let Some(delta) = &deltas[input] else { continue };
                for piece in delta.pieces(shard) {
                    let empty = inputs[position].clone();
                    inputs[position] = self.labelled(position, piece.clone())?;
                    self.call(shard, &inputs, &mut [], &mut out)?;
                    inputs[position] = empty;
                }
            }
            Ok(out)
        };
        if is_parallel {
            (0..self.shards).into_par_iter().map(of_shard).collect()
        } else {
            (0..self.shards).map(of_shard).collect()
        }
    }

    /// Calls an operator once per shard with its inputs spread as it asks. Shards without input are
    /// left alone, except in the first epoch.
    fn keyed(
        &self,
        deltas: &mut [Option<Delta>],
        state: &mut [Vec<Slot>],
        is_parallel: bool,
    ) -> Result<Pieces> {
        let needs_consolidated = self.node.operator.needs_consolidated();
        let mut inputs = vec![vec![Vec::new(); self.node.inputs.len()]; self.shards];
        for (position, &input) in self.node.inputs.iter().enumerate() {
            let Some(delta) = &mut deltas[input] else { continue };
            let exchange = &self.spec().inputs[position].exchange;
            let schema = &self.nodes[input].schema;
            let spread = delta.exchanged(schema, exchange, needs_consolidated, self.shards)?;
            for (of_shard, pieces) in inputs.iter_mut().zip(spread) {
                for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
                    of_shard[position].push(self.labelled(position, piece)?);
                }
            }
        }
        self.frees.iter().for_each(|&free| deltas[free] = None);
        let of_shard = |(shard, (slots, inputs)): (usize, (&mut Vec<Slot>, Vec<Vec<ZBatch>>))| {
            let mut out = Vec::new();
            if self.epoch == 0 || inputs.iter().any(|pieces| !pieces.is_empty()) {
                let context = self.context(shard);
                let operator = &self.node.operator;
                operator
                    .step_pieces(inputs, slots, &mut out, &context)
                    .map_err(|e| self.named(e))?;
            }
            Ok(out)
        };
        if is_parallel {
            state.par_iter_mut().zip(inputs).enumerate().map(of_shard).collect()
        } else {
            state.iter_mut().zip(inputs).enumerate().map(of_shard).collect()
        }
    }

    /// One empty batch per input.
    pub(crate) fn empty_inputs(&self) -> Vec<ZBatch> {
        self.spec().inputs.iter().map(|input| ZBatch::empty(input.schema.clone())).collect()
    }

    /// One step of the operator in one shard.
    pub(crate) fn call(
        &self,
        shard: usize,
        inputs: &[ZBatch],
        slots: &mut [Slot],
        out: &mut Vec<ZBatch>,
    ) -> Result<()> {
        let context = self.context(shard);
        self.node.operator.step(inputs, slots, out, &context).map_err(|e| self.named(e))
    }

    fn context(&self, shard: usize) -> StepContext {
        StepContext { epoch: self.epoch, shard, shards: self.shards }
    }

    fn labelled(&self, position: usize, batch: ZBatch) -> Result<ZBatch> {
        relabelled(batch, &self.spec().inputs[position].schema).map_err(|e| self.named(e))
    }

    /// Names the operator in an error that is ours.
    pub(crate) fn named(&self, error: Error) -> Error {
        if error.class() != ErrorClass::Internal {
            return error;
        }
        let spec = self.spec();
        error.object(format!("{} {}", spec.name, spec.detail).trim_end())
    }
}
