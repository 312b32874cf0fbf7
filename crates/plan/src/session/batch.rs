//! Batch execution with DataFusion, on one small runtime.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, OnceLock};

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::DataFusionError;
use datafusion::common::tree_node::Transformed;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::collect;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use deltaic_batch::{Error, Result, canonicalize};
use tokio::runtime::{Builder, Handle, Runtime};

use super::provider::TableInput;
use super::{exact, stages};
use crate::errors;

/// The physical rules of batch execution: the few of DataFusion's without which a plan does not run
/// or runs slowly.
///
/// Left out are those that only pay for files and many partitions, and those that have changed
/// results: `FilterPushdown` finds the columns of a condition by name, so that `WHERE l.k IS NULL`
/// above a join filters by `r.k`; `aggregate_statistics` says that `count(DISTINCT 7)` of no rows is 1.
const PHYSICAL_RULES: [&str; 6] = [
    "OutputRequirements",
    "join_selection",
    "EnsureRequirements",
    "CombinePartialFinalAggregate",
    "ProjectionPushdown",
    "SanityCheckPlan",
];

/// The rules of [`PHYSICAL_RULES`] in DataFusion's order.
pub(super) fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let rules = PhysicalOptimizer::new().rules.into_iter();
    rules.filter(|rule| PHYSICAL_RULES.contains(&rule.name())).collect()
}

/// Runs an optimized plan whose leaves can be executed.
pub(crate) fn run(state: &SessionState, plan: LogicalPlan) -> Result<Vec<RecordBatch>> {
    let run = || collected(state, &stages::staged(state, exact::exact(plan)?)?);
    run().map_err(errors::execution)
}

/// The rows of a plan that leaves nothing to the order of rows.
pub(super) fn collected(
    state: &SessionState,
    plan: &LogicalPlan,
) -> datafusion::common::Result<Vec<RecordBatch>> {
    let run = || {
        block_on(async {
            let planner = DefaultPhysicalPlanner::default();
            let physical = planner.create_physical_plan(plan, state).await?;
            collect(physical, state.task_ctx()).await
        })
    };
    // A broken promise between parts of DataFusion ends one query, not the process.
    let rows = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|_| {
        Err(Error::internal("RUNTIME", "the query engine stopped in the middle of a query"))
    });
    rows.map_err(|e| DataFusionError::External(Box::new(e)))?
}

/// Gives every table of a plan its rows.
pub(crate) fn bind_tables(
    plan: LogicalPlan,
    tables: &mut BTreeMap<String, Vec<RecordBatch>>,
) -> Result<LogicalPlan> {
    let mut bound: BTreeMap<String, Arc<MemTable>> = BTreeMap::new();
    plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(mut scan) = node else { return Ok(Transformed::no(node)) };
        let Some(table) = scan.source.downcast_ref::<TableInput>() else {
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        };
        let memory = match bound.get(&table.name) {
            Some(memory) => memory.clone(),
            None => {
                let memory = Arc::new(memory_table(&scan.source.schema(), table, tables)?);
                bound.insert(table.name.clone(), memory.clone());
                memory
            }
        };
        scan.source = provider_as_source(memory);
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    })
    .map(|plan| plan.data)
    .map_err(errors::execution)
}

fn memory_table(
    schema: &SchemaRef,
    table: &TableInput,
    tables: &mut BTreeMap<String, Vec<RecordBatch>>,
) -> datafusion::common::Result<MemTable> {
    let batches = tables.remove(&table.name).ok_or_else(|| {
        let error = Error::internal("BATCH_TABLE", "no rows were given for a table")
            .object(table.name.clone());
        DataFusionError::External(Box::new(error))
    })?;
    let batches = (batches.into_iter())
        .map(|batch| relabel(&batch, schema))
        .collect::<Result<Vec<_>>>()
        .map_err(|e| DataFusionError::External(Box::new(e.object(table.name.clone()))))?;
    MemTable::try_new(schema.clone(), vec![batches])
}

/// The columns of `batch` under another schema; values are cast where types differ, floats are
/// made canonical.
pub(crate) fn relabel(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.num_columns() != schema.fields().len() {
        return Err(Error::internal(
            "SCHEMA_MISMATCH",
            format!("{} columns, but {} expected", batch.num_columns(), schema.fields().len()),
        ));
    }
    let columns = (batch.columns().iter().zip(schema.fields()))
        .map(|(column, field)| {
            let column = match column.data_type() == field.data_type() {
                true => column.clone(),
                false => arrow::compute::cast(column, field.data_type())?,
            };
            Ok(canonicalize(&column))
        })
        .collect::<Result<Vec<ArrayRef>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

/// The same columns, each of which may be NULL, without metadata.
pub(crate) fn relaxed(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter();
    Arc::new(Schema::new(
        fields
            .map(|f| arrow::datatypes::Field::new(f.name(), f.data_type().clone(), true))
            .collect::<Vec<_>>(),
    ))
}

/// Waits for a future from any thread, also from one that belongs to a runtime.
pub(crate) fn block_on<F>(future: F) -> Result<F::Output>
where
    F: Future + Send,
    F::Output: Send,
{
    let runtime = runtime()?;
    if Handle::try_current().is_err() {
        return Ok(runtime.block_on(future));
    }
    std::thread::scope(|scope| scope.spawn(|| runtime.block_on(future)).join()).map_err(|_| {
        Error::internal("RUNTIME", "a thread that ran a query stopped in the middle of it")
    })
}

fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<std::io::Result<Runtime>> = OnceLock::new();
    RUNTIME
        .get_or_init(|| Builder::new_multi_thread().worker_threads(1).thread_name("query").build())
        .as_ref()
        .map_err(|e| Error::internal("RUNTIME", format!("cannot start the query runtime: {e}")))
}
