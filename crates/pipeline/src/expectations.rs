//! Expectations: conditions on rows, what happens to those that violate them, and the counts.
//!
//! Only TRUE passes. Each rule counts every row; then FAIL UPDATE fails, DROP ROW drops, QUARANTINE
//! diverts (also what a DROP ROW rule would drop), and the rest stays.

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_plan::{Session, TypedExpression};
use deltaic_sql::{Expectation, OnViolation};

use crate::report::ExpectationCounts;

/// Rules bound to the schema of the rows that they judge.
#[derive(Debug)]
pub(crate) struct Rules {
    rules: Vec<(Expectation, TypedExpression)>,
}

/// Result of judging rows.
#[derive(Debug)]
pub(crate) struct Judged {
    /// Rows that stay.
    pub(crate) kept: ZBatch,
    /// Rows that QUARANTINE rules divert.
    pub(crate) diverted: Option<Diverted>,
    /// Per rule: sums of the weights of the rows that pass and that do not.
    pub(crate) counts: Vec<(i64, i64)>,
    /// Violating rows of FAIL UPDATE rules, as text.
    pub(crate) samples: Vec<(usize, String)>,
}

/// Rows that go into a quarantine.
#[derive(Debug)]
pub(crate) struct Diverted {
    pub(crate) rows: RecordBatch,
    /// Of each row, the rules that divert it.
    pub(crate) rules: Vec<Vec<String>>,
}

impl Diverted {
    /// The rows that violate one of some rules, each told by name with where it passes.
    pub(crate) fn by_rules(
        rows: &RecordBatch,
        rules: &[(String, BooleanArray)],
    ) -> Result<Option<Self>> {
        let violated = |row: usize| -> Vec<String> {
            let rules = rules.iter().filter(|(_, passes)| !passes.value(row));
            rules.map(|(name, _)| name.clone()).collect()
        };
        let violated: Vec<Vec<String>> = (0..rows.num_rows()).map(violated).collect();
        let is_diverted: BooleanArray =
            violated.iter().map(|rules| Some(!rules.is_empty())).collect();
        if is_diverted.true_count() == 0 {
            return Ok(None);
        }
        let rows = arrow::compute::filter_record_batch(rows, &is_diverted)?;
        let rules = violated.into_iter().filter(|rules| !rules.is_empty()).collect();
        Ok(Some(Self { rows, rules }))
    }
}

const SAMPLES_MAX: usize = 3;

