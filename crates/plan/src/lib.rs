//! From SQL to an incremental plan and a circuit; refresh decision, cost, explain.
//!
//! `SQL → DataFusion LogicalPlan → normalised → incremental plan → circuit`.

mod api;

pub use api::{
    Candidate, Decision, RefreshPolicy, Session, SessionOptions, Source, SourceTable, Sources,
    Technique, TypedExpression, ViewPlan, ViewStats,
};
