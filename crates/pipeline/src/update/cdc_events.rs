//! Change events of an AUTO CDC flow: the columns that the merge needs, validated.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int8Array, RecordBatch};
use arrow::compute::{cast, is_not_null};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Error, Result};
use deltaic_ops::{KIND_DELETE, KIND_TRUNCATE, KIND_UPSERT, ScdSpec, ScdType};
use deltaic_plan::TypedExpression;
use serde_json::{Value, json};

use super::retention::{self, RETENTION};
use crate::conform::position;
use crate::expectations::row_text;
use crate::graph::{INVALID_ROWS, QUARANTINE};
use crate::{CdcPlan, FlowNode};

/// Ends the name of the rule that a column of an event is not NULL.
pub(crate) const IS_NULL: &str = " is NULL";

/// How many invalid rows an error shows.
const SAMPLES_MAX: usize = 3;

/// How events of all flows into a target look, and how they are merged.
#[derive(Debug, Clone)]
pub(crate) struct EventSpec {
    pub(crate) scd: ScdSpec,
    /// Columns of the target that come from the source, in order.
    columns: SchemaRef,
    /// Part of the target's identity that must not drift.
    pub(crate) identity: Value,
}

impl EventSpec {
    /// From the first flow into the target; the others agree with it (the graph checks that).
    pub(crate) fn new(flow: &FlowNode, plan: &CdcPlan, truncates: bool) -> Result<Self> {
        let source = &flow.schema;
        let place = |column: &usize| {
            plan.columns.iter().position(|c| c == column).ok_or_else(|| {
                Error::user(
                    "SCD_COLUMN_NOT_SELECTED",
                    "a key or tracked column is not in the target",
                )
                .object(source.field(*column).name())
                .hint("add it to COLUMNS, or take it out of EXCEPT")
            })
        };
        let places = |list: &[usize]| list.iter().map(place).collect::<Result<Vec<usize>>>();
        if plan.sequence.is_none() && plan.snapshots.is_none() {
            let error = Error::user("SCD_SEQUENCE_MISSING", "AUTO CDC needs SEQUENCE BY");
            return Err(error.object(&flow.name));
        }
        let columns: Vec<Field> =
            plan.columns.iter().map(|&c| source.field(c).clone().with_nullable(true)).collect();
        let mut fields = columns.clone();
        let (sequence_at, kind_at) = (fields.len(), fields.len() + 1);
        let sequence_type = plan.sequence_type();
        fields.push(Field::new("__sequence", sequence_type.clone(), true));
        fields.push(Field::new("__kind", DataType::Int8, true));
        // Snapshots are never late.
        let retention = match flow.configuration.get(RETENTION) {
            Some(text) if plan.snapshots.is_none() => Some(retention::parse(text, &sequence_type)?),
            _ => None,
        };
        let scd_type = match plan.scd_type {
            deltaic_sql::ScdType::Type1 => ScdType::Type1,
            deltaic_sql::ScdType::Type2 => ScdType::Type2,
        };
        let name = |c: &usize| source.field(*c).name().to_lowercase();
        let key = |c: &usize| format!("{} {}", name(c), source.field(*c).data_type());
        let identity = json!({
            "keys": plan.keys.iter().map(key).collect::<Vec<_>>(),
            "sequence": sequence_type.to_string(),
            "scd_type": if scd_type == ScdType::Type1 { 1 } else { 2 },
            "tracked": plan.tracked.iter().map(name).collect::<Vec<_>>(),
            "columns": plan.columns.iter().map(name).collect::<Vec<_>>(),
        });
        Ok(Self {
            scd: ScdSpec {
                input: Arc::new(Schema::new(fields)),
                keys: places(&plan.keys)?,
                sequence: sequence_at,
                kind: kind_at,
                columns: (0..sequence_at).collect(),
                tracked: places(&plan.tracked)?,
                ignore_null: places(&plan.ignore_null)?,
                scd_type,
                truncates,
                retention,
            },
            columns: Arc::new(Schema::new(columns)),
            identity,
        })
    }

    /// Identity of the merge: stored state fits only the same.
    pub(crate) fn fingerprint(&self) -> String {
        let s = &self.scd;
        let columns: Vec<String> = s
            .input
            .fields()
            .iter()
            .map(|f| format!("{} {}", f.name().to_lowercase(), f.data_type()))
            .collect();
        let retention = if s.retention.is_some() { "|retention" } else { "" };
        format!(
            "cdc1|{}|{:?}|{:?}|{:?}|{:?}|{}{retention}",
            columns.join(","),
            s.keys,
            s.tracked,
            s.ignore_null,
            s.scd_type,
            s.truncates
        )
    }

    /// Schema of the target's columns that come from the source.
    pub(crate) fn columns_schema(&self) -> SchemaRef {
        self.columns.clone()
    }

