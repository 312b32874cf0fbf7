//! Canonical floats: −0.0 becomes 0.0 and every NaN the same NaN, so that equal bits mean equal
//! values. Everything that enters the kernel passes here once.

use std::sync::Arc;

use arrow::array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, GenericListArray, GenericListViewArray, MapArray,
    OffsetSizeTrait, RecordBatch, RecordBatchOptions, StructArray,
};
use arrow::datatypes::{ArrowNativeTypeOp, DataType};

use crate::{Result, ZBatch};

type Half = <Float16Type as ArrowPrimitiveType>::Native;

/// The array with −0.0 replaced by 0.0 and every NaN by one NaN, inside structs, lists, maps and
/// dictionaries too. The same `Arc` when there is nothing to replace.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, AsArray, Float64Array};
/// use arrow::datatypes::Float64Type;
///
/// let array: ArrayRef = Arc::new(Float64Array::from(vec![-0.0, 1.5]));
/// let canonical = deltaic_batch::canonicalize(&array);
/// assert_eq!(canonical.as_primitive::<Float64Type>().value(0).to_bits(), 0.0_f64.to_bits());
/// assert!(Arc::ptr_eq(&canonical, &deltaic_batch::canonicalize(&canonical)));
/// ```
pub fn canonicalize(array: &ArrayRef) -> ArrayRef {
    changed(array).unwrap_or_else(|| array.clone())
}

impl ZBatch {
    /// The batch with canonical floats (see [`canonicalize`]).
    pub fn canonical(&self) -> Result<Self> {
        let columns: Vec<ArrayRef> = self.rows().columns().iter().map(canonicalize).collect();
        if columns.iter().zip(self.rows().columns()).all(|(a, b)| Arc::ptr_eq(a, b)) {
            return Ok(self.clone());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.num_rows()));
        let rows = RecordBatch::try_new_with_options(self.schema(), columns, &options)?;
        Self::try_new(rows, self.weights().clone())
    }
}

/// The canonical form if it differs from `array`.
fn changed(array: &ArrayRef) -> Option<ArrayRef> {
    if !holds_floats(array.data_type()) || array.is_empty() {
        return None;
    }
    match array.data_type() {
        DataType::Float16 => floats::<Float16Type>(array, Half::NAN, |v| v.to_bits().into()),
        DataType::Float32 => floats::<Float32Type>(array, f32::NAN, |v| v.to_bits().into()),
        DataType::Float64 => floats::<Float64Type>(array, f64::NAN, f64::to_bits),
        DataType::Struct(fields) => {
            let array = array.as_struct();
            let columns = changed_columns(array.columns())?;
            StructArray::try_new(fields.clone(), columns, array.nulls().cloned()).ok().map(arc)
        }
        DataType::List(_) => list::<i32>(array),
        DataType::LargeList(_) => list::<i64>(array),
        DataType::ListView(_) => list_view::<i32>(array),
        DataType::LargeListView(_) => list_view::<i64>(array),
        DataType::FixedSizeList(field, size) => {
            let list = array.as_fixed_size_list();
            let values = changed(list.values())?;
            FixedSizeListArray::try_new(field.clone(), *size, values, list.nulls().cloned())
                .ok()
                .map(arc)
        }
        DataType::Map(field, ordered) => {
            let map = array.as_map();
            let entries = changed(&arc(map.entries().clone()))?.as_struct().clone();
            let nulls = map.nulls().cloned();
            MapArray::try_new(field.clone(), map.offsets().clone(), entries, nulls, *ordered)
                .ok()
                .map(arc)
        }
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            Some(dictionary.with_values(changed(dictionary.values())?))
        }
        DataType::RunEndEncoded(_, values) => {
            let flat = arrow::compute::cast(array, values.data_type()).ok()?;
            arrow::compute::cast(&changed(&flat)?, array.data_type()).ok()
        }
        _ => None,
    }
}

fn arc(array: impl Array + 'static) -> ArrayRef {
    Arc::new(array)
}

fn holds_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => true,
        DataType::Struct(fields) => fields.iter().any(|f| holds_floats(f.data_type())),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => holds_floats(field.data_type()),
        DataType::Dictionary(_, values) => holds_floats(values),
        _ => false,
    }
}

