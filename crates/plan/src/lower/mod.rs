//! From DataFusion's optimized plan to the tree of incremental nodes.
//!
//! Every node of the logical plan is lowered to incremental nodes, or, where it has no incremental
//! form, becomes a hybrid node over its lowered children.

use std::sync::Arc;

use arrow::datatypes::{Field, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::source_as_provider;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, Operator, TableScan};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use deltaic_batch::Result;
use deltaic_ops::{ColumnRef, Evaluator};

use crate::errors;
use crate::evaluator::Expression;
use crate::session::batch::relaxed;
use crate::session::checked;
use crate::session::provider::TableInput;
use crate::tree::{Kind, NodeIx, Tree};
use words::Words;

mod aggregate;
mod bounded;
mod by_group;
mod frames;
mod grouping_sets;
mod join;
mod picked;
mod range_join;
pub(crate) mod recursion;
mod region;
mod temporal;
mod top_k;
mod window;
mod words;

/// Column numbers of more columns than this are not listed in explain.
const COLUMNS_SHOWN: usize = 8;

/// Lowers one plan.
pub(crate) struct Lowering {
    state: Arc<SessionState>,
    pub(crate) tree: Tree,
    words: Arc<Words>,
    /// The clock as a table, for a plan that reads it.
    clock: Option<SchemaRef>,
    /// The recursion whose step is being lowered: its name and schema.
    work: Option<(String, SchemaRef)>,
}

impl Lowering {
    /// `plan` is the whole query.
    pub(crate) fn new(
        state: Arc<SessionState>,
        plan: &LogicalPlan,
        clock: Option<SchemaRef>,
    ) -> Self {
        Self { state, tree: Tree::default(), words: Arc::new(Words::of(plan)), clock, work: None }
    }

