//! Window functions over ordered partitions, at a cost that follows what a change affects.
//!
//! **Meaning**: each row of the input, as often as its weight says, with the value of each call over
//! the rows of its partition in the order of the sort columns; ties stand in the order of the other
//! columns, ascending, NULL first. Frames that go by `RANGE` or `GROUPS` see ties as peers.
//!
//! **Incremental form**: a change affects the rows around it: those whose frames reach it, or all
//! after it for a running value, unless what was added and taken away is equal. The rows of such a
//! stretch are read, with as many rows on either side as their frames see, and each call is computed
//! over them as they were and as they are now; rows whose values differ are emitted. At the ends of
//! a stretch frames are cut short, alike before and after, so that nothing is emitted there.
//! A running value is taken up at a checkpoint ([`carry`]). O(rows affected + reach + one span
//! between checkpoints) per change; a partition of few rows is read whole.
//!
//! **State**: slot 0, the partitions with their number of rows; slot 1, all rows of each partition in
//! order; slot 2, if there are running values, the checkpoints of large partitions.
//!
//! **Nulls**: NULL is a partition of its own; the sort columns say where it stands.
//!
//! **Negative counts**: a row of negative weight is not there.
//!
//! **Refuses**: frames by distance (`RANGE` with an offset), `DISTINCT`, `IGNORE NULLS`,
//! and functions that are not in [`WindowFunction`].

mod carry;
mod emit;
mod extremes;
mod plan;
mod side;
mod spec;
mod step;
mod sums;
mod values;

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::{GroupTable, Slot, SlotSpec, order_by_group};

use crate::ordered::OrderedRows;
use crate::{Algebra, InputSpec, Operator, OperatorSpec, Output, StepContext, input};
use plan::Plan;
pub use spec::{FrameBound, WindowCall, WindowFrame, WindowFunction, WindowSpec};
use step::Step;

/// The window operator.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::datatypes::{DataType, Field, Schema};
/// # use deltaic_batch::ZBatch;
/// # use deltaic_ops::{
/// #     AggregateFunction, FrameBound, Operator, StepContext, Window, WindowCall, WindowFrame,
/// #     WindowFunction, WindowSpec,
/// # };
/// # use deltaic_state::{Slot, SortKey};
/// let schema = Arc::new(Schema::new(vec![
///     Field::new("day", DataType::Int64, true),
///     Field::new("amount", DataType::Int64, true),
/// ]));
/// let total = WindowCall {
///     function: WindowFunction::Aggregate(AggregateFunction::Sum),
///     input: Some(1),
///     filter: None,
///     frame: WindowFrame {
///         start: FrameBound::Unbounded,
///         end: FrameBound::Rows(0),
///         peers: true,
///     },
///     output: Field::new("total", DataType::Int64, true),
/// };
/// let window = Window::try_new(WindowSpec {
///     input: schema.clone(),
///     partition: vec![],
///     order: vec![SortKey { column: 0, descending: false, nulls_first: false }],
///     calls: vec![total],
/// })?;
/// let mut state: Vec<Slot> =
///     window.spec().slots.iter().map(Slot::try_new).collect::<Result<_, _>>()?;
///
/// let mut step = |epoch, delta: &str| -> Result<String, deltaic_batch::Error> {
///     let mut out: Vec<ZBatch> = Vec::new();
///     let delta = ZBatch::parse(&schema, delta)?;
///     window.step(&[delta], &mut state, &mut out, &StepContext { epoch, shard: 0, shards: 1 })?;
///     Ok(out.iter().map(ToString::to_string).collect())
/// };
/// assert_eq!(step(0, "+ 1 | 10\n+ 3 | 30")?, "+ 1 | 10 | 10\n+ 3 | 30 | 40\n");
/// assert_eq!(step(1, "+ 2 | 5")?, "- 3 | 30 | 40\n+ 2 | 5 | 15\n+ 3 | 30 | 45\n");
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
#[derive(Debug)]
pub struct Window {
    window: WindowSpec,
    plan: Plan,
    rows: OrderedRows,
    spec: OperatorSpec,
}

impl Window {
    /// Checks `spec`; user errors (`UNSUPPORTED_AGGREGATE`, `UNSUPPORTED_TYPE`,
    /// `UNSUPPORTED_WINDOW`) say what has no incremental form here.
    pub fn try_new(spec: WindowSpec) -> Result<Self> {
        let plan = Plan::try_new(&spec)?;
        let rows = OrderedRows::try_new(&spec.input, &spec.partition, &spec.order)?;
        let mut slots = rows.slots()?;
        if plan.needs.carries() {
            let checkpoints = SlotSpec::Multisets(carry::spec(&rows.multisets, &plan, &spec));
            Slot::try_new(&checkpoints)?;
            slots.push(checkpoints);
        }
        let exchange = rows.exchange();
        let fields = spec.input.fields().iter().cloned();
        let calls = spec.calls.iter().map(|call| Arc::new(call.output.clone()));
        let operator = OperatorSpec {
            name: "Window",
            detail: spec.to_string(),
            inputs: vec![InputSpec { schema: spec.input.clone(), exchange }],
            output: Arc::new(Schema::new(fields.chain(calls).collect::<Vec<_>>())),
            slots,
            algebra: Algebra::NonLinear,
            output_is_set: false,
        };
        Ok(Self { window: spec, plan, rows, spec: operator })
    }

    /// Whole rows from partitions and values, one of each per row.
    fn whole_rows(
        &self,
        groups: &GroupTable,
        of: &[u32],
        values: &[ArrayRef],
    ) -> Result<RecordBatch> {
        let columns = self.rows.columns(groups, of, values)?;
        let options = RecordBatchOptions::new().with_row_count(Some(of.len()));
        Ok(RecordBatch::try_new_with_options(self.window.input.clone(), columns, &options)?)
    }
}

fn misused(what: &str) -> Error {
    Error::internal("WINDOW_STATE", what)
}

impl Operator for Window {
    fn spec(&self) -> &OperatorSpec {
        &self.spec
    }

    fn needs_consolidated(&self) -> bool {
        false
    }

    fn step(
        &self,
        inputs: &[ZBatch],
        state: &mut [Slot],
        out: &mut dyn Output,
        _cx: &StepContext,
    ) -> Result<()> {
        let delta = input(inputs, 0)?;
        if delta.is_empty() {
            return Ok(());
        }
        let [groups, rows, checkpoints @ ..] = state else {
            return Err(Error::internal("SLOT_COUNT", "a window has two or three slots"));
        };
        let (groups, rows) = (groups.groups()?, rows.multisets()?);
        let checkpoints = checkpoints.first_mut().map(Slot::multisets).transpose()?;
        let pick = |columns: &[usize]| -> Vec<ArrayRef> {
            columns.iter().map(|&column| delta.rows().column(column).clone()).collect()
        };
        let group_of_row = groups.upsert(&pick(&self.rows.partition), delta.num_rows())?;
        OrderedRows::count(groups, &group_of_row, delta.weights())?;
        let values = pick(&self.rows.values);
        let order = order_by_group(&group_of_row);
        let changes = rows.apply_changes(&group_of_row, order, &values, delta.weights())?;
        let mut step =
            Step { window: self, groups, rows, checkpoints, changes: &changes, values: &values };
        for part in step.parts()? {
            step.run(&part, delta.rows(), out)?;
        }
        groups.settle_if(|group| rows.is_group_empty(group))
    }
}

#[cfg(test)]
mod tests;
