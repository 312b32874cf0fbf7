//! A planned view: its tree, and what is known about it.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, SchemaRef};
use chrono::{DateTime, Utc};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_exec::{Circuit, CircuitOptions};
use deltaic_ops::{ColumnRef, Evaluator};

use crate::catalog::{Source, Sources};
use crate::circuit;
use crate::decision::{self, Decision, RefreshPolicy, ViewStats};
use crate::errors;
use crate::explain;
use crate::lower::Lowering;
use crate::session::clock::CLOCK;
use crate::session::provider::TableInput;
use crate::session::{Planned, clock, optimize};
use crate::technique::Technique;
use crate::tree::{ByGroup, Fingerprint, Kind, NodeIx, Tree};

/// Version of what a fingerprint covers; raise it when stored state of an equal plan no longer
/// fits.
const FINGERPRINT_VERSION: &str = "2";

/// A planned view.
#[derive(Debug, Clone)]
pub struct ViewPlan {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    tree: Tree,
    root: NodeIx,
    schema: SchemaRef,
    /// Tables that the query names, with their schemas.
    sources: Vec<(String, SchemaRef)>,
    fingerprint: Fingerprint,
    technique: Technique,
    /// Functions whose result differs from run to run.
    unstable: Vec<String>,
    /// The result depends on the time.
    asks: bool,
    /// The clock as a source of the circuit.
    clock: Option<SchemaRef>,
}

/// Plans a view from its analyzed query.
pub(crate) fn plan(
    state: &Arc<SessionState>,
    planned: Planned,
    sources: &Sources,
    time_zone: &str,
    now: DateTime<Utc>,
) -> Result<ViewPlan> {
    let unstable = unstable_functions(&planned.plan).map_err(|e| errors::planning(&e))?;
    let asks = unstable.iter().any(|f| f.stable);
    let is_random = unstable.iter().any(|f| !f.stable);
    let read = tables(&planned.plan).map_err(|e| errors::planning(&e))?;
    let clock = clock::schema(time_zone);
    let timed = match asks && !is_random {
        true => lowered_with_clock(state, &planned, &clock)?,
        false => None,
    };
    // Else the time of the run is part of the tree, but not of the view's identity.
    let is_fixed = asks && timed.is_none();
    let clock = timed.is_some().then_some(clock);
    let (tree, root) = match timed {
        Some(timed) => timed,
        None => lowered(state, &planned, is_fixed.then_some(now))?,
    };
    let identity = match is_fixed {
        true => lowered(state, &planned, None).map(|(tree, root)| tree.nodes[root].fingerprint)?,
        false => tree.nodes[root].fingerprint,
    };
    let mut fingerprint = Fingerprint::of(FINGERPRINT_VERSION);
    fingerprint.mix(time_zone);
    fingerprint.mix(&identity.to_string());
    for field in planned.schema.fields() {
        fingerprint.mix(&format!("{} {} {}", field.name(), field.data_type(), field.is_nullable()));
    }
    let append_only = read.iter().all(
        |(name, _)| matches!(sources.get(name), Some(Source::Table(table)) if table.append_only),
    );
    let unstable = match clock {
        Some(_) => Vec::new(),
        None => unstable.into_iter().map(|f| f.name).collect(),
    };
    let technique = match unstable.is_empty() {
        true => technique_of(&tree, append_only),
        false => Technique::CompleteRecompute,
    };
    let inner = Inner {
        tree,
        root,
        schema: planned.schema,
        sources: read,
        fingerprint,
        technique,
        unstable,
        asks,
        clock,
    };
    Ok(ViewPlan { inner: Arc::new(inner) })
}

/// The tree of the optimized plan, topped by the users' names and types.
fn lowered(
    state: &Arc<SessionState>,
    planned: &Planned,
    now: Option<DateTime<Utc>>,
) -> Result<(Tree, NodeIx)> {
    let optimized =
        optimize::optimize(state, planned.plan.clone(), now).map_err(|e| errors::planning(&e))?;
    lowered_plan(state, &optimized, planned, None)
}

