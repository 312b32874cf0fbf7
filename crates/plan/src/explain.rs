//! The plan as text: one line per node, and the technique, state and reason of each.

use std::collections::HashSet;
use std::fmt::Write as _;

use deltaic_ops::JoinKind;

use crate::technique::Technique;
use crate::tree::{Kind, Node, NodeIx, Tree};

/// The whole explanation.
pub(crate) fn text(
    tree: &Tree,
    root: NodeIx,
    technique: Technique,
    issues: &[(String, String, String)],
) -> String {
    let mut writer = Writer { tree, shown: HashSet::new(), text: String::new() };
    // Writing into a String cannot fail.
    let _ = writeln!(writer.text, "Technique: {technique}");
    writer.node(root, "", "");
    let mut text = writer.text;
    for (issue, operator, reason) in issues {
        let _ = writeln!(text, "{issue}: {operator}: {reason}");
    }
    text
}

struct Writer<'a> {
    tree: &'a Tree,
    shown: HashSet<NodeIx>,
    text: String,
}

impl Writer<'_> {
    /// Writes a node after `first`, and what belongs below it after `rest`.
    fn node(&mut self, ix: NodeIx, first: &str, rest: &str) {
        let ix = self.below_picks(ix);
        let node = &self.tree.nodes[ix];
        let name = node.kind.name();
        let again = !self.shown.insert(ix) && !node.inputs.is_empty();
        let about = if again { "  (as above)".into() } else { about(node) };
        let space = if node.detail.is_empty() { "" } else { " " };
        let _ = writeln!(self.text, "{first}{name}{space}{}{about}", node.detail);
        if again {
            return;
        }
        let step = match &node.kind {
            Kind::Recursion { body, root, .. } => Some((body, *root)),
            _ => None,
        };
        for (i, &input) in node.inputs.iter().enumerate() {
            let last = i + 1 == node.inputs.len() && step.is_none();
            let (branch, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            self.node(input, &format!("{rest}{branch}"), &format!("{rest}{below}"));
        }
        if let Some((body, root)) = step {
            let text = std::mem::take(&mut self.text);
            let mut step = Writer { tree: body, shown: HashSet::new(), text };
            step.node(root, &format!("{rest}└─ step: "), &format!("{rest}   "));
            self.text = step.text;
        }
    }
}

impl Writer<'_> {
    /// The node itself, or the one below it that it does nothing to but pick and name columns.
    fn below_picks(&self, ix: NodeIx) -> NodeIx {
        let node = &self.tree.nodes[ix];
        match (&node.kind, node.inputs.as_slice()) {
            (Kind::Project { columns }, &[below])
                if columns.iter().all(|(evaluator, _)| evaluator.column().is_some()) =>
            {
                self.below_picks(below)
            }
            _ => ix,
        }
    }
}

/// State and reason of a node, in brackets.
fn about(node: &Node) -> String {
    match &node.kind {
        Kind::Source { .. } | Kind::Constant { .. } => String::new(),
        Kind::Filter { .. } | Kind::Project { .. } | Kind::UnionAll => String::new(),
        Kind::Bounded { .. } => "  [state: all rows in order]".into(),
        Kind::Join { kind, .. } => match kind {
            JoinKind::Inner => "  [state: both inputs]".into(),
            JoinKind::Left | JoinKind::Right | JoinKind::Full => "  [state: both inputs]".into(),
            JoinKind::LeftSemi | JoinKind::LeftAnti => "  [state: both inputs]".into(),
        },
        Kind::RangeJoin { .. } => "  [state: both inputs in order]".into(),
        Kind::Aggregate { keys, .. } if keys.is_empty() => "  [state: one group]".into(),
        Kind::Aggregate { .. } => "  [state: groups]".into(),
        Kind::Distinct => "  [state: a counter per row]".into(),
        Kind::TopK { .. } => "  [state: all rows in order]".into(),
        Kind::Window { .. } => "  [state: all rows in order]".into(),
        Kind::ByGroup { .. } => "  [state: all rows; recomputes touched groups]".into(),
        Kind::PerRow { .. } => String::new(),
        Kind::Recursion { distinct: true, .. } => "  [state: a counter per row, the step's]".into(),
        Kind::Recursion { .. } => "  [state: the step's]".into(),
        Kind::Hybrid { reason, .. } => {
            format!("  [state: inputs and last result; HYBRID: {reason}]")
        }
    }
}
