//! [`Horizon`]: how late an event may be, and when what has passed it is looked for.
//!
//! The watermark lies the retention behind the greatest sequence of earlier steps, so that no order
//! within a step shows. Keys that are touched are tidied at once; all others when the watermark has moved by a
//! whole retention since they were looked at: state holds what holds now and the events of at most two
//! retentions, and looking costs O(1) per event, amortised over the events of a retention.

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::{concat, filter};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Result, ZBatch};
use deltaic_state::{Arrangement, ArrangementSpec};

use crate::scd::incoming::greatest;
use crate::scd::sequence::numbers;

/// The greatest sequence so far, and the one at which all keys were looked at; none at first.
#[derive(Debug)]
pub(super) struct Horizon {
    retention: u64,
    rows: Option<ZBatch>,
}

impl Horizon {
    /// State of the horizon for sequences of a type.
    pub(super) fn slot(sequence: &DataType) -> ArrangementSpec {
        let field = |name: &str| Field::new(name, sequence.clone(), false);
        let schema = Schema::new(vec![field("__greatest"), field("__tidied")]);
        ArrangementSpec { schema: SchemaRef::new(schema), key: vec![], order: vec![] }
    }

    pub(super) fn load(slot: &Arrangement, retention: u64) -> Result<Self> {
        Ok(Self { retention, rows: slot.scan(1)?.pop() })
    }

    fn number(&self, column: usize) -> Result<Option<u64>> {
        let Some(rows) = &self.rows else { return Ok(None) };
        Ok(numbers(rows.rows().column(column))?.and_then(|numbers| numbers.first().copied()))
    }

    /// Events below it are too late.
    pub(super) fn watermark(&self) -> Result<Option<u64>> {
        Ok(self.number(0)?.map(|greatest| greatest.saturating_sub(self.retention)))
    }

    /// The columns without events that are too late, and how many these were.
    pub(super) fn without_late(
        &self,
        columns: Vec<ArrayRef>,
        sequence: usize,
    ) -> Result<(Vec<ArrayRef>, u64)> {
        let (Some(watermark), Some(numbers)) = (self.watermark()?, numbers(&columns[sequence])?)
        else {
            return Ok((columns, 0));
        };
        let keep: BooleanArray = numbers.iter().map(|&number| Some(number >= watermark)).collect();
        let late = (keep.len() - keep.true_count()) as u64;
        if late == 0 {
            return Ok((columns, 0));
        }
        let kept = columns.iter().map(|column| Ok(filter(column, &keep)?));
        Ok((kept.collect::<Result<_>>()?, late))
    }

    /// Takes note of new sequences; true when all keys are due.
    pub(super) fn advance(&mut self, slot: &mut Arrangement, sequences: &ArrayRef) -> Result<bool> {
        if sequences.is_empty() {
            return Ok(false);
        }
        let newest = greatest(sequences)?;
        let Some(before) = &self.rows else {
            self.set(slot, newest.clone(), newest)?;
            return Ok(false);
        };
        let [old, tidied] = [0, 1].map(|column| before.rows().column(column).clone());
        let newest = greatest(&concat(&[old.as_ref(), newest.as_ref()])?)?;
        let number = |of: &ArrayRef| {
            Ok::<_, deltaic_batch::Error>(
                numbers(of)?.and_then(|numbers| numbers.first().copied()).unwrap_or(0),
            )
        };
        let is_due = number(&newest)?.saturating_sub(number(&tidied)?) >= self.retention.max(1);
        let tidied = if is_due { newest.clone() } else { tidied };
        self.set(slot, newest, tidied)?;
        Ok(is_due)
    }

    fn set(&mut self, slot: &mut Arrangement, greatest: ArrayRef, tidied: ArrayRef) -> Result<()> {
        let schema = Self::slot(greatest.data_type()).schema;
        let row = ZBatch::inserts(RecordBatch::try_new(schema.clone(), vec![greatest, tidied])?);
        let mut change = vec![row.clone()];
        if let Some(before) = &self.rows {
            change.push(before.negate()?);
        }
        slot.apply(&ZBatch::concat(&schema, &change)?.consolidate()?)?;
        self.rows = Some(row);
        Ok(())
    }
}
