//! How DataFusion's planner sees our tables, views, types and functions.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DataFusionError, Result, TableReference, exec_err, plan_datafusion_err};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::provider_as_source;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::planner::{
    ContextProvider, ExprPlanner, RelationPlanner, TypePlanner,
};
use datafusion::logical_expr::{
    AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF,
};
use datafusion::sql::planner::SqlToRel;
use datafusion::sql::sqlparser::ast;
use deltaic_batch::Error;

use super::fields::StructFields;
use super::parse::{self, Parsed};
use super::signed::SignedCalls;
use super::{
    arg_extremes, distinct_from, generators, intervals, keys, numbers, set_operations, time_zone,
    twins, using,
};
use crate::catalog::{Source, SourceTable, Sources};
use crate::{ddl, errors};

/// Views that may read views.
const VIEW_DEPTH_MAX: usize = 100;

/// A table as a leaf of DataFusion's plans: lower-case columns, no filter pushdown.
pub(crate) struct TableInput {
    /// Key in [`Sources`].
    pub(crate) name: String,
    /// The user's schema.
    pub(crate) original: SchemaRef,
    lowered: SchemaRef,
}

impl fmt::Debug for TableInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableInput({})", self.name)
    }
}

impl TableInput {
    pub(crate) fn try_new(name: String, table: &SourceTable) -> deltaic_batch::Result<Self> {
        let lowered = lower_case(&table.schema).map_err(|e| e.object(name.clone()))?;
        Ok(Self { name, original: table.schema.clone(), lowered })
    }
}

impl TableSource for TableInput {
    fn schema(&self) -> SchemaRef {
        self.lowered.clone()
    }
}

/// The schema with lower-case column names, without metadata.
pub(crate) fn lower_case(schema: &Schema) -> deltaic_batch::Result<SchemaRef> {
    let mut seen = std::collections::BTreeSet::new();
    let mut fields = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let name = field.name().to_lowercase();
        if !seen.insert(name.clone()) {
            return Err(errors::duplicate_column(field.name()));
        }
        fields.push(Field::new(name, field.data_type().clone(), field.is_nullable()));
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// A view, inlined by DataFusion where it is named.
struct ViewInput {
    plan: LogicalPlan,
    schema: SchemaRef,
}

impl TableSource for ViewInput {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.plan))
    }
}

/// One planning: the sources, what has been resolved, and the names defined on the way.
pub(crate) struct Planning<'a> {
    pub(crate) state: &'a SessionState,
    sources: &'a Sources,
    resolved: RefCell<HashMap<String, Arc<dyn TableSource>>>,
    /// Views being planned, outermost first.
    open: RefCell<Vec<String>>,
    pub(crate) aliases: RefCell<HashMap<String, String>>,
    expr_planners: Vec<Arc<dyn ExprPlanner>>,
}

impl<'a> Planning<'a> {
    pub(crate) fn new(state: &'a SessionState, sources: &'a Sources) -> Self {
        Self {
            state,
            sources,
            resolved: RefCell::default(),
            open: RefCell::default(),
            aliases: RefCell::default(),
            expr_planners: [Arc::new(StructFields) as Arc<dyn ExprPlanner>, Arc::new(SignedCalls)]
                .into_iter()
                .chain(state.expr_planners().iter().cloned())
                .collect(),
        }
    }

    /// The plan of a query over the sources, as DataFusion's planner gives it.
    pub(crate) fn plan(&self, sql: &str) -> deltaic_batch::Result<LogicalPlan> {
        let Parsed { mut query, aliases, relations } = parse::query(sql)?;
        for (name, spelling) in aliases {
            self.aliases.borrow_mut().entry(name).or_insert(spelling);
        }
        arg_extremes::mark(&mut query);
        generators::mark(&mut query)?;
        distinct_from::mark(&mut query);
        twins::mark(&mut query);
        using::mark(&mut query)?;
        set_operations::mark(&mut query);
        time_zone::mark(&mut query);
        intervals::mark(&mut query);
        numbers::mark(&mut query);
        keys::mark(&mut query);
        let repeated = twins::repeated(&query);
        let statement = ast::Statement::Query(Box::new(query));
        SqlToRel::new(self).sql_statement_to_plan(statement).map_err(|e| {
            let error = errors::planning(&e);
            // DataFusion says so of a column with its table and one without that have one name.
            if let ("AMBIGUOUS_REFERENCE", Some(name)) = (error.code(), repeated) {
                return errors::duplicate_column(&name);
            }
            match error.get_object().and_then(|name| relations.get(name)) {
                Some(place) if error.code() == "TABLE_OR_VIEW_NOT_FOUND" => error.at(place.clone()),
                _ => error,
            }
        })
    }

