//! Flows that look renamed: a flow without progress that reads what a flow that is gone has read.
//! It starts from the beginning, so that its rows come twice.

use deltaic_batch::Result;
use deltaic_table::Storage;

use super::inputs::input_keys;
use crate::Graph;
use crate::marker::Marker;
use crate::progress::ProgressStore;

/// A warning for each flow that looks renamed.
pub(crate) fn renamed_flows(
    storage: &Storage,
    graph: &Graph,
    marker: &Marker,
) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    for node in graph.datasets.iter().filter(|d| d.view_query.is_none()) {
        let Some(marked) = marker.datasets.get(&node.key) else { continue };
        let names: Vec<&str> = node.flows.iter().map(|&f| graph.flows[f].name.as_str()).collect();
        let gone = || {
            let old = marked.epochs.iter().filter(|(name, _)| !name.is_empty());
            old.filter(|(name, _)| !names.contains(&name.as_str()))
        };
        for &f in &node.flows {
            let flow = &graph.flows[f];
            if marked.epochs.contains_key(&flow.name) {
                continue;
            }
            let keys = input_keys(graph, flow);
            for (old, epoch) in gone() {
                let progress = ProgressStore::new(storage, &node.key, old).load(*epoch);
                let shared = |key: &&String| {
                    progress.as_ref().is_ok_and(|p| p.inputs.contains_key(key.as_str()))
                };
                if let Some(key) = keys.iter().find(shared) {
                    let source = key.split_once(':').map_or(key.as_str(), |(_, name)| name);
                    warnings.push(format!(
                        "{}: flow '{}' is new and reads all of '{source}', which flow '{old}' has \
                         read before it was removed; if it was renamed, its rows come twice: give \
                         it its old name, or run with --full-refresh {}",
                        node.name, flow.name, node.name
                    ));
                }
            }
        }
    }
    Ok(warnings)
}
