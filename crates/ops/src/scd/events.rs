//! [`Events`]: the kept and the new events of the touched keys, side by side, in order.

use std::cmp::Ordering;
use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::Int8Type;
use deltaic_batch::Result;

use crate::scd::KIND_TRUNCATE;
use crate::scd::incoming::is_delete;
use crate::scd::layout::Layout;
use crate::scd::sequence::Sequence;
use crate::scd::values::Values;

/// Events as columns: the kept ones first, the new ones after them. Named by row number.
#[derive(Debug)]
pub(super) struct Events {
    /// The columns of [`Layout`].
    pub(super) columns: Vec<ArrayRef>,
    /// Number of kept events.
    pub(super) kept: u32,
    /// Which events are looked at together: those of one key, or of one stretch of it. Groups of
    /// later stretches are greater.
    pub(super) group: Vec<u32>,
    /// Groups that are not all of a key's kept events.
    pub(super) partial: HashSet<u32>,
    /// All events by group, sequence, deletes before upserts, kept before new.
    pub(super) order: Vec<u32>,
    kinds: ScalarBuffer<i8>,
    sequence: Sequence,
    plain: Values,
    ignored: Vec<Values>,
    /// `None` when the tracked columns are the plain ones.
    tracked: Option<Values>,
}

impl Events {
    pub(super) fn try_new(
        layout: &Layout,
        columns: Vec<ArrayRef>,
        kept: u32,
        group: Vec<u32>,
        partial: HashSet<u32>,
    ) -> Result<Self> {
        let kinds = columns[layout.kind()].as_primitive::<Int8Type>().values().clone();
        let sequence = Sequence::try_new(&columns[layout.sequence()])?;
        let plain = Values::of(&columns, &layout.plain)?;
        let ignored: Result<Vec<Values>> =
            layout.ignored.iter().map(|&at| Values::of(&columns, &[at])).collect();
        let tracked = if layout.tracked_plain == layout.plain {
            None
        } else {
            Some(Values::of(&columns, &layout.tracked_plain)?)
        };
        // Deletes before upserts, kept events before new ones.
        let order = sequence.order(&group, |row| KIND_TRUNCATE.abs_diff(kinds[row as usize]));
        let ignored = ignored?;
        Ok(Self { columns, kept, group, partial, order, kinds, sequence, plain, ignored, tracked })
    }

    pub(super) fn is_delete(&self, event: u32) -> bool {
        is_delete(self.kinds[event as usize])
    }

    pub(super) fn same_group(&self, a: u32, b: u32) -> bool {
        self.group[a as usize] == self.group[b as usize]
    }

    pub(super) fn same_sequence(&self, a: u32, b: u32) -> bool {
        self.same_group(a, b) && self.sequence.eq(a, b)
    }

    /// Order of the group, then of the sequence if `by_sequence`.
    pub(super) fn cmp(&self, a: u32, b: u32, by_sequence: bool) -> Ordering {
        let groups = self.group[a as usize].cmp(&self.group[b as usize]);
        if by_sequence { groups.then_with(|| self.sequence.cmp(a, b)) } else { groups }
    }

    pub(super) fn cmp_plain(&self, a: u32, b: u32) -> Ordering {
        self.plain.cmp(a, b)
    }

    pub(super) fn cmp_ignored(&self, column: usize, a: u32, b: u32) -> Ordering {
        self.ignored[column].cmp(a, b)
    }

    pub(super) fn eq_tracked(&self, a: u32, b: u32) -> bool {
        self.tracked.as_ref().unwrap_or(&self.plain).eq(a, b)
    }

    /// True when the event's sequence is a number below `watermark`.
    pub(super) fn is_below(&self, event: u32, watermark: u64) -> bool {
        self.sequence.number(event).is_some_and(|number| number < watermark)
    }

    /// For each event, whether its sequence is at or below the one row of `bound`.
    pub(super) fn at_or_below(&self, bound: &ArrayRef) -> Result<Vec<bool>> {
        Ok(self.sequence.cmp_bound(bound)?.into_iter().map(Ordering::is_le).collect())
    }

    /// True when the event says nothing about a column: `at` is its position in the layout.
    pub(super) fn is_null(&self, at: usize, event: u32) -> bool {
        self.columns[at].is_null(event as usize)
    }
}
