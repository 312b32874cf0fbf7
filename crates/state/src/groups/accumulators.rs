//! Accumulator columns of a group table, addressed by number of group.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Decimal128Array, Decimal256Array, Int64Array,
};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type,
    Int64Type, i256,
};
use deltaic_batch::{Error, Result};

use super::{ExactSum, Sums};
use crate::frame::corrupt;

/// What an accumulator is kept in. All start at zero, and a group whose accumulators are all zero
/// is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccumulatorType {
    /// Counts.
    I64,
    /// Sums of 64-bit integers and of decimals of up to 19 digits.
    I128,
    /// Sums of longer decimals.
    I256,
    /// Sums of floats.
    Exact,
}

/// One accumulator per group.
#[derive(Debug)]
pub enum AccumulatorColumn {
    /// See [`AccumulatorType::I64`].
    I64(Vec<i64>),
    /// See [`AccumulatorType::I128`].
    I128(Sums),
    /// See [`AccumulatorType::I256`].
    I256(Vec<i256>),
    /// See [`AccumulatorType::Exact`].
    Exact(Vec<ExactSum>),
}

impl AccumulatorType {
    /// Type of the array that [`AccumulatorColumn::gather`] makes.
    pub fn stored_as(self) -> DataType {
        match self {
            Self::I64 => DataType::Int64,
            Self::I128 => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
            Self::I256 => DataType::Decimal256(DECIMAL256_MAX_PRECISION, 0),
            Self::Exact => DataType::Binary,
        }
    }
}

impl AccumulatorColumn {
    /// No group yet.
    pub fn new(kind: AccumulatorType) -> Self {
        match kind {
            AccumulatorType::I64 => Self::I64(Vec::new()),
            AccumulatorType::I128 => Self::I128(Sums::default()),
            AccumulatorType::I256 => Self::I256(Vec::new()),
            AccumulatorType::Exact => Self::Exact(Vec::new()),
        }
    }

    /// Makes room for groups below `len`, at zero.
    pub fn resize(&mut self, len: usize) {
        match self {
            Self::I64(values) => values.resize(len, 0),
            Self::I128(sums) => sums.resize(len),
            Self::I256(values) => values.resize(len, i256::ZERO),
            Self::Exact(values) => values.resize_with(len, ExactSum::default),
        }
    }

    /// Whether a group's accumulator is as that of no rows.
    pub fn is_zero(&self, group: usize) -> bool {
        match self {
            Self::I64(values) => values[group] == 0,
            Self::I128(sums) => sums.is_zero(group),
            Self::I256(values) => values[group] == i256::ZERO,
            Self::Exact(values) => values[group].is_zero(),
        }
    }

    /// Sets a group to zero and frees what it holds on the heap.
    pub(super) fn reset(&mut self, group: u32) {
        let at = group as usize;
        match self {
            Self::I64(values) => values[at] = 0,
            Self::I128(sums) => sums.set(group, 0),
            Self::I256(values) => values[at] = i256::ZERO,
            Self::Exact(values) => values[at] = ExactSum::default(),
        }
    }

    /// Bytes of the column itself.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::I64(values) => values.capacity() * size_of::<i64>(),
            Self::I128(sums) => sums.memory_bytes(),
            Self::I256(values) => values.capacity() * size_of::<i256>(),
            Self::Exact(values) => values.capacity() * size_of::<ExactSum>(),
        }
    }

    /// Bytes that these groups hold besides [`Self::memory_bytes`].
    pub(super) fn heap_bytes(&self, groups: &[u32]) -> usize {
        match self {
            Self::I64(_) | Self::I128(_) | Self::I256(_) => 0,
            Self::Exact(values) => {
                groups.iter().map(|&group| values[group as usize].heap_bytes()).sum()
            }
        }
    }

    /// The accumulators of `groups` in the form that is stored.
    pub fn gather(&self, groups: &[u32]) -> ArrayRef {
        let numbers = groups.iter().copied();
        let groups = groups.iter().map(|&group| group as usize);
        match self {
            Self::I64(values) => {
                Arc::new(Int64Array::from_iter_values(groups.map(|group| values[group])))
            }
            Self::I128(sums) => {
                let values =
                    Decimal128Array::from_iter_values(numbers.map(|group| sums.get(group)));
                Arc::new(values.with_data_type(AccumulatorType::I128.stored_as()))
            }
            Self::I256(values) => {
                let values = Decimal256Array::from_iter_values(groups.map(|group| values[group]));
                Arc::new(values.with_data_type(AccumulatorType::I256.stored_as()))
            }
            Self::Exact(values) => Arc::new(BinaryArray::from_iter_values(groups.map(|group| {
                let mut bytes = Vec::new();
                values[group].encode(&mut bytes);
                bytes
            }))),
        }
    }

    /// Overwrites the accumulators of `groups` with what [`Self::gather`] stored.
    pub fn scatter(&mut self, stored: &ArrayRef, groups: &[u32]) -> Result<()> {
        if stored.null_count() > 0 || stored.len() != groups.len() {
            return Err(corrupt("an accumulator is missing"));
        }
        let numbers = groups.iter().copied();
        let groups = groups.iter().map(|&group| group as usize);
        match self {
            Self::I64(values) => {
                let stored = stored.as_primitive_opt::<Int64Type>().ok_or_else(other_type)?;
                groups.zip(stored.values()).for_each(|(group, &value)| values[group] = value);
            }
            Self::I128(sums) => {
                let stored = stored.as_primitive_opt::<Decimal128Type>().ok_or_else(other_type)?;
                numbers.zip(stored.values()).for_each(|(group, &sum)| sums.set(group, sum));
            }
            Self::I256(values) => {
                let stored = stored.as_primitive_opt::<Decimal256Type>().ok_or_else(other_type)?;
                groups.zip(stored.values()).for_each(|(group, &value)| values[group] = value);
            }
            Self::Exact(values) => {
                let stored = stored.as_binary_opt::<i32>().ok_or_else(other_type)?;
                for (row, group) in groups.enumerate() {
                    values[group] = ExactSum::decode(stored.value(row))
                        .ok_or_else(|| corrupt("a sum of floats is damaged"))?;
                }
            }
        }
        Ok(())
    }
}

fn other_type() -> Error {
    corrupt("an accumulator is of another type")
}
