//! [`build_circuit`]: a drawn query as a circuit, without the planner.
//!
//! Scalar expressions are evaluated row by row, by the naive definition; everything that keeps
//! state is the kernel's.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Error, Result};
use deltaic_exec::{Circuit, CircuitBuilder, CircuitOptions, NodeId};
use deltaic_ops::{
    Aggregate as AggregateOperator, AggregateCall, AggregateFunction, AggregateSpec, Distinct,
    Evaluator, Filter, Join, JoinKind as OperatorJoinKind, JoinSpec, Project, TopK as TopKOperator,
    TopKSpec, UnionAll,
};
use deltaic_state::SortKey;

use crate::query::{Aggregate, Expr, JoinKind, Predicate, Query, SetOperation, TopK};
use crate::value::to_column;
use crate::{Value, batch_rows, table_names, table_schema};

/// A circuit with the tables as sources and one output `view`. Fails on what only the planner knows:
/// `NOT IN`, windows, grouping sets and aggregates that cannot take back a row.
pub fn build_circuit(query: &Query, options: CircuitOptions) -> Result<Circuit> {
    let mut build = Build { builder: CircuitBuilder::new(), sources: BTreeMap::new() };
    for name in table_names() {
        let node = build.builder.source(*name, table_schema(name))?;
        build.sources.insert((*name).to_owned(), node);
    }
    let node = build.node(query)?;
    build.builder.output("view", node)?;
    build.builder.build(options)
}

struct Build {
    builder: CircuitBuilder,
    sources: BTreeMap<String, NodeId>,
}

impl Build {
    fn node(&mut self, query: &Query) -> Result<NodeId> {
        match query {
            Query::Table(name, _) => {
                self.sources.get(name).copied().ok_or_else(|| unsupported("an unknown table"))
            }
            Query::Filter(input, condition) => {
                let input = self.node(input)?;
                let schema = self.builder.schema(input)?;
                let condition = Arc::new(Condition(condition.clone()));
                let filter = Filter::try_new(schema, condition, query_text(query))?;
                self.builder.add(Arc::new(filter), &[input])
            }
            Query::Project(input, expressions) => {
                let input = self.node(input)?;
                self.project(input, expressions, query)
            }
            Query::Set(operation, left, right) => {
                let (left, right) = (self.node(left)?, self.node(right)?);
                self.set(*operation, left, right)
            }
            Query::Join(kind, left, right, l, r) => {
                let kind = join_kind(*kind)?;
                let (left, right) = (self.node(left)?, self.node(right)?);
                self.join(kind, left, right, vec![(*l, *r)], false)
            }
            Query::Group(input, keys, aggregates) => {
                let input = self.node(input)?;
                self.group(input, keys, aggregates)
            }
            Query::Distinct(input) => {
                let input = self.node(input)?;
                self.distinct(input)
            }
            Query::TopK(input, top) => {
                let input = self.node(input)?;
                self.top_k(input, top)
            }
            Query::Windows(..) => Err(unsupported("a window function")),
            Query::Nested(..) | Query::Closure(..) | Query::Explode(..) => {
                Err(unsupported("a form that only SQL has"))
            }
            Query::GroupingSets(..) => Err(unsupported("GROUPING SETS")),
        }
    }

    fn top_k(&mut self, input: NodeId, top: &TopK) -> Result<NodeId> {
        let schema = self.builder.schema(input)?;
        let name = format!("c{}", schema.fields().len());
        let order = top.order.iter().map(|key| SortKey {
            column: key.column,
            descending: key.descending,
            nulls_first: key.nulls_first,
        });
        let spec = TopKSpec {
            input: schema,
            partition: top.partition.clone(),
            order: order.collect(),
            offset: top.offset as u64,
            limit: top.limit as u64,
            number: top.numbered.then(|| Field::new(name, DataType::Int64, true)),
        };
        self.builder.add(Arc::new(TopKOperator::try_new(spec)?), &[input])
    }

    fn project(&mut self, input: NodeId, expressions: &[Expr], query: &Query) -> Result<NodeId> {
        let schema = self.builder.schema(input)?;
        let columns = expressions
            .iter()
            .enumerate()
            .map(|(at, expression)| {
                let data_type = expression_type(expression, &schema);
                let evaluator: Arc<dyn Evaluator> =
                    Arc::new(Scalar(expression.clone(), data_type.clone()));
                (evaluator, Field::new(format!("c{at}"), data_type, true))
            })
            .collect();
        let project = Project::try_new(schema, columns, query_text(query))?;
        self.builder.add(Arc::new(project), &[input])
    }

    fn distinct(&mut self, input: NodeId) -> Result<NodeId> {
        let distinct = Distinct::try_new(self.builder.schema(input)?)?;
        self.builder.add(Arc::new(distinct), &[input])
    }

    fn set(&mut self, operation: SetOperation, left: NodeId, right: NodeId) -> Result<NodeId> {
        let schema = self.builder.schema(left)?;
        let kind = match operation {
            SetOperation::UnionAll | SetOperation::Union => {
                let union = Arc::new(UnionAll::try_new(schema, 2)?);
                let all = self.builder.add(union, &[left, right])?;
                return if operation == SetOperation::Union { self.distinct(all) } else { Ok(all) };
            }
            SetOperation::Intersect => OperatorJoinKind::LeftSemi,
            SetOperation::Except => OperatorJoinKind::LeftAnti,
        };
        let on = (0..schema.fields().len()).map(|c| (c, c)).collect();
        let joined = self.join(kind, left, right, on, true)?;
        self.distinct(joined)
    }

