//! Results of calls from accumulators.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal32Type, Decimal64Type, Decimal128Type, Int64Type,
    UInt64Type, i256,
};
use deltaic_batch::{Error, Result};
use deltaic_state::{AccumulatorColumn, Sums};

use super::accumulate::wrong_type;
use super::division::{divide_decimal, divide_integer};
use super::plan::Outcome;

/// Groups to compute results of.
#[derive(Clone, Copy)]
pub(crate) struct Groups<'a> {
    pub(crate) accumulators: &'a [AccumulatorColumn],
    pub(crate) numbers: &'a [u32],
    /// Which of them have a row in the output; results of others do not matter.
    pub(crate) present: &'a [bool],
    /// The key of a group, for errors.
    pub(crate) key: &'a dyn Fn(u32) -> Result<Vec<ArrayRef>>,
}

/// A sum that is read as a wide integer.
#[derive(Debug, Clone, Copy)]
enum ReadSums<'a> {
    Narrow(&'a Sums),
    Wide(&'a [i256]),
}

impl ReadSums<'_> {
    fn narrow(self, group: u32) -> Option<i128> {
        match self {
            Self::Narrow(sums) => Some(sums.get(group)),
            Self::Wide(sums) => sums[group as usize].to_i128(),
        }
    }

    fn wide(self, group: u32) -> i256 {
        match self {
            Self::Narrow(sums) => i256::from_i128(sums.get(group)),
            Self::Wide(sums) => sums[group as usize],
        }
    }
}

