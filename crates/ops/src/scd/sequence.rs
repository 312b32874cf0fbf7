//! [`Sequence`]: what orders the events of a key.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use deltaic_batch::Result;

use crate::scd::codes::Codes;

/// Sequences of events, comparable.
#[derive(Debug)]
pub(super) enum Sequence {
    /// Whole numbers, dates and timestamps, as numbers that compare alike.
    Numbers(Vec<u64>),
    /// Anything else.
    Codes(Codes),
}

impl Sequence {
    /// Of a column without NULL.
    pub(super) fn try_new(column: &ArrayRef) -> Result<Self> {
        match numbers(column)? {
            Some(numbers) => Ok(Self::Numbers(numbers)),
            None => Codes::try_new(std::slice::from_ref(column)).map(Self::Codes),
        }
    }

    /// The number of an event, if sequences are numbers.
    pub(super) fn number(&self, event: u32) -> Option<u64> {
        match self {
            Self::Numbers(numbers) => numbers.get(event as usize).copied(),
            Self::Codes(_) => None,
        }
    }

    pub(super) fn cmp(&self, a: u32, b: u32) -> Ordering {
        match self {
            Self::Numbers(numbers) => numbers[a as usize].cmp(&numbers[b as usize]),
            Self::Codes(codes) => codes.cmp(a, b),
        }
    }

    pub(super) fn eq(&self, a: u32, b: u32) -> bool {
        self.cmp(a, b).is_eq()
    }

    /// How each event compares with the one row of `bound`, a column of the same type.
    pub(super) fn cmp_bound(&self, bound: &ArrayRef) -> Result<Vec<Ordering>> {
        match self {
            Self::Codes(codes) => codes.cmp_bound(bound),
            Self::Numbers(own) => {
                let bound = numbers(bound)?.unwrap_or_default().first().copied().unwrap_or(0);
                Ok(own.iter().map(|number| number.cmp(&bound)).collect())
            }
        }
    }

    /// All events by group, then sequence, then `tie`; those that are alike keep their order.
    pub(super) fn order(&self, group: &[u32], tie: impl Fn(u32) -> u8) -> Vec<u32> {
        let rows = (0_u32..).zip(group);
        match self {
            Self::Numbers(numbers) => {
                // Two sorted runs, mostly, which are merged.
                let mut keys: Vec<(u32, u64, u8, u32)> =
                    rows.map(|(row, &g)| (g, numbers[row as usize], tie(row), row)).collect();
                keys.sort();
                keys.into_iter().map(|(.., row)| row).collect()
            }
            Self::Codes(codes) => {
                let mut order: Vec<u32> = rows.map(|(row, _)| row).collect();
                order.sort_by(|&a, &b| {
                    let groups = group[a as usize].cmp(&group[b as usize]);
                    groups.then_with(|| codes.cmp(a, b)).then_with(|| tie(a).cmp(&tie(b)))
                });
                order
            }
        }
    }
}

/// Types whose values are numbers of 64 bits.
pub(super) fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _) => true,
        other => other.is_integer(),
    }
}

/// Numbers that compare as the values do; `None` for types that are no numbers of 64 bits.
pub(super) fn numbers(column: &ArrayRef) -> Result<Option<Vec<u64>>> {
    const SIGN: u64 = 1 << 63;
    if !is_number(column.data_type()) || column.null_count() > 0 {
        return Ok(None);
    }
    if let Some(numbers) = column.as_primitive_opt::<UInt64Type>() {
        return Ok(Some(numbers.values().to_vec()));
    }
    let column = match column.data_type() {
        // Days are 32 bits and cast to no other.
        DataType::Date32 => cast(column, &DataType::Int32)?,
        _ => column.clone(),
    };
    let numbers = cast(&column, &DataType::Int64)?;
    let numbers = numbers.as_primitive::<Int64Type>().values();
    Ok(Some(numbers.iter().map(|&number| number.cast_unsigned() ^ SIGN).collect()))
}