/// Canonical columns if any differs.
fn changed_columns(columns: &[ArrayRef]) -> Option<Vec<ArrayRef>> {
    let canonical: Vec<ArrayRef> = columns.iter().map(canonicalize).collect();
    canonical.iter().zip(columns).any(|(a, b)| !Arc::ptr_eq(a, b)).then_some(canonical)
}

/// `nan` and `bits` are those of the native type.
fn floats<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    nan: T::Native,
    bits: impl Fn(T::Native) -> u64,
) -> Option<ArrayRef> {
    let array = array.as_primitive::<T>();
    let canonical = |value: T::Native| {
        #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
        if value != value {
            nan
        } else if value.is_zero() {
            T::Native::ZERO
        } else {
            value
        }
    };
    let differs = |&value: &T::Native| bits(value) != bits(canonical(value));
    array.values().iter().any(differs).then(|| arc(array.unary::<_, T>(canonical)))
}

fn list<O: OffsetSizeTrait>(array: &ArrayRef) -> Option<ArrayRef> {
    let list = array.as_list::<O>();
    let (DataType::List(field) | DataType::LargeList(field)) = list.data_type() else {
        return None;
    };
    let values = changed(list.values())?;
    let nulls = list.nulls().cloned();
    GenericListArray::<O>::try_new(field.clone(), list.offsets().clone(), values, nulls)
        .ok()
        .map(arc)
}

fn list_view<O: OffsetSizeTrait>(array: &ArrayRef) -> Option<ArrayRef> {
    let list = array.as_list_view::<O>();
    let (DataType::ListView(field) | DataType::LargeListView(field)) = list.data_type() else {
        return None;
    };
    let values = changed(list.values())?;
    let (offsets, sizes) = (list.offsets().clone(), list.sizes().clone());
    GenericListViewArray::<O>::try_new(field.clone(), offsets, sizes, values, list.nulls().cloned())
        .ok()
        .map(arc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{DictionaryArray, Float32Array, Float64Array, Int8Array, ListArray};
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::Field;

    const PAYLOAD: u64 = 0xfff8_0000_0000_0123;

    fn bits(array: &ArrayRef) -> Vec<u64> {
        array.as_primitive::<Float64Type>().values().iter().map(|v| v.to_bits()).collect()
    }

    fn raw() -> ArrayRef {
        arc(Float64Array::from(vec![-0.0, 2.5, f64::from_bits(PAYLOAD), f64::NEG_INFINITY]))
    }

    fn wanted() -> Vec<u64> {
        [0.0, 2.5, f64::NAN, f64::NEG_INFINITY].map(f64::to_bits).to_vec()
    }

    #[test]
    fn floats_become_canonical_and_nulls_stay() {
        assert_eq!(bits(&canonicalize(&raw())), wanted());
        let with_null = arc(Float32Array::from(vec![Some(-0.0), None]));
        let canonical = canonicalize(&with_null);
        assert_eq!(canonical.as_primitive::<Float32Type>().value(0).to_bits(), 0);
        assert!(canonical.is_null(1));
    }

    #[test]
    fn nested_floats_become_canonical_under_slices() {
        let field = Arc::new(Field::new("v", DataType::Float64, true));
        let structs = arc(StructArray::new(vec![field.clone()].into(), vec![raw()], None));
        let canonical = canonicalize(&structs.slice(1, 3));
        assert_eq!(bits(canonical.as_struct().column(0)), wanted()[1..]);

        let offsets = OffsetBuffer::from_lengths([1, 2, 1]);
        let lists = arc(ListArray::new(field, offsets, raw(), None));
        let canonical = canonicalize(&lists.slice(1, 2));
        assert_eq!(bits(&canonical.as_list::<i32>().value(0)), wanted()[1..3]);

        let dictionary = arc(DictionaryArray::new(Int8Array::from(vec![0, 2]), raw()));
        let canonical = canonicalize(&dictionary);
        assert_eq!(bits(canonical.as_any_dictionary().values()), wanted());
    }

    #[test]
    fn a_canonical_array_is_returned_as_it_is() {
        for array in [canonicalize(&raw()), arc(Int8Array::from(vec![1]))] {
            assert!(Arc::ptr_eq(&array, &canonicalize(&array)));
        }
    }
}
