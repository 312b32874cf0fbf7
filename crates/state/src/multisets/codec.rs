//! Values as rows whose order is the spec's: words where all columns are of fixed width, else bytes.
//!
//! A word is the value's bits, changed so that unsigned order is SQL's (the sign bit flipped; of a
//! negative float all bits; all bits again for a descending column). A column has one word, a long
//! decimal two, and one more in front from the first NULL on that it meets.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, BooleanBufferBuilder,
    PrimitiveArray,
};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute::SortOptions;
use arrow::datatypes::{self as t, ArrowNativeType, DataType, IntervalUnit, TimeUnit};
use arrow::row::{RowConverter, SortField};
use deltaic_batch::{Error, Result, canonicalize};

use super::MultisetSpec;
use super::rows::{ByteRows, WordRows};

/// Rows of more words are kept as bytes.
pub(super) const WORDS_MAX: usize = 4;

/// How the columns lie in rows of words.
#[derive(Debug, Clone)]
pub(super) struct WordCodec {
    columns: Vec<WordColumn>,
}

#[derive(Debug, Clone)]
struct WordColumn {
    data_type: DataType,
    options: SortOptions,
    /// A word before the value tells NULL.
    with_null: bool,
    first: usize,
}

/// Encodes rows as bytes.
#[derive(Debug)]
pub(super) struct ByteCodec {
    types: Vec<DataType>,
    fields: Vec<SortField>,
    converter: RowConverter,
}

impl WordColumn {
    fn words(&self) -> usize {
        usize::from(self.with_null) + value_words(&self.data_type).unwrap_or(0)
    }
}

/// Words of a value; `None` for types that have no fixed width or no order of their bits.
fn value_words(data_type: &DataType) -> Option<usize> {
    use DataType as D;
    match data_type {
        D::Decimal128(_, _) => Some(2),
        D::Boolean
        | D::Float16
        | D::Float32
        | D::Float64
        | D::Date32
        | D::Date64
        | D::Time32(_)
        | D::Time64(_)
        | D::Timestamp(_, _)
        | D::Duration(_)
        | D::Interval(IntervalUnit::YearMonth)
        | D::Decimal32(_, _)
        | D::Decimal64(_, _) => Some(1),
        other => other.is_integer().then_some(1),
    }
}

impl WordCodec {
    /// `with_null` says which columns have met NULL. `None` when rows are better kept as bytes.
    pub(super) fn try_new(spec: &MultisetSpec, with_null: &[bool]) -> Option<Self> {
        let mut first = 0;
        let mut columns = Vec::new();
        for (column, &with_null) in spec.columns.iter().zip(with_null) {
            value_words(&column.data_type)?;
            let (data_type, options) = (column.data_type.clone(), column.options);
            let column = WordColumn { data_type, options, with_null, first };
            first += column.words();
            columns.push(column);
        }
        (first <= WORDS_MAX).then_some(Self { columns })
    }

    pub(super) fn words(&self) -> usize {
        self.columns.iter().map(WordColumn::words).sum()
    }

    /// Words of the first so many columns.
    pub(super) fn words_of(&self, columns: usize) -> usize {
        self.columns[..columns].iter().map(WordColumn::words).sum()
    }

    /// Which columns have a word for NULL.
    pub(super) fn with_null(&self) -> Vec<bool> {
        self.columns.iter().map(|column| column.with_null).collect()
    }

    /// Rows of `count` values. Columns may be left out at the end: their words are the least there are.
    pub(super) fn encode<const W: usize>(
        &self,
        values: &[ArrayRef],
        count: usize,
    ) -> Result<WordRows<W>> {
        let mut rows = vec![[0_u64; W]; count];
        for (column, array) in self.columns.iter().zip(values) {
            column.encode(array, &mut rows)?;
        }
        Ok(WordRows(rows))
    }

    /// The values of rows.
    pub(super) fn decode<const W: usize>(&self, rows: &WordRows<W>) -> Result<Vec<ArrayRef>> {
        self.columns.iter().map(|column| column.decode(&rows.0)).collect()
    }
}

