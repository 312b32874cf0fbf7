//! One side of a join: what is kept of it, and what becomes of its rows without a match.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Result, ZBatch};
use deltaic_state::{ArrangementSpec, SlotSpec};

use crate::{Exchange, InputSpec, selection};

/// Which rows of a side are emitted by themselves, without a partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lone {
    /// None.
    Never,
    /// Those without a match.
    Unmatched,
    /// Those with a match.
    Matched,
}

/// One side, as planned.
#[derive(Debug)]
pub(super) struct Side {
    /// True for the left side.
    pub(super) is_left: bool,
    /// The side's rows that are emitted alone.
    pub(super) lone: Lone,
    /// Columns of the input.
    pub(super) schema: SchemaRef,
    /// Key columns of the input.
    pub(super) key: Vec<usize>,
    /// NULL keys match each other.
    pub(super) null_equals_null: bool,
    /// What the slot holds of a row.
    stored: Stored,
    /// Columns of the slot.
    stored_schema: SchemaRef,
}

/// What the slot holds of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    /// The row.
    Rows,
    /// Its key columns.
    Keys,
    /// The row, and a column of zeros as its key, since the join has none.
    RowsWithoutKey,
}

impl Side {
    pub(super) fn new(
        is_left: bool,
        lone: Lone,
        schema: &SchemaRef,
        key: Vec<usize>,
        null_equals_null: bool,
        keys_only: bool,
    ) -> Self {
        let stored = match (key.is_empty(), keys_only) {
            (true, _) => Stored::RowsWithoutKey,
            (false, true) => Stored::Keys,
            (false, false) => Stored::Rows,
        };
        let fields = schema.fields();
        let stored_schema = match stored {
            Stored::Rows => schema.clone(),
            Stored::Keys => Arc::new(Schema::new(
                key.iter().filter_map(|&k| fields.get(k).cloned()).collect::<Vec<_>>(),
            )),
            Stored::RowsWithoutKey => {
                let zero = Arc::new(Field::new("__key", DataType::Int64, false));
                Arc::new(Schema::new(fields.iter().cloned().chain([zero]).collect::<Vec<_>>()))
            }
        };
        let schema = schema.clone();
        Self { is_left, lone, schema, key, null_equals_null, stored, stored_schema }
    }

    /// The side's state.
    pub(super) fn slot(&self) -> SlotSpec {
        let key = match self.stored {
            Stored::Rows => self.key.clone(),
            Stored::Keys => (0..self.key.len()).collect(),
            Stored::RowsWithoutKey => vec![self.schema.fields().len()],
        };
        let schema = self.stored_schema.clone();
        SlotSpec::Rows(ArrangementSpec { schema, key, order: Vec::new() })
    }

    /// The side's input.
    pub(super) fn input(&self) -> InputSpec {
        let exchange =
            if self.key.is_empty() { Exchange::Single } else { Exchange::ByKey(self.key.clone()) };
        InputSpec { schema: self.schema.clone(), exchange }
    }

    /// Numbers of the columns that are not in the key.
    pub(super) fn values(&self) -> Vec<usize> {
        (0..self.schema.fields().len()).filter(|column| !self.key.contains(column)).collect()
    }

    /// Numbers of all columns of the input, as the slot numbers them too (if it holds rows).
    pub(super) fn columns(&self) -> Vec<usize> {
        (0..self.schema.fields().len()).collect()
    }

    /// The key columns of `rows`, as a probe wants them.
    pub(super) fn key_of(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        if self.stored == Stored::RowsWithoutKey {
            return vec![Arc::new(Int64Array::from(vec![0; rows.num_rows()]))];
        }
        self.key.iter().map(|&k| rows.column(k).clone()).collect()
    }

    /// `delta` as the slot holds it.
    pub(super) fn store(&self, delta: &ZBatch) -> Result<ZBatch> {
        match self.stored {
            Stored::Rows => Ok(delta.clone()),
            Stored::Keys => delta.project(&self.key)?.consolidate(),
            Stored::RowsWithoutKey => {
                let mut columns = delta.rows().columns().to_vec();
                columns.extend(self.key_of(delta.rows()));
                let options = RecordBatchOptions::new().with_row_count(Some(delta.num_rows()));
                let rows = RecordBatch::try_new_with_options(
                    self.stored_schema.clone(),
                    columns,
                    &options,
                )?;
                ZBatch::try_new(rows, delta.weights().clone())
            }
        }
    }

    /// The rows that can match, and those that cannot, since their key is NULL.
    pub(super) fn split(&self, delta: &ZBatch) -> Result<(ZBatch, Option<ZBatch>)> {
        if self.null_equals_null {
            return Ok((delta.clone(), None));
        }
        let mut nulls: Option<NullBuffer> = None;
        for &k in &self.key {
            let column = delta.rows().column(k);
            if column.logical_null_count() > 0 {
                nulls = NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref());
            }
        }
        let Some(nulls) = nulls else { return Ok((delta.clone(), None)) };
        let known: &BooleanBuffer = nulls.inner();
        let keyed = selection::filter(delta, &BooleanArray::new(known.clone(), None))?;
        let keyless = selection::filter(delta, &BooleanArray::new(!known, None))?;
        Ok((keyed, Some(keyless)))
    }
}