impl<'a> Groups<'a> {
    fn i64s(&self, accumulator: usize) -> Result<&'a [i64]> {
        match self.accumulators.get(accumulator) {
            Some(AccumulatorColumn::I64(values)) => Ok(values),
            _ => Err(wrong_type()),
        }
    }

    /// The results of a call; `None` for an extreme, which accumulators do not tell.
    pub(crate) fn result(&self, outcome: Outcome, output: &DataType) -> Result<Option<ArrayRef>> {
        match outcome {
            Outcome::Count(count) => self.count(count, output),
            Outcome::Sum { sum, count } => self.sum(sum, count, output),
            Outcome::Rest { sum, count } => self.rest(sum, count),
            Outcome::Avg { sum, count, scale_up } => self.avg(sum, count, scale_up, output),
            Outcome::All { trues, count } => self.all(trues, count),
            Outcome::Any { trues, count } => self.any(trues, count),
            Outcome::Extreme { .. } => return Ok(None),
        }
        .map(Some)
    }

    /// The value per group; NULL where it says so and where the group is not present.
    fn map<T>(&self, value: impl Fn(u32) -> Option<T>) -> impl Iterator<Item = Option<T>> {
        let groups = self.numbers.iter().zip(self.present);
        groups.map(move |(&group, &present)| if present { value(group) } else { None })
    }

    fn count(&self, count: usize, output: &DataType) -> Result<ArrayRef> {
        let counts = self.i64s(count)?;
        if output == &DataType::UInt64 {
            let to_unsigned = |group| Some(u64::try_from(counts[group as usize]).unwrap_or(0));
            return Ok(Arc::new(
                self.map(to_unsigned)
                    .map(|c| c.or(Some(0)))
                    .collect::<PrimitiveArray<UInt64Type>>(),
            ));
        }
        let values = self.map(|group| Some(counts[group as usize]));
        Ok(Arc::new(PrimitiveArray::<Int64Type>::from_iter_values(values.map(|c| c.unwrap_or(0)))))
    }

    fn all(&self, trues: usize, count: usize) -> Result<ArrayRef> {
        let (trues, counts) = (self.i64s(trues)?, self.i64s(count)?);
        let value = |group| {
            let (trues, count) = (trues[group as usize], counts[group as usize]);
            (count > 0).then_some(trues == count)
        };
        Ok(Arc::new(self.map(value).collect::<BooleanArray>()))
    }

    fn any(&self, trues: usize, count: usize) -> Result<ArrayRef> {
        let (trues, counts) = (self.i64s(trues)?, self.i64s(count)?);
        let value = |group| (counts[group as usize] > 0).then_some(trues[group as usize] > 0);
        Ok(Arc::new(self.map(value).collect::<BooleanArray>()))
    }

    fn sum(&self, sum: usize, count: usize, output: &DataType) -> Result<ArrayRef> {
        let counts = self.i64s(count)?;
        let sums = match self.accumulators.get(sum) {
            Some(AccumulatorColumn::I128(sums)) => ReadSums::Narrow(sums),
            Some(AccumulatorColumn::I256(sums)) => ReadSums::Wide(sums),
            Some(AccumulatorColumn::Exact(sums)) => {
                let value =
                    |group| (counts[group as usize] > 0).then(|| sums[group as usize].value());
                return Ok(Arc::new(self.map(value).collect::<Float64Array>()));
            }
            _ => return Err(wrong_type()),
        };
        self.exact(output, |group| {
            if counts[group as usize] > 0 { sums.narrow(group).map(Some) } else { Some(None) }
        })
    }

    fn rest(&self, sum: usize, count: usize) -> Result<ArrayRef> {
        let counts = self.i64s(count)?;
        let Some(AccumulatorColumn::Exact(sums)) = self.accumulators.get(sum) else {
            return Err(wrong_type());
        };
        let value = |group| (counts[group as usize] > 0).then(|| sums[group as usize].rest());
        Ok(Arc::new(self.map(value).collect::<Float64Array>()))
    }

    /// Averages: of floats the rounded sum divided by the count; of integers the exact sum divided
    /// by the count and rounded once; of decimals cut off after the output's scale, as DataFusion
    /// does.
    fn avg(&self, sum: usize, count: usize, scale_up: u32, output: &DataType) -> Result<ArrayRef> {
        let counts = self.i64s(count)?;
        let sums = match self.accumulators.get(sum) {
            Some(AccumulatorColumn::I128(sums)) => ReadSums::Narrow(sums),
            Some(AccumulatorColumn::I256(sums)) => ReadSums::Wide(sums),
            Some(AccumulatorColumn::Exact(sums)) => {
                let value = |group| {
                    let count = counts[group as usize];
                    // Adding zero makes a −0.0, which underflow may leave, a 0.0.
                    (count > 0).then(|| sums[group as usize].value() / as_float(count) + 0.0)
                };
                return Ok(Arc::new(self.map(value).collect::<Float64Array>()));
            }
            _ => return Err(wrong_type()),
        };
        if let (DataType::Float64, ReadSums::Narrow(sums)) = (output, sums) {
            let value = |group| divide_integer(sums.get(group), counts[group as usize]);
            return Ok(Arc::new(self.map(value).collect::<Float64Array>()));
        }
        self.exact(output, |group| match counts[group as usize] {
            count if count > 0 => divide_decimal(sums.wide(group), scale_up, count).map(Some),
            _ => Some(None),
        })
    }

    /// Integers or decimals; `value` is `None` where it does not fit and `Some(None)` for NULL.
    fn exact(
        &self,
        output: &DataType,
        value: impl Fn(u32) -> Option<Option<i128>>,
    ) -> Result<ArrayRef> {
        match output {
            DataType::Int64 => self.fitted::<Int64Type>(output, i128::MAX, value),
            DataType::UInt64 => self.fitted::<UInt64Type>(output, i128::MAX, value),
            DataType::Decimal32(precision, _) => {
                self.fitted::<Decimal32Type>(output, below_digits(*precision), value)
            }
            DataType::Decimal64(precision, _) => {
                self.fitted::<Decimal64Type>(output, below_digits(*precision), value)
            }
            DataType::Decimal128(precision, _) => {
                self.fitted::<Decimal128Type>(output, below_digits(*precision), value)
            }
            _ => Err(wrong_type()),
        }
    }

    /// Values as `T`, of magnitude `max` at most.
    fn fitted<T: ArrowPrimitiveType>(
        &self,
        output: &DataType,
        max: i128,
        value: impl Fn(u32) -> Option<Option<i128>>,
    ) -> Result<ArrayRef>
    where
        T::Native: TryFrom<i128>,
    {
        let mut values: Vec<T::Native> = Vec::with_capacity(self.numbers.len());
        let mut is_valid = vec![true; self.numbers.len()];
        let mut any_null = false;
        for (at, (&group, &present)) in self.numbers.iter().zip(self.present).enumerate() {
            let value = if present { value(group) } else { Some(None) };
            let Some(value) = value else { return Err(self.overflow(group, output)) };
            let Some(value) = value else {
                values.push(T::Native::default());
                is_valid[at] = false;
                any_null = true;
                continue;
            };
            match T::Native::try_from(value) {
                Ok(fitting) if (-max..=max).contains(&value) => values.push(fitting),
                _ => return Err(self.overflow(group, output)),
            }
        }
        let nulls = any_null.then(|| NullBuffer::from(is_valid));
        let values = PrimitiveArray::<T>::try_new(values.into(), nulls)?;
        Ok(Arc::new(values.with_data_type(output.clone())))
    }

    /// The error for a result that its type cannot hold.
    #[cold]
    fn overflow(&self, group: u32, output: &DataType) -> Error {
        let key = match (self.key)(group) {
            Ok(columns) => columns
                .iter()
                .map(|column| arrow::util::display::array_value_to_string(column, 0))
                .collect::<Result<Vec<_>, _>>()
                .unwrap_or_default()
                .join(", "),
            Err(error) => return error,
        };
        let whose = if key.is_empty() { String::new() } else { format!(" for key ({key})") };
        let message = format!("the result does not fit into {output}{whose}");
        Error::data("ARITHMETIC_OVERFLOW", message)
            .hint("cast the argument to a wider type, for example DECIMAL(38, 0)")
    }
}

/// Greatest number of this many decimal digits.
fn below_digits(digits: u8) -> i128 {
    10_i128.checked_pow(digits.into()).map_or(i128::MAX, |power| power - 1)
}

#[expect(clippy::cast_precision_loss, reason = "a count above 2^53 is rounded like any operand")]
fn as_float(count: i64) -> f64 {
    count as f64
}
