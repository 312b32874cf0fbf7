//! [`Codes`]: rows as bytes that compare as their values do (canonical order, NULL first).

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef};
use arrow::row::{RowConverter, Rows, SortField};
use deltaic_batch::Result;

/// Comparable form of some columns; of no columns, all rows are equal.
#[derive(Debug)]
pub(super) struct Codes(Option<(RowConverter, Rows)>);

impl Codes {
    pub(super) fn try_new(columns: &[ArrayRef]) -> Result<Self> {
        if columns.is_empty() {
            return Ok(Self(None));
        }
        let fields = columns.iter().map(|c| SortField::new(c.data_type().clone())).collect();
        let converter = RowConverter::new(fields)?;
        let rows = converter.convert_columns(columns)?;
        Ok(Self(Some((converter, rows))))
    }

    /// The columns at `positions` of `all`.
    pub(super) fn of(all: &[ArrayRef], positions: &[usize]) -> Result<Self> {
        let columns: Vec<ArrayRef> = positions.iter().map(|&at| all[at].clone()).collect();
        Self::try_new(&columns)
    }

    /// The form of one row.
    pub(super) fn bytes(&self, row: u32) -> &[u8] {
        self.0.as_ref().map_or(&[], |(_, rows)| rows.row(row as usize).data())
    }

    pub(super) fn cmp(&self, a: u32, b: u32) -> Ordering {
        match &self.0 {
            None => Ordering::Equal,
            Some((_, rows)) => rows.row(a as usize).cmp(&rows.row(b as usize)),
        }
    }

    pub(super) fn eq(&self, a: u32, b: u32) -> bool {
        a == b || self.cmp(a, b) == Ordering::Equal
    }

    /// How each row compares with the one row of `bound`, a column of the same type.
    pub(super) fn cmp_bound(&self, bound: &ArrayRef) -> Result<Vec<Ordering>> {
        let Some((converter, rows)) = &self.0 else { return Ok(Vec::new()) };
        let bound = converter.convert_columns(std::slice::from_ref(bound))?;
        Ok(rows.iter().map(|row| row.cmp(&bound.row(0))).collect())
    }
}