    fn join(
        &mut self,
        kind: OperatorJoinKind,
        left: NodeId,
        right: NodeId,
        on: Vec<(usize, usize)>,
        null_equals_null: bool,
    ) -> Result<NodeId> {
        let (l, r) = (self.builder.schema(left)?, self.builder.schema(right)?);
        let mut fields: Vec<Field> = l.fields().iter().map(|f| f.as_ref().clone()).collect();
        if !matches!(kind, OperatorJoinKind::LeftSemi | OperatorJoinKind::LeftAnti) {
            fields.extend(r.fields().iter().map(|f| f.as_ref().clone()));
        }
        let fields: Vec<Field> = fields
            .into_iter()
            .enumerate()
            .map(|(at, field)| field.with_name(format!("c{at}")).with_nullable(true))
            .collect();
        let spec = JoinSpec {
            left: l,
            right: r,
            kind,
            on,
            null_equals_null,
            residual: None,
            columns: (0..fields.len()).collect(),
            output: Arc::new(Schema::new(fields)),
            detail: String::new(),
        };
        self.builder.add(Arc::new(Join::try_new(spec)?), &[left, right])
    }

    fn group(&mut self, input: NodeId, keys: &[usize], aggregates: &[Aggregate]) -> Result<NodeId> {
        let schema = self.builder.schema(input)?;
        let calls = aggregates
            .iter()
            .enumerate()
            .map(|(at, aggregate)| call(*aggregate, &schema, keys.len() + at))
            .collect::<Result<_>>()?;
        let spec = AggregateSpec { input: schema, keys: keys.to_vec(), calls };
        self.builder.add(Arc::new(AggregateOperator::try_new(spec)?), &[input])
    }
}

fn query_text(query: &Query) -> String {
    query.sql()
}

fn unsupported(what: &str) -> Error {
    Error::user("TESTKIT_BUILD", format!("{what} has no circuit of its own"))
}

fn join_kind(kind: JoinKind) -> Result<OperatorJoinKind> {
    Ok(match kind {
        JoinKind::Inner => OperatorJoinKind::Inner,
        JoinKind::Left => OperatorJoinKind::Left,
        JoinKind::Right => OperatorJoinKind::Right,
        JoinKind::Full => OperatorJoinKind::Full,
        JoinKind::Semi => OperatorJoinKind::LeftSemi,
        JoinKind::Anti => OperatorJoinKind::LeftAnti,
        JoinKind::NotIn => return Err(unsupported("NOT IN")),
    })
}

fn call(aggregate: Aggregate, schema: &SchemaRef, at: usize) -> Result<AggregateCall> {
    use AggregateFunction as F;
    let type_of = |c: usize| schema.field(c).data_type().clone();
    let (function, distinct, input, data_type) = match aggregate {
        Aggregate::CountRows => (F::CountStar, false, None, DataType::Int64),
        Aggregate::Count(c) => (F::Count, false, Some(c), DataType::Int64),
        Aggregate::CountDistinct(c) => (F::Count, true, Some(c), DataType::Int64),
        Aggregate::Sum(c) => {
            let data_type = match type_of(c) {
                DataType::Decimal128(_, scale) => DataType::Decimal128(22, scale),
                other => other,
            };
            (F::Sum, false, Some(c), data_type)
        }
        Aggregate::Avg(c) => (F::Avg, false, Some(c), DataType::Float64),
        Aggregate::Min(c) => (F::Min, false, Some(c), type_of(c)),
        Aggregate::Max(c) => (F::Max, false, Some(c), type_of(c)),
        Aggregate::BitXor(_)
        | Aggregate::First(_)
        | Aggregate::BitAnd(_)
        | Aggregate::BitOr(_)
        | Aggregate::SumDistinct(_)
        | Aggregate::CountNull(_)
        | Aggregate::Joined(_) => {
            return Err(unsupported("an aggregate that cannot take back a row"));
        }
    };
    let output = Field::new(format!("c{at}"), data_type, true);
    Ok(AggregateCall { function, distinct, input, filter: None, output })
}

fn expression_type(expression: &Expr, schema: &SchemaRef) -> DataType {
    match expression {
        Expr::Constant(_) => DataType::Int64,
        Expr::Column(c)
        | Expr::Plus(c, _)
        | Expr::Double(c)
        | Expr::Coalesce(c, _)
        | Expr::Case(_, c, _) => schema.field(*c).data_type().clone(),
    }
}

fn test_error(message: String) -> Error {
    Error::internal("TESTKIT_EVALUATE", message)
}

/// A condition, row by row.
#[derive(Debug)]
struct Condition(Predicate);

impl Evaluator for Condition {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let rows = batch_rows(batch).map_err(test_error)?;
        Ok(Arc::new(rows.iter().map(|row| self.0.eval(row)).collect::<BooleanArray>()))
    }
}

/// An expression, row by row.
#[derive(Debug)]
struct Scalar(Expr, DataType);

impl Evaluator for Scalar {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let rows = batch_rows(batch).map_err(test_error)?;
        let values: Vec<Value> = rows.iter().map(|row| self.0.eval(row)).collect();
        to_column(&self.1, &values.iter().collect::<Vec<_>>()).map_err(test_error)
    }
}
