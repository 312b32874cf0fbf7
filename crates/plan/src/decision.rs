//! Which way to refresh a view: the policy, what is possible, and what it costs.
//!
//! `docs/refresh-decision.md` explains the rule; the priors are in the one table below.

use std::collections::BTreeMap;

use deltaic_batch::Result;
use deltaic_ops::JoinKind;

use crate::session::clock::CLOCK;
use crate::technique::Technique;
use crate::tree::{ByGroup, Kind, Tree};
use crate::view::ViewPlan;

/// `REFRESH POLICY` of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RefreshPolicy {
    /// Cheaper way by the cost rule.
    #[default]
    Auto,
    /// Incremental where possible.
    Incremental,
    /// Incremental or an error that says what is not.
    IncrementalStrict,
    /// Always from scratch.
    Full,
}

impl RefreshPolicy {
    /// The words of the clause.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "AUTO",
            Self::Incremental => "INCREMENTAL",
            Self::IncrementalStrict => "INCREMENTAL STRICT",
            Self::Full => "FULL",
        }
    }
}

/// Row counts that the decision is made from.
#[derive(Debug, Clone, Default)]
pub struct ViewStats {
    /// Per source: rows of the pending delta.
    pub delta_rows: BTreeMap<String, u64>,
    /// Per source: rows of the whole table.
    pub source_rows: BTreeMap<String, u64>,
    /// Rows of the view now.
    pub view_rows: u64,
    /// The clock, which the view reads as an input, has moved.
    pub clock_moved: bool,
    /// State is there and fits.
    pub has_state: bool,
}

/// One way to refresh and what it would cost.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The way.
    pub technique: Technique,
    /// Predicted cost in microseconds of one core.
    pub cost_us: f64,
    /// It can be used now.
    pub applicable: bool,
}

/// A refresh decision and its inputs.
#[derive(Debug, Clone)]
pub struct Decision {
    /// What to do.
    pub chosen: Technique,
    /// All ways looked at.
    pub candidates: Vec<Candidate>,
    /// Why, in one sentence.
    pub reason: String,
}

/// Nanoseconds per row and operator before there are measurements of a pipeline's own.
struct Prior {
    /// Per row of an incremental delta that reaches the operator.
    delta_ns: f64,
    /// Per row in a recompute from empty state.
    full_ns: f64,
    /// Rows out per row in.
    fanout: f64,
}

const READ: Prior = Prior { delta_ns: 60.0, full_ns: 60.0, fanout: 1.0 };
const FILTER: Prior = Prior { delta_ns: 10.0, full_ns: 10.0, fanout: 0.4 };
const PROJECT: Prior = Prior { delta_ns: 15.0, full_ns: 15.0, fanout: 1.0 };
const TEMPORAL: Prior = Prior { delta_ns: 300.0, full_ns: 200.0, fanout: 0.4 };
const UNION: Prior = Prior { delta_ns: 3.0, full_ns: 3.0, fanout: 1.0 };
const JOIN: Prior = Prior { delta_ns: 400.0, full_ns: 180.0, fanout: 1.0 };
const AGGREGATE: Prior = Prior { delta_ns: 250.0, full_ns: 90.0, fanout: 0.1 };
const DISTINCT: Prior = Prior { delta_ns: 250.0, full_ns: 90.0, fanout: 0.3 };
const TOP_K: Prior = Prior { delta_ns: 400.0, full_ns: 250.0, fanout: 0.3 };
/// Per row that a change may affect, and per row of all.
const WINDOW: Prior = Prior { delta_ns: 300.0, full_ns: 300.0, fanout: 1.0 };
/// Per row that goes around, of which there are several per row of the delta.
const RECURSION: Prior = Prior { delta_ns: 4000.0, full_ns: 1500.0, fanout: 3.0 };
const RECOMPUTE: Prior = Prior { delta_ns: 350.0, full_ns: 250.0, fanout: 1.0 };
const UNNEST: Prior = Prior { delta_ns: 200.0, full_ns: 100.0, fanout: 3.0 };
/// Per row of a touched group, and per row of all.
const BY_GROUP: Prior = Prior { delta_ns: 700.0, full_ns: 450.0, fanout: 1.0 };
/// Rows of a group that is recomputed when it is touched.
const GROUP_ROWS: f64 = 10.0;
/// Per row written to the view's table, either way.
const WRITE_NS: f64 = 400.0;
/// Per row of the old and new content in the difference that a full refresh makes.
const DIFF_NS: f64 = 150.0;
/// Fixed cost of one step of a circuit with recomputed parts, and of one without.
const PLAN_NS: f64 = 1_500_000.0;

