//! Output names in the spelling of their definition.

use std::collections::{BTreeSet, HashMap};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::logical_expr::{Distinct, Expr, JoinType, LogicalPlan};
use deltaic_batch::Result;

use super::provider::TableInput;
use crate::errors;

/// The schema that users see of a plan as the SQL planner made it: names as spelled where they
/// were defined, and timestamps that a function computed in microseconds.
pub(crate) fn output_schema(
    plan: &LogicalPlan,
    types: &Schema,
    aliases: &HashMap<String, String>,
) -> Result<SchemaRef> {
    let mut seen = BTreeSet::new();
    let mut fields = Vec::with_capacity(types.fields().len());
    for (i, field) in types.fields().iter().enumerate() {
        let origin = origin(plan, i, aliases);
        if !seen.insert(origin.name.to_lowercase()) {
            return Err(errors::duplicate_column(&origin.name));
        }
        let data_type = match field.data_type() {
            DataType::Timestamp(_, zone) if !origin.stored => {
                DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
            }
            other => other.clone(),
        };
        fields.push(Field::new(origin.name, data_type, field.is_nullable()));
    }
    Ok(Schema::new(fields).into())
}

/// Where an output column comes from.
struct Origin {
    name: String,
    /// It is a table's column as it is.
    stored: bool,
}

fn origin(plan: &LogicalPlan, i: usize, aliases: &HashMap<String, String>) -> Origin {
    let through = |input: &LogicalPlan, i| origin(input, i, aliases);
    match plan {
        LogicalPlan::Projection(p) => match p.expr.get(i) {
            Some(expr) => of_expr(expr, &p.input, aliases),
            None => named(plan, i, aliases),
        },
        LogicalPlan::Distinct(Distinct::On(on)) => match on.select_expr.get(i) {
            Some(expr) => of_expr(expr, &on.input, aliases),
            None => named(plan, i, aliases),
        },
        LogicalPlan::SubqueryAlias(p) => through(&p.input, i),
        LogicalPlan::Filter(p) => through(&p.input, i),
        LogicalPlan::Sort(p) => through(&p.input, i),
        LogicalPlan::Limit(p) => through(&p.input, i),
        LogicalPlan::Distinct(Distinct::All(input)) => through(input, i),
        LogicalPlan::Window(p) if i < p.input.schema().fields().len() => through(&p.input, i),
        LogicalPlan::Aggregate(p) => match p.group_expr.get(i) {
            Some(expr) if !matches!(expr, Expr::GroupingSet(_)) => of_expr(expr, &p.input, aliases),
            _ => named(plan, i, aliases),
        },
        LogicalPlan::Join(join) => {
            let left = join.left.schema().fields().len();
            match join.join_type {
                JoinType::RightSemi | JoinType::RightAnti => through(&join.right, i),
                _ if i < left => through(&join.left, i),
                _ => through(&join.right, i - left),
            }
        }
        LogicalPlan::Union(union) => match union.inputs.first() {
            Some(first) => through(first, i),
            None => named(plan, i, aliases),
        },
        LogicalPlan::RecursiveQuery(query) => through(&query.static_term, i),
        LogicalPlan::TableScan(scan) => {
            let column = scan.projection.as_ref().map_or(Some(i), |p| p.get(i).copied());
            match (scan.source.downcast_ref::<TableInput>(), column) {
                (Some(table), Some(column)) if column < table.original.fields().len() => {
                    Origin { name: table.original.field(column).name().clone(), stored: true }
                }
                _ => named(plan, i, aliases),
            }
        }
        _ => named(plan, i, aliases),
    }
}

fn of_expr(expr: &Expr, input: &LogicalPlan, aliases: &HashMap<String, String>) -> Origin {
    match expr {
        Expr::Alias(alias) => {
            let stored = of_expr(&alias.expr, input, aliases).stored;
            Origin { name: spelled(&alias.name, aliases), stored }
        }
        Expr::Column(column) => match input.schema().maybe_index_of_column(column) {
            Some(i) => origin(input, i, aliases),
            None => Origin { name: spelled(&column.name, aliases), stored: false },
        },
        other => Origin { name: spelled(&other.schema_name().to_string(), aliases), stored: false },
    }
}

fn named(plan: &LogicalPlan, i: usize, aliases: &HashMap<String, String>) -> Origin {
    Origin { name: spelled(plan.schema().field(i).name(), aliases), stored: false }
}

fn spelled(name: &str, aliases: &HashMap<String, String>) -> String {
    // A field of a struct that was unnested has its own name.
    let name = match (name.starts_with("UNNEST("), name.rsplit_once(").")) {
        (true, Some((_, field))) => field,
        _ => name,
    };
    aliases.get(name).cloned().unwrap_or_else(|| name.to_owned())
}
