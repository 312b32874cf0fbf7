//! Fields of structs, without regard to case: `s.Field`, `s['FIELD']`.

use arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, TableReference};
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawFieldAccessExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, GetFieldAccess};

/// Resolves the names of struct fields to their spelling; asked before DataFusion's planners.
#[derive(Debug)]
pub(crate) struct StructFields;

impl ExprPlanner for StructFields {
    fn plan_compound_identifier(
        &self,
        field: &Field,
        qualifier: Option<&TableReference>,
        nested_names: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let mut expr = Expr::Column(Column::from((qualifier, field)));
        let mut data_type = field.data_type();
        for name in nested_names {
            let Some(found) = field_named(data_type, name) else {
                return Ok(PlannerResult::Original(Vec::new()));
            };
            expr = get_field(expr, found.name().clone());
            data_type = found.data_type();
        }
        Ok(PlannerResult::Planned(expr))
    }

    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        if let GetFieldAccess::NamedStructField { name: ScalarValue::Utf8(Some(name)) } =
            &access.field_access
        {
            let data_type = access.expr.get_type(schema)?;
            if let Some(found) = field_named(&data_type, name) {
                return Ok(PlannerResult::Planned(get_field(access.expr, found.name().clone())));
            }
        }
        Ok(PlannerResult::Original(access))
    }
}

/// The field of a struct with this name, exactly or but for case.
fn field_named<'a>(data_type: &'a DataType, name: &str) -> Option<&'a Field> {
    let DataType::Struct(fields) = data_type else { return None };
    let exact = fields.iter().find(|field| field.name() == name);
    let similar = || fields.iter().find(|field| field.name().to_lowercase() == name.to_lowercase());
    exact.or_else(similar).map(AsRef::as_ref)
}
