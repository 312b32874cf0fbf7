//! DataFusion set up for deltaic: dialect, names, types, functions, checked arithmetic.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, SchemaRef};
use chrono::{DateTime, Utc};
use datafusion::common::DFSchema;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::physical_expr::create_physical_expr;
use datafusion::prelude::SessionConfig;
use datafusion::sql::planner::{PlannerContext, SqlToRel};
use deltaic_batch::{Error, Result};
use deltaic_ops::Evaluator;

use crate::catalog::Sources;
use crate::evaluator::Expression;
use crate::view::{self, ViewPlan};
use crate::{ddl, errors};

mod arg_extremes;
mod average;
pub(crate) mod batch;
pub(crate) mod checked;
pub(crate) mod clock;
mod correlation;
mod distinct_from;
mod equijoin;
mod exact;
mod fields;
mod float_sum;
mod functions;
mod generator_functions;
mod generators;
mod intervals;
mod keys;
mod lateral;
pub(crate) mod names;
mod numbers;
pub(crate) mod optimize;
mod ordered_bits;
pub(crate) mod parse;
pub(crate) mod provider;
mod push_down;
pub(crate) mod rows;
mod set_operations;
mod signed;
mod stages;
mod statistics;
pub(crate) mod ties;
mod time_zone;
mod twins;
mod unnesting;
mod using;

use provider::Planning;

/// Settings of a session.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Time zone of timestamps without one; part of fingerprints.
    pub time_zone: String,
    /// Fixed clock in microseconds since 1970; the wall clock when `None`.
    pub now_us: Option<i64>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { time_zone: "UTC".into(), now_us: None }
    }
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
pub struct Session {
    state: Arc<SessionState>,
    options: SessionOptions,
}

/// A query after planning: what users see of it, and the plan before and after analysis.
pub(crate) struct Planned {
    /// Output schema with the users' names and types.
    pub(crate) schema: SchemaRef,
    /// The analyzed plan.
    pub(crate) plan: LogicalPlan,
}

impl Session {
    /// Ready to plan.
    pub fn try_new(options: SessionOptions) -> Result<Self> {
        let mut config = SessionConfig::new()
            .with_target_partitions(1)
            .with_collect_statistics(false)
            .with_create_default_catalog_and_schema(false);
        let settings = config.options_mut();
        settings.optimizer.enable_physical_uncorrelated_scalar_subquery = false;
        settings.sql_parser.map_string_types_to_utf8view = false;
        settings.sql_parser.collect_spans = true;
        settings.execution.time_zone = Some(options.time_zone.clone());
        settings.execution.enable_ansi_mode = true;
        // Logical planning knows better what cannot be NULL: `CASE WHEN a = b THEN a ELSE 0 END`.
        settings.execution.skip_physical_aggregate_schema_check = true;
        let mut state = SessionStateBuilder::new()
            .with_config(config)
            .with_default_features()
            .with_analyzer_rule(Arc::new(checked::CheckArithmetic))
            .with_physical_optimizer_rules(batch::physical_rules())
            .build();
        state
            .register_relation_planner(Arc::new(set_operations::SetOperations))
            .and_then(|()| state.register_relation_planner(Arc::new(keys::WithoutKeys)))
            .map_err(|e| errors::planning(&e))?;
        functions::register(&mut state)
            .and_then(|()| signed::register(&mut state))
            .and_then(|()| average::register(&mut state))
            .map_err(|e| errors::planning(&e))?;
        Ok(Self { state: Arc::new(state), options })
    }

    /// Plans a view. Every query that plans is accepted.
    pub fn plan_view(&self, sql: &str, sources: &Sources) -> Result<ViewPlan> {
        let planned = self.analyze(sql, sources)?;
        view::plan(&self.state, planned, sources, &self.options.time_zone, self.now()?)
    }

    /// Schema of a query without more planning.
    pub fn query_schema(&self, sql: &str, sources: &Sources) -> Result<SchemaRef> {
        Ok(self.analyze(sql, sources)?.schema)
    }

