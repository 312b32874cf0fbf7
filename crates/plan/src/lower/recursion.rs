//! `WITH RECURSIVE`: the recursive term as a little tree of its own, over the work table and over nodes
//! outside that do not read it.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::logical_expr::{LogicalPlan, RecursiveQuery};
use deltaic_batch::Result;
use deltaic_ops::{JoinKind, Recursion};

use super::Lowering;
use crate::circuit;
use crate::session::batch::relaxed;
use crate::tree::{Kind, Node, NodeIx, Tree};

/// Name of the work table as a source of the step's tree.
pub(crate) const WORK: &str = "work table";
/// Start of the names of its other sources, before their numbers.
pub(crate) const OUTER: &str = "input ";

impl Lowering {
    /// A recursion whose step is linear in its result, and for UNION monotone; hybrid otherwise.
    pub(super) fn recursion(
        &mut self,
        plan: &LogicalPlan,
        query: &RecursiveQuery,
    ) -> Result<NodeIx> {
        let output = relaxed(plan.schema().as_arrow());
        let base = self.lower(&query.static_term)?;
        let enclosing = self.work.replace((query.name.clone(), output.clone()));
        let step = self.lower(&query.recursive_term);
        self.work = enclosing;
        let step = step?;
        let fits = |node: NodeIx, tree: &Tree| {
            let types = tree.schema(node).fields().iter().map(|field| field.data_type());
            types.eq(output.fields().iter().map(|field| field.data_type()))
        };
        if !fits(base, &self.tree) || !fits(step, &self.tree) {
            return self.hybrid(plan);
        }
        let Some((body, root, outer)) = self.step_of(step, query.is_distinct) else {
            return self.hybrid(plan);
        };
        let detail = if query.is_distinct { "UNION" } else { "UNION ALL" };
        let detail = format!("{} {detail}", query.name);
        let spec = format!("{} {}", query.is_distinct, body.nodes[root].fingerprint);
        let inputs: Vec<NodeIx> = [base].into_iter().chain(outer).collect();
        let schemas = inputs.iter().map(|&input| self.tree.schema(input).clone()).collect();
        let distinct = query.is_distinct;
        let body = Arc::new(body);
        let declared = circuit::recursion(&body, root, distinct, schemas, &output, &detail)?;
        if Recursion::try_new(declared).is_err() {
            return self.hybrid(plan);
        }
        let kind = Kind::Recursion { body, root, distinct };
        Ok(self.tree.add(kind, inputs, output, detail, &spec))
    }

    /// The nodes that read the work table as a tree, its root, and the nodes outside that they read;
    /// `None` if one of them has no place in a step.
    fn step_of(&self, root: NodeIx, distinct: bool) -> Option<(Tree, NodeIx, Vec<NodeIx>)> {
        let reads = self.readers_of_work(root);
        let (mut body, mut outer) = (Tree::default(), Vec::new());
        let mut numbers: HashMap<NodeIx, NodeIx> = HashMap::new();
        for ix in (0..=root).filter(|ix| reads[*ix]) {
            let node = &self.tree.nodes[ix];
            if matches!(&node.kind, Kind::Source { .. }) {
                numbers.insert(ix, source(&mut body, WORK.into(), node));
                continue;
            }
            let of_work: Vec<bool> = node.inputs.iter().map(|&input| reads[input]).collect();
            if !has_place(&node.kind, &of_work, distinct) {
                return None;
            }
            let mut inputs = Vec::with_capacity(node.inputs.len());
            for &input in &node.inputs {
                inputs.push(*numbers.entry(input).or_insert_with(|| {
                    outer.push(input);
                    let name = format!("{OUTER}{}", outer.len() - 1);
                    source(&mut body, name, &self.tree.nodes[input])
                }));
            }
            let (kind, schema) = (node.kind.clone(), node.schema.clone());
            // The fingerprint outside says all that the node means; its inputs come with the recursion.
            let spec = node.fingerprint.to_string();
            numbers.insert(ix, body.add(kind, inputs, schema, node.detail.clone(), &spec));
        }
        numbers.get(&root).map(|&root| (body, root, outer))
    }

    /// Of each node up to `root`: it reads the work table, and the root reads it.
    fn readers_of_work(&self, root: NodeIx) -> Vec<bool> {
        let mut below = vec![false; root + 1];
        below[root] = true;
        for ix in (0..=root).rev().filter(|ix| *ix <= root) {
            if below[ix] {
                self.tree.nodes[ix].inputs.iter().for_each(|&input| below[input] = true);
            }
        }
        let mut reads = vec![false; root + 1];
        for ix in 0..=root {
            let node = &self.tree.nodes[ix];
            let is_work = matches!(&node.kind, Kind::Source { name } if is_work_table(name));
            reads[ix] = below[ix] && (is_work || node.inputs.iter().any(|&input| reads[input]));
        }
        reads
    }
}

/// Name of the source that stands for the work table of a recursion while it is lowered.
pub(super) fn work_table(query: &str) -> String {
    format!("{WORK} {query}")
}

fn is_work_table(name: &str) -> bool {
    name.starts_with(WORK)
}

fn source(body: &mut Tree, name: String, like: &Node) -> NodeIx {
    let spec = format!("{name} {:?}", like.schema);
    let kind = Kind::Source { name: name.clone() };
    body.add(kind, Vec::new(), like.schema.clone(), name, &spec)
}

/// The operator is linear in its inputs that read the work table, and for UNION monotone in all.
/// `of_work` says which read it.
fn has_place(kind: &Kind, of_work: &[bool], distinct: bool) -> bool {
    match kind {
        Kind::Filter { .. } | Kind::Project { .. } | Kind::UnionAll | Kind::PerRow { .. } => true,
        Kind::RangeJoin { .. } => of_work.iter().filter(|reads| **reads).count() == 1,
        Kind::Join { kind, .. } => {
            let from_left = of_work == [true, false];
            match kind {
                JoinKind::Inner => of_work.iter().filter(|reads| **reads).count() == 1,
                JoinKind::LeftSemi => from_left,
                JoinKind::Left | JoinKind::LeftAnti => from_left && !distinct,
                JoinKind::Right => of_work == [false, true] && !distinct,
                JoinKind::Full => false,
            }
        }
        _ => false,
    }
}