/// The same with the clock as a source; `None` where that is not possible.
fn lowered_with_clock(
    state: &Arc<SessionState>,
    planned: &Planned,
    clock: &SchemaRef,
) -> Result<Option<(Tree, NodeIx)>> {
    let bound = || {
        let optimized = optimize::optimize_with_clock(state, planned.plan.clone())?;
        clock::bind(optimized, &clock::scan(clock)?)
    };
    match bound().map_err(|e| errors::planning(&e))? {
        Some(plan) => lowered_plan(state, &plan, planned, Some(clock.clone())).map(Some),
        None => Ok(None),
    }
}

fn lowered_plan(
    state: &Arc<SessionState>,
    plan: &LogicalPlan,
    planned: &Planned,
    clock: Option<SchemaRef>,
) -> Result<(Tree, NodeIx)> {
    let mut lowering = Lowering::new(state.clone(), plan, clock);
    let top = lowering.lower(plan)?;
    let mut tree = lowering.tree;
    let root = renamed(&mut tree, top, &planned.schema)?;
    Ok(tree.reachable(root))
}

/// The node under the names and types of `schema`.
fn renamed(tree: &mut Tree, node: NodeIx, schema: &SchemaRef) -> Result<NodeIx> {
    let inner = tree.schema(node).clone();
    if inner == *schema {
        return Ok(node);
    }
    if inner.fields().len() != schema.fields().len() {
        return Err(Error::internal("VIEW_SCHEMA", format!("{inner:?} is not {schema:?}")));
    }
    let columns = (inner.fields().iter().zip(schema.fields()).enumerate())
        .map(|(i, (from, to))| {
            let evaluator: Arc<dyn Evaluator> = match from.data_type() == to.data_type() {
                true => Arc::new(ColumnRef(i)),
                false => Arc::new(CastColumn(i, to.data_type().clone())),
            };
            (evaluator, to.as_ref().clone())
        })
        .collect::<Vec<(_, Field)>>();
    let spec = format!("{columns:?}");
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    let detail = format!("as {}", names.join(", "));
    Ok(tree.add(Kind::Project { columns }, vec![node], schema.clone(), detail, &spec))
}

/// A column, cast.
#[derive(Debug)]
struct CastColumn(usize, DataType);

impl Evaluator for CastColumn {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let column = ColumnRef(self.0).evaluate(batch)?;
        Ok(arrow::compute::cast(&column, &self.1)?)
    }
}

struct Unstable {
    name: String,
    /// Constant within a run (`now()`), unlike `random()`.
    stable: bool,
}

