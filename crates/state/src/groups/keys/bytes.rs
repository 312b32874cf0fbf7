//! Key column of byte strings: short ones in place, long ones in an arena.

use std::convert::identity;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, FixedSizeBinaryArray, LargeBinaryArray,
    LargeStringArray, StringArray, StringViewArray,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::datatypes::DataType;
use deltaic_batch::{Error, Result};

/// Longest string that is kept in place.
const INLINE_BYTES_MAX: usize = 12;
/// Length that stands for NULL.
const NULL_LENGTH: u32 = u32::MAX;
/// The arena is compacted when more than half of it is garbage, but not below this size.
const COMPACT_BYTES_MIN: usize = 1 << 16;

/// Evaluates an expression with a function from row to value, once per array type.
macro_rules! with_bytes {
    ($array:expr, $value_of:ident => $body:expr) => {{
        macro_rules! over {
            ($typed:expr, $bytes:expr) => {{
                let typed = $typed;
                let $value_of = |row: usize| typed.is_valid(row).then(|| $bytes(typed.value(row)));
                $body
            }};
        }
        match $array.data_type() {
            DataType::Utf8 => over!($array.as_string::<i32>(), str::as_bytes),
            DataType::LargeUtf8 => over!($array.as_string::<i64>(), str::as_bytes),
            DataType::Utf8View => over!($array.as_string_view(), str::as_bytes),
            DataType::Binary => over!($array.as_binary::<i32>(), identity),
            DataType::LargeBinary => over!($array.as_binary::<i64>(), identity),
            DataType::BinaryView => over!($array.as_binary_view(), identity),
            DataType::FixedSizeBinary(_) => over!($array.as_fixed_size_binary(), identity),
            other => Err(super::wrong_type(other)),
        }
    }};
}

/// Byte strings by group.
#[derive(Debug, Default)]
pub(in crate::groups) struct BytesColumn {
    entries: Vec<Entry>,
    arena: Vec<u8>,
    garbage_bytes: usize,
}

/// Length, and the bytes themselves or their offset in the arena.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Entry {
    length: u32,
    data: [u8; INLINE_BYTES_MAX],
}

impl Entry {
    const NULL: Self = Self { length: NULL_LENGTH, data: [0; INLINE_BYTES_MAX] };

    fn short(bytes: &[u8]) -> Self {
        let mut data = [0; INLINE_BYTES_MAX];
        data[..bytes.len()].copy_from_slice(bytes);
        Self { length: u32::try_from(bytes.len()).unwrap_or(0), data }
    }

    fn is_long(&self) -> bool {
        self.length as usize > INLINE_BYTES_MAX && self.length != NULL_LENGTH
    }

    fn offset(&self) -> usize {
        let [a, b, c, d, e, f, g, h, ..] = self.data;
        usize::try_from(u64::from_le_bytes([a, b, c, d, e, f, g, h])).unwrap_or(usize::MAX)
    }

    fn long(length: u32, offset: usize) -> Self {
        let mut data = [0; INLINE_BYTES_MAX];
        data[..8].copy_from_slice(&(offset as u64).to_le_bytes());
        Self { length, data }
    }
}

impl BytesColumn {
    pub(super) fn resize(&mut self, len: usize) {
        self.entries.resize(len, Entry::default());
    }

    /// The value of a group; `None` is NULL.
    pub(super) fn get(&self, group: usize) -> Option<&[u8]> {
        let entry = &self.entries[group];
        match entry.length {
            NULL_LENGTH => None,
            length if entry.is_long() => {
                Some(&self.arena[entry.offset()..entry.offset() + length as usize])
            }
            length => Some(&entry.data[..length as usize]),
        }
    }

    /// Overwrites the value of a group.
    pub(super) fn set(&mut self, group: usize, value: Option<&[u8]>) -> Result<()> {
        self.forget(group);
        self.entries[group] = match value {
            None => Entry::NULL,
            Some(bytes) if bytes.len() <= INLINE_BYTES_MAX => Entry::short(bytes),
            Some(bytes) => {
                let length = u32::try_from(bytes.len()).ok().filter(|&l| l != NULL_LENGTH);
                let length = length.ok_or_else(|| {
                    Error::data("VALUE_TOO_LONG", "a key of 4 GiB or more cannot be grouped by")
                })?;
                self.compact();
                self.arena.extend_from_slice(bytes);
                Entry::long(length, self.arena.len() - bytes.len())
            }
        };
        Ok(())
    }

