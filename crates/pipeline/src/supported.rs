//! What the graph can say but a run cannot do yet: refused before any data is touched.

use deltaic_batch::Error;
use deltaic_sql::OnViolation;

use crate::Graph;

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
    errors
}
