//! Schema of a dataset: declared, or the merge of its flows' schemas; the two compared.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Error, Result};
use deltaic_plan::Session;
use deltaic_sql::{Column, DatasetKind};
use deltaic_table::table_schema;

use super::bind::BoundFlow;
use super::cdc;
use super::definitions::{DatasetDef, FlowDef};
use super::places::{in_text, location};
use deltaic_plan::type_name;

/// The schema as it is stored; `None` if it is not known since not all flows are (`complete`) and the columns are
/// not declared.
pub(super) fn of_dataset(
    definition: &DatasetDef,
    flows: &[(&FlowDef, &BoundFlow)],
    complete: bool,
    session: &Session,
) -> Result<Option<SchemaRef>, Vec<Error>> {
    let schema = declared_or_inferred(definition, flows, complete, session)?;
    match schema {
        Some(schema) if !definition.is_view() => {
            let at = || location(&definition.file, definition.ast.name.span);
            let stored = table_schema(&schema).map_err(|e| {
                let column = e.get_object().map_or(String::new(), |c| format!("column '{c}': "));
                let error = Error::new(e.class(), e.code(), format!("{column}{}", e.message()));
                let error = error.object(&definition.name).at(at());
                vec![match e.get_hint() {
                    Some(hint) => error.hint(hint),
                    None => error,
                }]
            })?;
            Ok(Some(stored))
        }
        other => Ok(other),
    }
}

fn declared_or_inferred(
    definition: &DatasetDef,
    flows: &[(&FlowDef, &BoundFlow)],
    complete: bool,
    session: &Session,
) -> Result<Option<SchemaRef>, Vec<Error>> {
    let typed = definition.ast.columns.iter().all(|c| !c.data_type.is_empty());
    let declared = match definition.ast.columns.is_empty() || !typed {
        true => None,
        false => Some(declared(definition, session)?),
    };
    let inferred = merge(definition, flows)?;
    let incomplete = !complete || flows.is_empty();
    let Some(declared) = declared else {
        if incomplete {
            return Ok(None);
        }
        check_names(definition, &inferred)?;
        return Ok(Some(inferred));
    };
    if incomplete {
        return Ok(Some(declared));
    }
    let cdc = flows.iter().any(|(_, f)| f.cdc.is_some());
    compare(definition, &declared, &inferred, cdc)?;
    // The rows of an AUTO CDC target are in the order of its source.
    Ok(Some(if cdc { inferred } else { declared }))
}

fn incompatible(definition: &DatasetDef, column: &Column, message: String) -> Error {
    Error::user("USER_SPECIFIED_AND_INFERRED_SCHEMA_NOT_COMPATIBLE", message)
        .object(&definition.name)
        .at(location(&definition.file, column.name.span))
}

/// The declared columns as a schema.
fn declared(definition: &DatasetDef, session: &Session) -> Result<SchemaRef, Vec<Error>> {
    let (mut fields, mut errors) = (Vec::<Field>::new(), Vec::new());
    for column in &definition.ast.columns {
        let name = &column.name.value;
        let ddl = format!("`{}` {}", name.replace('`', "``"), column.data_type);
        match session.parse_schema(&ddl) {
            Ok(schema) if schema.fields().len() == 1 => {
                if fields.iter().any(|f| f.name().eq_ignore_ascii_case(name)) {
                    let message = format!("column '{name}' is declared twice");
                    errors.push(
                        Error::user("COLUMN_ALREADY_EXISTS", message)
                            .object(&definition.name)
                            .at(location(&definition.file, column.name.span)),
                    );
                }
                let data_type = schema.field(0).data_type().clone();
                fields.push(Field::new(name, data_type, !column.not_null));
            }
            Ok(_) => errors.push(incompatible(definition, column, "no single column".into())),
            Err(e) => {
                // The place is the column's: the type's own text is too short to be lost in.
                let e = Error::new(e.class(), e.code(), e.message());
                errors.push(in_text(&e, &column.name, &definition.file, &definition.name));
            }
        }
    }
    if errors.is_empty() { Ok(Arc::new(Schema::new(fields))) } else { Err(errors) }
}

/// All columns of all flows, nullable.
fn merge(
    definition: &DatasetDef,
    flows: &[(&FlowDef, &BoundFlow)],
) -> Result<SchemaRef, Vec<Error>> {
    let mut fields: Vec<Field> = Vec::new();
    for (flow, bound) in flows {
        let schema = match &bound.cdc {
            Some(plan) => cdc::target_schema(plan, &bound.schema),
            None => bound.schema.clone(),
        };
        for field in schema.fields() {
            let same = |f: &&mut Field| f.name().eq_ignore_ascii_case(field.name());
            let Some(known) = fields.iter_mut().find(same) else {
                fields.push(Field::new(field.name(), field.data_type().clone(), true));
                continue;
            };
            let (a, b) = (known.data_type(), field.data_type());
            let wider = if assignable(b, a) {
                a.clone()
            } else if assignable(a, b) {
                b.clone()
            } else {
                let message = format!(
                    "column '{}' is {} in one flow and {} in flow '{}'",
                    field.name(),
                    type_name(a),
                    type_name(b),
                    flow.name
                );
                let error = Error::user("UNABLE_TO_INFER_PIPELINE_TABLE_SCHEMA", message)
                    .object(&definition.name)
                    .at(location(&flow.file, flow.span))
                    .hint("cast it to one type in both, or declare the table's columns");
                return Err(vec![error]);
            };
            *known = Field::new(known.name(), wider, true);
        }
    }
    // A column that is NULL everywhere has no type of its own.
    for field in &mut fields {
        if *field.data_type() == DataType::Null
            && definition.ast.kind == DatasetKind::StreamingTable
        {
            let message = format!("column '{}' is always NULL and has no type", field.name());
            let error = Error::user("UNABLE_TO_INFER_PIPELINE_TABLE_SCHEMA", message)
                .object(&definition.name)
                .at(location(&definition.file, definition.ast.name.span))
                .hint("write CAST(NULL AS STRING), or declare the table's columns");
            return Err(vec![error]);
        }
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// Columns without types: their names are those of the query.
fn check_names(definition: &DatasetDef, inferred: &Schema) -> Result<(), Vec<Error>> {
    let unknown = |c: &&Column| find(inferred, &c.name.value).is_none();
    match definition.ast.columns.iter().find(unknown) {
        None => Ok(()),
        Some(column) => {
            let message = format!("the query has no column '{}'", column.name.value);
            let hint = "name it with AS in the query: columns are matched by name";
            Err(vec![incompatible(definition, column, message).hint(hint)])
        }
    }
}

fn find<'a>(schema: &'a Schema, name: &str) -> Option<&'a Field> {
    (schema.fields().iter()).find(|f| f.name().eq_ignore_ascii_case(name)).map(|f| f.as_ref())
}

