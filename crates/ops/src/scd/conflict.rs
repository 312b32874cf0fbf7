//! Conflicts: upserts of one key and sequence that disagree.

use arrow::array::ArrayRef;
use deltaic_batch::Result;

use crate::scd::incoming::show_value;
use crate::scd::layout::Layout;

/// Number of conflicts that are kept with their key.
const EXAMPLES_MAX: usize = 5;

/// Two upserts of one key with equal sequence and different values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictExample {
    /// The key, as `column=value` pairs.
    pub key: String,
    /// The sequence.
    pub sequence: String,
}

/// Conflicts met since they were last taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// Number of upserts that met another one with their key and sequence but other values.
    pub count: u64,
    /// Up to five of them.
    pub examples: Vec<ConflictExample>,
}

impl Conflicts {
    /// Adds `events`, rows of `columns`.
    pub(super) fn add(
        &mut self,
        layout: &Layout,
        columns: &[ArrayRef],
        events: &[u32],
    ) -> Result<()> {
        self.count += events.len() as u64;
        let room = EXAMPLES_MAX.saturating_sub(self.examples.len());
        for &event in events.iter().take(room) {
            let row = event as usize;
            let parts: Result<Vec<String>> = layout
                .keys
                .iter()
                .map(|&at| {
                    let value = show_value(&columns[at], row)?;
                    Ok(format!("{}={value}", layout.schema.field(at).name()))
                })
                .collect();
            let key = parts?.join(", ");
            let sequence = show_value(&columns[layout.sequence()], row)?;
            self.examples.push(ConflictExample { key, sequence });
        }
        Ok(())
    }
}
