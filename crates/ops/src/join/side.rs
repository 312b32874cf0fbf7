//! One side of a join: what is kept of it, and what becomes of its rows without a match.

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, SchemaRef};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::{MultisetColumn, MultisetSpec, SlotSpec};

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

/// Where the state has a column of a side.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// Among the columns of the key.
    Key(usize),
    /// Among the others.
    Value(usize),
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
    /// All other columns of the input.
    pub(super) values: Vec<usize>,
    /// NULL keys match each other.
    pub(super) null_equals_null: bool,
}

impl Side {
    pub(super) fn new(
        is_left: bool,
        lone: Lone,
        schema: &SchemaRef,
        key: Vec<usize>,
        null_equals_null: bool,
    ) -> Self {
        let values = (0..schema.fields().len()).filter(|column| !key.contains(column)).collect();
        Self { is_left, lone, schema: schema.clone(), key, values, null_equals_null }
    }

    /// Types of the key columns.
    pub(super) fn key_types(&self) -> Vec<DataType> {
        self.key.iter().map(|&key| self.schema.field(key).data_type().clone()).collect()
    }

    /// The state of the side's rows: what is not in the key, by number of group.
    pub(super) fn slot(&self) -> SlotSpec {
        let column = |&column: &usize| MultisetColumn {
            data_type: self.schema.field(column).data_type().clone(),
            options: SortOptions::default(),
        };
        SlotSpec::Multisets(MultisetSpec { columns: self.values.iter().map(column).collect() })
    }

    /// The side's input.
    pub(super) fn input(&self) -> InputSpec {
        let exchange =
            if self.key.is_empty() { Exchange::Single } else { Exchange::ByKey(self.key.clone()) };
        InputSpec { schema: self.schema.clone(), exchange }
    }

    /// The key columns of `rows`.
    pub(super) fn key_of(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        self.key.iter().map(|&k| rows.column(k).clone()).collect()
    }

    /// The other columns of `rows`.
    pub(super) fn values_of(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        self.values.iter().map(|&v| rows.column(v).clone()).collect()
    }

    /// Where the state has a column.
    pub(super) fn place(&self, column: usize) -> Place {
        match self.key.iter().position(|&key| key == column) {
            Some(position) => Place::Key(position),
            None => Place::Value(self.values.partition_point(|&value| value < column)),
        }
    }

    /// Whole rows from their key and their other columns.
    pub(super) fn whole(&self, key: &[ArrayRef], values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        let column = |column: usize| match self.place(column) {
            Place::Key(position) => key.get(position).cloned(),
            Place::Value(position) => values.get(position).cloned(),
        };
        (0..self.schema.fields().len())
            .map(column)
            .collect::<Option<_>>()
            .ok_or_else(|| Error::internal("JOIN_COLUMNS", "a gathered column is missing"))
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
