//! Counts and ranks as BIGINT.
//!
//! DataFusion types row numbers, ranks, and some counts and lengths as unsigned. Neither Spark nor
//! Delta has such a type, and arithmetic of one with a BIGINT makes a DECIMAL(20,0). Calls of these
//! functions are cast, or wrapped, before anything is computed from their type.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, WindowFunction, WindowFunctionParams,
};
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawAggregateExpr, RawWindowExpr,
};
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature,
};

/// Aggregate and window functions with an unsigned result.
const CALLS: [&str; 6] =
    ["row_number", "rank", "dense_rank", "ntile", "approx_distinct", "regr_count"];

/// Scalar functions with an unsigned result, or a list of such.
const SCALARS: [&str; 6] = [
    "array_length",
    "array_ndims",
    "array_dims",
    "array_position",
    "array_positions",
    "cardinality",
];

/// Casts the results of aggregate and window functions; asked before DataFusion's planners.
#[derive(Debug)]
pub(crate) struct SignedCalls;

impl ExprPlanner for SignedCalls {
    fn plan_aggregate(&self, raw: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        if !CALLS.contains(&raw.func.name()) {
            return Ok(PlannerResult::Original(raw));
        }
        let RawAggregateExpr { func, args, distinct, filter, order_by, null_treatment } = raw;
        let params = AggregateFunctionParams { args, distinct, filter, order_by, null_treatment };
        Ok(PlannerResult::Planned(bigint(Expr::AggregateFunction(AggregateFunction {
            func,
            params,
        }))))
    }

    fn plan_window(&self, raw: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        if !CALLS.contains(&raw.func_def.name()) {
            return Ok(PlannerResult::Original(raw));
        }
        let params = WindowFunctionParams {
            args: raw.args,
            partition_by: raw.partition_by,
            order_by: raw.order_by,
            window_frame: raw.window_frame,
            filter: raw.filter,
            null_treatment: raw.null_treatment,
            distinct: raw.distinct,
        };
        let call = WindowFunction { fun: raw.func_def, params };
        Ok(PlannerResult::Planned(bigint(Expr::from(call))))
    }
}

fn bigint(expr: Expr) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), DataType::Int64))
}

/// Puts a signed function in the place of each scalar function with an unsigned result.
pub(crate) fn register(state: &mut SessionState) -> Result<()> {
    for name in SCALARS {
        let inner = state.udf(name)?;
        let function = SignedFunction { inner };
        state.register_udf(Arc::new(ScalarUDF::new_from_impl(function)))?;
    }
    Ok(())
}

/// A function whose result is cast.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SignedFunction {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for SignedFunction {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(signed(&self.inner.return_type(arg_types)?))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = self.inner.return_field_from_args(args)?;
        let data_type = signed(field.data_type());
        Ok(Arc::new(field.as_ref().clone().with_data_type(data_type)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let data_type = args.return_field.data_type().clone();
        let cast = |array: &ArrayRef| arrow::compute::cast(array, &data_type);
        // Not by way of `ScalarUDF`, which would miss the type that is promised here.
        Ok(match self.inner.inner().invoke_with_args(args)? {
            ColumnarValue::Array(array) => ColumnarValue::Array(cast(&array)?),
            ColumnarValue::Scalar(value) => {
                let array = cast(&value.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)
            }
        })
    }
}

/// The type with BIGINT in the place of every unsigned integer.
fn signed(data_type: &DataType) -> DataType {
    let element = |field: &FieldRef| -> FieldRef {
        let data_type = signed(field.data_type());
        Arc::new(Field::clone(field).with_data_type(data_type))
    };
    match data_type {
        unsigned if unsigned.is_unsigned_integer() => DataType::Int64,
        DataType::List(field) => DataType::List(element(field)),
        DataType::LargeList(field) => DataType::LargeList(element(field)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use arrow::datatypes::TimeUnit;
    use datafusion::logical_expr::function::WindowUDFFieldArgs;
    use datafusion::logical_expr::type_coercion::functions::{UDFCoercionExt, fields_with_udf};

    use super::*;
    use crate::{Session, SessionOptions};

    /// Arguments to ask functions with.
    fn arguments() -> Vec<Vec<DataType>> {
        let list = |element| DataType::new_list(element, true);
        let one = [
            DataType::Int32,
            DataType::Int64,
            DataType::Float64,
            DataType::Decimal128(10, 2),
            DataType::Utf8,
            DataType::Binary,
            DataType::Boolean,
            DataType::Date32,
            DataType::Timestamp(TimeUnit::Microsecond, None),
            list(DataType::Int64),
            list(list(DataType::Int64)),
        ];
        let mut all = vec![Vec::new()];
        all.extend(one.iter().map(|a| vec![a.clone()]));
        all.extend(one.iter().flat_map(|a| one.iter().map(|b| vec![a.clone(), b.clone()])));
        all.push(vec![DataType::Utf8; 3]);
        all.push(vec![DataType::Int64; 3]);
        all
    }

    /// The arguments that a function takes, as it coerces them.
    fn taken<F: UDFCoercionExt>(function: &F) -> Vec<Vec<FieldRef>> {
        let fields = |types: Vec<DataType>| -> Vec<FieldRef> {
            types.into_iter().map(|t| Field::new("x", t, true).into()).collect()
        };
        let coerced = |types| fields_with_udf(&fields(types), function).ok();
        let is_signed = |fields: &Vec<FieldRef>| {
            fields.iter().all(|field| signed(field.data_type()) == *field.data_type())
        };
        arguments().into_iter().filter_map(coerced).filter(is_signed).collect()
    }

    fn types(fields: &[FieldRef]) -> Vec<DataType> {
        fields.iter().map(|field| field.data_type().clone()).collect()
    }

    #[test]
    fn no_function_of_signed_arguments_is_unsigned() {
        let session = Session::try_new(SessionOptions::default()).unwrap();
        let mut unsigned = BTreeSet::new();
        let mut note = |name: &str, result: Result<DataType>| {
            if result.is_ok_and(|result| signed(&result) != result) {
                unsigned.insert(name.to_owned());
            }
        };
        for function in session.state.scalar_functions().values() {
            for fields in taken(function.as_ref()) {
                note(function.name(), function.return_type(&types(&fields)));
            }
        }
        for function in session.state.aggregate_functions().values() {
            for fields in taken(function.as_ref()) {
                note(function.name(), function.return_type(&types(&fields)));
            }
        }
        for function in session.state.window_functions().values() {
            for fields in taken(function.as_ref()) {
                let field = function.field(WindowUDFFieldArgs::new(&fields, "x"));
                note(function.name(), field.map(|field| field.data_type().clone()));
            }
        }
        // The casts take care of these.
        assert_eq!(unsigned, CALLS.into_iter().map(str::to_owned).collect());
    }
}
