//! Adding a delta to the accumulators: one typed loop per accumulator.

use std::borrow::Cow;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal32Type, Decimal64Type, Decimal128Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type, i256,
};
use deltaic_batch::{Error, Result};
use deltaic_state::{AccumulatorColumn, Crossings, ExactSum, Sums};

use super::plan::{Measure, Source};
use crate::multiplicity::add_weights;

/// Rows of a delta with their groups and weights, as one source sees them. A row that does not
/// count has weight zero.
#[derive(Debug)]
pub(crate) struct Selection<'a> {
    pub(crate) groups: Cow<'a, [u32]>,
    pub(crate) weights: Cow<'a, [i64]>,
    /// The rows of the delta, where not all of them in order.
    rows: Option<UInt32Array>,
}

impl<'a> Selection<'a> {
    /// All rows, those that do not count with weight zero.
    pub(crate) fn of_source(
        source: &Source,
        rows: &RecordBatch,
        groups: &'a [u32],
        weights: &'a [i64],
    ) -> Result<Self> {
        let weights = masked_weights(rows, source.not_null, source.filter, weights)?;
        Ok(Self { groups: Cow::Borrowed(groups), weights, rows: None })
    }

    /// The rows with values that a group begins or ceases to have.
    pub(crate) fn of_crossings(crossings: &Crossings, groups: &[u32]) -> Self {
        let groups = crossings.rows.iter().map(|&row| groups[row as usize]).collect();
        Self {
            groups: Cow::Owned(groups),
            weights: Cow::Owned(crossings.weights.clone()),
            rows: Some(crossings.rows.clone().into()),
        }
    }

    /// A column of the delta, one value per row of the selection.
    fn values(&self, column: &ArrayRef) -> Result<ArrayRef> {
        Ok(match &self.rows {
            None => column.clone(),
            Some(rows) => arrow::compute::take(column, rows, None)?,
        })
    }

    /// Adds one measure to its accumulators.
    pub(crate) fn add_to(
        &self,
        accumulators: &mut AccumulatorColumn,
        measure: Measure,
        rows: &RecordBatch,
    ) -> Result<()> {
        match (measure, accumulators) {
            (Measure::Count, AccumulatorColumn::I64(counts)) => {
                add_weights(counts, &self.groups, &self.weights)
            }
            (Measure::CountTrue(column), AccumulatorColumn::I64(counts)) => {
                let values = self.values(rows.column(column))?;
                let values = values.as_boolean_opt().ok_or_else(wrong_type)?.values();
                let weights = self.weights.iter().zip(values);
                let weights: Vec<i64> = weights.map(|(&w, v)| if v { w } else { 0 }).collect();
                add_weights(counts, &self.groups, &weights)
            }
            (Measure::Sum(column), accumulators) => {
                self.add_sum(accumulators, &self.values(rows.column(column))?)
            }
            _ => Err(wrong_type()),
        }
    }

    fn add_sum(&self, accumulators: &mut AccumulatorColumn, values: &ArrayRef) -> Result<()> {
        use DataType as D;
        match accumulators {
            AccumulatorColumn::I128(sums) => match values.data_type() {
                D::Int8 => self.add_integers::<Int8Type>(sums, values),
                D::Int16 => self.add_integers::<Int16Type>(sums, values),
                D::Int32 => self.add_integers::<Int32Type>(sums, values),
                D::Int64 => self.add_integers::<Int64Type>(sums, values),
                D::UInt8 => self.add_integers::<UInt8Type>(sums, values),
                D::UInt16 => self.add_integers::<UInt16Type>(sums, values),
                D::UInt32 => self.add_integers::<UInt32Type>(sums, values),
                D::UInt64 => self.add_integers::<UInt64Type>(sums, values),
                D::Decimal32(_, _) => self.add_integers::<Decimal32Type>(sums, values),
                D::Decimal64(_, _) => self.add_integers::<Decimal64Type>(sums, values),
                D::Decimal128(_, _) => self.add_integers::<Decimal128Type>(sums, values),
                _ => Err(wrong_type()),
            },
            AccumulatorColumn::I256(sums) => self.add_decimals(sums, values),
            AccumulatorColumn::Exact(sums) => match values.data_type() {
                D::Float16 => self.add_floats::<Float16Type>(sums, values, |x| x.to_f64()),
                D::Float32 => self.add_floats::<Float32Type>(sums, values, f64::from),
                D::Float64 => self.add_floats::<Float64Type>(sums, values, |x| x),
                _ => Err(wrong_type()),
            },
            AccumulatorColumn::I64(_) => Err(wrong_type()),
        }
    }

    /// Wraps on the way, which cancels out: a group of less than 2⁶³ rows has a sum that fits.
    fn add_integers<T: ArrowPrimitiveType>(&self, sums: &mut Sums, values: &ArrayRef) -> Result<()>
    where
        T::Native: Into<i128>,
    {
        let values = values.as_primitive_opt::<T>().ok_or_else(wrong_type)?.values();
        let terms = self.weights.iter().zip(values).map(|(&weight, &value)| {
            let value: i128 = value.into();
            value.wrapping_mul(i128::from(weight))
        });
        sums.add_each(&self.groups, terms);
        Ok(())
    }

    fn add_decimals(&self, sums: &mut [i256], values: &ArrayRef) -> Result<()> {
        let values = values.as_primitive_opt::<Decimal128Type>().ok_or_else(wrong_type)?.values();
        for ((&group, &weight), &value) in self.groups.iter().zip(self.weights.iter()).zip(values) {
            let sum = &mut sums[group as usize];
            let value = i256::from_i128(value);
            *sum = match weight {
                0 => continue,
                1 => sum.wrapping_add(value),
                -1 => sum.wrapping_sub(value),
                weight => sum.wrapping_add(value.wrapping_mul(i256::from_i128(weight.into()))),
            };
        }
        Ok(())
    }

    fn add_floats<T: ArrowPrimitiveType>(
        &self,
        sums: &mut [ExactSum],
        values: &ArrayRef,
        widen: impl Fn(T::Native) -> f64,
    ) -> Result<()> {
        let values = values.as_primitive_opt::<T>().ok_or_else(wrong_type)?.values();
        for ((&group, &weight), &value) in self.groups.iter().zip(self.weights.iter()).zip(values) {
            // What lies beneath a NULL may be no number.
            if weight != 0 {
                sums[group as usize].add(widen(value), weight);
            }
        }
        Ok(())
    }
}

/// The weights, zero where `not_null` is NULL or `filter` is not TRUE.
pub(crate) fn masked_weights<'a>(
    rows: &RecordBatch,
    not_null: Option<usize>,
    filter: Option<usize>,
    weights: &'a [i64],
) -> Result<Cow<'a, [i64]>> {
    let mut masked = Cow::Borrowed(weights);
    let nulls = not_null.and_then(|column| rows.column(column).logical_nulls());
    if let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) {
        let weights = masked.to_mut().iter_mut().zip(&nulls);
        weights.for_each(|(weight, is_valid)| *weight *= i64::from(is_valid));
    }
    if let Some(filter) = filter {
        let filter = rows.column(filter).as_boolean_opt().ok_or_else(wrong_type)?;
        let weights = masked.to_mut().iter_mut().zip(filter);
        weights.for_each(|(weight, is_true)| *weight *= i64::from(is_true == Some(true)));
    }
    Ok(masked)
}

pub(crate) fn wrong_type() -> Error {
    Error::internal("AGGREGATE_TYPE", "an aggregate met a column of another type than planned")
}
