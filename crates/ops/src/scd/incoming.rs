//! Events at the door: what is refused, and what of the rest is kept.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array};
use arrow::compute::{filter, take};
use arrow::datatypes::Int8Type;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use deltaic_batch::{Error, Result, ZBatch};

use crate::scd::codes::Codes;
use crate::scd::layout::Layout;
use crate::scd::{KIND_DELETE, KIND_TRUNCATE, KIND_UPSERT, ScdSpec};

/// Number of rows shown in an error.
const SAMPLES_MAX: usize = 5;

/// The valid events of one step.
#[derive(Debug)]
pub(super) struct Incoming {
    /// Upserts and deletes, by the columns of [`Layout`].
    pub(super) columns: Vec<ArrayRef>,
    /// The greatest truncate sequence of the step, one row.
    pub(super) truncate: Option<ArrayRef>,
}

impl Incoming {
    /// Checks everything before anything is applied. Weights above one are duplicates, which
    /// change nothing.
    pub(super) fn try_new(spec: &ScdSpec, layout: &Layout, delta: &ZBatch) -> Result<Self> {
        check_weights(delta)?;
        let kinds = delta.rows().column(spec.kind).as_primitive::<Int8Type>();
        if kinds.null_count() > 0 {
            return Err(Error::internal("SCD_KIND", "an event has no kind"));
        }
        if let Some(kind) =
            kinds.values().iter().find(|k| !(KIND_UPSERT..=KIND_TRUNCATE).contains(*k))
        {
            return Err(Error::internal("SCD_KIND", format!("unknown event kind {kind}")));
        }
        let truncates: BooleanArray =
            kinds.values().iter().map(|&kind| Some(kind == KIND_TRUNCATE)).collect();
        if truncates.true_count() > 0 && !spec.truncates {
            return Err(Error::internal("SCD_KIND", "a truncate event was not announced"));
        }
        check_nulls(spec, delta, &truncates)?;
        let mut columns: Vec<ArrayRef> =
            layout.input.iter().map(|&at| delta.rows().column(at).clone()).collect();
        if truncates.true_count() == 0 {
            return Ok(Self { columns, truncate: None });
        }
        let bound = greatest(&filter(&columns[layout.sequence()], &truncates)?)?;
        let rest = arrow::compute::not(&truncates)?;
        for column in &mut columns {
            *column = filter(column, &rest)?;
        }
        Ok(Self { columns, truncate: Some(bound) })
    }
}

/// The greatest of at least one value, as one row.
pub(super) fn greatest(values: &ArrayRef) -> Result<ArrayRef> {
    let codes = Codes::try_new(std::slice::from_ref(values))?;
    let rows = 0..u32::try_from(values.len()).unwrap_or(u32::MAX);
    let at = rows.max_by(|&a, &b| codes.cmp(a, b)).unwrap_or(0);
    Ok(take(values, &UInt32Array::from(vec![at]), None)?)
}

fn check_weights(delta: &ZBatch) -> Result<()> {
    let retracted = delta.weights().iter().filter(|&&weight| weight < 0).count();
    if retracted == 0 {
        return Ok(());
    }
    Err(Error::user(
        "SCD_RETRACTED_EVENT",
        format!(
            "the source took back {retracted} change event(s) that it had sent: an AUTO CDC flow \
             reads events that are only ever added"
        ),
    )
    .hint("read from a streaming table or files, or refresh the target in full"))
}

fn check_nulls(spec: &ScdSpec, delta: &ZBatch, truncates: &BooleanArray) -> Result<()> {
    let mut problems = Vec::new();
    let sequence = delta.rows().column(spec.sequence);
    problems
        .extend(describe("NULL_SEQUENCE", "sequence", spec, delta, |row| sequence.is_null(row))?);
    for &key in &spec.keys {
        let column = delta.rows().column(key);
        if column.null_count() == 0 {
            continue;
        }
        let what = format!("key column '{}'", spec.input.field(key).name());
        problems.extend(describe("NULL_KEY", &what, spec, delta, |row| {
            column.is_null(row) && !truncates.value(row)
        })?);
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::data("AUTOCDC_MICROBATCH_VALIDATION", problems.join("; "))
        .hint("filter such events out before the flow; nothing of this update was applied"))
}

/// `NULL_KEY: key column 'id' is NULL in 2 event(s), for example {id: NULL, name: x, …}`.
fn describe(
    code: &str,
    what: &str,
    spec: &ScdSpec,
    delta: &ZBatch,
    is_bad: impl Fn(usize) -> bool,
) -> Result<Option<String>> {
    let bad: Vec<usize> = (0..delta.num_rows()).filter(|&row| is_bad(row)).collect();
    if bad.is_empty() {
        return Ok(None);
    }
    let shown = spec.input.fields().len().saturating_sub(1);
    let columns: Vec<usize> = (0..shown).filter(|&at| at != spec.kind).collect();
    let mut samples = Vec::new();
    for &row in bad.iter().take(SAMPLES_MAX) {
        samples.push(show(delta, &columns, row)?);
    }
    Ok(Some(format!(
        "{code}: {what} is NULL in {} event(s), for example {}",
        bad.len(),
        samples.join(", ")
    )))
}

fn show(delta: &ZBatch, columns: &[usize], row: usize) -> Result<String> {
    let schema = delta.schema();
    let parts: Result<Vec<String>> = columns
        .iter()
        .map(|&at| {
            let value = show_value(delta.rows().column(at), row)?;
            Ok(format!("{}: {value}", schema.field(at).name()))
        })
        .collect();
    Ok(format!("{{{}}}", parts?.join(", ")))
}

/// A value as text.
pub(super) fn show_value(column: &ArrayRef, row: usize) -> Result<String> {
    let options = FormatOptions::default().with_null("NULL");
    Ok(ArrayFormatter::try_new(column.as_ref(), &options)?.value(row).to_string())
}

/// True for events that end the life of their key.
pub(super) fn is_delete(kind: i8) -> bool {
    kind == KIND_DELETE
}
