//! Columns of change events that say what to do with a row and are no part of it.

use deltaic_plan::Session;
use deltaic_sql::{CdcSource, CdcSpec, ColumnSelection, ScdType};

use arrow::datatypes::{Schema, SchemaRef};

use super::CdcPlan;

/// What tools call such columns.
const ENVELOPE: [&str; 10] = [
    "op",
    "__op",
    "ts_ms",
    "__ts_ms",
    "__source_ts_ms",
    "__deleted",
    "_deleted",
    "_change_type",
    "_commit_version",
    "_commit_timestamp",
];

/// A warning where such columns land in the target and nobody chose its columns one by one.
pub(super) fn warning(
    spec: &CdcSpec,
    plan: &CdcPlan,
    schema: &SchemaRef,
    session: &Session,
    target: &str,
) -> Option<String> {
    if matches!(spec.source, CdcSource::Snapshot(_))
        || matches!(spec.columns, ColumnSelection::Only(_))
    {
        return None;
    }
    let texts: Vec<&str> = [&spec.sequence_by, &spec.delete_when, &spec.truncate_when]
        .into_iter()
        .flatten()
        .map(|text| text.value.as_str())
        .collect();
    let is_envelope = |&column: &usize| {
        let name = schema.field(column).name();
        ENVELOPE.iter().any(|known| known.eq_ignore_ascii_case(name))
            || texts.iter().any(|text| reads(text, column, schema, session))
    };
    let values = plan.columns.iter().copied().filter(|column| !plan.keys.contains(column));
    let names: Vec<&str> =
        values.filter(is_envelope).map(|column| schema.field(column).name().as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let names = names.join(", ");
    let versions = match plan.scd_type {
        ScdType::Type1 => "",
        ScdType::Type2 => ", where they open versions if they are tracked",
    };
    Some(format!(
        "'{target}': {names} of the change events land in the target{versions}; write COLUMNS * \
         EXCEPT ({names}) to leave them out, or list COLUMNS to keep them"
    ))
}

/// An expression reads a column: it has its name, and means nothing without it.
fn reads(text: &str, column: usize, schema: &SchemaRef, session: &Session) -> bool {
    let name = schema.field(column).name();
    if !text.to_lowercase().contains(&name.to_lowercase()) {
        return false;
    }
    let mut fields = schema.fields().to_vec();
    fields.remove(column);
    session.expression(text, &Schema::new(fields).into()).is_err()
}
