//! `deltaic graph`: what reads what, as text, Mermaid or Graphviz.

use std::collections::BTreeSet;

use deltaic_pipeline::{DatasetNode, FlowInput, Graph, InputSource};
use deltaic_sql::DatasetKind;

use crate::args::GraphFormat;

/// A node of the drawing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    /// Index of a dataset.
    Dataset(usize),
    /// Files or an external table, by path.
    Path(String),
}

/// The drawing.
pub(super) fn draw(graph: &Graph, format: GraphFormat) -> String {
    let edges = edges(graph);
    match format {
        GraphFormat::Text => text(graph, &edges),
        GraphFormat::Mermaid => mermaid(graph, &edges),
        GraphFormat::Dot => dot(graph, &edges),
    }
}

/// (from, to, streaming), each once, in order of the target.
fn edges(graph: &Graph) -> Vec<(Node, usize, bool)> {
    let mut edges = BTreeSet::new();
    for (to, dataset) in graph.datasets.iter().enumerate() {
        if let Some(origin) = dataset.quarantine_of {
            edges.insert((to, Node::Dataset(origin), false));
        }
        let own = (dataset.reads.as_slice(), dataset.view_inputs.as_slice());
        let flows = dataset.flows.iter().map(|f| &graph.flows[*f]);
        let all = flows.map(|f| (f.reads.as_slice(), f.inputs.as_slice())).chain([own]);
        for (reads, inputs) in all {
            for (from, streaming) in reads {
                edges.insert((to, Node::Dataset(*from), *streaming));
            }
            // Files that a view reads are the view's.
            let of_views = |input: &&FlowInput| {
                let views = reads.iter().map(|(d, _)| &graph.datasets[*d]);
                !views.flat_map(|v| &v.view_inputs).any(|i| i.name == input.name)
            };
            for input in inputs.iter().filter(of_views) {
                match &input.source {
                    InputSource::Files(files) => {
                        edges.insert((to, Node::Path(files.path.clone()), input.streaming));
                    }
                    InputSource::External(path) | InputSource::ExternalChanges { path, .. } => {
                        edges.insert((to, Node::Path(path.clone()), input.streaming));
                    }
                    InputSource::Dataset(_) | InputSource::Changes { .. } => {}
                }
            }
        }
    }
    edges.into_iter().map(|(to, from, streaming)| (from, to, streaming)).collect()
}

fn kind(dataset: &DatasetNode) -> &'static str {
    match dataset.kind {
        DatasetKind::StreamingTable => "streaming table",
        DatasetKind::MaterializedView => "materialized view",
        DatasetKind::TemporaryView => "temporary view",
        DatasetKind::View => "view",
    }
}

fn text(graph: &Graph, edges: &[(Node, usize, bool)]) -> String {
    let width = graph.datasets.iter().map(|d| d.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (n, dataset) in graph.datasets.iter().enumerate() {
        let gap = " ".repeat(width - dataset.name.chars().count());
        let sources: Vec<String> = (edges.iter())
            .filter(|(_, to, _)| *to == n)
            .map(|(from, _, streaming)| {
                let name = match from {
                    Node::Dataset(d) => graph.datasets[*d].name.clone(),
                    Node::Path(path) => format!("'{path}'"),
                };
                if *streaming { format!("STREAM {name}") } else { name }
            })
            .collect();
        let line = format!("{}{gap}  {:<17}", dataset.name, kind(dataset));
        text += &match sources.is_empty() {
            true => format!("{}\n", line.trim_end()),
            false => format!("{line}  <- {}\n", sources.join(", ")),
        };
    }
    text
}

/// Numbers of the paths, in order of first use.
fn paths(edges: &[(Node, usize, bool)]) -> Vec<&str> {
    let mut paths: Vec<&str> = Vec::new();
    for (from, _, _) in edges {
        if let Node::Path(path) = from
            && !paths.contains(&path.as_str())
        {
            paths.push(path);
        }
    }
    paths
}

fn id(node: &Node, paths: &[&str]) -> String {
    match node {
        Node::Dataset(d) => format!("d{d}"),
        Node::Path(path) => {
            let n = paths.iter().position(|p| p == path).unwrap_or(0);
            format!("f{n}")
        }
    }
}

fn mermaid(graph: &Graph, edges: &[(Node, usize, bool)]) -> String {
    let paths = paths(edges);
    let label = |text: &str| text.replace('"', "#quot;");
    let mut text = String::from("flowchart LR\n");
    for (n, path) in paths.iter().enumerate() {
        text += &format!("  f{n}[/\"{}\"/]\n", label(path));
    }
    for (n, dataset) in graph.datasets.iter().enumerate() {
        let (open, close) = match dataset.kind {
            DatasetKind::StreamingTable => ("[(", ")]"),
            DatasetKind::MaterializedView => ("[", "]"),
            DatasetKind::TemporaryView | DatasetKind::View => ("([", "])"),
        };
        text += &format!("  d{n}{open}\"{}\"{close}\n", label(&dataset.name));
    }
    for (from, to, streaming) in edges {
        let arrow = if *streaming { "==>" } else { "-->" };
        text += &format!("  {} {arrow} d{to}\n", id(from, &paths));
    }
    text
}

fn dot(graph: &Graph, edges: &[(Node, usize, bool)]) -> String {
    let paths = paths(edges);
    let label = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let mut text =
        String::from("digraph pipeline {\n  rankdir=LR;\n  node [fontname=\"sans-serif\"];\n");
    for (n, path) in paths.iter().enumerate() {
        text += &format!("  f{n} [label=\"{}\", shape=folder];\n", label(path));
    }
    for (n, dataset) in graph.datasets.iter().enumerate() {
        let shape = match dataset.kind {
            DatasetKind::StreamingTable => "cylinder",
            DatasetKind::MaterializedView => "box",
            DatasetKind::TemporaryView | DatasetKind::View => "ellipse",
        };
        text += &format!("  d{n} [label=\"{}\", shape={shape}];\n", label(&dataset.name));
    }
    for (from, to, streaming) in edges {
        let style = if *streaming { " [style=bold]" } else { "" };
        text += &format!("  {} -> d{to}{style};\n", id(from, &paths));
    }
    text + "}\n"
}
