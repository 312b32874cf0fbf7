//! Floats as integers of the same order, for what DataFusion compares in the wrong one.
//!
//! DataFusion's MIN and MAX per group compare floats by `partial_cmp` and start at the greatest
//! finite number: a NaN is forgotten or wins by its place in the input, and the least of infinities
//! is finite. As integers they have one order, with NaN the greatest and −0.0 equal to 0.0.

use std::sync::{Arc, LazyLock};

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int32Type, Int64Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(OrderedBits { signature }))
});

/// From a float to its integer, and from such an integer back.
pub(super) fn ordered_bits(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(FUNCTION.clone(), vec![expr]))
}

/// The integer of a float type; `None` for other types.
pub(super) fn integer_of(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Float32 => Some(DataType::Int32),
        DataType::Float64 => Some(DataType::Int64),
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OrderedBits {
    signature: Signature,
}

impl ScalarUDFImpl for OrderedBits {
    fn name(&self) -> &'static str {
        "ordered_bits"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [DataType::Float32] => Ok(DataType::Int32),
            [DataType::Float64] => Ok(DataType::Int64),
            [DataType::Int32] => Ok(DataType::Float32),
            [DataType::Int64] => Ok(DataType::Float64),
            other => plan_err!("ordered bits of {other:?}"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = &*args.args else { return plan_err!("ordered bits of {:?}", args.args) };
        let column = deltaic_batch::canonicalize(&value.to_array(args.number_rows)?);
        Ok(ColumnarValue::Array(match column.data_type() {
            DataType::Float32 => {
                Arc::new((column.as_primitive::<Float32Type>()).unary::<_, Int32Type>(order_32))
            }
            DataType::Float64 => {
                Arc::new((column.as_primitive::<Float64Type>()).unary::<_, Int64Type>(order_64))
            }
            DataType::Int32 => Arc::new(
                (column.as_primitive::<Int32Type>())
                    .unary::<_, Float32Type>(|v| f32::from_bits(flip_32(v).cast_unsigned())),
            ),
            DataType::Int64 => Arc::new(
                (column.as_primitive::<Int64Type>())
                    .unary::<_, Float64Type>(|v| f64::from_bits(flip_64(v).cast_unsigned())),
            ),
            other => return plan_err!("ordered bits of {other}"),
        }))
    }
}

fn order_32(canonical: f32) -> i32 {
    flip_32(canonical.to_bits().cast_signed())
}

fn order_64(canonical: f64) -> i64 {
    flip_64(canonical.to_bits().cast_signed())
}

/// The bits of a negative number but its sign, which makes the greater magnitude the lesser integer.
fn flip_32(bits: i32) -> i32 {
    if bits < 0 { bits ^ i32::MAX } else { bits }
}

fn flip_64(bits: i64) -> i64 {
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_the_order_of_their_floats() {
        let floats = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.0,
            -5e-324,
            0.0,
            5e-324,
            1.0,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(floats.map(order_64).is_sorted_by(|a, b| a < b));
        let floats_32 = [f32::NEG_INFINITY, f32::MIN, -1.0, 0.0, f32::MAX, f32::INFINITY, f32::NAN];
        assert!(floats_32.map(order_32).is_sorted_by(|a, b| a < b));
        for value in floats {
            assert_eq!(
                f64::from_bits(flip_64(order_64(value)).cast_unsigned()).to_bits(),
                value.to_bits()
            );
        }
    }
}
