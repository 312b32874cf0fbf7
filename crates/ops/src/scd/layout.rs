//! [`Layout`]: which columns of an event are kept, and what each of them is for.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use deltaic_batch::Result;

use crate::scd::ScdSpec;

/// Columns of a kept event: those of the target in its order, then sequence and kind. Everything
/// else of an event cannot be seen in the target and is dropped at the door.
#[derive(Debug)]
pub(super) struct Layout {
    /// Schema of a kept event.
    pub(super) schema: SchemaRef,
    /// Position in the input of each kept column.
    pub(super) input: Vec<usize>,
    /// Number of target columns that come from the event.
    pub(super) width: usize,
    /// Key columns.
    pub(super) keys: Vec<usize>,
    /// Columns that an upsert always sets: neither key nor `ignored`.
    pub(super) plain: Vec<usize>,
    /// Columns whose NULL keeps the older value.
    pub(super) ignored: Vec<usize>,
    /// The tracked ones of `plain`.
    pub(super) tracked_plain: Vec<usize>,
    /// The tracked ones of `ignored`, as positions in that list.
    pub(super) tracked_ignored: Vec<usize>,
}

impl Layout {
    pub(super) fn try_new(spec: &ScdSpec) -> Result<Self> {
        let width = spec.columns.len();
        let mut input = spec.columns.clone();
        input.extend([spec.sequence, spec.kind]);
        let among = |set: &[usize], at: usize| set.contains(&spec.columns[at]);
        let all = || 0..width;
        let ignored: Vec<usize> =
            all().filter(|&at| among(&spec.ignore_null, at) && !among(&spec.keys, at)).collect();
        let plain: Vec<usize> =
            all().filter(|&at| !among(&spec.keys, at) && !ignored.contains(&at)).collect();
        let tracked = |at: &usize| among(&spec.tracked, *at);
        Ok(Self {
            schema: kept_schema(spec)?,
            keys: all().filter(|&at| among(&spec.keys, at)).collect(),
            tracked_plain: plain.iter().copied().filter(tracked).collect(),
            tracked_ignored: (0..ignored.len()).filter(|&at| tracked(&ignored[at])).collect(),
            input,
            width,
            plain,
            ignored,
        })
    }

    /// Position of the sequence.
    pub(super) fn sequence(&self) -> usize {
        self.width
    }

    /// Position of the kind.
    pub(super) fn kind(&self) -> usize {
        self.width + 1
    }
}

/// Deletes leave their values out, so that every column may be NULL in state.
fn kept_schema(spec: &ScdSpec) -> Result<SchemaRef> {
    let mut fields = spec.input.project(&spec.columns)?.fields().to_vec();
    for (name, at) in [("__sequence", spec.sequence), ("__kind", spec.kind)] {
        fields.push(Arc::new(spec.input.field(at).clone().with_name(name)));
    }
    let fields: Vec<_> = fields.iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
    Ok(Arc::new(Schema::new(fields)))
}