    /// Runs a query in batch. `tables` has the rows of every table that the query reaches in
    /// `sources`.
    pub fn run_batch(
        &self,
        sql: &str,
        sources: &Sources,
        mut tables: BTreeMap<String, Vec<RecordBatch>>,
    ) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let planned = self.analyze(sql, sources)?;
        let plan = optimize::optimize(&self.state, planned.plan, Some(self.now()?))
            .map_err(|e| errors::planning(&e))?;
        let plan = batch::bind_tables(plan, &mut tables)?;
        let batches = batch::run(&self.state, plan)?;
        let batches = (batches.iter())
            .filter(|batch| batch.num_rows() > 0)
            .map(|batch| batch::relabel(batch, &planned.schema))
            .collect::<Result<Vec<_>>>()?;
        Ok((planned.schema, batches))
    }

    /// A scalar expression over a schema (expectations, sequence, delete condition).
    pub fn expression(&self, sql: &str, schema: &SchemaRef) -> Result<TypedExpression> {
        let lowered = provider::lower_case(schema)?;
        let df_schema =
            DFSchema::try_from(lowered.as_ref().clone()).map_err(|e| errors::planning(&e))?;
        let mut parsed = parse::expression(sql)?;
        distinct_from::mark(&mut parsed);
        time_zone::mark(&mut parsed);
        numbers::mark(&mut parsed);
        let sources = Sources::new();
        let planning = Planning::new(&self.state, &sources);
        let bind = || {
            let expr = SqlToRel::new(&planning).sql_to_expr(
                parsed,
                &df_schema,
                &mut PlannerContext::new(),
            )?;
            optimize::scalar(&self.state, expr, &df_schema, Some(self.now_utc()))
        };
        let expr = bind().map_err(|e| errors::planning(&e))?;
        refuse_aggregates(&expr)?;
        let typed = || {
            let (_, field) = expr.to_field(&df_schema)?;
            let physical = create_physical_expr(
                &expr,
                &df_schema,
                self.state.execution_props(),
                &Default::default(),
            )?;
            Ok((field, physical))
        };
        let (field, physical) = typed().map_err(|e| errors::planning(&e))?;
        let data_type = field.data_type().clone();
        let evaluator = Expression::evaluator(physical, data_type.clone());
        Ok(TypedExpression {
            evaluator,
            field: Field::new(sql.trim(), data_type, field.is_nullable()),
        })
    }

    /// A list of column definitions (`a INT, b STRING NOT NULL`) as a schema, Spark's type names.
    pub fn parse_schema(&self, ddl: &str) -> Result<SchemaRef> {
        ddl::parse_schema(ddl)
    }

    /// Parses, plans and analyzes a query.
    fn analyze(&self, sql: &str, sources: &Sources) -> Result<Planned> {
        let planning = Planning::new(&self.state, sources);
        let plan = planning.plan(sql)?;
        let aliases = planning.aliases.into_inner();
        let analyzed =
            optimize::analyze(&self.state, plan.clone()).map_err(|e| errors::planning(&e))?;
        let schema = names::output_schema(&plan, analyzed.schema().as_arrow(), &aliases)?;
        Ok(Planned { schema, plan: analyzed })
    }

    fn now(&self) -> Result<DateTime<Utc>> {
        match self.options.now_us {
            None => Ok(Utc::now()),
            Some(us) => DateTime::from_timestamp_micros(us).ok_or_else(|| {
                Error::user("CONFIGURATION", format!("{us} microseconds is no point in time"))
            }),
        }
    }

    fn now_utc(&self) -> DateTime<Utc> {
        self.now().unwrap_or_else(|_| Utc::now())
    }
}

fn refuse_aggregates(expr: &Expr) -> Result<()> {
    use datafusion::common::tree_node::TreeNode;
    let refused = expr.exists(|e| {
        Ok(matches!(e, Expr::AggregateFunction(_) | Expr::WindowFunction(_))
            || matches!(e, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)))
    });
    match refused {
        Ok(false) => Ok(()),
        _ => Err(Error::user(
            "INVALID_EXPRESSION",
            "aggregates, windows and subqueries have no meaning in an expression on single rows",
        )),
    }
}