/// Calls a macro with the Arrow type, and the functions to and from ordered 64 bits.
macro_rules! for_word_type {
    ($data_type:expr, $call:ident, $other:expr) => {{
        use DataType as D;
        match $data_type {
            D::Int8 => $call!(t::Int8Type, signed, |w| unsigned(w) as i8),
            D::Int16 => $call!(t::Int16Type, signed, |w| unsigned(w) as i16),
            D::Int32 => $call!(t::Int32Type, signed, |w| unsigned(w) as i32),
            D::Int64 => $call!(t::Int64Type, signed, unsigned),
            D::UInt8 => $call!(t::UInt8Type, u64::from, |w| w as u8),
            D::UInt16 => $call!(t::UInt16Type, u64::from, |w| w as u16),
            D::UInt32 => $call!(t::UInt32Type, u64::from, |w| w as u32),
            D::UInt64 => $call!(t::UInt64Type, u64::from, |w| w),
            D::Float16 => $call!(
                t::Float16Type,
                |v: <t::Float16Type as ArrowPrimitiveType>::Native| float(v.to_f64()),
                |w| <t::Float16Type as ArrowPrimitiveType>::Native::from_f64(unfloat(w))
            ),
            D::Float32 => $call!(t::Float32Type, |v| float(f64::from(v)), |w| unfloat(w) as f32),
            D::Float64 => $call!(t::Float64Type, float, unfloat),
            D::Date32 => $call!(t::Date32Type, signed, |w| unsigned(w) as i32),
            D::Date64 => $call!(t::Date64Type, signed, unsigned),
            D::Time32(TimeUnit::Second) => {
                $call!(t::Time32SecondType, signed, |w| unsigned(w) as i32)
            }
            D::Time32(_) => $call!(t::Time32MillisecondType, signed, |w| unsigned(w) as i32),
            D::Time64(TimeUnit::Nanosecond) => {
                $call!(t::Time64NanosecondType, signed, unsigned)
            }
            D::Time64(_) => $call!(t::Time64MicrosecondType, signed, unsigned),
            D::Timestamp(TimeUnit::Second, _) => {
                $call!(t::TimestampSecondType, signed, unsigned)
            }
            D::Timestamp(TimeUnit::Millisecond, _) => {
                $call!(t::TimestampMillisecondType, signed, unsigned)
            }
            D::Timestamp(TimeUnit::Microsecond, _) => {
                $call!(t::TimestampMicrosecondType, signed, unsigned)
            }
            D::Timestamp(TimeUnit::Nanosecond, _) => {
                $call!(t::TimestampNanosecondType, signed, unsigned)
            }
            D::Duration(TimeUnit::Second) => $call!(t::DurationSecondType, signed, unsigned),
            D::Duration(TimeUnit::Millisecond) => {
                $call!(t::DurationMillisecondType, signed, unsigned)
            }
            D::Duration(TimeUnit::Microsecond) => {
                $call!(t::DurationMicrosecondType, signed, unsigned)
            }
            D::Duration(TimeUnit::Nanosecond) => {
                $call!(t::DurationNanosecondType, signed, unsigned)
            }
            D::Interval(IntervalUnit::YearMonth) => {
                $call!(t::IntervalYearMonthType, signed, |w| unsigned(w) as i32)
            }
            D::Decimal32(_, _) => $call!(t::Decimal32Type, signed, |w| unsigned(w) as i32),
            D::Decimal64(_, _) => $call!(t::Decimal64Type, signed, unsigned),
            _ => $other,
        }
    }};
}

