//! Shorthands for wiring: a circuit over numbers and strings without NULLs.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::Result;
use deltaic_exec::{CircuitBuilder, NodeId};
use deltaic_ops::{
    Aggregate, AggregateCall, AggregateFunction, AggregateSpec, ColumnRef, Evaluator, Filter, Join,
    JoinKind, JoinSpec, Project,
};

/// A column of a projection.
pub enum Select {
    /// A column of the input.
    Column(usize),
    /// A number computed from it.
    Number(&'static str, Arc<dyn Evaluator>),
}

pub fn filter(
    builder: &mut CircuitBuilder,
    node: NodeId,
    predicate: impl Evaluator + 'static,
) -> Result<NodeId> {
    let filter = Filter::try_new(builder.schema(node)?, Arc::new(predicate), String::new())?;
    builder.add(Arc::new(filter), &[node])
}

pub fn project(builder: &mut CircuitBuilder, node: NodeId, columns: Vec<Select>) -> Result<NodeId> {
    let schema = builder.schema(node)?;
    let column = |select| -> (Arc<dyn Evaluator>, Field) {
        match select {
            Select::Column(i) => (Arc::new(ColumnRef(i)), schema.field(i).clone()),
            Select::Number(name, number) => (number, Field::new(name, DataType::Int64, false)),
        }
    };
    let columns = columns.into_iter().map(column).collect();
    let project = Project::try_new(schema.clone(), columns, String::new())?;
    builder.add(Arc::new(project), &[node])
}

/// The given columns of inputs joined by their first columns.
pub fn join(
    builder: &mut CircuitBuilder,
    kind: JoinKind,
    left: NodeId,
    right: NodeId,
    columns: Vec<usize>,
) -> Result<NodeId> {
    let schemas = (builder.schema(left)?, builder.schema(right)?);
    let join = Join::try_new(JoinSpec {
        output: Arc::new(pairs(&schemas.0, &schemas.1, kind).project(&columns)?),
        columns,
        left: schemas.0,
        right: schemas.1,
        kind,
        on: vec![(0, 0)],
        null_equals_null: false,
        residual: None,
        detail: String::new(),
    })?;
    builder.add(Arc::new(join), &[left, right])
}

fn pairs(left: &Schema, right: &Schema, kind: JoinKind) -> SchemaRef {
    let padded = |field: &Arc<Field>| match kind {
        JoinKind::Left => Arc::new(field.as_ref().clone().with_nullable(true)),
        _ => Arc::clone(field),
    };
    let right = right.fields().iter().map(padded);
    Arc::new(Schema::new(left.fields().iter().cloned().chain(right).collect::<Vec<_>>()))
}

/// Functions over the column after the first `keys` columns.
pub fn group(
    builder: &mut CircuitBuilder,
    node: NodeId,
    keys: usize,
    functions: &[AggregateFunction],
) -> Result<NodeId> {
    let calls = functions.iter().map(|&function| call(function, keys, false)).collect();
    let spec = AggregateSpec { input: builder.schema(node)?, keys: (0..keys).collect(), calls };
    builder.add(Arc::new(Aggregate::try_new(spec)?), &[node])
}

/// The number of different values in the column after the first.
pub fn count_distinct(builder: &mut CircuitBuilder, node: NodeId) -> Result<NodeId> {
    let calls = vec![call(AggregateFunction::Count, 1, true)];
    let spec = AggregateSpec { input: builder.schema(node)?, keys: vec![0], calls };
    builder.add(Arc::new(Aggregate::try_new(spec)?), &[node])
}

fn call(function: AggregateFunction, column: usize, distinct: bool) -> AggregateCall {
    AggregateCall {
        function,
        distinct,
        input: (function != AggregateFunction::CountStar).then_some(column),
        filter: None,
        output: Field::new(function.to_string(), DataType::Int64, true),
    }
}
