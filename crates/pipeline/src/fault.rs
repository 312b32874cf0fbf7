//! Crash simulation: every durable write passes a step, and tests let the n-th one fail.

use std::sync::atomic::{AtomicI64, Ordering};

use deltaic_batch::{Error, Result};

/// Counts write steps; after a set number every further one fails, as if the process were gone.
#[derive(Debug)]
pub(crate) struct Steps {
    left: AtomicI64,
}

impl Default for Steps {
    fn default() -> Self {
        Self { left: AtomicI64::new(i64::MAX) }
    }
}

impl Steps {
    /// Lets `steps` more steps pass.
    pub(crate) fn fail_after(&self, steps: i64) {
        self.left.store(steps, Ordering::SeqCst);
    }

    /// To be called before each durable write.
    pub(crate) fn pass(&self, what: &str) -> Result<()> {
        if self.left.fetch_sub(1, Ordering::SeqCst) > 0 {
            return Ok(());
        }
        self.left.store(0, Ordering::SeqCst);
        Err(Error::storage("FAULT_INJECTED", format!("stopped before: {what}")))
    }
}
