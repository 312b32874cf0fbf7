//! AUTO CDC clauses against the schema of the events.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Error, Result};
use deltaic_plan::{Session, TypedExpression};
use deltaic_sql::{CdcSource, CdcSpec, ColumnSelection, ScdType, Spanned};

use super::places::{in_text, location};
use super::{CdcPlan, SnapshotVersion};
use crate::near::near_names;
use deltaic_plan::type_name;

/// Columns that type 2 adds.
pub(super) const RESERVED: [&str; 2] = ["__START_AT", "__END_AT"];

/// Prefix of names that Spark keeps for itself; refused so that pipelines can move both ways.
const RESERVED_PREFIX: &str = "__spark_autocdc_";

/// What a row of a change feed is: `insert`, `update_preimage`, `update_postimage` or `delete`.
pub(crate) const CHANGE_TYPE: &str = "_change_type";
/// The version of the table that a row of a change feed made.
pub(crate) const COMMIT_VERSION: &str = "_commit_version";

/// Columns of a change feed that are none of the table.
const FEED: [&str; 3] = [CHANGE_TYPE, COMMIT_VERSION, "_commit_timestamp"];

/// Events from a change feed that nobody wrote conditions for.
fn is_change_feed(spec: &CdcSpec, schema: &SchemaRef) -> bool {
    let has = |name: &str| schema.fields().iter().any(|f| f.name().eq_ignore_ascii_case(name));
    matches!(spec.source, CdcSource::Events(_))
        && spec.delete_when.is_none()
        && has(CHANGE_TYPE)
        && has(COMMIT_VERSION)
}

struct Binder<'a> {
    schema: &'a SchemaRef,
    session: &'a Session,
    file: &'a str,
    object: &'a str,
    errors: Vec<Error>,
}

/// Binds the clauses; all errors are returned together.
pub(super) fn plan(
    spec: &CdcSpec,
    schema: &SchemaRef,
    snapshots: Option<SnapshotVersion>,
    session: &Session,
    (file, object): (&str, &str),
) -> Result<CdcPlan, Vec<Error>> {
    let mut b = Binder { schema, session, file, object, errors: Vec::new() };
    b.reserved(spec);
    let is_version = |column: &usize| match &snapshots {
        Some(SnapshotVersion::Column { column: version, .. }) => column == version,
        _ => false,
    };
    let change_feed = is_change_feed(spec, schema);
    let is_shown = |column: &usize| {
        let name = schema.field(*column).name().to_lowercase();
        !(is_version(column) || (change_feed && FEED.contains(&name.as_str())))
    };
    let all: Vec<usize> = (0..schema.fields().len()).filter(is_shown).collect();
    let columns = b.selection(&spec.columns, &all);
    let keys = b.keys(&spec.keys, &columns);
    let values: Vec<usize> = columns.iter().copied().filter(|c| !keys.contains(c)).collect();
    let tracked = match &spec.track_history {
        ColumnSelection::All => values.clone(),
        other => b.selection(other, &values),
    };
    let ignore_null = match &spec.ignore_null_updates {
        None => Vec::new(),
        Some(ColumnSelection::All) => values,
        Some(other) => b.selection(other, &values),
    };
    let by_default = |text: &str| Spanned { value: text.to_owned(), span: spec.span };
    let (of_version, of_delete) =
        (by_default(COMMIT_VERSION), by_default(&format!("{CHANGE_TYPE} = 'delete'")));
    let sequence = spec.sequence_by.as_ref().or(change_feed.then_some(&of_version));
    let sequence = sequence.and_then(|text| b.sequence(text));
    let delete_when = spec.delete_when.as_ref().or(change_feed.then_some(&of_delete));
    let delete_when = delete_when.and_then(|text| b.condition(text));
    let truncate_when = spec.truncate_when.as_ref().and_then(|text| b.condition(text));
    b.clauses(spec);
    if !b.errors.is_empty() {
        return Err(b.errors);
    }
    let scd_type = spec.scd_type;
    Ok(CdcPlan {
        keys,
        sequence,
        delete_when,
        truncate_when,
        columns,
        tracked,
        ignore_null,
        scd_type,
        change_feed,
        snapshots,
    })
}

/// The selected columns and, for type 2, when a version begins and ends.
pub(super) fn target_schema(plan: &CdcPlan, source: &Schema) -> SchemaRef {
    let mut fields: Vec<Arc<Field>> =
        plan.columns.iter().map(|c| source.fields()[*c].clone()).collect();
    if plan.scd_type == ScdType::Type2 {
        let at = plan.sequence_type();
        fields.extend(RESERVED.map(|name| Arc::new(Field::new(name, at.clone(), true))));
    }
    Arc::new(Schema::new(fields))
}

