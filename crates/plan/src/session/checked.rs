//! Arithmetic that fails instead of wrapping: integer `+ - *`, decimals, floats divided by zero.
//!
//! DataFusion's own `+` on integers wraps around, on decimals it may yield 39 digits where 38 are
//! promised, `1.0 / 0.0` is infinite. An analyzer rule puts
//! these functions in their place, after types have been coerced, so that incremental refresh,
//! batch runs and constant folding all agree. Integer `/ %` are checked by Arrow.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{ArrowPrimitiveType, DataType, Decimal128Type, Float32Type, Float64Type};
use arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use super::intervals;

/// Which operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

impl Op {
    fn operator(self) -> Operator {
        match self {
            Self::Add => Operator::Plus,
            Self::Sub => Operator::Minus,
            Self::Mul => Operator::Multiply,
            Self::Div => Operator::Divide,
            Self::Rem => Operator::Modulo,
        }
    }

    fn function(self) -> &'static str {
        match self {
            Self::Add => "checked_add",
            Self::Sub => "checked_sub",
            Self::Mul => "checked_mul",
            Self::Div => "checked_div",
            Self::Rem => "checked_rem",
        }
    }
}

/// A checked binary operation on two numbers of one type, or two decimals.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    op: Op,
    name: &'static str,
    signature: Signature,
}

impl Checked {
    fn udf(op: Op) -> Arc<ScalarUDF> {
        let name = op.function();
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Self { op, name, signature }))
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(ToString::to_string).collect::<Vec<_>>().join(self.separator()))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let names: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(names.join(self.separator()))
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        let [left, right] = arg_types else {
            return datafusion::common::internal_err!("{} takes two arguments", self.name);
        };
        BinaryTypeCoercer::new(left, &self.op.operator(), right).get_result_type()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let [left, right] = args.args.as_slice() else {
            return datafusion::common::internal_err!("{} takes two arguments", self.name);
        };
        let rows = if scalar { 1 } else { args.number_rows };
        let (left, right) = (left.to_array(rows)?, right.to_array(rows)?);
        let result = match self.op {
            Op::Add => numeric::add(&left, &right)?,
            Op::Sub => numeric::sub(&left, &right)?,
            Op::Mul => numeric::mul(&left, &right)?,
            Op::Div => {
                refuse_zero(left.as_ref(), right.as_ref())?;
                numeric::div(&left, &right)?
            }
            Op::Rem => {
                refuse_zero(left.as_ref(), right.as_ref())?;
                numeric::rem(&left, &right)?
            }
        };
        if let Some(decimals) = result.as_primitive_opt::<Decimal128Type>() {
            decimals
                .validate_decimal_precision(decimals.precision())
                .map_err(|e| ArrowError::ArithmeticOverflow(e.to_string()))?;
        }
        Ok(match scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(result),
        })
    }
}

impl Checked {
    fn separator(&self) -> &'static str {
        match self.op {
            Op::Add => " + ",
            Op::Sub => " - ",
            Op::Mul => " * ",
            Op::Div => " / ",
            Op::Rem => " % ",
        }
    }
}

/// The function is one of the checked ones.
pub(crate) fn is_checked(name: &str) -> bool {
    operator(name).is_some()
}

/// The operator that a checked function stands for.
pub(crate) fn operator(name: &str) -> Option<Operator> {
    let all = [Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Rem];
    all.into_iter().find(|op| op.function() == name).map(Op::operator)
}

/// An error when a divisor is zero in a row whose both sides are values.
fn refuse_zero(left: &dyn Array, right: &dyn Array) -> Result<()> {
    let zero = match right.data_type() {
        DataType::Float32 => has_zero::<Float32Type>(left, right, 0.0),
        DataType::Float64 => has_zero::<Float64Type>(left, right, 0.0),
        _ => false,
    };
    match zero {
        true => Err(ArrowError::DivideByZero.into()),
        false => Ok(()),
    }
}

fn has_zero<T: ArrowPrimitiveType>(left: &dyn Array, right: &dyn Array, zero: T::Native) -> bool {
    let divisors = right.as_primitive::<T>();
    (divisors.values().iter().enumerate())
        .any(|(i, d)| *d == zero && divisors.is_valid(i) && left.is_valid(i))
}

/// The analyzer rule; runs after type coercion.
#[derive(Debug)]
pub(crate) struct CheckArithmetic;

impl AnalyzerRule for CheckArithmetic {
    fn name(&self) -> &str {
        "check_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            let mut schema = DFSchema::empty();
            for input in plan.inputs() {
                schema.merge(input.schema());
            }
            let preserver = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = preserver.save(&expr);
                let rewritten = rewrite(expr, &schema)?;
                Ok(match rewritten.transformed {
                    true => Transformed::yes(name.restore(rewritten.data)),
                    false => rewritten,
                })
            })?
            .map_data(LogicalPlan::recompute_schema)?
            .transform_data(intervals::sorted)
        })
        .map(|plan| plan.data)
    }
}

/// Puts checked functions in the place of operators.
pub(crate) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        Ok(match &expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let Some(op) = checked_op(*op, left, right, schema) else {
                    return intervals::by_length(expr, schema);
                };
                let args = vec![left.as_ref().clone(), right.as_ref().clone()];
                Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(
                    Checked::udf(op),
                    args,
                )))
            }
            Expr::Negative(inner) => match inner.get_type(schema) {
                Ok(data_type) if data_type.is_signed_integer() => {
                    let zero = ScalarValue::new_zero(&data_type)?;
                    let args = vec![Expr::Literal(zero, None), inner.as_ref().clone()];
                    Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(
                        Checked::udf(Op::Sub),
                        args,
                    )))
                }
                _ => Transformed::no(expr),
            },
            _ => return intervals::by_length(expr, schema),
        })
    })
}

fn checked_op(op: Operator, left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Op> {
    let operator = op;
    let op = match op {
        Operator::Plus => Op::Add,
        Operator::Minus => Op::Sub,
        Operator::Multiply => Op::Mul,
        Operator::Divide => Op::Div,
        Operator::Modulo => Op::Rem,
        _ => return None,
    };
    let (data_type, other) = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
    if let (DataType::Decimal128(..), DataType::Decimal128(..)) = (&data_type, &other) {
        // Below 38 digits the type of the result has room for every result.
        let result =
            BinaryTypeCoercer::new(&data_type, &operator, &other).get_result_type().ok()?;
        return matches!(result, DataType::Decimal128(38, _)).then_some(op);
    }
    if other != data_type {
        return None;
    }
    let wraps = data_type.is_integer() && matches!(op, Op::Add | Op::Sub | Op::Mul);
    let infinite = matches!(data_type, DataType::Float32 | DataType::Float64)
        && matches!(op, Op::Div | Op::Rem);
    (wraps || infinite).then_some(op)
}
