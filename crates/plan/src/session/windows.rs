//! Windows over input in a total order.
//!
//! Which of several equal rows a ranking counts first, SQL leaves open; here the rest of the row decides
//! (see `ties`). DataFusion's physical planning drops every sort below a window in favour of one by
//! PARTITION BY and ORDER BY alone, and its sort is not stable. So the input of each window is computed
//! and sorted first, and the window reads rows of which planning knows that they are in order.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::provider_as_source;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, Sort, Window};
use datafusion::physical_expr::{LexOrdering, create_physical_sort_exprs};

use super::rows::{self, Rows};
use super::{batch, ties};

/// The plan with the sorted input of every window in its place, innermost first.
pub(super) fn sorted(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Window(window) = node else { return Ok(Transformed::no(node)) };
        let keys = ties::window_keys(&window);
        if keys.is_empty() {
            return Ok(Transformed::no(LogicalPlan::Window(window)));
        }
        let Window { input, window_expr, .. } = window;
        let schema = input.schema().clone();
        let order = create_physical_sort_exprs(
            &keys,
            &schema,
            state.execution_props(),
            &Default::default(),
        )?;
        let sort = LogicalPlan::Sort(Sort { expr: keys, input, fetch: None });
        let arrow_schema = Arc::new(schema.as_arrow().clone());
        let batches = (batch::collected(state, &sort)?.iter())
            .map(|batch| batch::relabel(batch, &arrow_schema))
            .collect::<deltaic_batch::Result<Vec<_>>>()
            .map_err(|e| DataFusionError::External(Box::new(e)))?;
        let rows = Rows { schema: arrow_schema, batches, order: LexOrdering::new(order) };
        let input = rows::scan("window_input", provider_as_source(Arc::new(rows)), &schema);
        Ok(Transformed::yes(LogicalPlan::Window(Window::try_new(window_expr, Arc::new(input))?)))
    })
    .map(|plan| plan.data)
}
