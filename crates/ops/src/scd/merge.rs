//! [`ScdMerge`]: the operator.

use std::sync::{Mutex, PoisonError};

use deltaic_batch::{Result, ZBatch};
use deltaic_state::{ArrangementSpec, Slot, SlotSpec, SortKey};

use crate::scd::{ScdSpec, ScdType};
use crate::{Algebra, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext};

/// Two upserts of one key with equal sequence and different values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictExample {
    /// The key as `column=value` pairs.
    pub key: String,
    /// The sequence.
    pub sequence: String,
}

/// Conflicts met since they were last taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// Number of events that met another one with their key and sequence but other values.
    pub count: u64,
    /// A few of them.
    pub examples: Vec<ConflictExample>,
}

/// Merges change events into a type 1 or type 2 dimension.
#[derive(Debug)]
pub struct ScdMerge {
    spec: OperatorSpec,
    conflicts: Mutex<Conflicts>,
}

impl ScdMerge {
    /// Validates `scd` and prepares the merge.
    pub fn try_new(scd: ScdSpec) -> Result<Self> {
        scd.validate()?;
        let exchange =
            if scd.truncates { Exchange::Single } else { Exchange::ByKey(scd.keys.clone()) };
        let spec = OperatorSpec {
            name: "ScdMerge",
            detail: match scd.scd_type {
                ScdType::Type1 => "type 1".to_owned(),
                ScdType::Type2 => "type 2".to_owned(),
            },
            inputs: vec![InputSpec { schema: scd.input.clone(), exchange }],
            output: scd.target_schema()?,
            slots: vec![SlotSpec::Rows(ArrangementSpec {
                schema: scd.input.clone(),
                key: scd.keys.clone(),
                order: vec![SortKey { column: scd.sequence, descending: false, nulls_first: true }],
            })],
            algebra: Algebra::NonLinear,
            output_is_set: true,
        };
        Ok(Self { spec, conflicts: Mutex::default() })
    }

    /// Takes the conflicts met since the last call, over all shards. Call it after each step: the
    /// count is of events as they arrive, so that a conflicting event that is delivered again
    /// counts again.
    pub fn take_conflicts(&self) -> Conflicts {
        std::mem::take(&mut *self.conflicts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Operator for ScdMerge {
    fn spec(&self) -> &OperatorSpec {
        &self.spec
    }

    fn step(
        &self,
        _inputs: &[ZBatch],
        _state: &mut [Slot],
        _out: &mut dyn Output,
        _cx: &StepContext,
    ) -> Result<()> {
        unimplemented!("skeleton")
    }
}
