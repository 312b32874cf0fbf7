//! Key column of a fixed-width type, kept as integers of that width.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, make_array};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::{ArrowNativeType, DataType};
use deltaic_batch::Result;

/// Values by group, and which of them are NULL once any was.
#[derive(Debug, Default)]
pub(in crate::groups) struct FixedColumn<T> {
    values: Vec<T>,
    /// Empty while no NULL was ever stored.
    is_null: Vec<bool>,
}

impl<T: ArrowNativeType> FixedColumn<T> {
    pub(super) fn resize(&mut self, len: usize) {
        self.values.resize(len, T::default());
        if !self.is_null.is_empty() {
            self.is_null.resize(len, false);
        }
    }

    pub(super) fn store(&mut self, array: &ArrayRef, rows: &[u32], groups: &[u32]) -> Result<()> {
        let bits = Bits::<T>::of(array)?;
        let values = bits.values();
        for (&row, &group) in rows.iter().zip(groups) {
            self.values[group as usize] = values[row as usize];
        }
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        if nulls.is_some() || !self.is_null.is_empty() {
            self.is_null.resize(self.values.len(), false);
            for (&row, &group) in rows.iter().zip(groups) {
                self.is_null[group as usize] = nulls.is_some_and(|n| n.is_null(row as usize));
            }
        }
        Ok(())
    }

    pub(super) fn compare(
        &self,
        array: &ArrayRef,
        groups: &[u32],
        differing: &mut Vec<u32>,
    ) -> Result<()> {
        let bits = Bits::<T>::of(array)?;
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        let rows = (0_u32..).zip(groups).zip(bits.values());
        if nulls.is_none() && self.is_null.is_empty() {
            let different = rows.filter(|&((_, &group), &v)| self.values[group as usize] != v);
            differing.extend(different.map(|((row, _), _)| row));
            return Ok(());
        }
        for ((row, &group), &value) in rows {
            let group = group as usize;
            let ours = self.is_null.get(group).copied().unwrap_or(false);
            let theirs = nulls.is_some_and(|nulls| nulls.is_null(row as usize));
            if ours != theirs || (!ours && self.values[group] != value) {
                differing.push(row);
            }
        }
        Ok(())
    }

    pub(super) fn gather(&self, data_type: &DataType, groups: &[u32]) -> Result<ArrayRef> {
        let nulls = (!self.is_null.is_empty()).then(|| {
            NullBuffer::from_iter(groups.iter().map(|&group| !self.is_null[group as usize]))
        });
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        let values = groups.iter().map(|&group| self.values[group as usize]);
        if *data_type == DataType::Boolean {
            let values = values.map(|value| value != T::default()).collect();
            return Ok(std::sync::Arc::new(BooleanArray::new(values, nulls)));
        }
        let buffer = Buffer::from_vec(values.collect::<Vec<T>>());
        let data = arrow::array::ArrayData::builder(data_type.clone())
            .len(groups.len())
            .add_buffer(buffer)
            .nulls(nulls);
        Ok(make_array(data.build()?))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>() + self.is_null.capacity()
    }
}

/// An array's values as integers of their width.
enum Bits<T> {
    /// Where the array keeps them: buffer, first value, number of values.
    Shared(Buffer, usize, usize),
    /// Booleans, one per integer.
    Unpacked(Vec<T>),
}

impl<T: ArrowNativeType> Bits<T> {
    fn of(array: &ArrayRef) -> Result<Self> {
        if let Some(booleans) = array.as_boolean_opt() {
            let one = T::usize_as(1);
            let unpack = |value| if value { one } else { T::default() };
            return Ok(Self::Unpacked(booleans.values().iter().map(unpack).collect()));
        }
        let data = array.to_data();
        match data.buffers() {
            [buffer] if buffer.len() >= (data.offset() + data.len()) * size_of::<T>() => {
                Ok(Self::Shared(buffer.clone(), data.offset(), data.len()))
            }
            _ => Err(super::wrong_type(array.data_type())),
        }
    }

    fn values(&self) -> &[T] {
        match self {
            Self::Shared(buffer, offset, len) => &buffer.typed_data()[*offset..offset + len],
            Self::Unpacked(values) => values,
        }
    }
}
