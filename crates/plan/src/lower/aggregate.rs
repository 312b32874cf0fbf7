//! Aggregates: calls with an incremental form in one node, the others recomputed beside it.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{AggregateFunction as Call, AggregateFunctionParams};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use deltaic_batch::Result;
use deltaic_ops::{
    Aggregate as AggregateOperator, AggregateCall, AggregateFunction, AggregateSpec, Evaluator,
    JoinKind,
};

use super::Lowering;
use crate::errors;
use crate::evaluator::Expression;
use crate::session::batch::relaxed;
use crate::tree::{Kind, NodeIx};

/// The columns that an aggregate reads, computed by one projection.
#[derive(Default)]
struct Columns {
    exprs: Vec<Expr>,
}

impl Columns {
    fn number(&mut self, expr: &Expr) -> usize {
        let known = self.exprs.iter().position(|other| other == expr);
        known.unwrap_or_else(|| {
            self.exprs.push(expr.clone());
            self.exprs.len() - 1
        })
    }
}

impl Lowering {
    pub(super) fn aggregate(&mut self, plan: &LogicalPlan, node: &Aggregate) -> Result<NodeIx> {
        if node.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
            return match self.grouping_sets(node)? {
                Some(node) => Ok(node),
                None => self.hybrid(plan),
            };
        }
        let output = relaxed(node.schema.as_arrow());
        let keys = node.group_expr.len();
        let mut columns = Columns { exprs: node.group_expr.clone() };
        let mut calls = Vec::new();
        let mut others = Vec::new();
        for (i, expr) in node.aggr_expr.iter().enumerate() {
            let field = output.field(keys + i).clone();
            match call(expr, field, &mut columns) {
                Some(call) if self.supported(node, &columns, &call)? => calls.push((i, call)),
                _ => others.push(i),
            }
        }
        let mut picked = Vec::new();
        for i in std::mem::take(&mut others) {
            match self.picked_row(node, &node.aggr_expr[i])? {
                Some(row) => picked.push((i, row)),
                None => others.push(i),
            }
        }
        if calls.is_empty() && picked.is_empty() && !others.is_empty() {
            return self.generic_aggregate(node.clone());
        }
        let input = self.lower(&node.input)?;
        let read = self.read(input, node, &columns)?;
        let own = match calls.is_empty() && keys == 0 {
            // The one row of all groups is there without rows, too.
            true => self.one_row(read),
            false => self.aggregate_node(node, read, &calls, &output),
        };
        let mut order: Vec<usize> = (0..output.fields().len()).collect();
        let mut both = own;
        calls.iter().enumerate().for_each(|(at, (i, _))| order[keys + i] = keys + at);
        for (i, row) in picked {
            let width = self.tree.schema(both).fields().len();
            both = self.align(both, row, keys, JoinKind::Left);
            order[keys + i] = width + keys;
        }
        if !others.is_empty() {
            let width = self.tree.schema(both).fields().len();
            let rest = self.recomputed(node, &others)?;
            both = self.align(both, rest, keys, JoinKind::Inner);
            others.iter().enumerate().for_each(|(at, i)| order[keys + i] = width + keys + at);
        }
        Ok(self.columns(both, &order, &output))
    }

    /// One row, always.
    fn one_row(&mut self, input: NodeIx) -> NodeIx {
        let output = Field::new("rows", DataType::Int64, false);
        let schema = Arc::new(Schema::new(vec![output.clone()]));
        let (function, input_column) = (AggregateFunction::CountStar, None);
        let call =
            AggregateCall { function, distinct: false, input: input_column, filter: None, output };
        let kind = Kind::Aggregate { keys: Vec::new(), calls: vec![call] };
        self.tree.add(kind, vec![input], schema, "count(*)".into(), "0 count(*)")
    }

    /// The projection that computes keys, arguments and filters.
    fn read(&mut self, input: NodeIx, node: &Aggregate, columns: &Columns) -> Result<NodeIx> {
        let schema = self.read_schema(node, columns)?;
        let mut spec = String::new();
        let mut evaluators: Vec<(Arc<dyn Evaluator>, Field)> = Vec::new();
        for (expr, field) in columns.exprs.iter().zip(schema.fields()) {
            let physical = self.physical(expr, node.input.schema())?;
            spec += &format!("{physical:?};");
            let evaluator = Expression::evaluator(physical, field.data_type().clone());
            evaluators.push((evaluator, field.as_ref().clone()));
        }
        let plain = (columns.exprs.iter().zip(node.input.schema().columns()))
            .all(|(expr, column)| matches!(expr, Expr::Column(c) if *c == column));
        if plain && columns.exprs.len() == node.input.schema().fields().len() {
            return Ok(self.columns(input, &(0..columns.exprs.len()).collect::<Vec<_>>(), &schema));
        }
        let detail = self.shown(&columns.exprs);
        let kind = Kind::Project { columns: evaluators };
        Ok(self.tree.add(kind, vec![input], schema, detail, &spec))
    }

    fn read_schema(&self, node: &Aggregate, columns: &Columns) -> Result<SchemaRef> {
        use datafusion::logical_expr::ExprSchemable;
        let fields = (columns.exprs.iter())
            .map(|expr| {
                let data_type = expr.get_type(node.input.schema());
                let data_type = data_type.map_err(|e| errors::planning(&e))?;
                Ok(Field::new(expr.schema_name().to_string(), data_type, true))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(Schema::new(fields)))
    }

    /// The operator knows this call on these types.
    fn supported(&self, node: &Aggregate, columns: &Columns, call: &AggregateCall) -> Result<bool> {
        let spec = AggregateSpec {
            input: self.read_schema(node, columns)?,
            keys: (0..node.group_expr.len()).collect(),
            calls: vec![call.clone()],
        };
        Ok(AggregateOperator::try_new(spec).is_ok())
    }

    fn aggregate_node(
        &mut self,
        node: &Aggregate,
        input: NodeIx,
        calls: &[(usize, AggregateCall)],
        output: &SchemaRef,
    ) -> NodeIx {
        let keys: Vec<usize> = (0..node.group_expr.len()).collect();
        if calls.is_empty() {
            let keys_only = Arc::new(Schema::new(output.fields()[..keys.len()].to_vec()));
            let input = self.columns(input, &keys, &keys_only);
            return self.distinct(input);
        }
        let fields: Vec<_> = (output.fields()[..keys.len()].iter().cloned())
            .chain(calls.iter().map(|(_, call)| Arc::new(call.output.clone())))
            .collect();
        let functions = self.shown(calls.iter().map(|(i, _)| &node.aggr_expr[*i]));
        let detail = match keys.is_empty() {
            true => functions,
            false => {
                let by = self.shown(&node.group_expr);
                format!("{functions} by {by}")
            }
        };
        let spec: Vec<String> = calls
            .iter()
            .map(|(_, c)| format!("{:?} {} {:?} {:?}", c.function, c.distinct, c.input, c.filter))
            .collect();
        let spec = format!("{} {}", keys.len(), spec.join(";"));
        let calls = calls.iter().map(|(_, call)| call.clone()).collect();
        let kind = Kind::Aggregate { keys, calls };
        self.tree.add(kind, vec![input], Arc::new(Schema::new(fields)), detail, &spec)
    }

    /// The other calls of the same groups.
    fn recomputed(&mut self, node: &Aggregate, others: &[usize]) -> Result<NodeIx> {
        let exprs = others.iter().map(|&i| node.aggr_expr[i].clone()).collect();
        let rest = Aggregate::try_new(node.input.clone(), node.group_expr.clone(), exprs)
            .map_err(|e| errors::planning(&e))?;
        self.generic_aggregate(rest)
    }
}

