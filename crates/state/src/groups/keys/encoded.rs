//! Key column of any other type: its values in Arrow's row encoding.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use deltaic_batch::{Error, Result};

use super::bytes::BytesColumn;

/// Row-encoded values by group; a NULL is encoded too.
#[derive(Debug)]
pub(in crate::groups) struct EncodedColumn {
    converter: RowConverter,
    bytes: BytesColumn,
}

impl EncodedColumn {
    pub(super) fn try_new(data_type: &DataType) -> Result<Self> {
        let converter =
            RowConverter::new(vec![SortField::new(data_type.clone())]).map_err(|e| {
                Error::user("UNSUPPORTED_KEY", format!("{data_type} cannot be grouped by: {e}"))
            })?;
        Ok(Self { converter, bytes: BytesColumn::default() })
    }

    pub(super) fn resize(&mut self, len: usize) {
        self.bytes.resize(len);
    }

    pub(super) fn store(&mut self, array: &ArrayRef, rows: &[u32], groups: &[u32]) -> Result<()> {
        let encoded = self.converter.convert_columns(std::slice::from_ref(array))?;
        let mut pairs = rows.iter().zip(groups);
        pairs.try_for_each(|(&row, &group)| {
            self.bytes.set(group as usize, Some(encoded.row(row as usize).data()))
        })
    }

    pub(super) fn compare(
        &self,
        array: &ArrayRef,
        groups: &[u32],
        differing: &mut Vec<u32>,
    ) -> Result<()> {
        let encoded = self.converter.convert_columns(std::slice::from_ref(array))?;
        for ((row, &group), value) in (0_u32..).zip(groups).zip(&encoded) {
            if !self.bytes.equals(group as usize, Some(value.data())) {
                differing.push(row);
            }
        }
        Ok(())
    }

    pub(super) fn forget(&mut self, group: usize) {
        self.bytes.forget(group);
    }

    pub(super) fn gather(&self, data_type: &DataType, groups: &[u32]) -> Result<ArrayRef> {
        let parser = self.converter.parser();
        let rows =
            groups.iter().map(|&group| parser.parse(self.bytes.get(group as usize).unwrap_or(&[])));
        let mut columns = self.converter.convert_rows(rows)?;
        let Some(column) = columns.pop() else {
            return Err(Error::internal("GROUP_KEY_TYPE", "a row-encoded key has no column"));
        };
        // The encoding flattens dictionaries.
        if column.data_type() == data_type {
            return Ok(column);
        }
        Ok(arrow::compute::cast(&column, data_type)?)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.memory_bytes() + self.converter.size()
    }
}
