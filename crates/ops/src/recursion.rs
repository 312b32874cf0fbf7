//! Recursion: the least fixpoint of a query that reads its own result (`WITH RECURSIVE`).
//!
//! **Meaning**: with the *base* rows `B` and a *step* that is linear in the work table, the sum of `B`,
//! `step(B)`, `step(step(B))` and so on until nothing comes (UNION ALL); or each row of that once, however
//! often it can be derived (UNION).
//!
//! **Incremental form**: the step is a little circuit of its own, whose operators keep the result as
//! their work table; a delta of rows goes in, their derivations come out, and so around until nothing
//! does. For UNION ALL that is all, since the step is linear. For UNION, each row has a counter of its
//! derivations. It begins to be there with its first one. That it loses one may mean that it is to go
//! even if others are left, since they may come from itself around a cycle. So rows go by *delete and
//! rederive* (A. Gupta, I. S. Mumick, V. S. Subrahmanian, "Maintaining Views Incrementally", SIGMOD 1993):
//!
//! 1. What is taken from the inputs goes around first, and with it every row that loses a derivation.
//! 2. Of these, the rows with derivations left, all of which are from rows that are there, come back.
//! 3. What is new in the inputs goes around.
//!
//! O(derivations that come and go), and for UNION those of the rows that are tried in 1 and come back.
//!
//! **State**: slot 0, for UNION, the number of derivations of each row of the result; then the slots
//! of the step's operators.
//!
//! **Nulls**: NULL equals NULL.
//!
//! **Refuses**: a step that takes more than [`ROUNDS_MAX`] rounds (`RECURSION_LEVEL_LIMIT_EXCEEDED`), a
//! UNION of columns that cannot be keys. The caller answers for the step: linear in the work table, and
//! for UNION monotone in all inputs (filters, projections, inner joins, semi joins from the left, unions).

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::{AccumulatorColumn, GroupTable, Slot};

use crate::multiplicity::{self, add_weights};
use crate::{Algebra, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext};
use crate::{input, selection};

/// Rounds after which a recursion is taken to have no end.
pub const ROUNDS_MAX: usize = 100_000;

/// Most rows of one output piece.
const PIECE_ROWS_MAX: usize = 1 << 14;

/// What an operator of the step reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepInput {
    /// The work table.
    Work,
    /// An input of the recursion, from 0, not counting the base.
    Outer(usize),
    /// An earlier operator of the step.
    Node(usize),
}

/// One operator of the step.
#[derive(Debug, Clone)]
pub struct StepNode {
    /// The operator.
    pub operator: Arc<dyn Operator>,
    /// Its inputs.
    pub inputs: Vec<StepInput>,
}

/// Declares a recursion.
#[derive(Debug, Clone)]
pub struct RecursionSpec {
    /// Schema of base and result.
    pub schema: SchemaRef,
    /// Schemas of the other inputs.
    pub outer: Vec<SchemaRef>,
    /// The step, each operator after those that it reads; the last one's output is the step's. Without
    /// operators, the step is the work table.
    pub step: Vec<StepNode>,
    /// UNION, not UNION ALL.
    pub distinct: bool,
    /// One line of explain.
    pub detail: String,
}

/// The recursion operator.
#[derive(Debug)]
pub struct Recursion {
    step: Vec<StepNode>,
    distinct: bool,
    outer: Vec<SchemaRef>,
    spec: OperatorSpec,
}

impl Recursion {
    /// Checks `spec`; a user error (`UNSUPPORTED_TYPE`, `UNSUPPORTED_KEY`) if a UNION's column cannot be
    /// a key.
    pub fn try_new(spec: RecursionSpec) -> Result<Self> {
        let RecursionSpec { schema, outer, step, distinct, detail } = spec;
        let types = || schema.fields().iter().map(|field| field.data_type().clone()).collect();
        let counts = distinct.then(|| multiplicity::slot(types()));
        let of_step = step.iter().flat_map(|node| node.operator.spec().slots.iter().cloned());
        let slots: Vec<_> = counts.into_iter().chain(of_step).collect();
        slots.iter().try_for_each(|slot| Slot::try_new(slot).map(drop))?;
        // A row's derivations may lie in any shard.
        let single =
            |schema: &SchemaRef| InputSpec { schema: schema.clone(), exchange: Exchange::Single };
        let operator = OperatorSpec {
            name: "Recursion",
            detail,
            inputs: [&schema].into_iter().chain(&outer).map(single).collect(),
            output: schema.clone(),
            slots,
            algebra: Algebra::NonLinear,
            output_is_set: distinct,
        };
        Ok(Self { step, distinct, outer, spec: operator })
    }

    fn schema(&self) -> &SchemaRef {
        &self.spec.output
    }

