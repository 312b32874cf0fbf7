//! Analysis and the optimizer rules that keep delta rules intact.
//!
//! Left out on purpose: `PushDownLimit` (a LIMIT stays above its ORDER BY, where one operator
//! computes both), `SingleDistinctToGroupBy` (DISTINCT aggregates have an incremental form of their
//! own), and the rules that serve scans of files.

use std::sync::{Arc, LazyLock};

use chrono::{DateTime, Utc};
use datafusion::common::alias::AliasGenerator;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchema, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyExpressions};
use datafusion::optimizer::{Optimizer, OptimizerConfig, OptimizerRule};
use datafusion::optimizer::{
    common_subexpr_eliminate::CommonSubexprEliminate,
    decorrelate_lateral_join::DecorrelateLateralJoin,
    decorrelate_predicate_subquery::DecorrelatePredicateSubquery,
    eliminate_duplicated_expr::EliminateDuplicatedExpr, eliminate_filter::EliminateFilter,
    eliminate_group_by_constant::EliminateGroupByConstant, eliminate_join::EliminateJoin,
    eliminate_limit::EliminateLimit, eliminate_outer_join::EliminateOuterJoin,
    filter_null_join_keys::FilterNullJoinKeys, optimize_projections::OptimizeProjections,
    optimize_unions::OptimizeUnions, propagate_empty_relation::PropagateEmptyRelation,
    replace_distinct_aggregate::ReplaceDistinctWithAggregate,
    rewrite_set_comparison::RewriteSetComparison, scalar_subquery_to_join::ScalarSubqueryToJoin,
};

use super::correlation::RefuseUnsafe;
use super::equijoin::{CrossJoins, EquijoinKeys};
use super::keys::ForgetKeys;
use super::lateral::LateralRows;
use super::push_down::PushDown;
use super::statistics::Statistics;
use super::unnesting::{CoerceAgain, OneMeaning, Unnesting};

static OPTIMIZER: LazyLock<Optimizer> = LazyLock::new(|| {
    let mut rules = rules();
    let last = rules.len() - 1;
    rules.insert(last, Arc::new(CommonSubexprEliminate::new()));
    Optimizer::with_rules(rules)
});

/// For a plan that asks for the time, which stays where it is asked for.
static OPTIMIZER_WITH_CLOCK: LazyLock<Optimizer> = LazyLock::new(|| Optimizer::with_rules(rules()));

fn rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    vec![
        Arc::new(OneMeaning),
        Arc::new(LateralRows),
        Arc::new(Unnesting),
        Arc::new(RefuseUnsafe),
        Arc::new(CoerceAgain),
        Arc::new(RewriteSetComparison::new()),
        Arc::new(OptimizeUnions::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(ForgetKeys),
        Arc::new(ReplaceDistinctWithAggregate::new()),
        Arc::new(ForgetKeys),
        Arc::new(EliminateJoin::new()),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(ScalarSubqueryToJoin::new()),
        Arc::new(DecorrelateLateralJoin::new()),
        Arc::new(EquijoinKeys::default()),
        Arc::new(EliminateDuplicatedExpr::new()),
        Arc::new(EliminateFilter::new()),
        Arc::new(CrossJoins::default()),
        Arc::new(EliminateLimit::new()),
        Arc::new(PropagateEmptyRelation::new()),
        Arc::new(FilterNullJoinKeys::default()),
        Arc::new(EliminateOuterJoin::new()),
        Arc::new(PushDown::default()),
        Arc::new(EliminateGroupByConstant::new()),
        Arc::new(Statistics),
        Arc::new(ForgetKeys),
        Arc::new(OptimizeProjections::new()),
    ]
}

/// Types coerced, arithmetic checked.
pub(crate) fn analyze(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})
}

/// The optimized plan. `now` is the time that `now()` stands for; without it `now()` stays.
pub(crate) fn optimize(
    state: &SessionState,
    plan: LogicalPlan,
    now: Option<DateTime<Utc>>,
) -> Result<LogicalPlan> {
    let settings = Settings { state, now, aliases: Arc::default() };
    OPTIMIZER.optimize(plan, &settings, |_, _| {})
}

/// The optimized plan in which functions of the clock stay where they are.
pub(crate) fn optimize_with_clock(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    let settings = Settings { state, now: None, aliases: Arc::default() };
    OPTIMIZER_WITH_CLOCK.optimize(plan, &settings, |_, _| {})
}

/// What rules may know: the session's options and functions, and the time of the run.
struct Settings<'a> {
    state: &'a SessionState,
    now: Option<DateTime<Utc>>,
    aliases: Arc<AliasGenerator>,
}

impl OptimizerConfig for Settings<'_> {
    fn query_execution_start_time(&self) -> Option<DateTime<Utc>> {
        self.now
    }

    fn alias_generator(&self) -> &Arc<AliasGenerator> {
        &self.aliases
    }

    fn options(&self) -> Arc<ConfigOptions> {
        self.state.config_options().clone()
    }

    fn function_registry(&self) -> Option<&dyn FunctionRegistry> {
        Some(self.state)
    }
}

/// A scalar expression, coerced, checked and simplified over `schema`.
pub(crate) fn scalar(
    state: &SessionState,
    expr: Expr,
    schema: &DFSchema,
    now: Option<DateTime<Utc>>,
) -> Result<Expr> {
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(schema.clone()))
        .with_config_options(state.config_options().clone())
        .with_query_execution_start_time(now)
        .build();
    let simplifier = ExprSimplifier::new(context);
    let coerced = simplifier.coerce(expr, schema)?;
    let checked = super::checked::rewrite(coerced, schema)?.data;
    simplifier.simplify(checked)
}

/// An argument that must be constant, as a literal.
pub(crate) fn constant(state: &SessionState, expr: Expr) -> Result<Expr> {
    scalar(state, expr, &DFSchema::empty(), None)
}
