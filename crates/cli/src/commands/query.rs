//! `deltaic query`.

use deltaic_batch::{Error, Location};
use deltaic_pipeline::{Errors, Pipeline};

use crate::args::RowFormat;
use crate::complaint::{Complaint, Sources};
use crate::output::Out;

/// What the text of a query is called in errors.
const QUERY: &str = "query";

/// Runs a query and writes its rows.
pub(super) fn query(
    pipeline: &Pipeline,
    sql: &str,
    format: RowFormat,
    sources: &Sources,
    out: &mut Out,
) -> Result<(), Complaint> {
    let result = pipeline.query(sql).map_err(|e| {
        let Errors(errors) = e;
        let errors: Vec<Error> = errors.iter().map(named).collect();
        Complaint::new(errors, &sources.and(QUERY, sql))
    })?;
    out.rows(&result.schema, &result.batches, format)
}

/// A place without file is one in the query's text.
fn named(error: &Error) -> Error {
    let Some(at) = error.location().filter(|at| at.file.is_empty()) else {
        return error.clone();
    };
    let at = Location { file: QUERY.into(), ..at.clone() };
    let named = Error::new(error.class(), error.code(), error.message()).at(at);
    match error.get_hint() {
        Some(hint) => named.hint(hint),
        None => named,
    }
}
