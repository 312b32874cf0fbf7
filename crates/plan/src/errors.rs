//! DataFusion's errors as ours: who is to blame, a stable code, the place in the text, a hint.

use std::fmt::Write as _;

use datafusion::common::{Column, DataFusionError, SchemaError};
use deltaic_batch::{Error, Location};

use crate::session::parse;

/// The error of planning a query.
pub(crate) fn planning(error: &DataFusionError) -> Error {
    let location = span_of(error);
    let mapped = plan_error(root(error));
    match location {
        Some(location) => mapped.at(location),
        None => mapped,
    }
}

/// The error of evaluating a planned expression or query.
pub(crate) fn execution(error: DataFusionError) -> Error {
    match root(&error) {
        DataFusionError::ArrowError(arrow, _) => arrow_error(arrow),
        DataFusionError::External(inner) => external(inner.as_ref()),
        DataFusionError::Execution(text) => Error::data(execution_code(text), text.clone()),
        DataFusionError::ResourcesExhausted(text) => {
            Error::new(deltaic_batch::ErrorClass::Data, "OUT_OF_MEMORY", text.clone())
        }
        _ => plan_error(root(&error)),
    }
}

/// Innermost error, without contexts, diagnostics and sharing.
fn root(error: &DataFusionError) -> &DataFusionError {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => root(inner),
        DataFusionError::Shared(inner) => root(inner),
        DataFusionError::Collection(all) => all.first().map_or(error, root),
        other => other,
    }
}

fn span_of(error: &DataFusionError) -> Option<Location> {
    match error {
        DataFusionError::Diagnostic(diagnostic, inner) => diagnostic
            .span
            .filter(|span| span.start.line > 0)
            .map(|span| Location {
                file: String::new(),
                line: span.start.line,
                column: span.start.column,
            })
            .or_else(|| span_of(inner)),
        DataFusionError::Context(_, inner) => span_of(inner),
        DataFusionError::Shared(inner) => span_of(inner),
        DataFusionError::Collection(all) => all.iter().find_map(span_of),
        _ => None,
    }
}

fn plan_error(error: &DataFusionError) -> Error {
    match error {
        DataFusionError::External(inner) => external(inner.as_ref()),
        DataFusionError::SchemaError(schema, _) => schema_error(schema),
        DataFusionError::SQL(parser, _) => parse::syntax(parser),
        DataFusionError::ArrowError(arrow, _) => arrow_error(arrow),
        DataFusionError::NotImplemented(text) => Error::user("UNSUPPORTED_FEATURE", text.clone()),
        DataFusionError::Plan(text) => plan_text(text),
        DataFusionError::Execution(text) => Error::user(execution_code(text), text.clone()),
        DataFusionError::Internal(text) => Error::internal("PLANNER", text.clone()),
        DataFusionError::Configuration(text) => Error::user("CONFIGURATION", text.clone()),
        other => Error::user("ANALYSIS_ERROR", other.strip_backtrace()),
    }
}

fn external(inner: &(dyn std::error::Error + Send + Sync + 'static)) -> Error {
    match inner.downcast_ref::<Error>() {
        Some(ours) => ours.clone(),
        None => Error::internal("PLANNER", inner.to_string()),
    }
}

fn arrow_error(arrow: &arrow::error::ArrowError) -> Error {
    use arrow::error::ArrowError as A;
    match arrow {
        A::ArithmeticOverflow(text) => Error::data("ARITHMETIC_OVERFLOW", text.clone())
            .hint("cast to a wider type, or use a try_ function for NULL"),
        A::DivideByZero => Error::data("DIVIDE_BY_ZERO", "division by zero")
            .hint("guard the divisor: x / NULLIF(y, 0)"),
        A::CastError(text) | A::ParseError(text) => {
            Error::data("CAST_INVALID_INPUT", text.clone()).hint("TRY_CAST gives NULL instead")
        }
        A::InvalidArgumentError(text) if text.contains("too large to store") => {
            Error::data("NUMERIC_VALUE_OUT_OF_RANGE", text.clone())
        }
        other => Error::internal("ARROW", other.to_string()),
    }
}

fn execution_code(text: &str) -> &'static str {
    let lower = text.to_lowercase();
    if lower.contains("overflow") {
        "ARITHMETIC_OVERFLOW"
    } else if lower.contains("zero") && lower.contains("divi") {
        "DIVIDE_BY_ZERO"
    } else if lower.contains("cast") || lower.contains("parsing") || lower.contains("parse") {
        "CAST_INVALID_INPUT"
    } else {
        "INVALID_VALUE"
    }
}

