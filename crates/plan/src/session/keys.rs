//! Plans without keys that DataFusion makes up.
//!
//! DataFusion notes which columns of a plan determine which, and takes columns out of a GROUP BY, adds
//! others to it, and drops a DISTINCT accordingly. What it notes goes wrong in two ways: the key of a
//! GROUP BY is taken for one above an `unnest`, where its row has become many; and a key that a join has
//! made occur many times is one again above the next GROUP BY. So
//! `SELECT k, count(*) FROM (SELECT DISTINCT k, x …) GROUP BY k` may count one for each `k`.
//!
//! Here nothing is noted: each relation of a FROM is planned without keys, and so is each plan before
//! the rules that look at them.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchemaRef, FunctionalDependencies, Result};
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Distinct, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::sql::sqlparser::ast::{
    Ident, Query, TableAlias, TableFactor, TableWithJoins, VisitMut, VisitorMut,
};

/// Name of a relation in parentheses that is to be planned without keys.
const MARK: &str = "__without_keys";

/// Marks all relations that are queries.
pub(super) fn mark(query: &mut Query) {
    let _ = query.visit(&mut Marker);
}

struct Marker;

impl VisitorMut for Marker {
    type Break = ();

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let is_query = matches!(
            factor,
            TableFactor::Derived { lateral: false, .. } | TableFactor::Table { args: None, .. }
        );
        if is_query {
            let alias = TableAlias {
                explicit: true,
                name: Ident::new(MARK),
                columns: Vec::new(),
                at: None,
            };
            let relation = factor.clone();
            let inner = TableWithJoins { relation, joins: Vec::new() };
            *factor =
                TableFactor::NestedJoin { table_with_joins: Box::new(inner), alias: Some(alias) };
        }
        ControlFlow::Continue(())
    }
}

/// Plans what is marked.
#[derive(Debug)]
pub(super) struct WithoutKeys;

impl RelationPlanner for WithoutKeys {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        match relation {
            TableFactor::NestedJoin { table_with_joins, alias: Some(alias) }
                if alias.name.value == MARK =>
            {
                let plan = forgotten(context.plan(table_with_joins.relation)?);
                Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
            }
            other => Ok(RelationPlanning::Original(Box::new(other))),
        }
    }
}

/// The rule.
#[derive(Debug)]
pub(super) struct ForgetKeys;

impl OptimizerRule for ForgetKeys {
    fn name(&self) -> &'static str {
        "forget_keys"
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let mut is_changed = false;
        let plan = plan.transform_up_with_subqueries(|node| {
            is_changed |= !node.schema().functional_dependencies().is_empty();
            Ok(Transformed::yes(forgotten(node)))
        })?;
        Ok(Transformed::new_transformed(plan.data, is_changed))
    }
}

/// The node with a schema without keys.
fn forgotten(plan: LogicalPlan) -> LogicalPlan {
    if plan.schema().functional_dependencies().is_empty() {
        return plan;
    }
    let below = |input: Arc<LogicalPlan>| Arc::new(forgotten(Arc::unwrap_or_clone(input)));
    match plan {
        LogicalPlan::Projection(mut node) => {
            node.schema = without(&node.schema);
            LogicalPlan::Projection(node)
        }
        LogicalPlan::Aggregate(mut node) => {
            node.schema = without(&node.schema);
            LogicalPlan::Aggregate(node)
        }
        LogicalPlan::Window(mut node) => {
            node.schema = without(&node.schema);
            LogicalPlan::Window(node)
        }
        LogicalPlan::Join(mut node) => {
            node.schema = without(&node.schema);
            LogicalPlan::Join(node)
        }
        LogicalPlan::SubqueryAlias(mut node) => {
            node.schema = without(&node.schema);
            LogicalPlan::SubqueryAlias(node)
        }
        LogicalPlan::Unnest(mut node) => {
            node.schema = without(&node.schema);
            LogicalPlan::Unnest(node)
        }
        LogicalPlan::Union(mut node) => {
            node.schema = without(&node.schema);
            LogicalPlan::Union(node)
        }
        // Their schema is that of their input.
        LogicalPlan::Filter(mut node) => {
            node.input = below(node.input);
            LogicalPlan::Filter(node)
        }
        LogicalPlan::Sort(mut node) => {
            node.input = below(node.input);
            LogicalPlan::Sort(node)
        }
        LogicalPlan::Limit(mut node) => {
            node.input = below(node.input);
            LogicalPlan::Limit(node)
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            LogicalPlan::Distinct(Distinct::All(below(input)))
        }
        other => other,
    }
}

fn without(schema: &DFSchemaRef) -> DFSchemaRef {
    let schema = schema.as_ref().clone();
    let bare = schema.clone().with_functional_dependencies(FunctionalDependencies::empty());
    Arc::new(bare.unwrap_or(schema))
}
