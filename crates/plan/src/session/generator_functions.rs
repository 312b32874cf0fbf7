//! Lists as the generators need them: `__outer` with a NULL where nothing is, `__positions` and
//! `__ordinals` with the places of the elements, from 0 and from 1.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, Int64Array, ListArray, UInt32Array, new_empty_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, plan_err};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Adds the functions.
pub(super) fn register(state: &mut SessionState) -> Result<()> {
    for what in [What::Outer, What::Positions, What::Ordinals] {
        let signature = Signature::any(1, Volatility::Immutable);
        state.register_udf(Arc::new(ScalarUDF::new_from_impl(OfList { what, signature })))?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    Outer,
    Positions,
    Ordinals,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfList {
    what: What,
    signature: Signature,
}

impl OfList {
    /// Type of the elements of the result.
    fn element(&self, of: &FieldRef) -> FieldRef {
        let data_type = match self.what {
            What::Outer => of.data_type().clone(),
            What::Positions => DataType::Int32,
            What::Ordinals => DataType::Int64,
        };
        Arc::new(Field::new_list_field(data_type, true))
    }
}

impl ScalarUDFImpl for OfList {
    fn name(&self) -> &str {
        match self.what {
            What::Outer => "__outer",
            What::Positions => "__positions",
            What::Ordinals => "__ordinals",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [
                DataType::List(element)
                | DataType::LargeList(element)
                | DataType::FixedSizeList(element, _),
            ] => Ok(DataType::List(self.element(element))),
            [DataType::Map(_, _)] => {
                plan_err!("a map is exploded into two columns: name both, as in AS (key, value)")
            }
            other => plan_err!("only arrays and maps can be exploded, not {other:?}"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = ColumnarValue::values_to_arrays(&args.args)?[0].clone();
        let element = match array.data_type() {
            DataType::List(element)
            | DataType::LargeList(element)
            | DataType::FixedSizeList(element, _) => element.clone(),
            other => return plan_err!("{other} is no list"),
        };
        let lists = cast(&array, &DataType::List(element.clone()))?;
        let lists = lists.as_list::<i32>();
        let result = match self.what {
            What::Outer => outer(lists, &self.element(&element))?,
            What::Positions => numbered(lists, self.element(&element), |lengths| {
                let places =
                    lengths.flat_map(|length| 0..i32::try_from(length).unwrap_or(i32::MAX));
                Arc::new(Int32Array::from_iter_values(places))
            })?,
            What::Ordinals => numbered(lists, self.element(&element), |lengths| {
                let places =
                    lengths.flat_map(|length| 1..=i64::try_from(length).unwrap_or(i64::MAX));
                Arc::new(Int64Array::from_iter_values(places))
            })?,
        };
        Ok(ColumnarValue::Array(Arc::new(result)))
    }
}

/// How many elements a list has; none if it is NULL.
fn length(lists: &ListArray, row: usize) -> usize {
    if lists.is_null(row) { 0 } else { usize::try_from(lists.value_length(row)).unwrap_or(0) }
}

fn outer(lists: &ListArray, element: &FieldRef) -> Result<ListArray> {
    let mut places: Vec<Option<u32>> = Vec::with_capacity(lists.values().len());
    let mut lengths = Vec::with_capacity(lists.len());
    for row in 0..lists.len() {
        let start = u32::try_from(lists.value_offsets()[row]).unwrap_or(0);
        match length(lists, row) {
            0 => places.push(None),
            count => places.extend((start..).take(count).map(Some)),
        }
        lengths.push(length(lists, row).max(1));
    }
    let values = match lists.values().is_empty() {
        true => arrow::array::new_null_array(element.data_type(), places.len()),
        false => take(lists.values(), &UInt32Array::from(places), None)?,
    };
    Ok(ListArray::try_new(element.clone(), OffsetBuffer::from_lengths(lengths), values, None)?)
}

fn numbered(
    lists: &ListArray,
    element: FieldRef,
    numbers: impl Fn(&mut dyn Iterator<Item = usize>) -> ArrayRef,
) -> Result<ListArray> {
    let lengths = || (0..lists.len()).map(|row| length(lists, row));
    let values = match lists.is_empty() {
        true => new_empty_array(element.data_type()),
        false => numbers(&mut lengths()),
    };
    let offsets = OffsetBuffer::from_lengths(lengths());
    Ok(ListArray::try_new(element, offsets, values, lists.nulls().cloned())?)
}
