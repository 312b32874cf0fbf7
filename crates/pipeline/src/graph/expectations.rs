//! Conditions of expectations against the schema they see.

use arrow::datatypes::{DataType, SchemaRef};
use deltaic_batch::Error;
use deltaic_plan::{Session, TypedExpression};
use deltaic_sql::Expectation;

use super::bind::BoundFlow;
use super::definitions::{DatasetDef, FlowDef};
use super::places::{in_text, location};
use deltaic_plan::type_name;

/// Binds the expectations of a dataset.
pub(super) fn bind(
    definition: &DatasetDef,
    flows: &[(&FlowDef, &BoundFlow)],
    schema: &SchemaRef,
    session: &Session,
    errors: &mut Vec<Error>,
) -> Vec<(Expectation, TypedExpression)> {
    let events = flows.iter().find(|(_, f)| f.cdc.is_some()).map(|(_, f)| &f.schema);
    let wanted = definition.ast.expectations.clone();
    for (n, e) in wanted.iter().enumerate() {
        if wanted[..n].iter().any(|o| o.name.value.eq_ignore_ascii_case(&e.name.value)) {
            let message = format!("constraint '{}' is defined twice", e.name.value);
            let error = Error::user("PIPELINE_DUPLICATE_EXPECTATION", message);
            let at = location(&definition.file, e.name.span);
            errors.push(error.object(&definition.name).at(at));
        }
    }
    let schema = events.unwrap_or(schema);
    let differ = |(_, f): &(&FlowDef, &BoundFlow)| f.schema.fields() != schema.fields();
    if let (Some(first), Some((flow, _))) =
        (wanted.first().filter(|_| events.is_some()), flows.iter().find(|f| differ(f)))
    {
        let message = format!(
            "constraint '{}' sees the events, and those of flow '{}' have other columns",
            first.name.value, flow.name
        );
        let error = Error::user("UNSUPPORTED_FEATURE", message).object(&definition.name);
        let at = location(&definition.file, first.name.span);
        errors.push(error.at(at).hint("let all flows yield the same columns in the same order"));
        return Vec::new();
    }
    let mut bound = Vec::with_capacity(wanted.len());
    for expectation in wanted {
        match one(definition, &expectation, schema, session) {
            Ok(expression) => bound.push((expectation, expression)),
            Err(e) => errors.push(e),
        }
    }
    bound
}

fn one(
    definition: &DatasetDef,
    expectation: &Expectation,
    schema: &SchemaRef,
    session: &Session,
) -> Result<TypedExpression, Error> {
    let text = &expectation.condition;
    let expression = (session.expression(&text.value, schema))
        .map_err(|e| in_text(&e, text, &definition.file, &definition.name))?;
    if matches!(expression.field.data_type(), DataType::Boolean | DataType::Null) {
        return Ok(expression);
    }
    let message = format!(
        "the condition of constraint '{}' is {}, not BOOLEAN",
        expectation.name.value,
        type_name(expression.field.data_type())
    );
    Err(Error::user("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", message)
        .object(&definition.name)
        .at(location(&definition.file, text.span)))
}
