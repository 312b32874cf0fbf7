//! AVG of decimals, in a type that has room for every average.
//!
//! DataFusion adds four digits to the scale, also where that takes them from the integer part: an
//! average of DECIMAL(38,37) would be a DECIMAL(38,38), which does not hold 9.9. An average is no greater
//! than the greatest value, so a result with as many integer digits as the argument always fits.

use std::sync::Arc;

use arrow::datatypes::{
    DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION,
    DECIMAL256_MAX_PRECISION, DataType, FieldRef,
};
use datafusion::common::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature,
};

/// Digits that an average has more than its argument, where there is room.
const MORE_DIGITS: u8 = 4;

/// Puts the function in the place of DataFusion's.
pub(crate) fn register(state: &mut SessionState) -> Result<()> {
    let inner = state.udaf("avg")?;
    state.register_udaf(Arc::new(AggregateUDF::new_from_impl(Average { inner })))?;
    Ok(())
}

/// DataFusion's function with another type of result.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Average {
    inner: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for Average {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [DataType::Decimal32(p, s)] => {
                let (p, s) = roomy(*p, *s, DECIMAL32_MAX_PRECISION);
                Ok(DataType::Decimal32(p, s))
            }
            [DataType::Decimal64(p, s)] => {
                let (p, s) = roomy(*p, *s, DECIMAL64_MAX_PRECISION);
                Ok(DataType::Decimal64(p, s))
            }
            [DataType::Decimal128(p, s)] => {
                let (p, s) = roomy(*p, *s, DECIMAL128_MAX_PRECISION);
                Ok(DataType::Decimal128(p, s))
            }
            [DataType::Decimal256(p, s)] => {
                let (p, s) = roomy(*p, *s, DECIMAL256_MAX_PRECISION);
                Ok(DataType::Decimal256(p, s))
            }
            _ => self.inner.return_type(arg_types),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        self.inner.create_groups_accumulator(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// Precision and scale of an average: up to four more digits after the point, none less before it.
fn roomy(precision: u8, scale: i8, precision_max: u8) -> (u8, i8) {
    let more = MORE_DIGITS.min(precision_max.saturating_sub(precision));
    (precision + more, scale.saturating_add_unsigned(more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_has_the_integer_digits_of_its_argument() {
        assert_eq!(roomy(10, 2, 38), (14, 6));
        assert_eq!(roomy(36, 10, 38), (38, 12));
        assert_eq!(roomy(38, 37, 38), (38, 37));
        assert_eq!(roomy(18, 0, 18), (18, 0));
    }
}