/// A call of DataFusion's as ours; `None` when the function is not one of ours.
fn call(expr: &Expr, output: Field, columns: &mut Columns) -> Option<AggregateCall> {
    let Expr::AggregateFunction(Call { func, params }) = expr.clone().unalias() else {
        return None;
    };
    let AggregateFunctionParams { args, distinct, filter, .. } = params;
    let function = function(func.name(), &args, distinct)?;
    // The extremum of distinct values is the extremum.
    let extremum = matches!(function, AggregateFunction::Min | AggregateFunction::Max);
    let input = match function {
        AggregateFunction::CountStar => None,
        _ => Some(columns.number(args.first()?)),
    };
    let filter = match filter.as_deref() {
        Some(Expr::Literal(ScalarValue::Boolean(Some(true)), _)) | None => None,
        Some(condition) => Some(columns.number(condition)),
    };
    Some(AggregateCall { function, distinct: distinct && !extremum, input, filter, output })
}

/// The function of a name with these arguments, if it is one of ours.
pub(super) fn function(name: &str, args: &[Expr], distinct: bool) -> Option<AggregateFunction> {
    let argument = args.first().filter(|_| args.len() == 1);
    Some(match (name, argument) {
        ("count", None) if args.is_empty() => AggregateFunction::CountStar,
        ("count", Some(Expr::Literal(value, _))) if !value.is_null() && !distinct => {
            AggregateFunction::CountStar
        }
        ("count", Some(_)) => AggregateFunction::Count,
        ("sum", Some(_)) => AggregateFunction::Sum,
        ("sum_rest", Some(_)) => AggregateFunction::SumRest,
        ("avg", Some(_)) => AggregateFunction::Avg,
        ("min", Some(_)) => AggregateFunction::Min,
        ("max", Some(_)) => AggregateFunction::Max,
        ("bool_and", Some(_)) => AggregateFunction::BoolAnd,
        ("bool_or", Some(_)) => AggregateFunction::BoolOr,
        _ => return None,
    })
}
