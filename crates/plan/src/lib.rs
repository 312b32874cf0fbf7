//! From SQL to an incremental plan and a circuit; refresh decision, cost, explain.
//!
//! `SQL → DataFusion LogicalPlan → normalised → incremental plan → circuit`.
//!
//! Where things are:
//!
//! | module | job |
//! |---|---|
//! | `catalog` | what names in a query stand for |
//! | `session` | DataFusion set up for us: parsing, names, types, checked arithmetic, batch runs |
//! | `ddl` | column lists and type names |
//! | `lower` | optimized plan → tree of incremental nodes |
//! | `tree` | that tree; equal subtrees are one node |
//! | `hybrid` | the operator that recomputes a subtree and emits the difference |
//! | `view` | a planned view: circuit, explain, technique, issues |
//! | `decision` | which way to refresh, by cost |

mod catalog;
mod circuit;
mod ddl;
mod decision;
mod errors;
mod evaluator;
mod explain;
mod hybrid;
mod lower;
mod session;
mod technique;
mod tree;
mod type_names;
mod view;

pub use catalog::{Source, SourceTable, Sources};
pub use decision::{Candidate, Decision, RefreshPolicy, ViewStats};
pub use session::{Session, SessionOptions, TypedExpression};
pub use technique::Technique;
pub use type_names::type_name;
pub use view::ViewPlan;

#[cfg(test)]
mod tests;
