//! Rows as byte strings, for equality and order.

use arrow::array::ArrayRef;
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows, SortField};

use crate::Result;

/// Encodes rows as byte strings that are equal exactly when the rows are (`NULL` equals `NULL`) and
/// compare as the rows do: column by column, ascending, `NULL` first, unless told otherwise.
///
/// Floats must be canonical already ([`crate::canonicalize`]): the encoding keeps −0.0 and 0.0, and
/// NaNs of different payload, apart. A dictionary's bytes are those of its values. Rows without
/// columns cannot be encoded; they are all equal.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, StringArray};
/// use arrow::datatypes::DataType;
///
/// let mut encoder = deltaic_batch::RowEncoder::try_new(&[DataType::Utf8])?;
/// let names: ArrayRef = Arc::new(StringArray::from(vec![Some("bo"), Some("ann"), None]));
/// let rows = encoder.encode(&[names])?;
/// assert!(rows.row(0) > rows.row(1) && rows.row(1) > rows.row(2));
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
#[derive(Debug)]
pub struct RowEncoder {
    converter: RowConverter,
    buffer: Rows,
}

impl RowEncoder {
    /// An encoder of rows of these types, all ascending with `NULL` first.
    pub fn try_new(types: &[DataType]) -> Result<Self> {
        Self::of_fields(types.iter().cloned().map(SortField::new).collect())
    }

    /// An encoder whose bytes follow the given order of each column.
    pub fn try_with_order(columns: &[(DataType, SortOptions)]) -> Result<Self> {
        let field = |(t, o): &(DataType, SortOptions)| SortField::new_with_options(t.clone(), *o);
        Self::of_fields(columns.iter().map(field).collect())
    }

    fn of_fields(fields: Vec<SortField>) -> Result<Self> {
        let converter = RowConverter::new(fields)?;
        let buffer = converter.empty_rows(0, 0);
        Ok(Self { converter, buffer })
    }

    /// The rows of `columns`, in a buffer that the next call overwrites.
    pub fn encode(&mut self, columns: &[ArrayRef]) -> Result<&Rows> {
        self.buffer.clear();
        self.converter.append(&mut self.buffer, columns)?;
        Ok(&self.buffer)
    }

    /// The rows of the last call of [`Self::encode`].
    pub fn rows(&self) -> &Rows {
        &self.buffer
    }

    /// Bytes held by the buffer.
    pub fn memory_bytes(&self) -> usize {
        self.buffer.size()
    }
}
