//! Window aggregates over frames that are measured from the current row.
//!
//! `RANGE` with an offset on both sides is a range join of places and rows ([`distance`]), with one
//! side unbounded a running value with marks where frames end ([`open`]); `GROUPS` with an offset is a
//! distance between numbers of groups ([`groups`]).

mod calls;
mod distance;
mod evaluators;
mod groups;
mod open;

use std::sync::Arc;

use datafusion::logical_expr::{
    Expr, LogicalPlan, Projection, Window, WindowFrame, WindowFrameUnits,
};
use deltaic_batch::Result;

use super::Lowering;
use crate::errors;
use crate::tree::NodeIx;
use calls::Calls;

impl Lowering {
    /// Window aggregates over such frames; `None` for others.
    pub(super) fn measured_window(
        &mut self,
        plan: &LogicalPlan,
        window: &Window,
    ) -> Result<Option<NodeIx>> {
        if let Some(apart) = apart(window).map_err(|e| errors::planning(&e))? {
            return self.lower(&apart).map(Some);
        }
        let Some(calls) = Calls::of(window) else { return Ok(None) };
        if calls.frame.units == WindowFrameUnits::Range && !calls.is_open() {
            return self.distance_window(plan, window, &calls);
        }
        let other = match calls.frame.units {
            WindowFrameUnits::Groups => groups::by_number(window, &calls).map(Some),
            _ => open::with_marks(window, &calls),
        };
        match other.map_err(|e| errors::planning(&e))? {
            Some(other) => self.lower(&other).map(Some),
            None => Ok(None),
        }
    }
}

/// Calls of such frames in window nodes of their own, one for each frame, above those of the others;
/// `None` where there is nothing to take apart.
fn apart(window: &Window) -> datafusion::common::Result<Option<LogicalPlan>> {
    let mut nodes: Vec<(Option<WindowFrame>, Vec<Expr>)> = Vec::new();
    for expr in &window.window_expr {
        let alone = Window::try_new(vec![expr.clone()], window.input.clone())?;
        let frame = match (Calls::of(&alone), expr.clone().unalias()) {
            (Some(_), Expr::WindowFunction(call)) => Some(call.params.window_frame),
            _ => None,
        };
        match nodes.iter_mut().find(|(other, _)| *other == frame) {
            Some((_, exprs)) => exprs.push(expr.clone()),
            None => nodes.push((frame, vec![expr.clone()])),
        }
    }
    if nodes.len() < 2 {
        return Ok(None);
    }
    nodes.sort_by_key(|(frame, _)| frame.is_some());
    let mut plan = window.input.clone();
    for (_, exprs) in nodes {
        plan = Arc::new(LogicalPlan::Window(Window::try_new(exprs, plan)?));
    }
    let columns = window.schema.iter().map(Expr::from).collect();
    Ok(Some(LogicalPlan::Projection(Projection::try_new(columns, plan)?)))
}