fn compare(
    definition: &DatasetDef,
    declared: &Schema,
    inferred: &Schema,
    cdc: bool,
) -> Result<(), Vec<Error>> {
    let mut errors = Vec::new();
    let all_needed = cdc || definition.ast.kind != DatasetKind::StreamingTable;
    for (column, field) in definition.ast.columns.iter().zip(declared.fields()) {
        let name = field.name();
        match find(inferred, name) {
            None if all_needed || column.not_null => {
                let message = format!("column '{name}' is declared but no query yields it");
                errors.push(incompatible(definition, column, message));
            }
            None => {}
            Some(found) => {
                let (from, to) = (found.data_type(), field.data_type());
                let fits = if cdc { same_type(from, to) } else { assignable(from, to) };
                if !fits {
                    let (to, from) = (type_name(to), type_name(from));
                    let message =
                        format!("column '{name}' is declared as {to}, but the query yields {from}");
                    let hint = format!("cast it in the query, or declare it as {from}");
                    errors.push(incompatible(definition, column, message).hint(hint));
                }
            }
        }
    }
    for field in inferred.fields() {
        let added = cdc && cdc::RESERVED.contains(&field.name().as_str());
        if find(declared, field.name()).is_none() && !added {
            let message =
                format!("the query yields column '{}', which is not declared", field.name());
            let first = &definition.ast.columns[0];
            let hint = "declare it, or leave it out of the query";
            errors.push(incompatible(definition, first, message).hint(hint));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Equal but for nullability inside and the layout of strings.
fn same_type(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::Struct(a), DataType::Struct(b)) => {
            a.len() == b.len()
                && (a.iter().zip(b))
                    .all(|(a, b)| a.name() == b.name() && same_type(a.data_type(), b.data_type()))
        }
        (DataType::List(a), DataType::List(b)) => same_type(a.data_type(), b.data_type()),
        (DataType::Map(a, _), DataType::Map(b, _)) => same_type(a.data_type(), b.data_type()),
        _ => a == b,
    }
}

/// Every value of `from` can be stored as `to` without loss.
pub(super) fn assignable(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    if same_type(from, to) || *from == T::Null {
        return true;
    }
    if let (Some(from), Some(to)) = (integer_digits(from), integer_digits(to)) {
        return from <= to;
    }
    match (from, to) {
        (_, T::Decimal128(p, s)) => match from {
            T::Decimal128(fp, fs) => {
                fs <= s && i16::from(*fp) - i16::from(*fs) <= i16::from(*p) - i16::from(*s)
            }
            _ => integer_digits(from).is_some_and(|d| d <= i16::from(*p) - i16::from(*s)),
        },
        (T::Float32 | T::Int8 | T::Int16 | T::Int32, T::Float64) => true,
        (T::Int8 | T::Int16, T::Float32) => true,
        (T::Date32, T::Timestamp(..)) => true,
        (T::Utf8 | T::LargeUtf8 | T::Utf8View, T::Utf8) => true,
        (T::Binary | T::LargeBinary | T::BinaryView, T::Binary) => true,
        _ => false,
    }
}

/// Decimal digits that any value of an integer type fits in.
fn integer_digits(data_type: &DataType) -> Option<i16> {
    match data_type {
        DataType::Int8 => Some(3),
        DataType::Int16 => Some(5),
        DataType::Int32 => Some(10),
        DataType::Int64 => Some(19),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_stored_without_loss() {
        use DataType as T;
        for (from, to, fits) in [
            (T::Int32, T::Int64, true),
            (T::Int64, T::Int32, false),
            (T::Int32, T::Decimal128(12, 2), true),
            (T::Int64, T::Decimal128(20, 2), false),
            (T::Decimal128(10, 2), T::Decimal128(12, 4), true),
            (T::Decimal128(10, 2), T::Decimal128(10, 3), false),
            (T::Decimal128(10, 2), T::Float64, false),
            (T::Float32, T::Float64, true),
            (T::Null, T::Boolean, true),
            (T::Utf8, T::Int32, false),
        ] {
            assert_eq!(assignable(&from, &to), fits, "{from} to {to}");
        }
    }
}
