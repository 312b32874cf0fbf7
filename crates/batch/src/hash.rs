//! Hashes of rows: one fixed function over canonical values, part of the file format.
//!
//! The hash of a value depends on what SQL compares, not on how Arrow stores it:
//!
//! | type | hashed as |
//! |---|---|
//! | NULL of any type | a constant of its own |
//! | booleans, integers, dates, times, timestamps, durations, year-month intervals | one 64-bit word, sign-extended |
//! | floats of any width | the bits of the value as a canonical 64-bit float |
//! | decimals up to 64 bits | one word; 128 bits: low and high word; 256 bits: two such pairs combined |
//! | day-time intervals | one word (days above, milliseconds below); month-day-nano: two words |
//! | strings and binaries of any layout | their bytes |
//! | dictionaries, run-end encoded arrays | the value |
//! | structs | their fields, combined in order |
//! | lists, maps | length, then the elements, combined in order |
//!
//! The hash of a row of several columns combines theirs in order; of one column it is that
//! column's; of none it is a constant. What lies in a buffer beneath a NULL does not matter.

use arrow::array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Int16Type, Int32Type, Int64Type, RunEndIndexType,
};
use arrow::array::{
    Array, ArrayRef, AsArray, OffsetSizeTrait, RecordBatch, UInt32Array, downcast_dictionary_array,
};
use arrow::datatypes::{ArrowNativeType, DataType, IntervalUnit};

use crate::mix::{HIGH, LOW, Lane, combine};
use crate::{Error, Result};

/// One 64-bit hash per row over the canonical values of `columns` (see the module's table for
/// what is hashed). All bits are usable: shards and directories take the top ones, hash tables the
/// low ones.
///
/// Rows that SQL groups together (`NULL` with `NULL`, −0.0 with 0.0, NaN with NaN) hash alike, and
/// so do equal strings in `Utf8`, `LargeUtf8`, `Utf8View` and dictionaries.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, Int64Array};
///
/// let key: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None, Some(7)]));
/// let hashes = deltaic_batch::hash_columns(&[key], 3)?;
/// assert_eq!(hashes[0], hashes[2]);
/// assert_ne!(hashes[0], hashes[1]);
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
pub fn hash_columns(columns: &[ArrayRef], num_rows: usize) -> Result<Vec<u64>> {
    hash_lane(HIGH, columns, num_rows)
}

/// A 128-bit identity of each row over its canonical values: two rows have the same one if and,
/// up to a chance of 2⁻¹²⁸ per pair, only if they are equal. The high half is
/// [`hash_columns`] of the row.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, RecordBatch, StringArray};
///
/// let names: ArrayRef = Arc::new(StringArray::from(vec!["ann", "bo", "ann"]));
/// let ids = deltaic_batch::hash128_rows(&RecordBatch::try_from_iter([("name", names)])?)?;
/// assert_eq!(ids[0], ids[2]);
/// assert_ne!(ids[0], ids[1]);
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
pub fn hash128_rows(rows: &RecordBatch) -> Result<Vec<u128>> {
    let high = hash_lane(HIGH, rows.columns(), rows.num_rows())?;
    let low = hash_lane(LOW, rows.columns(), rows.num_rows())?;
    Ok(high.iter().zip(low).map(|(&high, low)| u128::from(high) << 64 | u128::from(low)).collect())
}

/// The hash of NULL.
///
/// ```
/// # use arrow::array::{ArrayRef, NullArray};
/// let nulls: ArrayRef = std::sync::Arc::new(NullArray::new(1));
/// assert_eq!(deltaic_batch::hash_columns(&[nulls], 1)?, [deltaic_batch::null_hash()]);
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
pub fn null_hash() -> u64 {
    HIGH.null()
}

/// True when equal hashes mean equal rows of these types, so long as the hash is not
/// [`null_hash`]: the rows are one value of at most 64 bits, or nothing.
///
/// ```
/// use arrow::datatypes::DataType;
///
/// assert!(deltaic_batch::hash_is_exact(&[DataType::Int64]));
/// assert!(!deltaic_batch::hash_is_exact(&[DataType::Utf8]));
/// ```
pub fn hash_is_exact(types: &[DataType]) -> bool {
    match types {
        [] => true,
        [one] => one.primitive_width().is_some_and(|width| width <= 8) || *one == DataType::Boolean,
        _ => false,
    }
}