/// Rows that pass through a node.
#[derive(Clone, Copy, Default)]
struct Flow {
    /// In an incremental refresh.
    delta: f64,
    /// In all.
    total: f64,
}

/// Predicted nanoseconds of both ways.
struct Costs {
    incremental: f64,
    full: f64,
}

/// Decides; an error when the policy demands what the plan cannot do.
pub(crate) fn decide(
    tree: &Tree,
    view: &ViewPlan,
    policy: RefreshPolicy,
    stats: &ViewStats,
    deterministic: bool,
) -> Result<Decision> {
    if policy == RefreshPolicy::IncrementalStrict {
        view.incremental_throughout()?;
    }
    let changed: u64 = stats.delta_rows.values().sum();
    let costs = costs(tree, stats);
    let incremental = match deterministic {
        true => view.technique(),
        false => Technique::Hybrid,
    };
    let applicable = stats.has_state && deterministic;
    let candidates = vec![
        Candidate { technique: incremental, cost_us: costs.incremental / 1e3, applicable },
        Candidate {
            technique: Technique::CompleteRecompute,
            cost_us: costs.full / 1e3,
            applicable: true,
        },
    ];
    let (chosen, reason) = match policy {
        RefreshPolicy::Full => (Technique::CompleteRecompute, "REFRESH POLICY FULL".to_owned()),
        _ if !deterministic => {
            let function = view.issues().into_iter().next().map(|issue| issue.1);
            let function = function.unwrap_or_default();
            (
                Technique::CompleteRecompute,
                format!("{function} has another value in every run, so all rows are computed anew"),
            )
        }
        _ if !stats.has_state => (
            Technique::CompleteRecompute,
            "there is no state of an earlier run that fits this plan".to_owned(),
        ),
        _ if changed == 0 && stats.clock_moved && policy == RefreshPolicy::Auto => {
            let (chosen, reason) = cheaper(incremental, &costs);
            (chosen, format!("the clock has moved; {reason}"))
        }
        _ if changed == 0 && !stats.clock_moved => {
            (Technique::NoOp, "no source has changed".to_owned())
        }
        RefreshPolicy::Incremental | RefreshPolicy::IncrementalStrict => {
            (incremental, format!("REFRESH POLICY {}", policy.name()))
        }
        RefreshPolicy::Auto => cheaper(incremental, &costs),
    };
    Ok(Decision { chosen, candidates, reason })
}

fn cheaper(incremental: Technique, costs: &Costs) -> (Technique, String) {
    let (inc, full) = (milliseconds(costs.incremental), milliseconds(costs.full));
    if costs.incremental <= costs.full {
        (incremental, format!("incremental is cheaper: {inc} ms against {full} ms in full"))
    } else {
        let reason = format!("in full is cheaper: {full} ms against {inc} ms incrementally");
        (Technique::CompleteRecompute, reason)
    }
}

/// Nanoseconds as milliseconds, with as many digits as tell small costs apart.
fn milliseconds(nanoseconds: f64) -> String {
    let ms = nanoseconds / 1e6;
    if ms < 1.0 { format!("{ms:.3}") } else { format!("{ms:.1}") }
}