impl WordColumn {
    fn encode<const W: usize>(&self, array: &ArrayRef, rows: &mut [[u64; W]]) -> Result<()> {
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let value = self.first + usize::from(self.with_null);
        match array.data_type() {
            DataType::Boolean => {
                let values = array.as_boolean().values();
                self.put(rows, value, values.iter().map(u64::from), nulls.as_ref());
            }
            DataType::Decimal128(_, _) => {
                let values = array.as_primitive::<t::Decimal128Type>().values();
                let flip = |v: &i128| v.cast_unsigned() ^ 1 << 127;
                #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
                let halves = [
                    values.iter().map(|v| (flip(v) >> 64) as u64).collect::<Vec<_>>(),
                    values.iter().map(|v| flip(v) as u64).collect(),
                ];
                for (i, half) in halves.into_iter().enumerate() {
                    self.put(rows, value + i, half.into_iter(), nulls.as_ref());
                }
            }
            other => {
                macro_rules! put {
                    ($type:ty, $to:expr, $from:expr) => {{
                        let values = array.as_primitive::<$type>().values();
                        let words = values.iter().map(|&v| $to(v));
                        self.put(rows, value, words, nulls.as_ref());
                    }};
                }
                for_word_type!(other, put, return Err(no_words(other)));
            }
        }
        if self.with_null {
            let null = if self.options.nulls_first { 0 } else { 1 };
            let valid = |at: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at));
            for (at, row) in rows.iter_mut().enumerate() {
                row[self.first] = if valid(at) { 1 - null } else { null };
            }
        }
        Ok(())
    }

    /// Writes one word of each row; what lies beneath a NULL is made 0.
    fn put<const W: usize>(
        &self,
        rows: &mut [[u64; W]],
        at: usize,
        words: impl Iterator<Item = u64>,
        nulls: Option<&NullBuffer>,
    ) {
        let flip = if self.options.descending { u64::MAX } else { 0 };
        rows.iter_mut().zip(words).for_each(|(row, word)| row[at] = word ^ flip);
        if let Some(nulls) = nulls {
            rows.iter_mut().zip(nulls).filter(|(_, v)| !v).for_each(|(row, _)| row[at] = 0);
        }
    }

    fn decode<const W: usize>(&self, rows: &[[u64; W]]) -> Result<ArrayRef> {
        let nulls = self.with_null.then(|| {
            let null = if self.options.nulls_first { 0 } else { 1 };
            let mut valid = BooleanBufferBuilder::new(rows.len());
            rows.iter().for_each(|row| valid.append(row[self.first] != null));
            NullBuffer::new(valid.finish())
        });
        let value = self.first + usize::from(self.with_null);
        let flip = if self.options.descending { u64::MAX } else { 0 };
        let words = |at: usize| rows.iter().map(move |row| row[at] ^ flip);
        let array: ArrayRef = match &self.data_type {
            DataType::Boolean => {
                Arc::new(BooleanArray::new(words(value).map(|word| word != 0).collect(), nulls))
            }
            DataType::Decimal128(_, _) => {
                let join = |(high, low)| (u128::from(high) << 64 | u128::from(low)) ^ 1 << 127;
                let values = words(value)
                    .zip(words(value + 1))
                    .map(|pair: (u64, u64)| join(pair).cast_signed());
                let array = PrimitiveArray::<t::Decimal128Type>::new(values.collect(), nulls);
                Arc::new(array.with_data_type(self.data_type.clone()))
            }
            other => {
                macro_rules! get {
                    ($type:ty, $to:expr, $from:expr) => {{
                        let values = words(value).map($from);
                        let array = PrimitiveArray::<$type>::new(or_zero(values, &nulls), nulls);
                        Arc::new(array.with_data_type(other.clone()))
                    }};
                }
                #[expect(clippy::cast_possible_truncation, reason = "it was as narrow before")]
                {
                    for_word_type!(other, get, return Err(no_words(other)))
                }
            }
        };
        Ok(array)
    }
}

/// The values, zero beneath a NULL: whatever lies there must be canonical, too.
fn or_zero<T: ArrowNativeType>(
    values: impl Iterator<Item = T>,
    nulls: &Option<NullBuffer>,
) -> ScalarBuffer<T> {
    match nulls {
        None => values.collect(),
        Some(nulls) => {
            values.zip(nulls).map(|(v, valid)| if valid { v } else { T::default() }).collect()
        }
    }
}

fn no_words(data_type: &DataType) -> Error {
    Error::internal("MULTISET_TYPES", format!("values of type {data_type} are not words"))
}

fn signed(value: impl Into<i64>) -> u64 {
    value.into().cast_unsigned() ^ 1 << 63
}

fn unsigned(word: u64) -> i64 {
    (word ^ 1 << 63).cast_signed()
}

/// The order of canonical floats: NaN above all numbers.
fn float(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 0 { bits ^ 1 << 63 } else { !bits }
}

fn unfloat(word: u64) -> f64 {
    f64::from_bits(if word >> 63 == 0 { !word } else { word ^ 1 << 63 })
}

impl ByteCodec {
    pub(super) fn try_new(spec: &MultisetSpec) -> Result<Self> {
        let types: Vec<DataType> = spec.columns.iter().map(|c| c.data_type.clone()).collect();
        let field = |column: &super::MultisetColumn| {
            SortField::new_with_options(column.data_type.clone(), column.options)
        };
        let fields: Vec<SortField> = spec.columns.iter().map(field).collect();
        let converter = RowConverter::new(fields.clone())?;
        Ok(Self { types, fields, converter })
    }