fn hash_lane(lane: Lane, columns: &[ArrayRef], num_rows: usize) -> Result<Vec<u64>> {
    if let Some(column) = columns.iter().find(|c| c.len() != num_rows) {
        return Err(Error::internal(
            "BATCH_LENGTH",
            format!("a column of {} rows in a batch of {num_rows}", column.len()),
        ));
    }
    let Some((first, others)) = columns.split_first() else {
        return Ok(vec![lane.start(); num_rows]);
    };
    let mut hashes = hash_array(lane, first)?;
    for column in others {
        let next = hash_array(lane, column)?;
        hashes.iter_mut().zip(next).for_each(|(hash, next)| *hash = combine(*hash, next));
    }
    Ok(hashes)
}

/// One hash per value of `array`.
fn hash_array(lane: Lane, array: &ArrayRef) -> Result<Vec<u64>> {
    use arrow::datatypes as t;
    let mut hashes = match array.data_type() {
        DataType::Null => vec![lane.null(); array.len()],
        DataType::Boolean => {
            array.as_boolean().values().iter().map(|v| lane.word(u64::from(v))).collect()
        }
        DataType::Int8 => signed::<t::Int8Type>(lane, array),
        DataType::Int16 => signed::<t::Int16Type>(lane, array),
        DataType::Int32 => signed::<t::Int32Type>(lane, array),
        DataType::Int64 => signed::<t::Int64Type>(lane, array),
        DataType::UInt8 => fixed::<t::UInt8Type>(array, |v| lane.word(v.into())),
        DataType::UInt16 => fixed::<t::UInt16Type>(array, |v| lane.word(v.into())),
        DataType::UInt32 => fixed::<t::UInt32Type>(array, |v| lane.word(v.into())),
        DataType::UInt64 => fixed::<t::UInt64Type>(array, |v| lane.word(v)),
        DataType::Float16 => fixed::<t::Float16Type>(array, |v| float(lane, v.to_f64())),
        DataType::Float32 => fixed::<t::Float32Type>(array, |v| float(lane, v.into())),
        DataType::Float64 => fixed::<t::Float64Type>(array, |v| float(lane, v)),
        DataType::Date32 | DataType::Time32(_) => return recast(lane, array, &DataType::Int32),
        DataType::Interval(IntervalUnit::YearMonth) => {
            signed::<t::IntervalYearMonthType>(lane, array)
        }
        DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(_, _)
        | DataType::Duration(_) => return recast(lane, array, &DataType::Int64),
        DataType::Decimal32(_, _) => signed::<t::Decimal32Type>(lane, array),
        DataType::Decimal64(_, _) => signed::<t::Decimal64Type>(lane, array),
        DataType::Decimal128(_, _) => fixed::<t::Decimal128Type>(array, |v| wide(lane, v)),
        DataType::Decimal256(_, _) => fixed::<t::Decimal256Type>(array, |v| {
            let (low, high) = v.to_parts();
            combine(wide(lane, low.cast_signed()), wide(lane, high))
        }),
        DataType::Interval(IntervalUnit::DayTime) => fixed::<t::IntervalDayTimeType>(array, |v| {
            let low = u64::from(v.milliseconds.cast_unsigned());
            lane.word(u64::from(v.days.cast_unsigned()) << 32 | low)
        }),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            fixed::<t::IntervalMonthDayNanoType>(array, |v| {
                let low = u64::from(v.days.cast_unsigned());
                let days = u64::from(v.months.cast_unsigned()) << 32 | low;
                lane.wide(days, v.nanoseconds.cast_unsigned())
            })
        }
        DataType::Utf8 => each(array, |i| lane.bytes(array.as_string::<i32>().value(i).as_bytes())),
        DataType::LargeUtf8 => {
            each(array, |i| lane.bytes(array.as_string::<i64>().value(i).as_bytes()))
        }
        DataType::Utf8View => {
            each(array, |i| lane.bytes(array.as_string_view().value(i).as_bytes()))
        }
        DataType::Binary => each(array, |i| lane.bytes(array.as_binary::<i32>().value(i))),
        DataType::LargeBinary => each(array, |i| lane.bytes(array.as_binary::<i64>().value(i))),
        DataType::BinaryView => each(array, |i| lane.bytes(array.as_binary_view().value(i))),
        DataType::FixedSizeBinary(_) => {
            each(array, |i| lane.bytes(array.as_fixed_size_binary().value(i)))
        }
        nested => return hash_nested(lane, array, nested),
    };
    overwrite_nulls(lane, array, &mut hashes);
    Ok(hashes)
}

