//! Key columns of a group table, addressed by number of group.
//!
//! Types of a fixed width are kept as typed columns, strings and binaries as bytes with short ones
//! in place, everything else (nested types, dictionaries, intervals) as row-encoded bytes.
//! Equality is grouping's: NULL equals NULL. Floats are canonical already, so bits decide.

mod bytes;
mod encoded;
mod fixed;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, IntervalUnit, i256};
use deltaic_batch::{Error, Result};

use bytes::BytesColumn;
use encoded::EncodedColumn;
use fixed::FixedColumn;

/// One key column.
#[derive(Debug)]
pub(super) enum KeyColumn {
    Null,
    W1(FixedColumn<i8>),
    W2(FixedColumn<i16>),
    W4(FixedColumn<i32>),
    W8(FixedColumn<i64>),
    W16(FixedColumn<i128>),
    W32(FixedColumn<i256>),
    Bytes(BytesColumn),
    Encoded(EncodedColumn),
}

/// Calls one method on whichever column it is; NULL columns take the last expression.
macro_rules! each_column {
    ($self:expr, $column:ident => $call:expr, $null:expr) => {
        match $self {
            KeyColumn::Null => $null,
            KeyColumn::W1($column) => $call,
            KeyColumn::W2($column) => $call,
            KeyColumn::W4($column) => $call,
            KeyColumn::W8($column) => $call,
            KeyColumn::W16($column) => $call,
            KeyColumn::W32($column) => $call,
            KeyColumn::Bytes($column) => $call,
            KeyColumn::Encoded($column) => $call,
        }
    };
}

impl KeyColumn {
    pub(super) fn try_new(data_type: &DataType) -> Result<Self> {
        use DataType as D;
        Ok(match data_type {
            D::Null => Self::Null,
            D::Boolean | D::Int8 | D::UInt8 => Self::W1(FixedColumn::default()),
            D::Int16 | D::UInt16 | D::Float16 => Self::W2(FixedColumn::default()),
            D::Int32
            | D::UInt32
            | D::Float32
            | D::Date32
            | D::Time32(_)
            | D::Decimal32(_, _)
            | D::Interval(IntervalUnit::YearMonth) => Self::W4(FixedColumn::default()),
            D::Int64
            | D::UInt64
            | D::Float64
            | D::Date64
            | D::Time64(_)
            | D::Timestamp(_, _)
            | D::Duration(_)
            | D::Decimal64(_, _) => Self::W8(FixedColumn::default()),
            D::Decimal128(_, _) => Self::W16(FixedColumn::default()),
            D::Decimal256(_, _) => Self::W32(FixedColumn::default()),
            D::Utf8
            | D::LargeUtf8
            | D::Utf8View
            | D::Binary
            | D::LargeBinary
            | D::BinaryView
            | D::FixedSizeBinary(_) => Self::Bytes(BytesColumn::default()),
            other => Self::Encoded(EncodedColumn::try_new(other)?),
        })
    }

    /// Makes room for groups below `len`.
    pub(super) fn resize(&mut self, len: usize) {
        each_column!(self, column => column.resize(len), ());
    }

    /// Puts the key of row `rows[i]` into group `groups[i]`.
    pub(super) fn store(&mut self, array: &ArrayRef, rows: &[u32], groups: &[u32]) -> Result<()> {
        each_column!(self, column => column.store(array, rows, groups), Ok(()))
    }

    /// Appends to `differing` the rows `i` whose value is not that of group `groups[i]`.
    pub(super) fn compare(
        &self,
        array: &ArrayRef,
        groups: &[u32],
        differing: &mut Vec<u32>,
    ) -> Result<()> {
        each_column!(self, column => column.compare(array, groups, differing), Ok(()))
    }

    /// Lets go of what a group holds on the heap.
    pub(super) fn forget(&mut self, group: usize) {
        match self {
            Self::Bytes(column) => column.forget(group),
            Self::Encoded(column) => column.forget(group),
            _ => {}
        }
    }

    /// The values of `groups` as an array of `data_type`.
    pub(super) fn gather(&self, data_type: &DataType, groups: &[u32]) -> Result<ArrayRef> {
        each_column!(
            self,
            column => column.gather(data_type, groups),
            Ok(arrow::array::new_null_array(&DataType::Null, groups.len()))
        )
    }

    pub(super) fn memory_bytes(&self) -> usize {
        each_column!(self, column => column.memory_bytes(), 0)
    }
}

/// The error of a column whose type is not the one that was declared.
fn wrong_type(data_type: &DataType) -> Error {
    Error::internal("GROUP_KEY_TYPE", format!("a group's key has the unexpected type {data_type}"))
}
