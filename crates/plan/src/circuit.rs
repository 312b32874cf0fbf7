//! From the tree of incremental nodes to a circuit.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result};
use deltaic_exec::{Circuit, CircuitBuilder, CircuitOptions, NodeId};
use deltaic_ops::{
    Aggregate, AggregateSpec, ColumnRef, Distinct, DynamicFilter, DynamicFilterSpec, Evaluator,
    Filter, Join, JoinSpec, Operator, Project, RangeJoin, RangeJoinSpec, Recursion, RecursionSpec,
    StepInput, StepNode, TopK, TopKSpec, UnionAll, Window, WindowSpec,
};

use crate::hybrid::{PerRow, Recompute, RecomputeTouched};
use crate::lower::recursion::{OUTER, WORK};
use crate::tree::{Kind, Node, NodeIx, Tree};

/// Name of the output of a view's circuit.
const OUTPUT: &str = "view";

/// A circuit with one source per table read and one output named `view`.
pub(crate) fn build(
    tree: &Tree,
    root: NodeIx,
    sources: &[(String, SchemaRef)],
    schema: &SchemaRef,
    options: CircuitOptions,
) -> Result<Circuit> {
    let mut builder = CircuitBuilder::new();
    let mut ids: Vec<Option<NodeId>> = Vec::with_capacity(tree.nodes.len());
    let known = |ids: &[Option<NodeId>], ix: NodeIx| {
        ids.get(ix).copied().flatten().ok_or_else(|| {
            Error::internal("PLAN_INPUT", format!("node {ix} has no place in the circuit"))
        })
    };
    for (ix, node) in tree.nodes.iter().enumerate() {
        let (operator, inputs) = match &node.kind {
            Kind::Source { name } => {
                ids.push(Some(builder.source(name.clone(), node.schema.clone())?));
                continue;
            }
            // It comes with the projection above it.
            Kind::Join { .. } if ix != root && is_picked(tree, ix) => {
                ids.push(None);
                continue;
            }
            Kind::Project { .. } => match picked(tree, ix) {
                Some((below, columns)) if below != root => {
                    let join_node = &tree.nodes[below];
                    let operator = join(tree, join_node, columns, node.schema.clone())?;
                    (operator, &join_node.inputs)
                }
                _ => (operator(tree, node)?, &node.inputs),
            },
            _ => (operator(tree, node)?, &node.inputs),
        };
        let inputs = inputs.iter().map(|&i| known(&ids, i)).collect::<Result<Vec<_>>>()?;
        ids.push(Some(builder.add(operator, &inputs)?));
    }
    // Tables that the query names but does not need after all still take their deltas.
    for (name, schema) in sources {
        let used = |node: &Node| matches!(&node.kind, Kind::Source { name: n } if n == name);
        if !tree.nodes.iter().any(used) {
            builder.source(name.clone(), schema.clone())?;
        }
    }
    let mut top = known(&ids, root)?;
    if builder.schema(top)? != *schema {
        // Operators name their output columns themselves.
        let columns = (schema.fields().iter().enumerate())
            .map(|(i, f)| (Arc::new(ColumnRef(i)) as Arc<dyn Evaluator>, f.as_ref().clone()))
            .collect();
        let rename = Project::try_new(builder.schema(top)?, columns, "rename".into())?;
        top = builder.add(Arc::new(rename), &[top])?;
    }
    builder.output(OUTPUT, top)?;
    builder.build(options)
}

/// True when a join is read by nothing but a projection that picks columns of it: the join then
/// gathers no others.
fn is_picked(tree: &Tree, join: NodeIx) -> bool {
    (0..tree.nodes.len()).any(|ix| picked(tree, ix).is_some_and(|(below, _)| below == join))
}

/// The join that a projection alone reads, and which columns of it.
fn picked(tree: &Tree, projection: NodeIx) -> Option<(NodeIx, Vec<usize>)> {
    let node = &tree.nodes[projection];
    let (Kind::Project { columns }, [below]) = (&node.kind, node.inputs.as_slice()) else {
        return None;
    };
    let is_join = matches!(tree.nodes[*below].kind, Kind::Join { .. });
    let readers = tree.nodes.iter().filter(|node| node.inputs.contains(below)).count();
    let fields = tree.schema(*below).fields();
    let column = |(evaluator, field): &(Arc<dyn Evaluator>, arrow::datatypes::Field)| {
        let column = evaluator.column()?;
        (fields.get(column)?.data_type() == field.data_type()).then_some(column)
    };
    let columns = columns.iter().map(column).collect::<Option<Vec<usize>>>()?;
    (is_join && readers == 1).then_some((*below, columns))
}

/// A join of which some columns are needed.
fn join(
    tree: &Tree,
    node: &Node,
    columns: Vec<usize>,
    output: SchemaRef,
) -> Result<Arc<dyn Operator>> {
    let (Kind::Join { kind, on, null_equals_null, residual }, [left, right]) =
        (&node.kind, node.inputs.as_slice())
    else {
        return Err(Error::internal("PLAN_INPUT", format!("{} is no join", node.detail)));
    };
    Ok(Arc::new(Join::try_new(JoinSpec {
        left: tree.schema(*left).clone(),
        right: tree.schema(*right).clone(),
        kind: *kind,
        on: on.clone(),
        null_equals_null: *null_equals_null,
        residual: residual.clone(),
        columns,
        output,
        detail: node.detail.clone(),
    })?))
}