fn hash_nested(lane: Lane, array: &ArrayRef, data_type: &DataType) -> Result<Vec<u64>> {
    let mut hashes = match data_type {
        DataType::Struct(_) => {
            let mut hashes = vec![lane.start(); array.len()];
            for column in array.as_struct().columns() {
                let next = hash_array(lane, column)?;
                hashes.iter_mut().zip(next).for_each(|(hash, next)| *hash = combine(*hash, next));
            }
            hashes
        }
        DataType::List(_) => list::<i32>(lane, array)?,
        DataType::LargeList(_) => list::<i64>(lane, array)?,
        DataType::Map(_, _) => {
            let map = array.as_map();
            let entries: ArrayRef = std::sync::Arc::new(map.entries().clone());
            elements(lane, &entries, map.len(), |i| {
                (map.value_offsets()[i].as_usize(), map.value_offsets()[i + 1].as_usize())
            })?
        }
        DataType::FixedSizeList(_, size) => {
            let list = array.as_fixed_size_list();
            let size = size.as_usize();
            elements(lane, list.values(), list.len(), |i| (i * size, (i + 1) * size))?
        }
        DataType::ListView(_) => list_view::<i32>(lane, array)?,
        DataType::LargeListView(_) => list_view::<i64>(lane, array)?,
        DataType::Dictionary(_, _) => downcast_dictionary_array!(
            array => dictionary(lane, array)?,
            other => return Err(unsupported(other)),
        ),
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs::<Int16Type>(lane, array)?,
            DataType::Int32 => runs::<Int32Type>(lane, array)?,
            _ => runs::<Int64Type>(lane, array)?,
        },
        other => return Err(unsupported(other)),
    };
    overwrite_nulls(lane, array, &mut hashes);
    Ok(hashes)
}

fn unsupported(data_type: &DataType) -> Error {
    Error::user("UNSUPPORTED_TYPE", format!("values of type {data_type} cannot be keyed"))
        .hint("cast the column to a type that can be compared")
}

/// The hash of NULL where `array` is null.
fn overwrite_nulls(lane: Lane, array: &ArrayRef, hashes: &mut [u64]) {
    if let Some(nulls) = array.nulls().filter(|n| n.null_count() > 0) {
        let null = lane.null();
        hashes.iter_mut().zip(nulls).filter(|(_, valid)| !valid).for_each(|(h, _)| *h = null);
    }
}

/// Fixed-width values, straight from their buffer.
fn fixed<T: ArrowPrimitiveType>(array: &ArrayRef, f: impl Fn(T::Native) -> u64) -> Vec<u64> {
    array.as_primitive::<T>().values().iter().map(|&v| f(v)).collect()
}

fn signed<T: ArrowPrimitiveType<Native: Into<i64>>>(lane: Lane, array: &ArrayRef) -> Vec<u64> {
    fixed::<T>(array, |v| lane.word(v.into().cast_unsigned()))
}

/// Hashes `array` by its storage type, which shares its buffers.
fn recast(lane: Lane, array: &ArrayRef, storage: &DataType) -> Result<Vec<u64>> {
    let data = array.to_data().into_builder().data_type(storage.clone()).build()?;
    hash_array(lane, &arrow::array::make_array(data))
}

/// −0.0 becomes 0.0, and NaN the one NaN.
fn float(lane: Lane, value: f64) -> u64 {
    lane.word(if value.is_nan() { f64::NAN } else { value + 0.0 }.to_bits())
}

#[expect(clippy::cast_possible_truncation, reason = "each word in turn is wanted")]
fn wide(lane: Lane, value: i128) -> u64 {
    let value = value.cast_unsigned();
    lane.wide(value as u64, (value >> 64) as u64)
}

