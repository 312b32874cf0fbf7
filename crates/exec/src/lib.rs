//! Circuit and driver: shards, checks, checkpoints, metrics.
//!
//! ```
//! use std::sync::Arc;
//! use arrow::datatypes::{DataType, Field, Schema};
//! use deltaic_batch::ZBatch;
//! use deltaic_exec::{CircuitBuilder, CircuitOptions};
//! use deltaic_ops::UnionAll;
//!
//! let schema = Arc::new(Schema::new(vec![Field::new("name", DataType::Utf8, true)]));
//! let mut builder = CircuitBuilder::new();
//! let old = builder.source("old", schema.clone())?;
//! let new = builder.source("new", schema.clone())?;
//! let all = builder.add(Arc::new(UnionAll::try_new(schema.clone(), 2)?), &[old, new])?;
//! builder.output("all", all)?;
//! let mut circuit = builder.build(CircuitOptions::default())?;
//!
//! let out = circuit.step(vec![
//!     ("old".into(), ZBatch::parse(&schema, "+ ann\n- bo")?),
//!     ("new".into(), ZBatch::parse(&schema, "+ bo\n+ cy")?),
//! ])?;
//! assert_eq!(out["all"].to_string(), "+ ann\n+ cy\n");   // bo has cancelled out
//! # Ok::<(), deltaic_batch::Error>(())
//! ```

mod builder;
mod checks;
mod circuit;
mod delta;
mod images;
mod step;
#[cfg(test)]
mod tests;

pub use builder::{CircuitBuilder, CircuitOptions, NodeId};
pub use circuit::{Circuit, NodeMetrics};
pub use images::{SlotImage, SlotImages};