/// The operator of a node that is no source.
fn operator(tree: &Tree, node: &Node) -> Result<Arc<dyn Operator>> {
    let input = |i: usize| match node.inputs.get(i) {
        Some(&ix) => Ok(tree.schema(ix).clone()),
        None => Err(Error::internal("PLAN_INPUT", format!("{} has no input {i}", node.detail))),
    };
    let detail = node.detail.clone();
    Ok(match &node.kind {
        Kind::Source { name } => {
            return Err(Error::internal("PLAN_SOURCE", format!("'{name}' is not an operator")));
        }
        Kind::Filter { predicate } => {
            Arc::new(Filter::try_new(input(0)?, predicate.clone(), detail)?)
        }
        Kind::Bounded { value, comparison, .. } => {
            Arc::new(DynamicFilter::try_new(DynamicFilterSpec {
                input: input(0)?,
                value: *value,
                comparison: *comparison,
                bound: input(1)?,
                detail,
            })?)
        }
        Kind::Project { columns } => {
            Arc::new(Project::try_new(input(0)?, columns.clone(), detail)?)
        }
        Kind::UnionAll => Arc::new(UnionAll::try_new(node.schema.clone(), node.inputs.len())?),
        Kind::Join { kind, .. } => {
            let columns = kind.columns(input(0)?.as_ref(), input(1)?.as_ref());
            return join(tree, node, columns, node.schema.clone());
        }
        Kind::RangeJoin { on, null_equals_null, values, ranges, condition } => {
            Arc::new(RangeJoin::try_new(RangeJoinSpec {
                left: input(0)?,
                right: input(1)?,
                on: on.clone(),
                null_equals_null: *null_equals_null,
                values: *values,
                ranges: ranges.clone(),
                condition: condition.clone(),
                detail,
            })?)
        }
        Kind::Aggregate { keys, calls } => Arc::new(Aggregate::try_new(AggregateSpec {
            input: input(0)?,
            keys: keys.clone(),
            calls: calls.clone(),
        })?),
        Kind::Distinct => Arc::new(Distinct::try_new(input(0)?)?),
        Kind::TopK { partition, order, offset, limit, number } => {
            Arc::new(TopK::try_new(TopKSpec {
                input: input(0)?,
                partition: partition.clone(),
                order: order.clone(),
                offset: *offset,
                limit: *limit,
                number: number.clone(),
            })?)
        }
        Kind::Window { partition, order, calls } => Arc::new(Window::try_new(WindowSpec {
            input: input(0)?,
            partition: partition.clone(),
            order: order.clone(),
            calls: calls.clone(),
        })?),
        Kind::Constant { region } => Arc::new(Recompute::new(region.clone(), Vec::new(), detail)),
        Kind::ByGroup { region, keys, width, what } => {
            let about = (what.name(), detail);
            let (region, keys) = (region.clone(), keys.clone());
            Arc::new(RecomputeTouched::try_new(region, input(0)?, keys, *width, about)?)
        }
        Kind::PerRow { region } => Arc::new(PerRow::new(region.clone(), input(0)?, detail)),
        Kind::Recursion { body, root, distinct } => {
            let schemas = node.inputs.iter().map(|&i| tree.schema(i).clone()).collect();
            let spec = recursion(body, *root, *distinct, schemas, &node.schema, &detail)?;
            Arc::new(Recursion::try_new(spec)?)
        }
        Kind::Hybrid { region, .. } => {
            let schemas = node.inputs.iter().map(|&i| tree.schema(i).clone()).collect();
            Arc::new(Recompute::new(region.clone(), schemas, detail))
        }
    })
}

/// A recursion whose step is a tree; `inputs` are the schemas of base and other inputs.
pub(crate) fn recursion(
    body: &Tree,
    root: NodeIx,
    distinct: bool,
    inputs: Vec<SchemaRef>,
    schema: &SchemaRef,
    detail: &str,
) -> Result<RecursionSpec> {
    let (mut step, mut numbers) = (Vec::new(), Vec::with_capacity(body.nodes.len()));
    for node in body.nodes.iter().take(root + 1) {
        let number = match &node.kind {
            Kind::Source { name } if name == WORK => StepInput::Work,
            Kind::Source { name } => {
                let number = name.strip_prefix(OUTER).and_then(|number| number.parse().ok());
                StepInput::Outer(number.ok_or_else(|| {
                    Error::internal("PLAN_SOURCE", format!("'{name}' is no input of a recursion"))
                })?)
            }
            _ => {
                let operator = operator(body, node)?;
                let inputs = node.inputs.iter().map(|&input| numbers[input]).collect();
                step.push(StepNode { operator, inputs });
                StepInput::Node(step.len() - 1)
            }
        };
        numbers.push(number);
    }
    Ok(RecursionSpec {
        schema: schema.clone(),
        outer: inputs.into_iter().skip(1).collect(),
        step,
        distinct,
        detail: detail.to_owned(),
    })
}