    fn resolve(&self, name: &str) -> deltaic_batch::Result<Arc<dyn TableSource>> {
        match self.sources.get(name) {
            Some(Source::Table(table)) => Ok(Arc::new(TableInput::try_new(name.into(), table)?)),
            Some(Source::View { sql }) => self.view(name, sql),
            None => Err(errors::table_not_found(name, self.sources.keys().map(String::as_str))),
        }
    }

    fn view(&self, name: &str, sql: &str) -> deltaic_batch::Result<Arc<dyn TableSource>> {
        let open = self.open.borrow().clone();
        if open.len() >= VIEW_DEPTH_MAX || open.iter().any(|other| other == name) {
            return Err(Error::user(
                "CYCLIC_VIEW_REFERENCE",
                format!("the view reads itself: {} -> {name}", open.join(" -> ")),
            )
            .object(name));
        }
        self.open.borrow_mut().push(name.to_owned());
        let plan = self.plan(sql).map_err(|e| e.object(name));
        self.open.borrow_mut().pop();
        let plan = plan?;
        let schema = Arc::new(plan.schema().as_arrow().clone());
        Ok(Arc::new(ViewInput { plan, schema }))
    }
}

/// Name in [`Sources`] of a table reference.
fn key(name: &TableReference) -> String {
    let parts = [name.catalog(), name.schema(), Some(name.table())];
    parts.into_iter().flatten().map(str::to_lowercase).collect::<Vec<_>>().join(".")
}

impl ContextProvider for Planning<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        let key = key(&name);
        if let Some(known) = self.resolved.borrow().get(&key) {
            return Ok(known.clone());
        }
        let source = self.resolve(&key).map_err(|e| DataFusionError::External(Box::new(e)))?;
        self.resolved.borrow_mut().insert(key, source.clone());
        Ok(source)
    }

    fn get_table_function_source(
        &self,
        name: &str,
        args: Vec<Expr>,
    ) -> Result<Arc<dyn TableSource>> {
        let function = self
            .state
            .table_functions()
            .get(name)
            .ok_or_else(|| plan_datafusion_err!("table function '{name}' not found"))?;
        let args = args
            .into_iter()
            .map(|arg| super::optimize::constant(self.state, arg))
            .collect::<Result<Vec<_>>>()?;
        let arguments = datafusion::catalog::TableFunctionArgs::new(&args, self.state);
        Ok(provider_as_source(function.create_table_provider_with_args(arguments)?))
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(CteWorkTable::new(name, schema))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.expr_planners
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        self.state.relation_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(SparkTypes))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.state.scalar_functions().get(name).cloned()
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.state.aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _variable_names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.state.scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.state.higher_order_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.state.aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.state.window_functions().keys().cloned().collect()
    }
}

/// Types by Spark's names, timestamps in microseconds; the rest is left to DataFusion.
#[derive(Debug)]
struct SparkTypes;

impl TypePlanner for SparkTypes {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> Result<Option<FieldRef>> {
        match ddl::parse_type(&sql_type.to_string()) {
            Ok(data_type) => Ok(Some(Arc::new(Field::new("", data_type, true)))),
            Err(e) if e.message().contains("beyond 38 digits") => exec_err!("{}", e.message()),
            Err(_) if sql_type.to_string().ends_with("UNSIGNED") => {
                exec_err!("there is no type {sql_type}: integers are signed")
            }
            Err(_) => Ok(None),
        }
    }
}