    /// True if the group holds `value`.
    #[inline]
    pub(super) fn equals(&self, group: usize, value: Option<&[u8]>) -> bool {
        let entry = &self.entries[group];
        match value {
            None => *entry == Entry::NULL,
            Some(bytes) if entry.length as usize != bytes.len() => false,
            Some(bytes) if entry.is_long() => self.get(group) == Some(bytes),
            Some(bytes) => entry.data[..bytes.len()] == *bytes,
        }
    }

    pub(super) fn forget(&mut self, group: usize) {
        if self.entries[group].is_long() {
            self.garbage_bytes += self.entries[group].length as usize;
        }
        self.entries[group] = Entry::default();
    }

    /// Copies the strings in use together when most of the arena is not.
    fn compact(&mut self) {
        if self.arena.len() < COMPACT_BYTES_MIN || self.garbage_bytes * 2 < self.arena.len() {
            return;
        }
        let mut arena = Vec::with_capacity(self.arena.len() - self.garbage_bytes);
        for entry in self.entries.iter_mut().filter(|entry| entry.is_long()) {
            let from = entry.offset();
            let bytes = &self.arena[from..from + entry.length as usize];
            *entry = Entry::long(entry.length, arena.len());
            arena.extend_from_slice(bytes);
        }
        (self.arena, self.garbage_bytes) = (arena, 0);
    }

    pub(super) fn store(&mut self, array: &ArrayRef, rows: &[u32], groups: &[u32]) -> Result<()> {
        with_bytes!(array, value_of => {
            let mut pairs = rows.iter().zip(groups);
            pairs.try_for_each(|(&row, &group)| self.set(group as usize, value_of(row as usize)))
        })
    }

    pub(super) fn compare(
        &self,
        array: &ArrayRef,
        groups: &[u32],
        differing: &mut Vec<u32>,
    ) -> Result<()> {
        with_bytes!(array, value_of => {
            for (row, &group) in (0_u32..).zip(groups) {
                if !self.equals(group as usize, value_of(row as usize)) {
                    differing.push(row);
                }
            }
            Ok(())
        })
    }

    pub(super) fn gather(&self, data_type: &DataType, groups: &[u32]) -> Result<ArrayRef> {
        let values = || groups.iter().map(|&group| self.get(group as usize));
        let flags = || NullBuffer::from_iter(values().map(|value| value.is_some()));
        let nulls = Some(flags()).filter(|nulls| nulls.null_count() > 0);
        let lengths = || values().map(|value| value.map_or(0, <[u8]>::len));
        let bytes_len = lengths().sum();
        let buffer = || {
            let mut buffer = Vec::with_capacity(bytes_len);
            values().flatten().for_each(|bytes| buffer.extend_from_slice(bytes));
            Buffer::from_vec(buffer)
        };
        let small = || {
            if i32::try_from(bytes_len).is_err() {
                return Err(Error::internal("GROUP_KEY_SIZE", "keys of 2 GiB in one array"));
            }
            Ok(OffsetBuffer::<i32>::from_lengths(lengths()))
        };
        let large = || OffsetBuffer::<i64>::from_lengths(lengths());
        Ok(match data_type {
            DataType::Utf8 => Arc::new(StringArray::try_new(small()?, buffer(), nulls)?),
            DataType::LargeUtf8 => Arc::new(LargeStringArray::try_new(large(), buffer(), nulls)?),
            DataType::Binary => Arc::new(BinaryArray::try_new(small()?, buffer(), nulls)?),
            DataType::LargeBinary => Arc::new(LargeBinaryArray::try_new(large(), buffer(), nulls)?),
            DataType::BinaryView => Arc::new(BinaryViewArray::from_iter(values())),
            DataType::Utf8View => {
                let strings =
                    StringViewArray::from(&StringArray::try_new(small()?, buffer(), nulls)?);
                Arc::new(strings)
            }
            DataType::FixedSizeBinary(width) => {
                Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values(), *width)?)
            }
            other => return Err(super::wrong_type(other)),
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.arena.capacity()
    }
}
