//! Equality of pairs of rows, column by column in typed loops. `NULL` equals `NULL`; floats are
//! canonical, so equal bits mean equal values.

use crate::{Error, Result, RowEncoder};
use arrow::array::{
    Array, ArrayAccessor, ArrayRef, ArrowNativeTypeOp, AsArray, UInt32Array,
    downcast_primitive_array,
};
use arrow::datatypes::DataType;

/// For each `i`, whether row `at_left[i]` of `left` equals row `at_right[i]` of `right`. Rows
/// without columns are equal, `NULL` equals `NULL`, and floats must be canonical.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, StringArray};
///
/// let names: ArrayRef = Arc::new(StringArray::from(vec![Some("ann"), None, Some("ann")]));
/// let names = [names];
/// let equal = deltaic_batch::equal_pairs(&names, &[0, 0, 1], &names, &[2, 1, 1])?;
/// assert_eq!(equal, [true, false, true]);
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
pub fn equal_pairs(
    left: &[ArrayRef],
    at_left: &[u32],
    right: &[ArrayRef],
    at_right: &[u32],
) -> Result<Vec<bool>> {
    let mut equal = vec![true; at_left.len()];
    for (left, right) in left.iter().zip(right) {
        if left.data_type() != right.data_type() {
            let (left, right) = (left.data_type(), right.data_type());
            return Err(Error::internal("KEY_TYPE", format!("{left} compared with {right}")));
        }
        let pairs = Pairs { at_left, at_right, equal: &mut equal };
        compare_column(left, right, pairs)?;
    }
    Ok(equal)
}

struct Pairs<'a> {
    at_left: &'a [u32],
    at_right: &'a [u32],
    equal: &'a mut [bool],
}

impl Pairs<'_> {
    fn narrow(self, same: impl Fn(usize, usize) -> bool) {
        let pairs = self.at_left.iter().zip(self.at_right);
        for (equal, (&l, &r)) in self.equal.iter_mut().zip(pairs) {
            *equal = *equal && same(l as usize, r as usize);
        }
    }

    fn values<A: ArrayAccessor>(self, left: A, right: A, same: impl Fn(A::Item, A::Item) -> bool) {
        if left.null_count() == 0 && right.null_count() == 0 {
            self.narrow(|l, r| same(left.value(l), right.value(r)));
        } else {
            self.narrow(|l, r| match (left.is_null(l), right.is_null(r)) {
                (false, false) => same(left.value(l), right.value(r)),
                (left, right) => left && right,
            });
        }
    }
}

/// `left` and `right` are of one type.
fn compare_column(left: &ArrayRef, right: &ArrayRef, pairs: Pairs<'_>) -> Result<()> {
    macro_rules! compare {
        ($view:expr) => {{
            let view = $view;
            pairs.values(view(left), view(right), |l, r| l == r);
        }};
    }
    match left.data_type() {
        DataType::Boolean => compare!(ArrayRef::as_boolean),
        DataType::Utf8 => compare!(ArrayRef::as_string::<i32>),
        DataType::LargeUtf8 => compare!(ArrayRef::as_string::<i64>),
        DataType::Utf8View => compare!(ArrayRef::as_string_view),
        DataType::Binary => compare!(ArrayRef::as_binary::<i32>),
        DataType::LargeBinary => compare!(ArrayRef::as_binary::<i64>),
        DataType::BinaryView => compare!(ArrayRef::as_binary_view),
        DataType::FixedSizeBinary(_) => compare!(ArrayRef::as_fixed_size_binary),
        _ => {
            let (encoded_left, encoded_right) = (left, right);
            downcast_primitive_array!(
                (left, right) => pairs.values(left, right, |l, r| l.is_eq(r)),
                _ => return compare_encoded(encoded_left, encoded_right, pairs),
            );
        }
    }
    Ok(())
}

/// Any other type, through its canonical row bytes.
fn compare_encoded(left: &ArrayRef, right: &ArrayRef, pairs: Pairs<'_>) -> Result<()> {
    let encode = |array: &ArrayRef, at: &[u32]| -> Result<RowEncoder> {
        let mut encoder = RowEncoder::try_new(&[array.data_type().clone()])?;
        encoder.encode(&[arrow::compute::take(array, &UInt32Array::from(at.to_vec()), None)?])?;
        Ok(encoder)
    };
    let (left, right) = (encode(left, pairs.at_left)?, encode(right, pairs.at_right)?);
    let rows = left.rows().iter().zip(right.rows().iter());
    for (equal, (left, right)) in pairs.equal.iter_mut().zip(rows) {
        *equal = *equal && left.data() == right.data();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float64Array, Int64Array, StringArray, StructArray};
    use arrow::compute::cast;
    use arrow::datatypes::Field;
    use std::sync::Arc;

    #[test]
    fn pairs_of_every_layout_are_compared() {
        let text: ArrayRef = Arc::new(StringArray::from(vec![Some("1"), None, Some("2")]));
        let number: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(2)]));
        let float: ArrayRef = Arc::new(Float64Array::from(vec![Some(f64::NAN), None, Some(2.0)]));
        let field = Arc::new(Field::new("a", DataType::Utf8, true));
        let nested: ArrayRef = Arc::new(StructArray::from(vec![(field, text.clone())]));
        let dictionary = DataType::Dictionary(DataType::Int8.into(), DataType::Utf8.into());
        let mut arrays = vec![float, nested, cast(&text, &dictionary).unwrap()];
        for to in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, DataType::BinaryView] {
            arrays.push(cast(&text, &to).unwrap());
        }
        for to in [DataType::Int64, DataType::Boolean, DataType::Date32] {
            arrays.push(cast(&cast(&number, &DataType::Int32).unwrap(), &to).unwrap());
        }
        for array in arrays {
            let sliced = [array.slice(1, 2)];
            let equal = equal_pairs(
                std::slice::from_ref(&array),
                &[0, 1, 1, 2, 0],
                &sliced,
                &[0, 0, 1, 1, 1],
            );
            let same = *array.data_type() == DataType::Boolean;
            assert_eq!(equal.unwrap(), [false, true, false, true, same], "{}", array.data_type());
        }
    }

    #[test]
    fn types_must_agree() {
        let number: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let text: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
        assert_eq!(equal_pairs(&[number], &[0], &[text], &[0]).unwrap_err().code(), "KEY_TYPE");
    }
}
