//! Parts of a plan run first, by themselves, where planning them together goes wrong.
//!
//! Which of several equal rows a ranking counts first or a LIMIT keeps, SQL leaves open; here the rest
//! of the row decides (see `ties`). DataFusion's physical planning is free with sorts that nothing
//! above asks for: below a window it puts one by PARTITION BY and ORDER BY alone, which is not stable;
//! below a LIMIT it may drop one, it moves one from above a LIMIT to below, and above a UNION ALL it may
//! find no plan. So the input of each sort, window and LIMIT is computed first, innermost first; a
//! sort sorts rows that are there, and what is above reads its rows.
//!
//! It also takes a column that is constant below an outer join, such as a total, for constant above
//! it, where it may be NULL, and leaves it out of sorts. So the sides that are padded with NULL run
//! first, too: of rows that are read it believes nothing.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, JoinType, Result};
use datafusion::datasource::provider_as_source;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Join, Limit, LogicalPlan, Sort, Window};
use datafusion::physical_expr::{LexOrdering, create_physical_sort_exprs};

use super::rows::{self, Rows};
use super::{batch, ties};

/// The plan with rows in the places of every LIMIT, of the sorted input of every window, of the input
/// of every other sort, and of the padded sides of every join.
pub(super) fn staged(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Window(node) => window(state, node),
        LogicalPlan::Limit(node) => limit(state, node),
        LogicalPlan::Join(node) => join(state, node),
        LogicalPlan::Sort(mut node) => {
            node.input = leaf(state, node.input)?;
            Ok(Transformed::yes(LogicalPlan::Sort(node)))
        }
        LogicalPlan::Aggregate(_) => Ok(Transformed::yes(ties::ordered_calls(node)?)),
        other => Ok(Transformed::no(other)),
    })
    .map(|plan| plan.data)
}

fn window(state: &SessionState, node: Window) -> Result<Transformed<LogicalPlan>> {
    let keys = ties::window_keys(&node);
    if keys.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Window(node)));
    }
    let order = create_physical_sort_exprs(
        &keys,
        node.input.schema(),
        state.execution_props(),
        &Default::default(),
    )?;
    let input = leaf(state, node.input)?;
    let sort = LogicalPlan::Sort(Sort { expr: keys, input, fetch: None });
    let mut rows = rows_of(state, &sort)?;
    rows.order = LexOrdering::new(order);
    let input = scan("window_input", rows, &sort);
    Ok(Transformed::yes(LogicalPlan::Window(Window::try_new(node.window_expr, Arc::new(input))?)))
}

fn limit(state: &SessionState, mut node: Limit) -> Result<Transformed<LogicalPlan>> {
    let Some((skip, fetch)) = ties::range_of(&node) else {
        return Ok(Transformed::no(LogicalPlan::Limit(node)));
    };
    let is_listed = ties::ordered(&node.input);
    if !is_listed {
        node.input = leaf(state, node.input)?;
    }
    let input = ties::ordered_input(&node.input, fetch.map(|fetch| skip.saturating_add(fetch)))?;
    let mut rows = rows_of(state, &input)?;
    rows.batches = part(&rows.batches, skip, fetch.unwrap_or(usize::MAX));
    rows.is_listed = is_listed;
    Ok(Transformed::yes(scan("limit", rows, &input)))
}

fn join(state: &SessionState, mut node: Join) -> Result<Transformed<LogicalPlan>> {
    let (left, right) = match node.join_type {
        JoinType::Left => (false, true),
        JoinType::Right => (true, false),
        JoinType::Full => (true, true),
        _ => (false, false),
    };
    if left {
        node.left = leaf(state, node.left)?;
    }
    if right {
        node.right = leaf(state, node.right)?;
    }
    Ok(Transformed::yes(LogicalPlan::Join(node)))
}

/// A scan of the rows of a plan; the plan itself if it is a scan.
fn leaf(state: &SessionState, plan: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
    match plan.as_ref() {
        LogicalPlan::TableScan(_) => Ok(plan),
        other => Ok(Arc::new(scan("stage", rows_of(state, other)?, other))),
    }
}

/// The rows of a plan, in its order.
fn rows_of(state: &SessionState, plan: &LogicalPlan) -> Result<Rows> {
    let schema = Arc::new(plan.schema().as_arrow().clone());
    let batches = (batch::collected(state, plan)?.iter())
        .map(|batch| batch::relabel(batch, &schema))
        .collect::<deltaic_batch::Result<Vec<_>>>()
        .map_err(|e| DataFusionError::External(Box::new(e)))?;
    Ok(Rows { schema, batches, order: None, is_listed: false })
}

fn scan(name: &str, rows: Rows, plan: &LogicalPlan) -> LogicalPlan {
    rows::scan(name, provider_as_source(Arc::new(rows)), plan.schema())
}

/// The rows from `skip` on, at most `fetch`.
fn part(batches: &[RecordBatch], mut skip: usize, mut fetch: usize) -> Vec<RecordBatch> {
    let mut parts = Vec::new();
    for batch in batches {
        let passed = skip.min(batch.num_rows());
        let taken = fetch.min(batch.num_rows() - passed);
        skip -= passed;
        fetch -= taken;
        if taken > 0 {
            parts.push(batch.slice(passed, taken));
        }
    }
    parts
}
