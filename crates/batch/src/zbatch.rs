//! [`ZBatch`]: rows and weights.

use arrow::array::{Array, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::SchemaRef;

use crate::{Error, Result};

/// A multiset of rows with signed multiplicities (a Z-set, Budiu et al., VLDB 2023).
///
/// Rows may repeat and weights may be zero until [`ZBatch::consolidate`] is called.
#[derive(Debug, Clone)]
pub struct ZBatch {
    rows: RecordBatch,
    weights: ScalarBuffer<i64>,
}

impl ZBatch {
    /// Rows with one weight each. Fails when the lengths differ.
    pub fn try_new(rows: RecordBatch, weights: impl Into<ScalarBuffer<i64>>) -> Result<Self> {
        let weights = weights.into();
        if rows.num_rows() != weights.len() {
            return Err(Error::internal(
                "BATCH_LENGTH",
                format!("{} rows but {} weights", rows.num_rows(), weights.len()),
            ));
        }
        Ok(Self { rows, weights })
    }

    /// Every row once, weight +1.
    pub fn inserts(rows: RecordBatch) -> Self {
        let weights = vec![1; rows.num_rows()].into();
        Self { rows, weights }
    }

    /// Every row once, weight −1.
    pub fn deletes(rows: RecordBatch) -> Self {
        let weights = vec![-1; rows.num_rows()].into();
        Self { rows, weights }
    }

    /// No rows.
    pub fn empty(schema: SchemaRef) -> Self {
        Self { rows: RecordBatch::new_empty(schema), weights: Vec::new().into() }
    }

    /// The rows.
    pub fn rows(&self) -> &RecordBatch {
        &self.rows
    }

    /// One weight per row.
    pub fn weights(&self) -> &ScalarBuffer<i64> {
        &self.weights
    }

    /// The weights as an Arrow array.
    pub fn weight_array(&self) -> Int64Array {
        Int64Array::new(self.weights.clone(), None)
    }

    /// The rows' schema.
    pub fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    /// Number of physical rows (not the sum of the weights).
    pub fn num_rows(&self) -> usize {
        self.rows.num_rows()
    }

    /// True when there are no physical rows.
    pub fn is_empty(&self) -> bool {
        self.rows.num_rows() == 0
    }

    /// Rows and weights, taken apart.
    pub fn into_parts(self) -> (RecordBatch, ScalarBuffer<i64>) {
        (self.rows, self.weights)
    }

    /// The columns at `indices`, in that order.
    pub fn project(&self, indices: &[usize]) -> Result<Self> {
        let schema = std::sync::Arc::new(self.rows.schema().project(indices)?);
        let columns = indices.iter().map(|&i| self.rows.column(i).clone()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.num_rows()));
        let rows = RecordBatch::try_new_with_options(schema, columns, &options)?;
        Ok(Self { rows, weights: self.weights.clone() })
    }

    /// The same rows with opposite weights.
    pub fn negate(&self) -> Result<Self> {
        let weights: Vec<i64> = self
            .weights
            .iter()
            .map(|w| w.checked_neg())
            .collect::<Option<_>>()
            .ok_or_else(|| Error::data("WEIGHT_OVERFLOW", "a row's weight exceeds 64 bits"))?;
        Ok(Self { rows: self.rows.clone(), weights: weights.into() })
    }

    /// Contiguous part of the batch, without copying.
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        Self { rows: self.rows.slice(offset, length), weights: self.weights.slice(offset, length) }
    }

    /// All rows of `batches`, one after the other. `schema` decides when there are none.
    pub fn concat(schema: &SchemaRef, batches: &[Self]) -> Result<Self> {
        match batches {
            [] => Ok(Self::empty(schema.clone())),
            [one] => Ok(one.clone()),
            many => {
                let rows = arrow::compute::concat_batches(schema, many.iter().map(|b| &b.rows))?;
                let mut weights = Vec::with_capacity(rows.num_rows());
                many.iter().for_each(|b| weights.extend_from_slice(&b.weights));
                Self::try_new(rows, weights)
            }
        }
    }

    /// The rows at `indices`, which hold no NULL, with their weights.
    pub fn take(&self, indices: &arrow::array::UInt32Array) -> Result<Self> {
        debug_assert_eq!(indices.null_count(), 0);
        let columns = arrow::compute::take_arrays(self.rows.columns(), indices, None)?;
        // Rows without columns need their number told.
        let options = RecordBatchOptions::new().with_row_count(Some(indices.len()));
        let rows = RecordBatch::try_new_with_options(self.schema(), columns, &options)?;
        let weights: Vec<i64> =
            indices.values().iter().map(|&i| self.weights[i as usize]).collect();
        Self::try_new(rows, weights)
    }
}