    /// The target's columns of a batch of source rows.
    pub(crate) fn columns_of(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let column = |field: &Arc<Field>| {
            let at = position(rows.schema_ref(), field.name()).ok_or_else(|| {
                Error::user("AUTOCDC_COLUMN", "the flow's source lacks a column of the target")
                    .object(field.name())
            })?;
            typed(rows.column(at), field.data_type())
        };
        let columns = self.columns.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(self.columns.clone(), columns)?)
    }

    /// Events of a batch of source rows.
    pub(crate) fn events(&self, plan: &CdcPlan, rows: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = self.columns_of(rows)?.columns().to_vec();
        if let Some(sequence) = &plan.sequence {
            let values = sequence.evaluator.evaluate(rows)?;
            columns.push(typed(&values, self.scd.input.field(self.scd.sequence).data_type())?);
        }
        columns.push(Arc::new(kinds(plan, rows)?));
        Ok(RecordBatch::try_new(self.scd.input.clone(), columns)?)
    }

    /// What an event must have: each rule's name, and where it holds. The key of a truncate may be
    /// NULL.
    pub(crate) fn validity(&self, events: &RecordBatch) -> Result<Vec<(String, BooleanArray)>> {
        let kinds = events.column(self.scd.kind).as_primitive::<arrow::datatypes::Int8Type>();
        let is_truncate = |row: usize| kinds.value(row) == KIND_TRUNCATE;
        let key = |&column: &usize| {
            let values = events.column(column);
            let passes = (0..events.num_rows()).map(|row| values.is_valid(row) || is_truncate(row));
            (format!("key {}{IS_NULL}", self.scd.input.field(column).name()), passes.collect())
        };
        let sequence = is_not_null(events.column(self.scd.sequence))?;
        let sequence = [(format!("sequence{IS_NULL}"), sequence)];
        Ok(sequence.into_iter().chain(self.scd.keys.iter().map(key)).collect())
    }

    /// Refuses events without sequence or key, before anything is applied.
    pub(crate) fn validate(&self, events: &[RecordBatch]) -> Result<()> {
        let mut problems: Vec<(String, usize)> = Vec::new();
        let mut samples = Vec::new();
        for batch in events {
            for (at, (name, passes)) in self.validity(batch)?.into_iter().enumerate() {
                if problems.len() <= at {
                    problems.push((name, 0));
                }
                problems[at].1 += batch.num_rows() - passes.true_count();
                let invalid = (0..batch.num_rows()).filter(|&row| !passes.value(row));
                for row in invalid.take(SAMPLES_MAX - samples.len().min(SAMPLES_MAX)) {
                    samples.push(row_text(batch, row)?);
                }
            }
        }
        problems.retain(|(_, count)| *count > 0);
        if problems.is_empty() {
            return Ok(());
        }
        let counts: Vec<String> = (problems.iter())
            .map(|(name, n)| format!("{n} events have a NULL {}", name.trim_end_matches(IS_NULL)))
            .collect();
        Err(Error::data(
            "AUTOCDC_MICROBATCH_VALIDATION",
            format!("{}, for example {}", counts.join(", "), samples.join("; ")),
        )
        .hint(format!(
            "correct the source, leave such events out in the flow's source query, or \
             SET {INVALID_ROWS} = {QUARANTINE}"
        )))
    }
}

fn typed(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to { Ok(array.clone()) } else { Ok(cast(array, to)?) }
}

fn kinds(plan: &CdcPlan, rows: &RecordBatch) -> Result<Int8Array> {
    let condition = |expression: &Option<TypedExpression>| -> Result<Option<ArrayRef>> {
        expression.as_ref().map(|e| e.evaluator.evaluate(rows)).transpose()
    };
    let (delete, truncate) = (condition(&plan.delete_when)?, condition(&plan.truncate_when)?);
    let is_true = |values: &Option<ArrayRef>, row: usize| {
        values
            .as_ref()
            .and_then(|v| v.as_boolean_opt())
            .is_some_and(|v| v.is_valid(row) && v.value(row))
    };
    Ok((0..rows.num_rows())
        .map(|row| {
            if is_true(&truncate, row) {
                KIND_TRUNCATE
            } else if is_true(&delete, row) {
                KIND_DELETE
            } else {
                KIND_UPSERT
            }
        })
        .collect::<Vec<i8>>()
        .into())
}

/// What drifted between the stored identity and the one of now.
pub(crate) fn drift(stored: &Value, now: &Value) -> Option<Error> {
    let refuse = |sub: &str, what: String| {
        Some(
            Error::user("AUTOCDC_INVALID_STATE", format!("{what} (AUTOCDC_INVALID_STATE.{sub})"))
                .hint("run with --full-refresh for this dataset, or undo the change"),
        )
    };
    let changed = |what: &str, part: &str| {
        (stored[part] != now[part])
            .then(|| format!("{what} changed from {} to {}", stored[part], now[part]))
    };
    if let Some(what) = changed("the keys", "keys") {
        return refuse("KEY_SCHEMA_DRIFT", what);
    }
    if let Some(what) = changed("the SCD type", "scd_type") {
        return refuse("SCD_TYPE_DRIFT", what);
    }
    if let Some(what) = changed("the type of the sequence", "sequence") {
        return refuse("SEQUENCING_TYPE_DRIFT", what);
    }
    let texts = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|v| v.as_str().map(str::to_string))
            .collect()
    };
    // A column that is new in the source may be tracked without being a drift.
    let known = texts(&stored["columns"]);
    let current = texts(&now["columns"]);
    let mut before = texts(&stored["tracked"]);
    let mut after = texts(&now["tracked"]);
    after.retain(|column| known.contains(column));
    before.retain(|column| current.contains(column));
    before.sort();
    after.sort();
    if before != after {
        let what = format!("the tracked columns changed from {before:?} to {after:?}");
        return refuse("TRACK_HISTORY_DRIFT", what);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_named_and_new_columns_are_none() {
        let stored = json!({"keys": ["id INT"], "sequence": "Int64", "scd_type": 2,
            "tracked": ["a"], "columns": ["id", "a"]});
        let mut now = stored.clone();
        assert!(drift(&stored, &now).is_none());
        now["tracked"] = json!(["a", "b"]);
        now["columns"] = json!(["id", "a", "b"]);
        assert!(drift(&stored, &now).is_none());
        now["tracked"] = json!([]);
        assert!(drift(&stored, &now).unwrap().message().contains("TRACK_HISTORY_DRIFT"));
        now["keys"] = json!(["id BIGINT"]);
        assert!(drift(&stored, &now).unwrap().message().contains("KEY_SCHEMA_DRIFT"));
    }
}