impl Binder<'_> {
    fn fail(&mut self, code: &'static str, at: &Spanned<String>, message: String) {
        let error = Error::user(code, message).object(self.object);
        self.errors.push(error.at(location(self.file, at.span)));
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.schema.fields().iter().position(|f| f.name().eq_ignore_ascii_case(name))
    }

    /// Positions of the named columns among `within`, in the order of the source.
    fn selection(&mut self, selection: &ColumnSelection, within: &[usize]) -> Vec<usize> {
        let (names, except) = match selection {
            ColumnSelection::All => return within.to_vec(),
            ColumnSelection::Only(names) => (names, false),
            ColumnSelection::Except(names) => (names, true),
        };
        let mut listed = Vec::with_capacity(names.len());
        for name in names {
            match self.position(&name.value) {
                Some(n) => listed.push(n),
                None => self.not_found("AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA", name),
            }
        }
        if !except {
            let outside: Vec<_> = listed.iter().filter(|n| !within.contains(n)).collect();
            if let Some(n) = outside.first() {
                let name = self.schema.field(**n).name().clone();
                let at = names.iter().find(|s| s.value.eq_ignore_ascii_case(&name));
                if let Some(at) = at {
                    let message = format!("column '{name}' is a key, or COLUMNS leaves it out");
                    self.fail("AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA", at, message);
                }
            }
        }
        within.iter().copied().filter(|n| listed.contains(n) != except).collect()
    }

    fn not_found(&mut self, code: &'static str, name: &Spanned<String>) {
        let near = near_names(&name.value, self.schema.fields().iter().map(|f| f.name().as_str()));
        let hint = match near.first() {
            Some(near) => format!("did you mean '{near}'?"),
            None => {
                let all: Vec<&str> =
                    self.schema.fields().iter().map(|f| f.name().as_str()).take(20).collect();
                format!("the source has: {}", all.join(", "))
            }
        };
        let message = format!("the source has no column '{}'", name.value);
        let error = Error::user(code, message).object(self.object).hint(hint);
        self.errors.push(error.at(location(self.file, name.span)));
    }

    fn keys(&mut self, keys: &[Spanned<String>], columns: &[usize]) -> Vec<usize> {
        let mut positions = Vec::with_capacity(keys.len());
        for key in keys {
            match self.position(&key.value) {
                Some(n) if columns.contains(&n) => positions.push(n),
                Some(_) => {
                    let message = format!("COLUMNS leaves out key column '{}'", key.value);
                    self.fail("AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA", key, message);
                }
                None => self.not_found("AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA", key),
            }
        }
        positions
    }

    fn expression(&mut self, text: &Spanned<String>) -> Option<TypedExpression> {
        match self.session.expression(&text.value, self.schema) {
            Ok(expression) => Some(expression),
            Err(e) => {
                self.errors.push(in_text(&e, text, self.file, self.object));
                None
            }
        }
    }

    fn sequence(&mut self, text: &Spanned<String>) -> Option<TypedExpression> {
        let expression = self.expression(text)?;
        let data_type = expression.field.data_type();
        if orderable(data_type) {
            return Some(expression);
        }
        let message = format!("a sequence of type {} has no order", type_name(data_type));
        self.fail("AUTOCDC_MICROBATCH_VALIDATION.NON_ORDERABLE_SEQUENCE", text, message);
        None
    }

    fn condition(&mut self, text: &Spanned<String>) -> Option<TypedExpression> {
        let expression = self.expression(text)?;
        if matches!(expression.field.data_type(), DataType::Boolean | DataType::Null) {
            return Some(expression);
        }
        let message =
            format!("the condition is {}, not BOOLEAN", type_name(expression.field.data_type()));
        self.fail("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", text, message);
        None
    }

    fn reserved(&mut self, spec: &CdcSpec) {
        for field in self.schema.fields() {
            let name = field.name();
            let prefix = name.to_lowercase().starts_with(RESERVED_PREFIX);
            let two = spec.scd_type == ScdType::Type2
                && RESERVED.iter().any(|r| r.eq_ignore_ascii_case(name));
            let code = match (prefix, two) {
                (true, _) => "AUTOCDC_RESERVED_COLUMN_NAME_PREFIX_CONFLICT",
                (_, true) => "AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT",
                _ => continue,
            };
            let error = Error::user(code, format!("the source's column name '{name}' is reserved"));
            let error = error.object(self.object).at(location(self.file, spec.span));
            self.errors.push(error.hint("rename it in the source query with AS"));
        }
    }

    /// Clauses that do not go together.
    fn clauses(&mut self, spec: &CdcSpec) {
        if let (Some(text), ScdType::Type2) = (&spec.truncate_when, spec.scd_type) {
            let message = "APPLY AS TRUNCATE works with SCD TYPE 1 only".to_owned();
            self.fail("UNSUPPORTED_FEATURE", text, message);
        }
        if matches!(spec.source, CdcSource::Events(_))
            && spec.sequence_by.is_none()
            && !is_change_feed(spec, self.schema)
        {
            let message = "AUTO CDC has no SEQUENCE BY";
            let error = Error::user("AUTOCDC_MISSING_SEQUENCE_BY", message).object(self.object);
            let hint = "write SEQUENCE BY an expression that orders the events of a key";
            self.errors.push(error.at(location(self.file, spec.span)).hint(hint));
        }
        if matches!(spec.source, CdcSource::Snapshot(_)) {
            let given = [&spec.sequence_by, &spec.delete_when, &spec.truncate_when];
            if let Some(text) = given.into_iter().flatten().next() {
                let message =
                    "FROM SNAPSHOT has no events: leave SEQUENCE BY and APPLY AS … out".to_owned();
                self.fail("UNSUPPORTED_FEATURE", text, message);
            }
        }
    }
}

/// Types whose values have one order, field by field in structs.
fn orderable(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(..) | DataType::Union(..) | DataType::Null => false,
        DataType::Struct(fields) => fields.iter().all(|f| orderable(f.data_type())),
        _ => true,
    }
}
