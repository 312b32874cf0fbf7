//! What the graph can say but a run cannot do yet, and configuration that means nothing: refused before
//! any data is touched.

use std::collections::BTreeSet;

use deltaic_batch::Error;
use deltaic_sql::OnViolation;

use crate::Graph;
use crate::near::near_names;
use crate::update::RETENTION;

const TIME_ZONE: &str = "deltaic.timeZone";
const INVALID_ROWS: &str = "deltaic.cdc.invalidRows";

/// One error for each use.
pub(crate) fn unsupported(graph: &Graph) -> Vec<Error> {
    let mut errors = Vec::new();
    for dataset in &graph.datasets {
        for (rule, _) in &dataset.expectations {
            if rule.action == OnViolation::Quarantine {
                errors.push(
                    Error::user("UNSUPPORTED_FEATURE", "QUARANTINE is not supported yet")
                        .object(&rule.name.value)
                        .at(dataset.location.clone())
                        .hint("use ON VIOLATION DROP ROW: dropped rows are counted"),
                );
            }
        }
    }
    errors.extend(configuration(graph));
    errors
}

/// Keys of ours that mean nothing, each once.
fn configuration(graph: &Graph) -> Vec<Error> {
    let mut told = BTreeSet::new();
    let mut errors = Vec::new();
    for flow in &graph.flows {
        for (key, value) in flow.configuration.iter().filter(|(key, _)| key.starts_with("deltaic."))
        {
            let error = match (key.as_str(), value.as_str()) {
                (TIME_ZONE | RETENTION, _) | (INVALID_ROWS, "fail") => continue,
                (INVALID_ROWS, other) => {
                    let message = format!("{INVALID_ROWS} = {other} is not supported yet");
                    let hint = "leave invalid events out in the flow's source query";
                    Error::user("UNSUPPORTED_FEATURE", message).hint(hint)
                }
                (key, _) => {
                    let known = [TIME_ZONE, RETENTION, INVALID_ROWS];
                    let message = format!("there is no configuration '{key}'");
                    let error = Error::user("CONFIGURATION_KEY", message);
                    match near_names(key, known.into_iter()).first() {
                        Some(near) => error.hint(format!("did you mean '{near}'?")),
                        None => error.hint(format!("there are: {}", known.join(", "))),
                    }
                }
            };
            if told.insert(key.clone()) {
                errors.push(error.object(&flow.name).at(flow.location.clone()));
            }
        }
    }
    errors
}