    pub(super) fn encode(&self, values: &[ArrayRef]) -> Result<ByteRows> {
        encode(&self.converter, values)
    }

    /// The first bytes of rows, by their leading columns: less than any row that begins with them.
    pub(super) fn encode_leading(&self, values: &[ArrayRef]) -> Result<ByteRows> {
        if values.len() == self.fields.len() {
            return self.encode(values);
        }
        encode(&RowConverter::new(self.fields[..values.len()].to_vec())?, values)
    }
    pub(super) fn decode(&self, rows: &ByteRows, count: usize) -> Result<Vec<ArrayRef>> {
        let parser = self.converter.parser();
        let rows = (0..count).map(|at| parser.parse(rows.row(at)));
        let arrays = self.converter.convert_rows(rows)?;
        let relabel = |(array, data_type): (ArrayRef, &DataType)| {
            // What comes back beneath a NULL is no canonical float; dictionaries are their values.
            let array = canonicalize(&array);
            if array.data_type() == data_type {
                Ok(array)
            } else {
                Ok(arrow::compute::cast(&array, data_type)?)
            }
        };
        arrays.into_iter().zip(&self.types).map(relabel).collect()
    }
}

fn encode(converter: &RowConverter, values: &[ArrayRef]) -> Result<ByteRows> {
    let encoded = converter.convert_columns(values)?;
    if encoded.iter().any(|row| u32::try_from(row.data().len()).is_err()) {
        return Err(Error::data("VALUE_TOO_LONG", "a row of more than 4 GiB"));
    }
    let mut rows = ByteRows::default();
    rows.reserve(encoded.num_rows(), encoded.size());
    encoded.iter().for_each(|row| rows.push_row(row.data()));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::super::MultisetColumn;
    use super::super::rows::Rows;
    use super::*;
    use arrow::array::*;
    use arrow::compute::{SortColumn, cast, lexsort_to_indices, take};

    fn samples() -> Vec<ArrayRef> {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![3, -3, 0, 120, -128, 7, 0]));
        let with_null: ArrayRef =
            Arc::new(Int64Array::from(vec![Some(3), None, Some(0), Some(-5), None]));
        let floats = vec![0.0, -1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 2.0];
        let mut all: Vec<ArrayRef> = vec![
            Arc::new(Float64Array::from(floats)),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
            Arc::new(UInt64Array::from(vec![0, u64::MAX, 1 << 63])),
            Arc::new(Int64Array::from(vec![i64::MIN, i64::MAX, 0])),
        ];
        for data_type in [
            DataType::Int8,
            DataType::Int16,
            DataType::Int32,
            DataType::Date32,
            DataType::Date64,
            DataType::Float32,
            DataType::Float16,
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            DataType::Duration(TimeUnit::Second),
            DataType::Decimal32(9, 2),
            DataType::Decimal64(12, 2),
            DataType::Decimal128(30, 5),
        ] {
            for array in [&numbers, &with_null] {
                let array = if data_type == DataType::Date32 {
                    cast(&cast(array, &DataType::Int32).unwrap(), &data_type).unwrap()
                } else {
                    cast(array, &data_type).unwrap()
                };
                all.push(array);
            }
        }
        all
    }

    #[test]
    fn words_are_in_the_order_of_values_and_come_back() {
        for array in samples() {
            for (descending, nulls_first) in [(false, false), (true, false), (true, true)] {
                let options = SortOptions { descending, nulls_first };
                let data_type = array.data_type().clone();
                let spec = MultisetSpec { columns: vec![MultisetColumn { data_type, options }] };
                let codec = WordCodec::try_new(&spec, &[array.null_count() > 0]).unwrap();
                let rows = codec.encode::<3>(std::slice::from_ref(&array), array.len()).unwrap();
                assert_eq!(&codec.decode(&rows).unwrap()[0], &array);
                let mut order: Vec<u32> = (0..u32::try_from(array.len()).unwrap()).collect();
                let ends = [array.len()];
                rows.sort_runs(&mut order, &ends, &mut WordRows::default());
                let column = SortColumn { values: array.clone(), options: Some(options) };
                let expected = lexsort_to_indices(&[column], None).unwrap();
                let ours = take(&array, &UInt32Array::from(order), None).unwrap();
                assert_eq!(&ours, &take(&array, &expected, None).unwrap(), "{options:?}");
            }
        }
    }
}
