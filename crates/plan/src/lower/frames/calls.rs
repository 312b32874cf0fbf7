//! The calls of a window node that have one frame, measured from the current row.

use datafusion::logical_expr::expr::{Sort, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, LogicalPlan, Window, WindowFrame, WindowFrameBound as Bound, WindowFrameUnits,
    WindowFunctionDefinition,
};
use deltaic_ops::AggregateFunction;

/// What all calls of a window node have in common, and the calls.
pub(super) struct Calls<'a> {
    pub(super) input: &'a LogicalPlan,
    pub(super) partition: Vec<Expr>,
    pub(super) order: Vec<Sort>,
    pub(super) frame: WindowFrame,
    pub(super) calls: Vec<Call>,
}

pub(super) struct Call {
    pub(super) function: AggregateFunction,
    pub(super) argument: Option<Expr>,
    pub(super) filter: Option<Expr>,
}

impl<'a> Calls<'a> {
    /// `None` where calls differ, are of other functions, or where the frame is measured otherwise.
    pub(super) fn of(window: &'a Window) -> Option<Self> {
        let (mut common, mut calls) = (None, Vec::new());
        for expr in &window.window_expr {
            let Expr::WindowFunction(call) = expr.clone().unalias() else { return None };
            let WindowFunctionParams {
                args,
                partition_by,
                order_by,
                window_frame,
                filter,
                distinct,
                null_treatment,
            } = call.params;
            let own = (partition_by, order_by, window_frame);
            if common.get_or_insert_with(|| own.clone()) != &own
                || distinct
                || null_treatment.is_some()
                || matches!(call.fun, WindowFunctionDefinition::WindowUDF(_))
            {
                return None;
            }
            let function = crate::lower::aggregate::function(call.fun.name(), &args, false)?;
            let argument = match function {
                AggregateFunction::CountStar => None,
                _ => Some(args.into_iter().next()?),
            };
            calls.push(Call { function, argument, filter: filter.map(|filter| *filter) });
        }
        let (partition, order, frame) = common?;
        let is_measured = [&frame.start_bound, &frame.end_bound]
            .iter()
            .any(|bound| !is_unbounded(bound) && !matches!(bound, Bound::CurrentRow));
        let has_order = match frame.units {
            WindowFrameUnits::Rows => false,
            WindowFrameUnits::Range => order.len() == 1,
            WindowFrameUnits::Groups => !order.is_empty(),
        };
        let input = window.input.as_ref();
        (is_measured && has_order).then_some(Self { input, partition, order, frame, calls })
    }

    /// One side has no end.
    pub(super) fn is_open(&self) -> bool {
        is_unbounded(&self.frame.start_bound) || is_unbounded(&self.frame.end_bound)
    }
}

pub(super) fn is_unbounded(bound: &Bound) -> bool {
    match bound {
        Bound::CurrentRow => false,
        Bound::Preceding(by) | Bound::Following(by) => by.is_null(),
    }
}
