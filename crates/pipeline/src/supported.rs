//! Configuration that means nothing: refused before any data is touched.

use std::collections::BTreeSet;

use deltaic_batch::Error;

use crate::Graph;
use crate::graph::{INVALID_ROWS, QUARANTINE};
use crate::near::near_names;
use crate::update::RETENTION;

const TIME_ZONE: &str = "deltaic.timeZone";

/// Keys of ours that mean nothing, each once.
pub(crate) fn unsupported(graph: &Graph) -> Vec<Error> {
    let mut told = BTreeSet::new();
    let mut errors = Vec::new();
    for flow in &graph.flows {
        for (key, value) in flow.configuration.iter().filter(|(key, _)| key.starts_with("deltaic."))
        {
            let error = match (key.as_str(), value.as_str()) {
                (TIME_ZONE | RETENTION, _) => continue,
                (INVALID_ROWS, value) => {
                    if ["fail", QUARANTINE].iter().any(|known| value.eq_ignore_ascii_case(known)) {
                        continue;
                    }
                    let message = format!("{INVALID_ROWS} = {value} is not known");
                    let hint = format!("there are: fail, {QUARANTINE}");
                    Error::user("CONFIGURATION_VALUE", message).hint(hint)
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