fn plan_text(text: &str) -> Error {
    let lower = text.to_lowercase();
    let code = if lower.contains("invalid function") || lower.contains("function not found") {
        "UNRESOLVED_ROUTINE"
    } else if lower.contains("group by") && lower.contains("must") {
        "MISSING_AGGREGATION"
    } else if lower.contains("projections require unique expression names") {
        "COLUMN_ALREADY_EXISTS"
    } else if lower.contains("no function matches") || lower.contains("coerc") {
        "DATATYPE_MISMATCH"
    } else if lower.contains("table function") && lower.contains("not found") {
        "UNRESOLVABLE_TABLE_VALUED_FUNCTION"
    } else {
        "ANALYSIS_ERROR"
    };
    Error::user(code, text.lines().next().unwrap_or(text).to_owned())
}

fn schema_error(error: &SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => column_not_found(field, valid_fields),
        SchemaError::AmbiguousReference { field } => Error::user(
            "AMBIGUOUS_REFERENCE",
            format!("column '{}' could mean more than one of the tables' columns", field.name),
        )
        .hint("put the table's name before it"),
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => duplicate_column(name),
    }
}

/// Two output columns of one name.
pub(crate) fn duplicate_column(name: &str) -> Error {
    Error::user("COLUMN_ALREADY_EXISTS", format!("column '{name}' occurs more than once"))
        .object(name)
        .hint("give one of them another name with AS")
}

fn column_not_found(field: &Column, valid: &[Column]) -> Error {
    let mut message = format!("column '{}' does not exist", field.name);
    if let Some(relation) = &field.relation {
        message = format!("column '{relation}.{}' does not exist", field.name);
    }
    let near = near(&field.name, valid.iter().map(|column| column.name.as_str()));
    let error = Error::user("UNRESOLVED_COLUMN", message).object(field.name.clone());
    match near.is_empty() {
        true => error,
        false => error.hint(did_you_mean(&near)),
    }
}

/// No such table.
pub(crate) fn table_not_found<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let near = near(name, known);
    let error = Error::user("TABLE_OR_VIEW_NOT_FOUND", format!("table or view '{name}' not found"))
        .object(name);
    match near.is_empty() {
        true => error,
        false => error.hint(did_you_mean(&near)),
    }
}

fn did_you_mean(names: &[&str]) -> String {
    let mut text = String::from("did you mean ");
    for (i, name) in names.iter().enumerate() {
        let before = if i == 0 { "" } else { " or " };
        // Writing into a String cannot fail.
        let _ = write!(text, "{before}'{name}'");
    }
    text + "?"
}

/// Up to three known names that look like `name`, best first.
fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let name = name.to_lowercase();
    let mut scored: Vec<(usize, &str)> = known
        .map(|other| (strsim::damerau_levenshtein(&name, &other.to_lowercase()), other))
        .filter(|(distance, other)| *distance <= (other.len().max(name.len()) / 3).max(1))
        .collect();
    scored.sort_unstable();
    scored.dedup();
    scored.into_iter().take(3).map(|(_, other)| other).collect()
}

/// Splits ` at Line: 2, Column: 8` off the end of a parser's message.
pub(crate) fn split_place(text: &str) -> (&str, Option<Location>) {
    let Some((message, place)) = text.rsplit_once(" at Line: ") else {
        return (text, None);
    };
    let Some((line, column)) = place.split_once(", Column: ") else {
        return (text, None);
    };
    match (line.trim().parse(), column.trim().trim_end_matches('.').parse()) {
        (Ok(line), Ok(column)) => (message, Some(Location { file: String::new(), line, column })),
        _ => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_split_off() {
        let (message, at) = split_place("Expected: x, found: y at Line: 2, Column: 8");
        assert_eq!(message, "Expected: x, found: y");
        assert_eq!(at.map(|l| (l.line, l.column)), Some((2, 8)));
        assert!(split_place("no place").1.is_none());
    }

    #[test]
    fn near_names_are_few_and_close() {
        let known = ["amount", "account", "region", "amounts"];
        assert_eq!(near("amuont", known.into_iter()), ["amount", "amounts"]);
        assert!(near("zzz", known.into_iter()).is_empty());
    }
}