fn each(array: &ArrayRef, value: impl Fn(usize) -> u64) -> Vec<u64> {
    match array.nulls() {
        Some(nulls) => {
            nulls.iter().enumerate().map(|(i, v)| if v { value(i) } else { 0 }).collect()
        }
        None => (0..array.len()).map(value).collect(),
    }
}

fn list<O: OffsetSizeTrait>(lane: Lane, array: &ArrayRef) -> Result<Vec<u64>> {
    let list = array.as_list::<O>();
    let offsets = list.value_offsets();
    elements(lane, list.values(), list.len(), |i| {
        (offsets[i].as_usize(), offsets[i + 1].as_usize())
    })
}

fn list_view<O: OffsetSizeTrait>(lane: Lane, array: &ArrayRef) -> Result<Vec<u64>> {
    let list = array.as_list_view::<O>();
    elements(lane, list.values(), list.len(), |i| {
        let start = list.value_offsets()[i].as_usize();
        (start, start + list.value_sizes()[i].as_usize())
    })
}

/// Hash of each list from its range of `values`.
fn elements(
    lane: Lane,
    values: &ArrayRef,
    lists: usize,
    range: impl Fn(usize) -> (usize, usize),
) -> Result<Vec<u64>> {
    // A slice of lists still points into all values; hash only those that it spans.
    let first = (0..lists).map(|i| range(i).0).min().unwrap_or(0);
    let end = (0..lists).map(|i| range(i).1).max().unwrap_or(0);
    let hashes = hash_array(lane, &values.slice(first, end.saturating_sub(first)))?;
    let of_list = |i| {
        let (start, end) = range(i);
        let length = combine(lane.start(), lane.word((end - start) as u64));
        hashes[start - first..end - first].iter().fold(length, |hash, &next| combine(hash, next))
    };
    Ok((0..lists).map(of_list).collect())
}

fn dictionary<K: ArrowDictionaryKeyType>(
    lane: Lane,
    array: &arrow::array::DictionaryArray<K>,
) -> Result<Vec<u64>> {
    let values = array.values();
    if values.len() > array.len() {
        // A slice with a large dictionary: fewer values are used than it holds.
        return hash_array(lane, &arrow::compute::take(values, array.keys(), None)?);
    }
    let hashes = hash_array(lane, values)?;
    let of_key = |key: K::Native| hashes.get(key.as_usize()).copied().unwrap_or(0);
    Ok(array.keys().values().iter().map(|&key| of_key(key)).collect())
}

