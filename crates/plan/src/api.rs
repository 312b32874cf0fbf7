//! What the rest of the workspace sees of the planner (skeleton).

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, SchemaRef};
use deltaic_batch::Result;
use deltaic_exec::{Circuit, CircuitOptions};
use deltaic_ops::Evaluator;

/// A table that a query may name.
#[derive(Debug, Clone)]
pub struct SourceTable {
    /// Schema of its rows.
    pub schema: SchemaRef,
    /// Rows are only ever added.
    pub append_only: bool,
    /// Rows now, for the cost rule.
    pub rows: Option<u64>,
}

/// What a name in a query stands for.
#[derive(Debug, Clone)]
pub enum Source {
    /// A table.
    Table(SourceTable),
    /// A query over the same sources, inlined where it is read.
    View {
        /// Its text.
        sql: String,
    },
}

/// Sources by (lower-case, unquoted, dot-joined) name.
pub type Sources = BTreeMap<String, Source>;

/// `REFRESH POLICY` of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RefreshPolicy {
    /// Cheaper way by the cost rule.
    #[default]
    Auto,
    /// Incremental where possible.
    Incremental,
    /// Incremental or an error that says what is not.
    IncrementalStrict,
    /// Always from scratch.
    Full,
}

/// How a view is or was refreshed; names as in Lakeflow's event log, plus ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Technique {
    /// Nothing changed.
    NoOp,
    /// Only appended rows, linear plan.
    AppendOnly,
    /// Row-level changes through filters, projections, joins.
    RowBased,
    /// Retractable aggregates.
    GroupAggregate,
    /// Aggregates by touched group.
    GenericAggregate,
    /// Windows.
    WindowFunction,
    /// Recompute.
    CompleteRecompute,
    /// Part of the plan is recomputed and diffed.
    Hybrid,
}

/// Row counts that the decision is made from.
#[derive(Debug, Clone, Default)]
pub struct ViewStats {
    /// Per source: rows of the pending delta.
    pub delta_rows: BTreeMap<String, u64>,
    /// Per source: rows of the whole table.
    pub source_rows: BTreeMap<String, u64>,
    /// Rows of the view now.
    pub view_rows: u64,
    /// State is there and fits.
    pub has_state: bool,
}

/// One way to refresh and what it would cost.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The way.
    pub technique: Technique,
    /// Predicted cost in microseconds of one core.
    pub cost_us: f64,
    /// It can be used now.
    pub applicable: bool,
}

/// A refresh decision and its inputs.
#[derive(Debug, Clone)]
pub struct Decision {
    /// What to do.
    pub chosen: Technique,
    /// All ways looked at.
    pub candidates: Vec<Candidate>,
    /// Why, in one sentence.
    pub reason: String,
}

/// Settings of a session.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Time zone of timestamps without one; part of fingerprints.
    pub time_zone: String,
    /// Fixed clock in microseconds since 1970; the wall clock when `None`.
    pub now_us: Option<i64>,
}

/// A scalar expression bound to a schema.
#[derive(Debug, Clone)]
pub struct TypedExpression {
    /// Computes it.
    pub evaluator: Arc<dyn Evaluator>,
    /// Type and nullability of the result.
    pub field: Field,
}

/// DataFusion set up for deltaic: functions, dialect, optimiser rules, one runtime.
#[derive(Debug)]
pub struct Session {}

impl Session {
    /// Ready to plan.
    pub fn try_new(_options: SessionOptions) -> Result<Self> {
        unimplemented!("skeleton")
    }
    /// Plans a view. Every query that plans is accepted.
    pub fn plan_view(&self, _sql: &str, _sources: &Sources) -> Result<ViewPlan> {
        unimplemented!("skeleton")
    }
    /// Schema of a query without more planning.
    pub fn query_schema(&self, _sql: &str, _sources: &Sources) -> Result<SchemaRef> {
        unimplemented!("skeleton")
    }
    /// Runs a query in batch. `tables` has the rows of every table that the query reaches in
    /// `sources`.
    pub fn run_batch(
        &self,
        _sql: &str,
        _sources: &Sources,
        _tables: BTreeMap<String, Vec<RecordBatch>>,
    ) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        unimplemented!("skeleton")
    }
    /// A scalar expression over a schema (expectations, sequence, delete condition).
    pub fn expression(&self, _sql: &str, _schema: &SchemaRef) -> Result<TypedExpression> {
        unimplemented!("skeleton")
    }
    /// A list of column definitions (`a INT, b STRING NOT NULL`) as a schema, Spark's type names.
    pub fn parse_schema(&self, _ddl: &str) -> Result<SchemaRef> {
        unimplemented!("skeleton")
    }
}

/// A planned view.
#[derive(Debug, Clone)]
pub struct ViewPlan {}

impl ViewPlan {
    /// Schema of the view.
    pub fn schema(&self) -> SchemaRef {
        unimplemented!("skeleton")
    }
    /// Names of the tables read (keys of [`Sources`], through views).
    pub fn sources(&self) -> Vec<String> {
        unimplemented!("skeleton")
    }
    /// Identity of plan, types and settings: stored state fits only the same fingerprint.
    pub fn fingerprint(&self) -> String {
        unimplemented!("skeleton")
    }
    /// How an incremental refresh works.
    pub fn technique(&self) -> Technique {
        unimplemented!("skeleton")
    }
    /// Why parts are not incremental: (issue type, operator, reason).
    pub fn issues(&self) -> Vec<(String, String, String)> {
        unimplemented!("skeleton")
    }
    /// A circuit with one source per table read and one output named `view`.
    pub fn circuit(&self, _options: CircuitOptions) -> Result<Circuit> {
        unimplemented!("skeleton")
    }
    /// The tree with technique, state and reason per node.
    pub fn explain(&self) -> String {
        unimplemented!("skeleton")
    }
    /// The first cost rule (see `docs/refresh-decision.md`).
    pub fn decide(&self, _policy: RefreshPolicy, _stats: &ViewStats) -> Result<Decision> {
        unimplemented!("skeleton")
    }
}
