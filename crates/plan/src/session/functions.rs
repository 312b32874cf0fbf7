//! Functions beyond DataFusion's: Spark's, wherever DataFusion has none of that name.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, plan_err};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use super::{clock, generator_functions, time_zone};

/// Functions that take a date and a number.
const DATE_AND_NUMBER: [&str; 3] = ["date_add", "date_sub", "add_months"];

/// Adds Spark's functions; none replaces one of DataFusion's.
pub(crate) fn register(state: &mut SessionState) -> Result<()> {
    state.register_udf(Arc::new(time_zone::function()))?;
    state.register_udf(Arc::new(clock::function()))?;
    generator_functions::register(state)?;
    for function in datafusion_spark::all_default_scalar_functions() {
        if !state.scalar_functions().contains_key(function.name())
            && !function.aliases().iter().any(|name| state.scalar_functions().contains_key(name))
        {
            let function = match DATE_AND_NUMBER.contains(&function.name()) {
                true => Arc::new(DaysOrMonths::wrap(function)),
                false => function,
            };
            state.register_udf(function)?;
        }
    }
    for function in datafusion_spark::all_default_aggregate_functions() {
        if !state.aggregate_functions().contains_key(function.name())
            && !function.aliases().iter().any(|name| state.aggregate_functions().contains_key(name))
        {
            state.register_udaf(function)?;
        }
    }
    for function in datafusion_spark::all_default_window_functions() {
        if !state.window_functions().contains_key(function.name()) {
            state.register_udwf(function)?;
        }
    }
    Ok(())
}

/// A function of Spark's whose second argument is an INT there, but which DataFusion is given as
/// BIGINT for every literal: `date_add(d, 2)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DaysOrMonths {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl DaysOrMonths {
    fn wrap(inner: Arc<ScalarUDF>) -> ScalarUDF {
        let signature = Signature::user_defined(inner.signature().volatility);
        ScalarUDF::new_from_impl(Self { inner, signature })
    }
}

impl ScalarUDFImpl for DaysOrMonths {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types.len() {
            2 => Ok(vec![DataType::Date32, DataType::Int32]),
            n => plan_err!("{} takes a date and a number, not {n} arguments", self.name()),
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }
}