    /// What the step makes of deltas of the work table and of the other inputs.
    fn derive(
        &self,
        work: &ZBatch,
        outer: &[ZBatch],
        state: &mut [Slot],
        cx: &StepContext,
    ) -> Result<ZBatch> {
        let mut outputs: Vec<Vec<ZBatch>> = Vec::with_capacity(self.step.len());
        let mut state = state;
        for node in &self.step {
            let spec = node.operator.spec();
            let (own, rest) = state.split_at_mut(spec.slots.len());
            state = rest;
            let mut inputs = Vec::with_capacity(node.inputs.len());
            for (from, to) in node.inputs.iter().zip(&spec.inputs) {
                let pieces = match *from {
                    StepInput::Work => std::slice::from_ref(work),
                    StepInput::Outer(at) => &outer[at..=at],
                    StepInput::Node(at) => &outputs[at],
                };
                let pieces = pieces.iter().map(|piece| relabelled(piece, &to.schema));
                let whole = ZBatch::concat(&to.schema, &pieces.collect::<Result<Vec<_>>>()?)?;
                inputs.push(whole.consolidate()?);
            }
            let mut out: Vec<ZBatch> = Vec::new();
            if inputs.iter().any(|delta| !delta.is_empty()) {
                node.operator.step(&inputs, own, &mut out, cx)?;
            }
            outputs.push(out);
        }
        let last = match outputs.pop() {
            Some(last) => last,
            None => vec![work.clone()],
        };
        let pieces = last.iter().map(|piece| relabelled(piece, self.schema()));
        ZBatch::concat(self.schema(), &pieces.collect::<Result<Vec<_>>>()?)?.consolidate()
    }

    /// UNION ALL: what is derived goes around.
    fn sum(
        &self,
        inputs: &[ZBatch],
        state: &mut [Slot],
        out: &mut dyn Output,
        cx: &StepContext,
    ) -> Result<()> {
        let mut round = Rounds { of: self, state, cx, done: 0 };
        let mut fresh = round.first(inputs)?;
        while !fresh.is_empty() {
            out.push(fresh.clone())?;
            fresh = round.next(&fresh)?;
        }
        Ok(())
    }

    /// UNION: see the module.
    fn set(
        &self,
        inputs: &[ZBatch],
        state: &mut [Slot],
        out: &mut dyn Output,
        cx: &StepContext,
    ) -> Result<()> {
        let Some((counts, state)) = state.split_first_mut() else {
            return Err(Error::internal("SLOT_COUNT", "a recursion has a slot for its rows"));
        };
        let mut rows = Rows { counts: counts.groups()?, seen: HashMap::new() };
        let gone = inputs.iter().map(|delta| of_sign(delta, -1)).collect::<Result<Vec<_>>>()?;
        let mut round = Rounds { of: self, state, cx, done: 0 };
        let (mut change, mut lost) = (round.first(&gone)?, Vec::new());
        loop {
            let fallen = rows.take(&change)?;
            if fallen.is_empty() {
                break;
            }
            change = round.next(&rows.batch(&fallen, -1, self.schema())?)?;
            lost.extend(fallen);
        }
        let mut risen = rows.rederived(&lost);
        let come = inputs.iter().map(|delta| of_sign(delta, 1)).collect::<Result<Vec<_>>>()?;
        change = round.first(&come)?;
        loop {
            risen.extend(rows.add(&change)?);
            if risen.is_empty() {
                break;
            }
            change = round.next(&rows.batch(&std::mem::take(&mut risen), 1, self.schema())?)?;
        }
        for (weight, moved) in [(-1, rows.moved(false)), (1, rows.moved(true))] {
            for piece in moved.chunks(PIECE_ROWS_MAX) {
                out.push(rows.batch(piece, weight, self.schema())?)?;
            }
        }
        rows.counts.settle()
    }
}

/// Goes around the step.
struct Rounds<'a> {
    of: &'a Recursion,
    state: &'a mut [Slot],
    cx: &'a StepContext,
    done: usize,
}

impl Rounds<'_> {
    /// The base's delta and what the other inputs' derive from the work table as it is.
    fn first(&mut self, inputs: &[ZBatch]) -> Result<ZBatch> {
        let (base, outer) = (input(inputs, 0)?, &inputs[1..]);
        let none = ZBatch::empty(self.of.schema().clone());
        let derived = self.of.derive(&none, outer, self.state, self.cx)?;
        ZBatch::concat(self.of.schema(), &[base.clone(), derived])?.consolidate()
    }

    /// What a delta of the work table derives.
    fn next(&mut self, work: &ZBatch) -> Result<ZBatch> {
        self.done += 1;
        if self.done > ROUNDS_MAX {
            let message = format!("the recursion has not ended after {ROUNDS_MAX} rounds");
            return Err(Error::data("RECURSION_LEVEL_LIMIT_EXCEEDED", message)
                .hint("bound it, as in WHERE level < 100, or use UNION in place of UNION ALL"));
        }
        let none: Vec<ZBatch> =
            self.of.outer.iter().map(|schema| ZBatch::empty(schema.clone())).collect();
        self.of.derive(work, &none, self.state, self.cx)
    }
}

