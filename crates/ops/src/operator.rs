//! What an operator is: an immutable description and a pure transition.

use std::fmt::Debug;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Result, ZBatch};
use deltaic_state::{Slot, SlotSpec};

/// A scalar expression over the rows of a batch, one value per row.
///
/// The kernel knows no expression language; the planner implements this over its own.
pub trait Evaluator: Debug + Send + Sync {
    /// One value per row of `batch`.
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef>;

    /// Never an error, whatever the values: a column, a constant, a comparison. Rows that cancel
    /// out need not be taken away before it.
    fn cannot_fail(&self) -> bool {
        false
    }

    /// The number of the column that it evaluates to, if it is nothing but a column.
    fn column(&self) -> Option<usize> {
        None
    }
}

/// Which rows of an input must meet in one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exchange {
    /// Any shard will do (stateless operators).
    Any,
    /// Rows that are equal in these columns go to the same shard.
    ByKey(Vec<usize>),
    /// All rows go to shard 0.
    Single,
    /// Every shard gets all rows.
    Broadcast,
}

/// One input of an operator.
#[derive(Debug, Clone)]
pub struct InputSpec {
    /// Schema of the rows.
    pub schema: SchemaRef,
    /// How rows are spread over shards.
    pub exchange: Exchange,
}

/// How an operator relates to addition of deltas; the law suite follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algebra {
    /// `f(a + b) = f(a) + f(b)`.
    Linear,
    /// Linear in each input.
    Bilinear,
    /// Neither.
    NonLinear,
}

/// The immutable description of an operator.
#[derive(Debug, Clone)]
pub struct OperatorSpec {
    /// Short name, as explain shows it (`Aggregate`).
    pub name: &'static str,
    /// One line of explain: keys, functions, condition.
    pub detail: String,
    /// Inputs in order.
    pub inputs: Vec<InputSpec>,
    /// Schema of the output.
    pub output: SchemaRef,
    /// What outlives a step; the driver keeps one of each per shard.
    pub slots: Vec<SlotSpec>,
    /// Algebraic class.
    pub algebra: Algebra,
    /// The integrated output never holds a row more than once, whatever the input, and a step emits
    /// each row at most once.
    pub output_is_set: bool,
}

/// What a step may know of its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct StepContext {
    /// Number of the epoch, from 0 over the whole life of the state.
    pub epoch: u64,
    /// This shard, below `shards`.
    pub shard: usize,
    /// Number of shards.
    pub shards: usize,
}

impl StepContext {
    /// True in the first epoch of a circuit's life, in which operators run even without input: a
    /// global aggregate emits its one row then (on shard 0).
    pub fn is_first(&self) -> bool {
        self.epoch == 0
    }
}

/// Takes an operator's output in bounded pieces.
pub trait Output {
    /// Adds a piece; pieces need not be consolidated among each other.
    fn push(&mut self, piece: ZBatch) -> Result<()>;
}

impl Output for Vec<ZBatch> {
    fn push(&mut self, piece: ZBatch) -> Result<()> {
        if !piece.is_empty() {
            Vec::push(self, piece);
        }
        Ok(())
    }
}

/// An incremental operator.
///
/// At every epoch, `sum of outputs = batch meaning (sum of inputs)`, exactly.
pub trait Operator: Debug + Send + Sync {
    /// The description. Constant over the operator's life.
    fn spec(&self) -> &OperatorSpec;

    /// Turns one delta per input into the output delta. Floats of `inputs[i]` are canonical, and it
    /// may be empty. It is consolidated (each row once, no zero weight) where
    /// [`Self::needs_consolidated`] says so; a stateless linear operator is given parts of a delta,
    /// each row of which is or was a row of the input. `state` holds one slot per entry of
    /// `spec().slots`. After an error the state is unusable and the driver drops it.
    fn step(
        &self,
        inputs: &[ZBatch],
        state: &mut [Slot],
        out: &mut dyn Output,
        cx: &StepContext,
    ) -> Result<()>;

    /// As [`Self::step`], over deltas in pieces: the same Z-set may be emitted as for each input in one
    /// piece, which is what happens unless an operator does better than to copy them together.
    fn step_pieces(
        &self,
        inputs: Vec<Vec<ZBatch>>,
        state: &mut [Slot],
        out: &mut dyn Output,
        cx: &StepContext,
    ) -> Result<()> {
        let whole =
            |(pieces, input): (Vec<ZBatch>, &InputSpec)| ZBatch::concat(&input.schema, &pieces);
        let specs = &self.spec().inputs;
        let inputs = inputs.into_iter().zip(specs).map(whole).collect::<Result<Vec<_>>>()?;
        self.step(&inputs, state, out, cx)
    }

    /// False when rows of a delta may repeat and cancel out: the output is the same Z-set, and the
    /// step cannot fail on a row that was never really there. The driver then saves the work.
    fn needs_consolidated(&self) -> bool {
        true
    }
}