fn costs(tree: &Tree, stats: &ViewStats) -> Costs {
    let mut flows: Vec<Flow> = Vec::with_capacity(tree.nodes.len());
    let mut costs = Costs { incremental: 0.0, full: 0.0 };
    for node in &tree.nodes {
        let inputs: Vec<Flow> = node.inputs.iter().map(|&i| flows[i]).collect();
        let sum = inputs.iter().fold(Flow::default(), |a, b| Flow {
            delta: a.delta + b.delta,
            total: a.total + b.total,
        });
        let (prior, flow) = match &node.kind {
            Kind::Source { name } if name == CLOCK => {
                let moves = if stats.clock_moved { 2.0 } else { 0.0 };
                flows.push(Flow { delta: moves, total: 1.0 });
                continue;
            }
            Kind::Source { name } => {
                let rows = |map: &BTreeMap<String, u64>| float(map.get(name).copied().unwrap_or(0));
                let flow = Flow { delta: rows(&stats.delta_rows), total: rows(&stats.source_rows) };
                costs.incremental += flow.delta * READ.delta_ns;
                costs.full += flow.total * READ.full_ns;
                flows.push(flow);
                continue;
            }
            Kind::Constant { .. } => {
                flows.push(Flow { delta: 0.0, total: 1.0 });
                continue;
            }
            Kind::Filter { .. } => (FILTER, scaled(sum, FILTER.fanout)),
            Kind::Bounded { .. } => {
                let rows = inputs.first().copied().unwrap_or_default();
                (TEMPORAL, scaled(rows, TEMPORAL.fanout))
            }
            Kind::Project { .. } => (PROJECT, sum),
            Kind::UnionAll => (UNION, sum),
            Kind::RangeJoin { .. } => (JOIN, joined(JoinKind::Inner, true, &inputs)),
            Kind::Join { kind, on, .. } => (JOIN, joined(*kind, on.is_empty(), &inputs)),
            Kind::Aggregate { keys, .. } if keys.is_empty() => {
                (AGGREGATE, Flow { delta: sum.delta.min(2.0), total: 1.0 })
            }
            Kind::Aggregate { .. } => (AGGREGATE, grouped(sum, AGGREGATE.fanout)),
            Kind::Distinct => (DISTINCT, grouped(sum, DISTINCT.fanout)),
            Kind::TopK { partition, limit, .. } if partition.is_empty() => {
                let places = float(*limit);
                let flow =
                    Flow { delta: sum.delta.min(2.0 * places), total: sum.total.min(places) };
                (TOP_K, flow)
            }
            Kind::TopK { .. } => (TOP_K, grouped(sum, TOP_K.fanout)),
            Kind::Window { .. } => {
                let changed = (sum.delta * GROUP_ROWS).min(sum.total);
                costs.incremental += changed * WINDOW.delta_ns;
                costs.full += sum.total * WINDOW.full_ns;
                flows.push(Flow { delta: changed, total: sum.total });
                continue;
            }
            Kind::Recursion { .. } => {
                let flow = Flow { delta: sum.delta * RECURSION.fanout, ..sum };
                (RECURSION, flow)
            }
            Kind::PerRow { .. } => (UNNEST, scaled(sum, UNNEST.fanout)),
            Kind::ByGroup { what, .. } => {
                // The query runs twice, before and after.
                costs.incremental += if sum.delta > 0.0 { 2.0 * PLAN_NS } else { 0.0 };
                costs.full += PLAN_NS;
                let changed = (sum.delta * GROUP_ROWS).min(sum.total);
                let flow = match what {
                    ByGroup::Window => Flow { delta: changed, total: sum.total },
                    ByGroup::Aggregate => grouped(sum, AGGREGATE.fanout),
                };
                costs.incremental += changed * BY_GROUP.delta_ns;
                costs.full += sum.total * BY_GROUP.full_ns;
                flows.push(flow);
                continue;
            }
            Kind::Hybrid { .. } => {
                if sum.delta > 0.0 {
                    costs.incremental += PLAN_NS + sum.total * RECOMPUTE.delta_ns;
                }
                costs.full += PLAN_NS + sum.total * RECOMPUTE.full_ns;
                flows.push(Flow { delta: sum.delta.min(sum.total), total: sum.total });
                continue;
            }
        };
        costs.incremental += sum.delta * prior.delta_ns;
        costs.full += sum.total * prior.full_ns;
        flows.push(flow);
    }
    let out = flows.last().copied().unwrap_or_default();
    let view_rows = float(stats.view_rows).max(1.0);
    costs.incremental += out.delta.min(2.0 * view_rows.max(out.delta)) * WRITE_NS;
    costs.full += view_rows * 2.0 * DIFF_NS + out.delta * WRITE_NS;
    costs
}

fn scaled(flow: Flow, by: f64) -> Flow {
    Flow { delta: flow.delta * by, total: flow.total * by }
}

/// A changed group leaves and comes back: at most two rows each.
fn grouped(input: Flow, fanout: f64) -> Flow {
    let total = (input.total * fanout).max(1.0);
    Flow { delta: (2.0 * input.delta).min(2.0 * total), total }
}

fn joined(kind: JoinKind, cross: bool, inputs: &[Flow]) -> Flow {
    let (Some(l), Some(r)) = (inputs.first(), inputs.get(1)) else { return Flow::default() };
    match kind {
        JoinKind::LeftSemi | JoinKind::LeftAnti => {
            Flow { delta: l.delta + r.delta, total: l.total * 0.5 }
        }
        _ if cross => {
            Flow { delta: l.delta * r.total + l.total * r.delta, total: l.total * r.total }
        }
        _ => Flow { delta: (l.delta + r.delta) * JOIN.fanout, total: l.total.max(r.total) },
    }
}

fn float(rows: u64) -> f64 {
    rows as f64
}