fn unstable_functions(plan: &LogicalPlan) -> datafusion::common::Result<Vec<Unstable>> {
    let mut found: Vec<Unstable> = Vec::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|e| {
                if let Expr::ScalarFunction(call) = e {
                    let name = call.func.name();
                    let stable = match call.func.signature().volatility {
                        Volatility::Volatile => false,
                        Volatility::Stable if clock::is_clock(name) => true,
                        _ => return Ok(TreeNodeRecursion::Continue),
                    };
                    if !found.iter().any(|f| f.name == name) {
                        found.push(Unstable { name: name.to_owned(), stable });
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

/// Tables that a plan scans, each once, in order of their names.
fn tables(plan: &LogicalPlan) -> datafusion::common::Result<Vec<(String, SchemaRef)>> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = scan.source.downcast_ref::<TableInput>()
            && seen.insert(table.name.clone())
        {
            found.push((table.name.clone(), table.original.clone()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

fn technique_of(tree: &Tree, append_only: bool) -> Technique {
    let any = |test: fn(&Kind) -> bool| tree.nodes.iter().any(|node| test(&node.kind));
    if any(|kind| matches!(kind, Kind::Hybrid { .. })) {
        Technique::Hybrid
    } else if any(|kind| matches!(kind, Kind::Recursion { .. })) {
        Technique::Recursive
    } else if any(|kind| matches!(kind, Kind::Source { name } if name == CLOCK)) {
        Technique::Temporal
    } else if any(|kind| matches!(kind, Kind::ByGroup { what: ByGroup::Aggregate, .. })) {
        Technique::GenericAggregate
    } else if any(|kind| matches!(kind, Kind::Aggregate { .. } | Kind::Distinct)) {
        Technique::GroupAggregate
    } else if any(|kind| {
        matches!(kind, Kind::TopK { .. } | Kind::Window { .. } | Kind::ByGroup { .. })
    }) {
        Technique::WindowFunction
    } else if append_only && !any(|kind| matches!(kind, Kind::Join { .. } | Kind::RangeJoin { .. }))
    {
        Technique::AppendOnly
    } else {
        Technique::RowBased
    }
}

impl ViewPlan {
    /// Schema of the view.
    pub fn schema(&self) -> SchemaRef {
        self.inner.schema.clone()
    }

    /// Names of the tables read (keys of [`Sources`], through views).
    pub fn sources(&self) -> Vec<String> {
        self.inner.sources.iter().map(|(name, _)| name.clone()).collect()
    }

    /// True when the result depends on the time of the run, too.
    pub fn asks_for_time(&self) -> bool {
        self.inner.asks
    }

    /// The name of the clock among the circuit's sources and its change from one time to another, in
    /// microseconds since 1970; `None` where the circuit has no clock.
    pub fn clock_change(
        &self,
        before_us: Option<i64>,
        now_us: i64,
    ) -> Result<Option<(String, ZBatch)>> {
        let Some(schema) = &self.inner.clock else { return Ok(None) };
        Ok(Some((CLOCK.to_owned(), clock::change(schema, before_us, now_us)?)))
    }

    /// Identity of plan, types and settings: stored state fits only the same fingerprint.
    pub fn fingerprint(&self) -> String {
        self.inner.fingerprint.to_string()
    }

    /// How an incremental refresh works.
    pub fn technique(&self) -> Technique {
        self.inner.technique
    }

    /// Why parts are not incremental: (issue type, operator, reason).
    pub fn issues(&self) -> Vec<(String, String, String)> {
        let unstable = self.inner.unstable.iter().map(|function| {
            let reason = format!("{function}() has another value in every run");
            ("PLAN_NOT_DETERMINISTIC".to_owned(), function.to_uppercase(), reason)
        });
        let parts = self.inner.tree.nodes.iter().filter_map(|node| match &node.kind {
            Kind::Hybrid { operator, reason, .. } => Some((
                "PLAN_NOT_INCREMENTALIZABLE".to_owned(),
                operator.clone(),
                format!("{reason}: {}", node.detail),
            )),
            _ => None,
        });
        unstable.chain(parts).collect()
    }

    /// A circuit with one source per table read and one output named `view`.
    pub fn circuit(&self, options: CircuitOptions) -> Result<Circuit> {
        circuit::build(
            &self.inner.tree,
            self.inner.root,
            &self.inner.sources,
            &self.inner.schema,
            options,
        )
    }

    /// The tree with technique, state and reason per node.
    pub fn explain(&self) -> String {
        explain::text(&self.inner.tree, self.inner.root, self.inner.technique, &self.issues())
    }

    /// What `REFRESH POLICY INCREMENTAL STRICT` demands: an error names the part that is recomputed.
    pub fn incremental_throughout(&self) -> Result<()> {
        let issues = self.issues();
        let Some((issue, operator, reason)) = issues.first() else { return Ok(()) };
        let message = format!(
            "the view cannot be refreshed incrementally throughout: {issue}: {operator}: {reason}"
        );
        Err(Error::user("REFRESH_POLICY_NOT_INCREMENTAL", message)
            .hint("use REFRESH POLICY INCREMENTAL to allow that part to be recomputed"))
    }

    /// The first cost rule (see `docs/refresh-decision.md`).
    pub fn decide(&self, policy: RefreshPolicy, stats: &ViewStats) -> Result<Decision> {
        let stable = self.inner.unstable.is_empty();
        decision::decide(&self.inner.tree, self, policy, stats, stable)
    }
}
