//! What a run refreshes and resets; names and rules are checked before anything runs.

use std::collections::BTreeSet;

use deltaic_batch::Error;
use deltaic_sql::DatasetKind;

use crate::marker::Marker;
use crate::near::near_names;
use crate::report::{Errors, RunOptions};
use crate::{DatasetNode, Graph, InputSource};

/// Chosen datasets by index.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// To be refreshed.
    pub(crate) refresh: BTreeSet<usize>,
    /// To be emptied and read from the beginning.
    pub(crate) reset: BTreeSet<usize>,
}

/// Stored, as opposed to a view that is inlined.
pub(crate) fn is_stored(node: &DatasetNode) -> bool {
    matches!(node.kind, DatasetKind::StreamingTable | DatasetKind::MaterializedView)
}

impl Selection {
    /// Checks the options against the graph.
    pub(crate) fn new(graph: &Graph, options: &RunOptions) -> Result<Self, Errors> {
        let mut errors = Vec::new();
        let mut pick = |names: &[String]| -> BTreeSet<usize> {
            names
                .iter()
                .filter_map(|name| match find(graph, name) {
                    Ok(index) => Some(index),
                    Err(error) => {
                        errors.push(error);
                        None
                    }
                })
                .collect()
        };
        let mut refresh = pick(&options.refresh);
        let mut reset = pick(&options.full_refresh);
        if !errors.is_empty() {
            return Err(Errors(errors));
        }
        let all: BTreeSet<usize> =
            (0..graph.datasets.len()).filter(|&d| is_stored(&graph.datasets[d])).collect();
        if options.full_refresh_all {
            reset.clone_from(&all);
        }
        if options.full_refresh_all || (refresh.is_empty() && reset.is_empty()) {
            refresh = all;
        }
        refresh.extend(&reset);
        refresh = with_quarantine(graph, &refresh);
        reset = with_quarantine(graph, &reset);
        let errors = reset_errors(graph, &reset);
        if errors.is_empty() { Ok(Self { refresh, reset }) } else { Err(Errors(errors)) }
    }
}

/// A table and its quarantine go together.
fn with_quarantine(graph: &Graph, chosen: &BTreeSet<usize>) -> BTreeSet<usize> {
    let other = |d: &usize| graph.datasets[*d].quarantine.or(graph.datasets[*d].quarantine_of);
    chosen.iter().copied().chain(chosen.iter().filter_map(other)).collect()
}

fn find(graph: &Graph, name: &str) -> Result<usize, Error> {
    let key = name.to_lowercase();
    let stored = || graph.datasets.iter().enumerate().filter(|(_, d)| is_stored(d));
    if let Some((index, _)) =
        stored().find(|(_, d)| d.key == key || d.name.eq_ignore_ascii_case(name))
    {
        return Ok(index);
    }
    let error = Error::user("UNKNOWN_DATASET", "there is no such table or view in the pipeline")
        .object(name);
    let names: Vec<&str> = stored().map(|(_, d)| d.name.as_str()).collect();
    Err(match near_names(name, names.iter().copied()).as_slice() {
        [] => error.hint(format!("the pipeline has {}", names.join(", "))),
        near => error.hint(format!("did you mean {}?", near.join(" or "))),
    })
}

/// A reset must be allowed, and must not let rows double in streams that read the table.
fn reset_errors(graph: &Graph, reset: &BTreeSet<usize>) -> Vec<Error> {
    let mut errors = Vec::new();
    for &d in reset {
        let node = &graph.datasets[d];
        let allowed = node.properties.get("pipelines.reset.allowed");
        if allowed.is_some_and(|v| v.eq_ignore_ascii_case("false")) {
            errors.push(
                Error::user("RESET_NOT_ALLOWED", "pipelines.reset.allowed is false for this table")
                    .object(&node.name)
                    .hint("leave it out of the full refresh, or change the property"),
            );
        }
        for flow in &graph.flows {
            let reads = flow
                .inputs
                .iter()
                .any(|i| i.streaming && matches!(i.source, InputSource::Dataset(s) if s == d));
            if reads && !reset.contains(&flow.target) {
                let reader = &graph.datasets[flow.target].name;
                errors.push(
                    Error::user(
                        "RESET_WOULD_DOUBLE_ROWS",
                        format!("'{reader}' reads it as a stream and would get its rows again"),
                    )
                    .object(&node.name)
                    .hint(format!("reset both: --full-refresh {},{reader}", node.name)),
                );
            }
        }
    }
    errors
}

/// Stored datasets that the graph no longer has.
pub(crate) fn inactive(graph: &Graph, marker: &Marker) -> Vec<String> {
    let active: BTreeSet<&str> =
        graph.datasets.iter().filter(|d| is_stored(d)).map(|d| d.key.as_str()).collect();
    let keys = marker.datasets.keys().filter(|key| !active.contains(key.as_str()));
    keys.cloned().collect()
}
