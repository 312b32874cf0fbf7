//! Cuts a part without incremental form out of a plan, and makes its result deterministic.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;
use deltaic_batch::{Error, Result};

use super::Lowering;
use crate::errors;
use crate::hybrid::{Hole, Order, Region, RegionInput};
use crate::session::batch::relaxed;
use crate::session::provider::TableInput;
use crate::session::ties;
use crate::tree::{Kind, NodeIx};

/// A region under construction: the nodes that its holes stand for.
#[derive(Default)]
struct Cut {
    nodes: Vec<NodeIx>,
    inputs: Vec<RegionInput>,
}

impl Lowering {
    /// The plan's top node as a hybrid node over its lowered children.
    pub(super) fn hybrid(&mut self, plan: &LogicalPlan) -> Result<NodeIx> {
        let mut cut = Cut::default();
        let template = match plan {
            LogicalPlan::Limit(_) | LogicalPlan::Sort(_) => self.cut_limit(plan, &mut cut)?,
            LogicalPlan::Aggregate(_) => self.cut_children(plan, &mut cut, Order::Canonical)?,
            LogicalPlan::RecursiveQuery(_) => self.cut_recursion(plan, &mut cut)?,
            other => self.cut_children(other, &mut cut, Order::Any)?,
        };
        let (operator, reason) = why(plan);
        let detail = template.display().to_string();
        self.region(plan, template, cut, detail, operator, reason)
    }

    /// Rows that depend on no table.
    pub(super) fn constant(&mut self, plan: &LogicalPlan) -> Result<NodeIx> {
        let output = relaxed(plan.schema().as_arrow());
        let detail = plan.display().to_string();
        let spec = describe(plan)?;
        let region = Region {
            state: self.state.clone(),
            template: plan.clone(),
            inputs: Vec::new(),
            output: output.clone(),
        };
        let kind = Kind::Constant { region: Arc::new(region) };
        Ok(self.tree.add(kind, Vec::new(), output, detail, &spec))
    }

    fn region(
        &mut self,
        plan: &LogicalPlan,
        template: LogicalPlan,
        cut: Cut,
        detail: String,
        operator: String,
        reason: String,
    ) -> Result<NodeIx> {
        let output = relaxed(plan.schema().as_arrow());
        let spec = describe(&template)?;
        let region = Arc::new(Region {
            state: self.state.clone(),
            template,
            inputs: cut.inputs,
            output: output.clone(),
        });
        let kind = match cut.nodes.is_empty() {
            true => Kind::Constant { region },
            false => Kind::Hybrid { region, operator, reason },
        };
        Ok(self.tree.add(kind, cut.nodes, output, detail, &spec))
    }

    /// A node that treats each row of its one input by itself.
    pub(super) fn per_row(&mut self, plan: &LogicalPlan) -> Result<NodeIx> {
        let mut cut = Cut::default();
        let template = self.cut_children(plan, &mut cut, Order::Any)?;
        let detail = template.display().to_string();
        let (output, spec) = (relaxed(plan.schema().as_arrow()), describe(&template)?);
        let (state, inputs) = (self.state.clone(), cut.inputs);
        let region = Arc::new(Region { state, template, inputs, output: output.clone() });
        Ok(self.tree.add(Kind::PerRow { region }, cut.nodes, output, detail, &spec))
    }

    /// A hole for the lowered plan.
    fn hole(&mut self, plan: &LogicalPlan, order: Order, cut: &mut Cut) -> Result<LogicalPlan> {
        let node = self.lower(plan)?;
        let hole = Hole::scan(cut.nodes.len(), plan.schema());
        cut.nodes.push(node);
        cut.inputs.push(RegionInput { schema: plan.schema().clone(), order });
        Ok(hole)
    }

    fn cut_children(
        &mut self,
        plan: &LogicalPlan,
        cut: &mut Cut,
        order: Order,
    ) -> Result<LogicalPlan> {
        let holes = (plan.inputs().into_iter())
            .map(|input| self.hole(input, order, cut))
            .collect::<Result<Vec<_>>>()?;
        plan.with_new_exprs(plan.expressions(), holes).map_err(|e| errors::planning(&e))
    }

    /// LIMIT together with the ORDER BY below it.
    fn cut_limit(&mut self, plan: &LogicalPlan, cut: &mut Cut) -> Result<LogicalPlan> {
        match plan {
            LogicalPlan::Sort(_) => self.cut_children(plan, cut, Order::Any),
            LogicalPlan::Limit(limit) if !ties::ordered(&limit.input) => {
                self.cut_children(plan, cut, Order::Any)
            }
            LogicalPlan::Limit(_) | LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
                let inputs = plan.inputs();
                let Some(input) = inputs.first() else {
                    return Err(Error::internal("REGION", "a plan node without input"));
                };
                let input = self.cut_limit(input, cut)?;
                let rebuilt = plan.with_new_exprs(plan.expressions(), vec![input]);
                rebuilt.map_err(|e| errors::planning(&e))
            }
            other => self.hole(other, Order::Any, cut),
        }
    }

    /// A recursive query as a whole; its inputs are the tables that it reads.
    fn cut_recursion(&mut self, plan: &LogicalPlan, cut: &mut Cut) -> Result<LogicalPlan> {
        let mut scans: Vec<LogicalPlan> = Vec::new();
        let collected = plan.apply(|node| {
            if is_table(node) && !scans.contains(node) {
                scans.push(node.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        });
        collected.map_err(|e| errors::planning(&e))?;
        let mut holes = HashMap::new();
        for scan in scans {
            let hole = self.hole(&scan, Order::Canonical, cut)?;
            holes.insert(scan, hole);
        }
        plan.clone()
            .transform_up(|node| match holes.get(&node) {
                Some(hole) => Ok(Transformed::yes(hole.clone())),
                None => Ok(Transformed::no(node)),
            })
            .map(|plan| plan.data)
            .map_err(|e| errors::planning(&e))
    }
}

/// All that a plan means, also what its display leaves out: long VALUES, and the arguments of table
/// functions.
pub(super) fn describe(plan: &LogicalPlan) -> Result<String> {
    let mut text = plan.display_indent_schema().to_string();
    let described = plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::Values(values) => text += &format!("\n{:?}", values.values),
            LogicalPlan::TableScan(scan) => {
                if let Ok(provider) = source_as_provider(&scan.source) {
                    text += &format!("\n{provider:?}");
                }
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    });
    described.map_err(|e| errors::planning(&e))?;
    Ok(text)
}

fn is_table(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::TableScan(scan) if scan.source.is::<TableInput>())
}

/// Name of the operator for the event log, and why it is recomputed.
fn why(plan: &LogicalPlan) -> (String, String) {
    let (operator, reason) = match plan {
        LogicalPlan::Limit(_) | LogicalPlan::Sort(_) => {
            ("LIMIT", "LIMIT is recomputed from all of its input")
        }
        LogicalPlan::Window(_) => (
            "WINDOW",
            "windows without a common PARTITION BY are recomputed from all of their input",
        ),
        LogicalPlan::Aggregate(_) => {
            ("AGGREGATE", "these aggregate functions over all rows cannot take back a row")
        }
        LogicalPlan::RecursiveQuery(_) => ("RECURSION", "recursion is recomputed"),
        LogicalPlan::Join(_) => ("JOIN", "this join condition has no incremental form"),
        LogicalPlan::Distinct(_) => ("DISTINCT ON", "DISTINCT ON is recomputed"),
        other => return (other.display().to_string(), "this operator is recomputed".into()),
    };
    (operator.into(), reason.into())
}