impl Rules {
    /// Binds the rules' conditions.
    pub(crate) fn bind<'a>(
        rules: impl Iterator<Item = &'a Expectation>,
        session: &Session,
        schema: &SchemaRef,
    ) -> Result<Self> {
        let rules = rules
            .map(|rule| {
                let bound = session
                    .expression(&rule.condition.value, schema)
                    .map_err(|e| e.object(&rule.name.value))?;
                Ok((rule.clone(), bound))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Self { rules })
    }

    /// Counts and drops.
    pub(crate) fn judge(&self, delta: ZBatch) -> Result<Judged> {
        let mut counts = Vec::with_capacity(self.rules.len());
        let mut samples = Vec::new();
        let mut keep: Option<BooleanArray> = None;
        let mut diverting = Vec::new();
        for (i, (rule, bound)) in self.rules.iter().enumerate() {
            let passes = passes(bound, delta.rows()).map_err(|e| e.object(&rule.name.value))?;
            let (mut passed, mut failed) = (0_i64, 0_i64);
            for (pass, weight) in passes.iter().zip(delta.weights().iter()) {
                let sum = if pass == Some(true) { &mut passed } else { &mut failed };
                *sum = sum.saturating_add(*weight);
            }
            counts.push((passed, failed));
            match rule.action {
                OnViolation::FailUpdate => {
                    samples.extend(violating(&passes, &delta)?.into_iter().map(|text| (i, text)));
                }
                OnViolation::DropRow | OnViolation::Quarantine => {
                    if rule.action == OnViolation::Quarantine {
                        diverting.push((rule.name.value.clone(), passes.clone()));
                    }
                    keep = Some(match keep {
                        None => passes,
                        Some(keep) => arrow::compute::and(&keep, &passes)?,
                    });
                }
                OnViolation::Warn => {}
            }
        }
        let diverted = match diverting.is_empty() {
            true => None,
            false => Diverted::by_rules(delta.rows(), &diverting)?,
        };
        let kept = match keep {
            None => delta,
            Some(keep) => {
                let rows = arrow::compute::filter_record_batch(delta.rows(), &keep)?;
                let weights = arrow::compute::filter(&delta.weight_array(), &keep)?;
                let weights = weights.as_primitive::<arrow::datatypes::Int64Type>();
                ZBatch::try_new(rows, weights.values().clone())?
            }
        };
        Ok(Judged { kept, diverted, counts, samples })
    }

    /// The error of a FAIL UPDATE rule that rows violate.
    pub(crate) fn failure(
        &self,
        totals: &[(i64, i64)],
        samples: &[(usize, String)],
    ) -> Option<Error> {
        for (i, (rule, _)) in self.rules.iter().enumerate() {
            let failed = totals.get(i).map_or(0, |(_, failed)| *failed);
            if rule.action == OnViolation::FailUpdate && failed > 0 {
                let rows: Vec<&str> = samples
                    .iter()
                    .filter(|(rule, _)| *rule == i)
                    .take(SAMPLES_MAX)
                    .map(|(_, text)| text.as_str())
                    .collect();
                let sample = if rows.is_empty() {
                    String::new()
                } else {
                    format!(", for example {}", rows.join("; "))
                };
                return Some(
                    Error::data(
                        "EXPECTATION_FAILED",
                        format!(
                            "{failed} rows violate EXPECT ({}){sample} (EXPECTATION_VIOLATION)",
                            rule.condition.value
                        ),
                    )
                    .object(&rule.name.value)
                    .hint("correct the data, or use ON VIOLATION DROP ROW"),
                );
            }
        }
        None
    }

    /// Counts for the report.
    pub(crate) fn report(&self, totals: &[(i64, i64)]) -> Vec<ExpectationCounts> {
        let count = |n: i64| u64::try_from(n).unwrap_or(0);
        self.rules
            .iter()
            .zip(totals)
            .map(|((rule, _), (passed, failed))| ExpectationCounts {
                name: rule.name.value.clone(),
                action: rule.action,
                passed: count(*passed),
                failed: count(*failed),
            })
            .collect()
    }

    /// Names in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|(rule, _)| rule.name.value.as_str())
    }
}

/// Identity of rules, part of a view's fingerprint.
pub(crate) fn identity<'a>(rules: impl Iterator<Item = &'a Expectation>) -> String {
    rules.map(|r| format!("|{}:{}:{:?}", r.name.value, r.condition.value, r.action)).collect()
}

/// Adds counts rule by rule.
pub(crate) fn add_counts(totals: &mut Vec<(i64, i64)>, counts: &[(i64, i64)]) {
    totals.resize(totals.len().max(counts.len()), (0, 0));
    for (total, count) in totals.iter_mut().zip(counts) {
        total.0 = total.0.saturating_add(count.0);
        total.1 = total.1.saturating_add(count.1);
    }
}

/// TRUE where the condition is TRUE, FALSE elsewhere.
fn passes(bound: &TypedExpression, rows: &RecordBatch) -> Result<BooleanArray> {
    let values = bound.evaluator.evaluate(rows)?;
    let values = values.as_boolean_opt().ok_or_else(|| {
        Error::user(
            "EXPECTATION_TYPE",
            format!("the condition has the type {}, not BOOLEAN", bound.field.data_type()),
        )
    })?;
    Ok(match values.nulls() {
        None => values.clone(),
        Some(_) => values.iter().map(|v| Some(v == Some(true))).collect(),
    })
}

fn violating(passes: &BooleanArray, delta: &ZBatch) -> Result<Vec<String>> {
    let rows = (0..delta.num_rows()).filter(|&i| !passes.value(i) && delta.weights()[i] > 0);
    rows.take(SAMPLES_MAX).map(|i| row_text(delta.rows(), i)).collect()
}

/// A row as `{a: 1, b: x}`.
pub(crate) fn row_text(rows: &RecordBatch, row: usize) -> Result<String> {
    let mut parts = Vec::new();
    for (field, column) in rows.schema_ref().fields().iter().zip(rows.columns()) {
        let value = if column.is_null(row) {
            "NULL".to_string()
        } else {
            arrow::util::display::array_value_to_string(column, row)?
        };
        parts.push(format!("{}: {value}", field.name()));
    }
    Ok(format!("{{{}}}", parts.join(", ")))
}
