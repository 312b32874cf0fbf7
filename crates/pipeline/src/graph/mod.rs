//! The graph: datasets and flows, resolved and validated before any data is touched.
//!
//! | file | step |
//! |---|---|
//! | `definitions` | parse all files; datasets and flows with their keys; duplicates |
//! | `names` | what a name means under `USE` and the project's defaults |
//! | `reads` | what each query reads |
//! | `order` | cycles, topological order |
//! | `bind` | inputs and schema of each query, in that order |
//! | `schema` | declared against inferred schema, schema of a table from its flows |
//! | `cdc` | AUTO CDC clauses against the schema of the events |
//! | `metadata` | the hidden `_metadata` column of files |
//! | `expectations` | conditions against the schema they see |
//! | `quarantine` | the tables of rows that others do not take |
//! | `rules` | flows per kind, streaming or not, resets |
//! | `places` | places and objects of errors |

mod bind;
mod cdc;
mod definitions;
mod envelope;
mod expectations;
mod metadata;
mod names;
mod order;
mod places;
mod quarantine;
mod reads;
mod rules;
mod schema;
#[cfg(test)]
mod tests;
mod types;

use deltaic_batch::Error;
use deltaic_plan::Session;

use crate::Project;

pub(crate) use cdc::{CHANGE_TYPE, COMMIT_VERSION};
pub(crate) use quarantine::{INVALID_ROWS, QUARANTINE};
pub use types::{
    CdcPlan, DatasetNode, FileSchemas, FlowInput, FlowKind, FlowNode, Graph, InputSource,
    SnapshotVersion,
};

/// Code of what cannot be parsed.
const PARSE: &str = "PARSE_SYNTAX_ERROR";

/// Parses, resolves and validates. All errors that can be found together are returned together:
/// first those of the text itself by place, then flows that could not be looked at because of
/// them.
pub fn resolve(
    project: &Project,
    session: &Session,
    files: &dyn FileSchemas,
) -> std::result::Result<Graph, Vec<Error>> {
    let mut errors = Vec::new();
    let definitions = definitions::collect(project, &mut errors);
    let reads = reads::collect(&definitions, &mut errors);
    let order = order::sort(&definitions, &reads, &mut errors);
    let bound = bind::bind(&definitions, &reads, &order, session, files, &mut errors);
    rules::check(&definitions, &reads, &bound, session, &mut errors);
    if errors.is_empty() {
        return Ok(bind::finish(definitions, &order, bound));
    }
    errors.sort_by_key(|e| (e.code() == bind::UPSTREAM, places::sort_key(e)));
    Err(errors)
}
