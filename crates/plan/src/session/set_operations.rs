//! `EXCEPT ALL` and `INTERSECT ALL` with their meaning on multisets.
//!
//! DataFusion plans both as plain anti and semi joins, which keeps or drops every copy of a row
//! together. Numbering the copies of each row on both sides first makes the rows distinct, and
//! the join exact: the n-th copy on the left meets the n-th copy on the right.
//!
//! The parsed query is rewritten to `SELECT * FROM marker((left), (right))`, and the relation
//! planner here turns the marker into a plan.

use std::ops::ControlFlow;

use datafusion::common::{Column, DataFusionError, NullEquality, Result, plan_err};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr_rewriter::coerce_plan_expr_for_schema;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Expr, ExprFunctionExt, JoinType, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, Query, SetExpr, SetOperator, SetQuantifier, TableFactor,
    VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

const EXCEPT_ALL: &str = "__except_all";
const INTERSECT_ALL: &str = "__intersect_all";
const COPY: &str = "__copy";

/// Rewrites every `EXCEPT ALL` and `INTERSECT ALL` of a query.
pub(crate) fn mark(query: &mut Query) {
    let _ = query.visit(&mut Marker);
}

struct Marker;

impl VisitorMut for Marker {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        mark_body(&mut query.body);
        ControlFlow::Continue(())
    }
}

fn mark_body(body: &mut SetExpr) {
    let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { return };
    mark_body(left);
    mark_body(right);
    let name = match (op, set_quantifier) {
        (SetOperator::Except | SetOperator::Minus, SetQuantifier::All) => EXCEPT_ALL,
        (SetOperator::Intersect, SetQuantifier::All) => INTERSECT_ALL,
        _ => return,
    };
    if let Some(marked) = marker(name, [left.as_ref().clone(), right.as_ref().clone()]) {
        *body = marked;
    }
}

/// `SELECT * FROM name((left), (right))`.
fn marker(name: &str, sides: [SetExpr; 2]) -> Option<SetExpr> {
    let parse = |sql: &str| {
        Parser::new(&GenericDialect {}).try_with_sql(sql).and_then(|mut p| p.parse_query()).ok()
    };
    let mut outer = parse(&format!("SELECT * FROM {name}((SELECT 1), (SELECT 1))"))?;
    let SetExpr::Select(select) = outer.body.as_mut() else { return None };
    let TableFactor::Table { args: Some(args), .. } = &mut select.from.first_mut()?.relation else {
        return None;
    };
    for (arg, side) in args.args.iter_mut().zip(sides) {
        let query = match side {
            SetExpr::Query(query) => query,
            body => {
                let mut query = parse("SELECT 1")?;
                *query.body = body;
                query
            }
        };
        *arg = FunctionArg::Unnamed(FunctionArgExpr::Expr(ast::Expr::Subquery(query)));
    }
    Some(*outer.body)
}

/// Plans the markers.
#[derive(Debug)]
pub(crate) struct SetOperations;

impl RelationPlanner for SetOperations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Table { name, args: Some(args), .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let join_type = match name.to_string().as_str() {
            EXCEPT_ALL => JoinType::LeftAnti,
            INTERSECT_ALL => JoinType::LeftSemi,
            _ => return Ok(RelationPlanning::Original(Box::new(relation))),
        };
        let sides = args.args.iter().map(|arg| side(arg, context)).collect::<Result<Vec<_>>>()?;
        let Ok([left, right]) = <[LogicalPlan; 2]>::try_from(sides) else {
            return plan_err!("a set operation has two sides");
        };
        let plan = bag_join(left, right, join_type)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

fn side(arg: &FunctionArg, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(ast::Expr::Subquery(query))) = arg else {
        return plan_err!("a side of a set operation is a query");
    };
    context.plan(TableFactor::Derived {
        lateral: false,
        subquery: query.clone(),
        alias: None,
        sample: None,
    })
}

/// Semi or anti join of the numbered copies of both sides' rows.
fn bag_join(left: LogicalPlan, right: LogicalPlan, join_type: JoinType) -> Result<LogicalPlan> {
    if left.schema().fields().len() != right.schema().fields().len() {
        return plan_err!(
            "both sides of INTERSECT ALL or EXCEPT ALL must have the same number of columns"
        );
    }
    // A union of both finds the common types; it is not kept.
    let common = LogicalPlanBuilder::from(left.clone()).union(right.clone())?.build()?;
    let common = datafusion::optimizer::analyzer::type_coercion::coerce_union_schema(
        &union_inputs(&common)?,
    )?;
    let left = coerce_plan_expr_for_schema(left, &common)?;
    let right = coerce_plan_expr_for_schema(right, &common)?;
    let originals: Vec<Column> = left.schema().columns();
    let left = LogicalPlanBuilder::from(numbered(left)?).alias("__left")?.build()?;
    let right = LogicalPlanBuilder::from(numbered(right)?).alias("__right")?.build()?;
    let keys: (Vec<Column>, Vec<Column>) = (left.schema().columns(), right.schema().columns());
    let names: Vec<Expr> = left
        .schema()
        .columns()
        .into_iter()
        .zip(originals)
        .map(|(column, original)| Expr::Column(column).alias(original.name))
        .collect();
    LogicalPlanBuilder::from(left)
        .join_detailed(right, join_type, keys, None, NullEquality::NullEqualsNull)?
        .project(names)?
        .build()
}

fn union_inputs(plan: &LogicalPlan) -> Result<Vec<std::sync::Arc<LogicalPlan>>> {
    match plan {
        LogicalPlan::Union(union) => Ok(union.inputs.clone()),
        other => Err(DataFusionError::Internal(format!("not a union: {}", other.display()))),
    }
}

/// Appends to each row the number of its copy.
fn numbered(plan: LogicalPlan) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let copy = row_number().partition_by(columns).build()?.alias(COPY);
    LogicalPlanBuilder::from(plan).window(vec![copy])?.build()
}
