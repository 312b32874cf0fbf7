//! The incremental plan: nodes in topological order, equal subtrees once.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{Field, SchemaRef};
use deltaic_ops::{AggregateCall, Comparison, Evaluator, JoinKind, RangeCondition, WindowCall};
use deltaic_state::SortKey;

use crate::hybrid::Region;

/// Number of a node in its tree.
pub(crate) type NodeIx = usize;

/// What a node does.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// The rows of a table.
    Source { name: String },
    /// Rows that do not depend on any table.
    Constant { region: Arc<Region> },
    /// Keeps rows.
    Filter { predicate: Arc<dyn Evaluator> },
    /// Keeps the rows whose value compares so with the one row of the second input, which is of the
    /// clock or of a query.
    Bounded { value: usize, comparison: Comparison, temporal: bool },
    /// Computes columns.
    Project { columns: Vec<(Arc<dyn Evaluator>, Field)> },
    /// Adds its inputs up.
    UnionAll,
    /// Joins its two inputs.
    Join {
        kind: JoinKind,
        on: Vec<(usize, usize)>,
        null_equals_null: bool,
        residual: Option<Arc<dyn Evaluator>>,
    },
    /// Joins its two inputs on comparisons.
    RangeJoin {
        on: Vec<(usize, usize)>,
        null_equals_null: bool,
        values: (usize, usize),
        ranges: Vec<RangeCondition>,
        condition: Arc<dyn Evaluator>,
    },
    /// One row per group.
    Aggregate { keys: Vec<usize>, calls: Vec<AggregateCall> },
    /// Each row once.
    Distinct,
    /// The rows in some places of each group.
    TopK {
        partition: Vec<usize>,
        order: Vec<SortKey>,
        offset: u64,
        limit: u64,
        number: Option<Field>,
    },
    /// Window functions over ordered partitions.
    Window { partition: Vec<usize>, order: Vec<SortKey>, calls: Vec<WindowCall> },
    /// Recomputes touched groups of the first `width` columns of its input.
    ByGroup { region: Arc<Region>, keys: Vec<usize>, width: usize, what: ByGroup },
    /// Computes rows from each row by itself.
    PerRow { region: Arc<Region> },
    /// The fixpoint of a step over a work table; the first input is the base.
    Recursion { body: Arc<Tree>, root: NodeIx, distinct: bool },
    /// Recomputes a part of the query and emits the difference.
    Hybrid { region: Arc<Region>, operator: String, reason: String },
}

/// What is recomputed by touched group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByGroup {
    /// Window functions.
    Window,
    /// Aggregate functions.
    Aggregate,
}

impl ByGroup {
    /// Name in explain.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Window => "GenericWindow",
            Self::Aggregate => "GenericAggregate",
        }
    }
}

/// A node and what it reads.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) inputs: Vec<NodeIx>,
    /// Schema of the output.
    pub(crate) schema: SchemaRef,
    /// One line for explain.
    pub(crate) detail: String,
    pub(crate) fingerprint: Fingerprint,
}

/// Nodes; each reads only earlier ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    known: HashMap<Fingerprint, NodeIx>,
}

impl Tree {
    /// Adds a node, or finds the equal one. `spec` says all that `kind` means, for the fingerprint.
    pub(crate) fn add(
        &mut self,
        kind: Kind,
        inputs: Vec<NodeIx>,
        schema: SchemaRef,
        detail: String,
        spec: &str,
    ) -> NodeIx {
        let mut fingerprint = Fingerprint::of(kind.name());
        fingerprint.mix(spec);
        for field in schema.fields() {
            fingerprint.mix(&field.data_type().to_string());
        }
        for &input in &inputs {
            fingerprint.mix(&self.nodes[input].fingerprint.to_string());
        }
        if let Some(&known) = self.known.get(&fingerprint) {
            return known;
        }
        self.nodes.push(Node { kind, inputs, schema, detail, fingerprint });
        self.known.insert(fingerprint, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// The nodes that `root` needs, and its number among them; what was tried and not used is gone.
    pub(crate) fn reachable(self, root: NodeIx) -> (Self, NodeIx) {
        let mut is_needed = vec![false; self.nodes.len()];
        is_needed[root] = true;
        for ix in (0..=root).rev() {
            if is_needed[ix] {
                self.nodes[ix].inputs.iter().for_each(|&input| is_needed[input] = true);
            }
        }
        let mut numbers = vec![0; self.nodes.len()];
        let mut tree = Self::default();
        for (ix, mut node) in self.nodes.into_iter().enumerate().filter(|(ix, _)| is_needed[*ix]) {
            node.inputs.iter_mut().for_each(|input| *input = numbers[*input]);
            numbers[ix] = tree.nodes.len();
            tree.known.insert(node.fingerprint, tree.nodes.len());
            tree.nodes.push(node);
        }
        (tree, numbers[root])
    }

    /// Schema of a node's output.
    pub(crate) fn schema(&self, node: NodeIx) -> &SchemaRef {
        &self.nodes[node].schema
    }
}

impl Kind {
    /// Name in explain.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Source { .. } => "Source",
            Self::Constant { .. } => "Constant",
            Self::Filter { .. } => "Filter",
            Self::Bounded { temporal: true, .. } => "TemporalFilter",
            Self::Bounded { .. } => "DynamicFilter",
            Self::Project { .. } => "Project",
            Self::UnionAll => "UnionAll",
            Self::Join { kind, .. } => match kind {
                JoinKind::Inner => "InnerJoin",
                JoinKind::Left => "LeftJoin",
                JoinKind::Right => "RightJoin",
                JoinKind::Full => "FullJoin",
                JoinKind::LeftSemi => "SemiJoin",
                JoinKind::LeftAnti => "AntiJoin",
            },
            Self::RangeJoin { .. } => "RangeJoin",
            Self::Aggregate { .. } => "Aggregate",
            Self::Distinct => "Distinct",
            Self::TopK { .. } => "TopK",
            Self::Window { .. } => "Window",
            Self::ByGroup { what, .. } => what.name(),
            Self::PerRow { .. } => "Unnest",
            Self::Recursion { .. } => "Recursion",
            Self::Hybrid { .. } => "Recompute",
        }
    }
}

/// Identity of a subtree: 128-bit FNV-1a over a canonical description. Stored with state, so the
/// function must never change without a new format version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(u128);

impl Fingerprint {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    pub(crate) fn of(text: &str) -> Self {
        let mut fingerprint = Self(Self::OFFSET);
        fingerprint.mix(text);
        fingerprint
    }

    /// Adds a text; texts stay apart.
    pub(crate) fn mix(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(Self::PRIME);
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
