//! One node in one epoch: its inputs brought together, its operator called per shard.

use std::collections::BTreeMap;

use deltaic_batch::{Error, ErrorClass, Result, ZBatch};
use deltaic_ops::{StepContext, OperatorSpec};
use deltaic_state::Slot;
use rayon::prelude::*;

use crate::builder::{Node, OperatorNode};
use crate::checks::Checks;
use crate::circuit::RowCounts;
use crate::delta::{Delta, PARALLEL_ROWS, relabelled};

/// The sources' deltas in canonical form.
pub(crate) fn sum_of_inputs(
    nodes: &[Node],
    inputs: Vec<(usize, ZBatch)>,
    shards: usize,
) -> Result<Vec<(usize, Delta)>> {
    let mut by_source: BTreeMap<usize, Vec<ZBatch>> = BTreeMap::new();
    for (index, batch) in inputs {
        by_source.entry(index).or_default().push(batch.canonical()?);
    }
    let mut deltas = Vec::with_capacity(by_source.len());
    for (index, batches) in by_source {
        let delta = Delta::of_source(ZBatch::concat(&nodes[index].schema, &batches)?, shards)?;
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
        let is_idle = self.node.inputs.iter().all(|&input| deltas[input].is_none());
        if is_idle && self.epoch > 0 {
            if let Some(checks) = checks {
                checks.idle(self, state)?;
            }
            return Ok((None, RowCounts::default()));
        }
        let rows_in = self.rows_in(deltas);
        let (pieces, from_sound) = if self.node.is_stream && self.epoch > 0 {
            (self.stream(deltas, rows_in)?, true)
        } else {
            (self.keyed(deltas, state)?, false)
        };
        if let Some(checks) = checks {
            checks.output(self.index, self.spec(), &pieces)?;
        }
        let delta = Delta::of_operator(pieces, from_sound);
        let counts = RowCounts { rows_in: rows_in as u64, rows_out: delta.rows() as u64 };
        Ok(((delta.rows() > 0).then_some(delta), counts))
    }

    pub(crate) fn spec(&self) -> &OperatorSpec {
        self.node.operator.spec()
    }

    fn rows_in(&self, deltas: &[Option<Delta>]) -> usize {
        self.node.inputs.iter().filter_map(|&i| deltas[i].as_ref()).map(Delta::rows).sum()
    }
}
