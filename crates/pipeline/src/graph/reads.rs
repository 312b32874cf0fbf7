//! What each query reads: names to datasets, files, external tables.

use std::collections::BTreeMap;

use deltaic_batch::Error;
use deltaic_sql::{QuerySource, ReadFiles, Span, TableRef};

use super::definitions::{Definitions, FlowDef};
use super::places::location;

/// What is read.
#[derive(Debug, Clone)]
pub(super) enum Target {
    /// A dataset, by index.
    Dataset(usize),
    /// Files.
    Files(ReadFiles),
    /// An external table, by path.
    External(String),
    /// Changes of an external Delta table.
    ExternalChanges {
        /// Its path.
        path: String,
        /// First version.
        from: i64,
        /// Last version.
        to: Option<i64>,
    },
    /// Changes of a dataset.
    Changes {
        /// By index.
        dataset: usize,
        /// First version.
        from: i64,
        /// Last version.
        to: Option<i64>,
    },
}

/// One source of a query.
#[derive(Debug, Clone)]
pub(super) struct Read {
    /// Its name in the query's text.
    pub(super) placeholder: String,
    /// What it is.
    pub(super) target: Target,
    /// Read as a stream.
    pub(super) streaming: bool,
    /// Where.
    pub(super) span: Span,
}

impl Read {
    /// The dataset that it depends on, if any.
    pub(super) fn dataset(&self) -> Option<usize> {
        match self.target {
            Target::Dataset(dataset) | Target::Changes { dataset, .. } => Some(dataset),
            Target::Files(_) | Target::External(_) | Target::ExternalChanges { .. } => None,
        }
    }
}

/// Per flow: its reads, or `None` when one of them has an error.
pub(super) type Reads = Vec<Option<Vec<Read>>>;

/// Resolves the sources of all flows.
pub(super) fn collect(definitions: &Definitions, errors: &mut Vec<Error>) -> Reads {
    let resolve = |flow: &FlowDef, errors: &mut Vec<Error>| {
        let before = errors.len();
        let mut reads = Vec::new();
        for source in &flow.query().sources {
            match target(definitions, flow, source) {
                Ok(target) => reads.push(Read {
                    placeholder: source.placeholder.clone(),
                    target,
                    streaming: source.streaming,
                    span: source.span,
                }),
                Err(e) => errors.push(e),
            }
        }
        (errors.len() == before).then_some(reads)
    };
    definitions.flows.iter().map(|flow| resolve(flow, errors)).collect()
}

fn target(
    definitions: &Definitions,
    flow: &FlowDef,
    source: &QuerySource,
) -> Result<Target, Error> {
    let object = &definitions.datasets[flow.target].name;
    let find = |name| {
        definitions
            .find(name, &flow.scope)
            .ok_or_else(|| definitions.not_found(name, &flow.file, object))
    };
    let at = location(&flow.file, source.span);
    match &source.table {
        TableRef::Table(name) => Ok(Target::Dataset(find(name)?)),
        TableRef::Files(call) => Ok(Target::Files(call.clone())),
        TableRef::Changes { table, from, to } => {
            let dataset = find(table)?;
            if definitions.datasets[dataset].is_view() {
                let message = "table_changes reads a stored table, and this is a view";
                return Err(Error::user("UNSUPPORTED_FEATURE", message).object(object).at(at));
            }
            Ok(Target::Changes { dataset, from: *from, to: *to })
        }
        TableRef::ExternalChanges { path, from, to } => {
            Ok(Target::ExternalChanges { path: path.clone(), from: *from, to: *to })
        }
        TableRef::External { format, path, span } => match format.as_str() {
            "csv" | "json" => {
                let options = BTreeMap::from([("format".to_owned(), format.clone())]);
                Ok(Target::Files(ReadFiles { path: path.clone(), options, span: *span }))
            }
            "parquet" if source.streaming => {
                let message = "files cannot be read as a stream by their path alone";
                let hint = format!("write STREAM read_files('{path}', format => 'parquet')");
                Err(Error::user("UNSUPPORTED_FEATURE", message).object(object).at(at).hint(hint))
            }
            _ => Ok(Target::External(path.clone())),
        },
    }
}