    /// The node whose output is the plan's, column by column.
    pub(crate) fn lower(&mut self, plan: &LogicalPlan) -> Result<NodeIx> {
        match plan {
            LogicalPlan::Projection(p) => {
                if let Some(input) = self.ranked_without_number(p)? {
                    return self.projection(input, p.input.schema(), &p.expr, p.schema.as_ref());
                }
                if let Some(node) = self.bounded(p)? {
                    return Ok(node);
                }
                let input = self.lower(&p.input)?;
                self.projection(input, p.input.schema(), &p.expr, p.schema.as_ref())
            }
            LogicalPlan::Filter(f) => {
                if let Some(node) = self.ranked(f, true)? {
                    return Ok(node);
                }
                if let Some(node) = self.temporal(f)? {
                    return Ok(node);
                }
                let input = self.lower(&f.input)?;
                self.filter(input, f.input.schema(), &f.predicate)
            }
            LogicalPlan::SubqueryAlias(alias) => self.lower(&alias.input),
            // The order of a multiset has no meaning.
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.lower(&sort.input),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let input = self.lower(input)?;
                Ok(self.distinct(input))
            }
            LogicalPlan::Union(union) => {
                let inputs = (union.inputs.iter())
                    .map(|input| self.lower(input))
                    .collect::<Result<Vec<_>>>()?;
                self.union_all(inputs, relaxed(union.schema.as_arrow()))
            }
            LogicalPlan::Join(join) => self.join(plan, join),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(plan, aggregate),
            LogicalPlan::Window(window) => self.window(plan, window),
            LogicalPlan::Unnest(_) => self.per_row(plan),
            LogicalPlan::RecursiveQuery(query) => self.recursion(plan, query),
            LogicalPlan::TableScan(scan) => self.scan(plan, scan),
            LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => self.constant(plan),
            LogicalPlan::Limit(_) | LogicalPlan::Sort(_) => match self.limit(plan)? {
                Some(node) => Ok(node),
                None => self.hybrid(plan),
            },
            other => self.hybrid(other),
        }
    }

    fn scan(&mut self, plan: &LogicalPlan, scan: &TableScan) -> Result<NodeIx> {
        if let Some((name, schema)) = &self.work
            && is_work_table(scan, name)
        {
            let name = recursion::work_table(name);
            return self.scan_of(scan, name, schema.clone());
        }
        let Some(table) = scan.source.downcast_ref::<TableInput>() else {
            return self.constant(plan);
        };
        if scan.fetch.is_some() {
            return self.hybrid(plan);
        }
        self.scan_of(scan, table.name.clone(), table.original.clone())
    }

    /// The columns of a source that a scan reads.
    fn scan_of(&mut self, scan: &TableScan, name: String, schema: SchemaRef) -> Result<NodeIx> {
        let spec = format!("{name} {schema:?}");
        let kind = Kind::Source { name: name.clone() };
        let source = self.tree.add(kind, Vec::new(), schema.clone(), name, &spec);
        let all: Vec<usize> = (0..schema.fields().len()).collect();
        let columns = scan.projection.clone().unwrap_or(all);
        let output = relaxed(scan.projected_schema.as_arrow());
        let mut node = self.columns(source, &columns, &output);
        for filter in &scan.filters {
            node = self.filter(node, &scan.projected_schema, filter)?;
        }
        Ok(node)
    }

    /// A filter. Where a condition can fail (`x / y > 1`), those before it are applied first, each by
    /// a node of its own, so that `y <> 0 AND x / y > 1` is safe.
    fn filter(&mut self, input: NodeIx, schema: &DFSchema, predicate: &Expr) -> Result<NodeIx> {
        let conjuncts = split_conjunction(predicate);
        if conjuncts.len() == 1 || !conjuncts.iter().any(|expr| can_fail(expr)) {
            return self.filter_by(input, schema, predicate);
        }
        conjuncts.into_iter().try_fold(input, |node, expr| self.filter_by(node, schema, expr))
    }

    fn filter_by(&mut self, input: NodeIx, schema: &DFSchema, predicate: &Expr) -> Result<NodeIx> {
        let physical = self.physical(predicate, schema)?;
        let spec = format!("{predicate} {physical:?}");
        let predicate_type = arrow::datatypes::DataType::Boolean;
        let kind = Kind::Filter { predicate: Expression::evaluator(physical, predicate_type) };
        let output = self.tree.schema(input).clone();
        Ok(self.tree.add(kind, vec![input], output, self.words.expr(predicate), &spec))
    }

    fn projection(
        &mut self,
        input: NodeIx,
        schema: &DFSchema,
        exprs: &[Expr],
        output: &DFSchema,
    ) -> Result<NodeIx> {
        let output = relaxed(output.as_arrow());
        let mut columns: Vec<(Arc<dyn Evaluator>, Field)> = Vec::with_capacity(exprs.len());
        let mut spec = Vec::with_capacity(exprs.len());
        for (expr, field) in exprs.iter().zip(output.fields()) {
            let physical = self.physical(expr, schema)?;
            spec.push(format!("{expr} {physical:?}"));
            let evaluator = Expression::evaluator(physical, field.data_type().clone());
            columns.push((evaluator, field.as_ref().clone()));
        }
        let detail = self.shown(exprs);
        Ok(self.tree.add(Kind::Project { columns }, vec![input], output, detail, &spec.join(";")))
    }

    /// The given columns of a node, under the names of `output`; the node itself if that is all of
    /// it as it is.
    fn columns(&mut self, input: NodeIx, columns: &[usize], output: &SchemaRef) -> NodeIx {
        let identity = columns.iter().enumerate().all(|(i, &column)| i == column);
        if identity && self.tree.schema(input) == output {
            return input;
        }
        let columns: Vec<(Arc<dyn Evaluator>, Field)> = (columns.iter().zip(output.fields()))
            .map(|(&i, field)| {
                (Arc::new(ColumnRef(i)) as Arc<dyn Evaluator>, field.as_ref().clone())
            })
            .collect();
        let spec = format!("{columns:?}");
        let detail = list(output.fields().iter().map(|field| self.words.name(field.name())));
        self.tree.add(Kind::Project { columns }, vec![input], output.clone(), detail, &spec)
    }

    fn union_all(&mut self, inputs: Vec<NodeIx>, output: SchemaRef) -> Result<NodeIx> {
        let mut same = Vec::with_capacity(inputs.len());
        for input in inputs {
            let all: Vec<usize> = (0..output.fields().len()).collect();
            let types_differ = (self.tree.schema(input).fields().iter().zip(output.fields()))
                .any(|(a, b)| a.data_type() != b.data_type());
            if types_differ {
                return Err(deltaic_batch::Error::internal(
                    "UNION_TYPES",
                    format!("{:?} is not {output:?}", self.tree.schema(input)),
                ));
            }
            same.push(self.columns(input, &all, &output));
        }
        Ok(self.tree.add(Kind::UnionAll, same, output, String::new(), ""))
    }

    fn distinct(&mut self, input: NodeIx) -> NodeIx {
        let schema = self.tree.schema(input).clone();
        let detail = list(schema.fields().iter().map(|field| self.words.name(field.name())));
        self.tree.add(Kind::Distinct, vec![input], schema, detail, "")
    }

    /// Expressions for explain.
    fn shown<'a>(&self, exprs: impl IntoIterator<Item = &'a Expr>) -> String {
        let words: Vec<String> = exprs.into_iter().map(|expr| self.words.expr(expr)).collect();
        list(words.into_iter())
    }

    fn physical(&self, expr: &Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
        create_physical_expr(expr, schema, self.state.execution_props(), &Default::default())
            .map_err(|e| errors::planning(&e))
    }
}

/// The scan of the work table of a recursion.
fn is_work_table(scan: &TableScan, recursion: &str) -> bool {
    let provider = source_as_provider(&scan.source);
    provider.is_ok_and(|provider| {
        provider.downcast_ref::<CteWorkTable>().is_some_and(|table| table.name() == recursion)
    })
}

/// Evaluation may end in an error on some values.
fn can_fail(expr: &Expr) -> bool {
    let found = expr.exists(|e| {
        Ok(match e {
            Expr::BinaryExpr(binary) => {
                matches!(binary.op, Operator::Divide | Operator::Modulo)
            }
            Expr::Cast(_) => true,
            Expr::ScalarFunction(call) => checked::is_checked(call.func.name()),
            _ => false,
        })
    });
    found.unwrap_or(true)
}

/// `a, b, … 12 columns`.
fn list(names: impl ExactSizeIterator<Item = String>) -> String {
    let count = names.len();
    let shown: Vec<String> = names.take(COLUMNS_SHOWN).collect();
    match count > COLUMNS_SHOWN {
        true => format!("{}, … {count} columns", shown.join(", ")),
        false => shown.join(", "),
    }
}