/// The result's rows with the number of their derivations.
struct Rows<'a> {
    counts: &'a mut GroupTable,
    /// Of the rows touched in this step: whether they were there before it, and are there now.
    seen: HashMap<u32, (bool, bool)>,
}

impl Rows<'_> {
    /// Takes derivations away; the rows that were there and have lost one.
    fn take(&mut self, change: &ZBatch) -> Result<Vec<u32>> {
        let touched = self.count(change, -1)?;
        let is_there = |group: &u32| self.seen.get(group).is_some_and(|seen| seen.1);
        let fallen: Vec<u32> = touched.into_iter().filter(is_there).collect();
        self.mark(&fallen, false);
        Ok(fallen)
    }

    /// Adds derivations; the rows that begin to be there.
    fn add(&mut self, change: &ZBatch) -> Result<Vec<u32>> {
        let touched = self.count(change, 1)?;
        let is_new = |group: &u32| self.seen.get(group).is_some_and(|seen| !seen.1);
        let risen: Vec<u32> = touched.into_iter().filter(is_new).collect();
        self.mark(&risen, true);
        Ok(risen)
    }

    /// Of rows that have gone, those with derivations left; they are there again.
    fn rederived(&mut self, lost: &[u32]) -> Vec<u32> {
        let counts = match self.counts.accumulators() {
            [AccumulatorColumn::I64(counts)] => counts.as_slice(),
            _ => &[],
        };
        let is_derived = |group: &&u32| counts.get(**group as usize).is_some_and(|&n| n > 0);
        let derived: Vec<u32> = lost.iter().filter(is_derived).copied().collect();
        self.mark(&derived, true);
        derived
    }

    fn mark(&mut self, groups: &[u32], is_there: bool) {
        for group in groups {
            if let Some(seen) = self.seen.get_mut(group) {
                seen.1 = is_there;
            }
        }
    }

    /// Adds weights of one sign to the counters; the touched groups.
    fn count(&mut self, change: &ZBatch, sign: i64) -> Result<Vec<u32>> {
        if change.weights().iter().any(|weight| weight.signum() != sign) {
            return Err(Error::internal("RECURSION_STEP", "the step is not monotone"));
        }
        let groups = self.counts.upsert(change.rows().columns(), change.num_rows())?;
        let [AccumulatorColumn::I64(counts)] = self.counts.accumulators_mut() else {
            return Err(Error::internal("SLOT_KIND", "multiplicities need exactly one counter"));
        };
        for &group in &groups {
            let was_there = counts[group as usize] > 0;
            self.seen.entry(group).or_insert((was_there, was_there));
        }
        add_weights(counts, &groups, change.weights())?;
        Ok(groups)
    }

    /// The rows that are there now and were not, or the other way round, in order.
    fn moved(&self, is_there: bool) -> Vec<u32> {
        let moved = self.seen.iter().filter(|(_, seen)| **seen == (!is_there, is_there));
        let mut moved: Vec<u32> = moved.map(|(group, _)| *group).collect();
        moved.sort_unstable();
        moved
    }

    fn batch(&self, groups: &[u32], weight: i64, schema: &SchemaRef) -> Result<ZBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(groups.len()));
        let columns = self.counts.keys(groups)?;
        let rows = RecordBatch::try_new_with_options(schema.clone(), columns, &options)?;
        ZBatch::try_new(rows, vec![weight; groups.len()])
    }
}

/// The rows of a consolidated delta that come, or that go.
fn of_sign(delta: &ZBatch, sign: i64) -> Result<ZBatch> {
    let keep = delta.weights().iter().map(|weight| Some(weight.signum() == sign)).collect();
    selection::filter(delta, &keep)
}

/// The same rows under other names.
fn relabelled(piece: &ZBatch, schema: &SchemaRef) -> Result<ZBatch> {
    if piece.schema() == *schema {
        return Ok(piece.clone());
    }
    let (rows, weights) = piece.clone().into_parts();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    let columns = rows.columns().to_vec();
    let rows = RecordBatch::try_new_with_options(schema.clone(), columns, &options)?;
    ZBatch::try_new(rows, weights)
}

impl Operator for Recursion {
    fn spec(&self) -> &OperatorSpec {
        &self.spec
    }

    fn step(
        &self,
        inputs: &[ZBatch],
        state: &mut [Slot],
        out: &mut dyn Output,
        cx: &StepContext,
    ) -> Result<()> {
        if inputs.iter().all(ZBatch::is_empty) {
            return Ok(());
        }
        // Operators of the step run many times in one epoch, and not without input in the first.
        let cx = &StepContext { epoch: cx.epoch.max(1), ..*cx };
        match self.distinct {
            true => self.set(inputs, state, out, cx),
            false => self.sum(inputs, state, out, cx),
        }
    }
}
