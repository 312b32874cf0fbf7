//! `x AT TIME ZONE 'zone'` as SQL means it, in both directions.
//!
//! An instant becomes the wall-clock time of the zone (without zone); a wall-clock time of the zone
//! becomes the instant. DataFusion knows the second direction only. The parsed operator is rewritten to
//! a function, which becomes casts when the types are known.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{Result, ScalarValue, internal_err, plan_err};
use datafusion::functions::datetime::to_local_time;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::{self, FunctionArg, FunctionArgExpr, VisitMut, VisitorMut};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

const NAME: &str = "at_time_zone";

/// Rewrites the operator to the function.
pub(crate) fn mark(node: &mut impl VisitMut) {
    let _ = node.visit(&mut Marker);
}

struct Marker;

impl VisitorMut for Marker {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::AtTimeZone { timestamp, time_zone } = expr
            && let Some(call) = call(timestamp.as_ref().clone(), time_zone.as_ref().clone())
        {
            *expr = call;
        }
        ControlFlow::Continue(())
    }
}

fn call(timestamp: ast::Expr, time_zone: ast::Expr) -> Option<ast::Expr> {
    let template = format!("{NAME}(1, 2)");
    let mut parser = Parser::new(&GenericDialect {}).try_with_sql(&template).ok()?;
    let mut call = parser.parse_expr().ok()?;
    let ast::Expr::Function(function) = &mut call else { return None };
    let ast::FunctionArguments::List(list) = &mut function.args else { return None };
    for (slot, arg) in list.args.iter_mut().zip([timestamp, time_zone]) {
        *slot = FunctionArg::Unnamed(FunctionArgExpr::Expr(arg));
    }
    Some(call)
}

/// The function.
pub(crate) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(AtTimeZone {
        signature: Signature::user_defined(Volatility::Immutable),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AtTimeZone {
    signature: Signature,
}

fn wall_clock() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

fn instant(zone: &str) -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into()))
}

fn is_instant(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(_, Some(_)))
}

impl ScalarUDFImpl for AtTimeZone {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let [timestamp, _] = arg_types else {
            return plan_err!("AT TIME ZONE takes a timestamp and a zone");
        };
        let timestamp = if is_instant(timestamp) { timestamp.clone() } else { wall_clock() };
        Ok(vec![timestamp, DataType::Utf8])
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        internal_err!("the type of {NAME} depends on its argument's field")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(timestamp) = args.arg_fields.first() else {
            return plan_err!("AT TIME ZONE takes a timestamp and a zone");
        };
        let data_type =
            if is_instant(timestamp.data_type()) { wall_clock() } else { instant("UTC") };
        Ok(Arc::new(Field::new(NAME, data_type, timestamp.is_nullable())))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [timestamp, zone] = args.as_slice() else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        let Expr::Literal(ScalarValue::Utf8(Some(zone)), _) = zone else {
            return plan_err!("the zone of AT TIME ZONE must be a text such as 'Europe/Berlin'");
        };
        let cast = |expr: Expr, to: DataType| Expr::Cast(Cast::new(Box::new(expr), to));
        let zoned = cast(timestamp.clone(), instant(zone));
        let simplified = match is_instant(&info.get_data_type(timestamp)?) {
            true => to_local_time().call(vec![zoned]),
            false => cast(zoned, instant("UTC")),
        };
        Ok(ExprSimplifyResult::Simplified(simplified))
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        plan_err!("the zone of AT TIME ZONE must be a text such as 'Europe/Berlin'")
    }
}