fn runs<R: RunEndIndexType>(lane: Lane, array: &ArrayRef) -> Result<Vec<u64>> {
    let Some(runs) = array.as_run_opt::<R>() else { return Err(unsupported(array.data_type())) };
    let logical: Vec<u32> = (0..u32::try_from(runs.len()).unwrap_or(u32::MAX)).collect();
    let physical = runs.get_physical_indices(&logical)?;
    let physical = UInt32Array::from_iter_values(
        physical.into_iter().map(|i| u32::try_from(i).unwrap_or(u32::MAX)),
    );
    hash_array(lane, &arrow::compute::take(runs.values(), &physical, None)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::*;
    use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
    use arrow::compute::cast;
    use arrow::datatypes::{Field, Int32Type as I32, TimeUnit};
    use std::sync::Arc;

    // Computed from the description in `mix.rs` by a program that shares no code with it.
    const GOLDEN_INT: [u64; 4] = [
        0x3c81_93e5_b667_ba86,
        0x53d5_0f50_0231_b5fc,
        0xde09_3efd_c976_d566,
        0x760a_7635_bfbb_30ac,
    ];
    const GOLDEN_TEXT: [u64; 4] = [
        0x3c81_93e5_b667_ba86,
        0xcfec_c751_5798_2266,
        0x50bb_e64f_f27f_6f9c,
        0x5905_07e3_311b_0e5e,
    ];
    const GOLDEN_FLOAT: [u64; 4] = [
        0x3c81_93e5_b667_ba86,
        0xd841_3ca2_f5d8_7d6b,
        0x56d9_2da7_a22d_a460,
        0x793a_e53e_8378_50d4,
    ];
    const GOLDEN_DECIMAL: [u64; 4] = [
        0x5f5f_a61f_97e7_e6ef,
        0xe77c_fce1_1b02_1775,
        0xbc04_742f_7c23_1572,
        0x8a9b_3f10_2e97_050d,
    ];
    const GOLDEN_PAIR: [u64; 4] = [
        0x5f5f_a61f_97e7_e6ef,
        0x6351_8eae_33ac_636e,
        0x3f3d_0056_52a4_55a9,
        0x2c1a_abd0_579c_8e19,
    ];
    const GOLDEN_NONE: [u64; 1] = [0xa7dd_2d47_092a_575f];
    const GOLDEN_128: u128 = 0x5f5f_a61f_97e7_e6ef_a20d_002b_a6a5_7f04;

    fn of(array: &ArrayRef) -> Vec<u64> {
        hash_columns(std::slice::from_ref(array), array.len()).unwrap()
    }

    fn arc(array: impl Array + 'static) -> ArrayRef {
        Arc::new(array)
    }

    fn samples() -> Vec<ArrayRef> {
        let strings = arc(StringArray::from(vec![
            Some(""),
            Some("ann"),
            None,
            Some("a string of more than twelve bytes"),
            Some("ann"),
            Some("bo"),
        ]));
        let numbers =
            arc(Int64Array::from(vec![Some(1), Some(-2), None, Some(4), Some(-2), Some(6)]));
        let lists = arc(ListArray::from_iter_primitive::<I32, _, _>(vec![
            Some(vec![]),
            Some(vec![Some(1), None]),
            None,
            Some(vec![Some(1), Some(2), Some(3)]),
            Some(vec![Some(1), None]),
            Some(vec![None]),
        ]));
        let list_field = Arc::new(Field::new("l", lists.data_type().clone(), true));
        let fields = vec![Arc::new(Field::new("s", DataType::Utf8, true)), list_field];
        let columns = vec![strings.clone(), lists.clone()];
        let structs = arc(StructArray::new(fields.into(), columns, lists.nulls().cloned()));
        let mut samples = vec![strings.clone(), lists, structs];
        for to in [DataType::LargeUtf8, DataType::Utf8View, DataType::Binary, DataType::BinaryView]
        {
            samples.push(cast(&strings, &to).unwrap());
        }
        for to in [
            DataType::Int8,
            DataType::Float32,
            DataType::Decimal128(20, 2),
            DataType::Decimal256(40, 2),
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            DataType::Date64,
        ] {
            samples.push(cast(&numbers, &to).unwrap());
        }
        let dictionary = DataType::Dictionary(DataType::Int8.into(), DataType::Utf8.into());
        samples.push(cast(&strings, &dictionary).unwrap());
        samples
    }

    /// These values are part of the file format: they must never change.
    #[test]
    fn golden_values() {
        let int = arc(Int64Array::from(vec![Some(0), Some(1), Some(-1), None]));
        let text = arc(StringArray::from(vec!["", "a", "deltaic", "incremental view"]));
        let float = arc(Float64Array::from(vec![0.0, 1.5, f64::NAN, f64::INFINITY]));
        let cents = arc(Decimal128Array::from(vec![0, 1, -1, i128::MAX]));
        assert_eq!(of(&int), GOLDEN_INT);
        assert_eq!(of(&text), GOLDEN_TEXT);
        assert_eq!(of(&float), GOLDEN_FLOAT);
        assert_eq!(of(&cents), GOLDEN_DECIMAL);
        assert_eq!(hash_columns(&[int.clone(), text.clone()], 4).unwrap(), GOLDEN_PAIR);
        assert_eq!(hash_columns(&[], 1).unwrap(), GOLDEN_NONE);
        let rows = RecordBatch::try_from_iter([("i", int), ("t", text)]).unwrap();
        assert_eq!(hash128_rows(&rows).unwrap()[0], GOLDEN_128);
    }

    #[test]
    fn equal_values_hash_alike_and_others_do_not() {
        for array in samples() {
            let hashes = of(&array);
            let distinct: std::collections::BTreeSet<_> = hashes.iter().collect();
            assert_eq!(hashes[1], hashes[4], "{}", array.data_type());
            assert_eq!(distinct.len(), 5, "{}", array.data_type());
            assert_eq!(hashes[2], HIGH.null(), "{}", array.data_type());
        }
    }

    #[test]
    fn slices_hash_as_the_rows_they_show() {
        for array in samples() {
            let hashes = of(&array);
            for (offset, length) in [(0, 6), (1, 5), (2, 3), (3, 0), (5, 1)] {
                let slice = array.slice(offset, length);
                assert_eq!(of(&slice), hashes[offset..offset + length], "{}", array.data_type());
            }
        }
    }

    #[test]
    fn strings_hash_alike_in_every_layout() {
        let plain = arc(StringArray::from(vec![Some("ann"), None, Some("much longer than that")]));
        let dictionary = DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
        let runs = DataType::RunEndEncoded(
            Arc::new(Field::new("run_ends", DataType::Int32, false)),
            Arc::new(Field::new("values", DataType::Utf8, true)),
        );
        for to in [DataType::LargeUtf8, DataType::Utf8View, DataType::Binary, dictionary, runs] {
            let other = cast(&plain, &to).unwrap();
            assert_eq!(of(&other), of(&plain), "{to}");
            assert_eq!(of(&other.slice(1, 2)), of(&plain)[1..], "{to}");
        }
    }

    #[test]
    fn integers_of_all_widths_hash_alike() {
        let wide = arc(Int64Array::from(vec![Some(5), Some(-5), None]));
        for to in [DataType::Int8, DataType::Int16, DataType::Int32, DataType::Date64] {
            assert_eq!(of(&cast(&wide, &to).unwrap()), of(&wide), "{to}");
        }
    }

    #[test]
    fn floats_are_hashed_canonically() {
        let payload = f64::from_bits(0xfff8_0000_0000_0123);
        let hashes = of(&arc(Float64Array::from(vec![0.0, -0.0, f64::NAN, payload, 1.0])));
        assert_eq!(hashes[0], hashes[1]);
        assert_eq!(hashes[2], hashes[3]);
        assert_ne!(hashes[0], hashes[4]);
    }

    #[test]
    fn what_lies_beneath_a_null_does_not_matter() {
        let nulls = NullBuffer::from(vec![true, false]);
        let a = arc(Int64Array::new(vec![1, 77].into(), Some(nulls.clone())));
        let b = arc(Int64Array::new(vec![1, -3].into(), Some(nulls.clone())));
        assert_eq!(of(&a), of(&b));
        let field = Arc::new(Field::new("v", DataType::Int64, true));
        let a = arc(StructArray::new(vec![field.clone()].into(), vec![a], Some(nulls.clone())));
        let child = arc(Int64Array::from(vec![1, 9]));
        let b = arc(StructArray::new(vec![field.clone()].into(), vec![child], Some(nulls.clone())));
        assert_eq!(of(&a), of(&b));
        let values = arc(Int64Array::from(vec![1, 2, 3]));
        let list = |ends: Vec<i32>| {
            let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
            arc(ListArray::new(field.clone(), offsets, values.clone(), Some(nulls.clone())))
        };
        assert_eq!(of(&list(vec![0, 1, 3])), of(&list(vec![0, 1, 1])));
        let fixed = |last| {
            let values = arc(Int64Array::from(vec![1, 2, 3, last]));
            arc(FixedSizeListArray::new(field.clone(), 2, values, Some(nulls.clone())))
        };
        assert_eq!(of(&fixed(4)), of(&fixed(5)));
    }

    #[test]
    fn a_null_in_a_dictionary_is_null() {
        let values = arc(StringArray::from(vec![Some("ann"), None]));
        let keys = Int8Array::from(vec![Some(0), Some(1), None, Some(0)]);
        let dictionary = arc(DictionaryArray::new(keys, values));
        let plain = arc(StringArray::from(vec![Some("ann"), None, None, Some("ann")]));
        assert_eq!(of(&dictionary), of(&plain));
        assert_eq!(of(&dictionary.slice(1, 1)), of(&plain.slice(1, 1)));
    }

    #[test]
    fn a_column_of_another_length_is_an_error() {
        assert_eq!(hash_columns(&[arc(NullArray::new(2))], 3).unwrap_err().code(), "BATCH_LENGTH");
    }
}
