//! Update execution: each dataset is brought up to date after what it reads, in one commit.
//!
//! Commit protocol of an epoch: compute the output, write operator state, write progress, publish
//! the table commit with the epoch as its transaction id, and after all datasets the marker. The
//! transaction id says which epoch counts; state and progress beyond it are leftovers of a crash.

mod append;
mod cdc;
mod cdc_events;
mod change_feed;
mod commit;
mod context;
mod dataset;
mod inputs;
mod quarantine;
mod renamed;
mod retention;
mod run;
mod selection;
mod snapshot;
mod snapshot_source;
mod stored;
mod view;
mod view_input;
mod view_refresh;

pub(crate) use context::Context;
pub(crate) use dataset::Planning;
pub(crate) use inputs::{change_rows, change_schema};
pub(crate) use renamed::renamed_flows;
pub(crate) use retention::RETENTION;
pub(crate) use run::run;
pub(crate) use selection::{Selection, inactive};
pub(crate) use view::explain;
