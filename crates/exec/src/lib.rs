//! Circuit and driver: shards, checks, checkpoints, metrics.
//!
//! ```text
//! let mut b = CircuitBuilder::new();
//! let orders = b.source("orders", schema);
//! let open = b.add(Arc::new(Filter::try_new(..)?), &[orders])?;
//! b.output("view", open)?;
//! let mut circuit = b.build(CircuitOptions::default())?;
//! let out = circuit.step(vec![("orders".into(), delta)])?;   // consolidated delta per output
//! ```

mod circuit;

pub use circuit::{
    Circuit, CircuitBuilder, CircuitOptions, NodeId, NodeMetrics, SlotImage, SlotImages,
};
