//! Join.
//!
//! **Meaning**: over multisets `L` and `R`, with `m(l)` = the number of right rows that match `l`:
//!
//! | kind | rows |
//! |---|---|
//! | inner | `(l, r)` with weight `L(l)·R(r)` for each pair that matches |
//! | left | inner, and `(l, NULL…)` with weight `L(l)` where `m(l) = 0` |
//! | right, full | the same for the other side, for both sides |
//! | left semi, left anti | `l` with weight `L(l)` where `m(l) > 0`, where `m(l) = 0` |
//!
//! A pair matches when its key columns are equal and the residual is TRUE.
//!
//! **Incremental form**: each side's delta is absorbed in turn, the right one first:
//! `ΔR` meets the old `L`, then `ΔL` meets the new `R`, which is `ΔL⋈R + (L+ΔL)⋈ΔR` in other
//! words. Absorbing a delta of one side (a) emits its pairs with the other side, (b) emits its own
//! unmatched (or, in a semi join, matched) rows, and (c) emits, or takes back, those rows of the
//! other side whose match count has crossed zero. Without a residual the count is one per key: only
//! keys whose weight crosses zero cost anything in (c). With a residual it is one per row: the other
//! side's rows that met a pair in (a) are counted again over the whole side.
//! Cost: O(delta + pairs + rows of flipped keys); with a residual, + O(rows met × matches of each).
//!
//! **State**: slot 0, the keys of both inputs with the sums of the weights of their rows; slots 1
//! and 2, the other columns of the left and of the right rows by number of key. A semi or anti join
//! without a residual does without slot 2. Rows with a NULL key are not kept: they can never match.
//!
//! **Nulls**: a NULL key matches nothing, unless `null_equals_null`. Outer and anti joins keep the
//! rows with a NULL key as unmatched. A residual that is NULL is no match.
//!
//! **Refuses**: keys of different types, an output that does not fit.

mod absorb;
mod keyed;
mod pairs;
mod side;
mod spec;
#[cfg(test)]
mod tests;

pub use spec::{Join, JoinKind, JoinSpec};

use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::Slot;

use crate::{Operator, OperatorSpec, Output, StepContext};
use absorb::{JoinState, absorb};

impl Operator for Join {
    fn spec(&self) -> &OperatorSpec {
        &self.spec
    }

    fn needs_consolidated(&self) -> bool {
        self.residual.as_ref().is_some_and(|residual| !residual.cannot_fail())
    }

    fn step(
        &self,
        inputs: &[ZBatch],
        state: &mut [Slot],
        out: &mut dyn Output,
        _cx: &StepContext,
    ) -> Result<()> {
        let (groups, left, right) = match state {
            [groups, left] => (groups, left, None),
            [groups, left, right] => (groups, left, Some(right.multisets()?)),
            _ => return Err(wrong_slots()),
        };
        let (groups, left) = (groups.groups()?, left.multisets()?);
        let mut state = JoinState { groups, left, right };
        absorb(self, &self.right, crate::input(inputs, 1)?, &mut state, out)?;
        absorb(self, &self.left, crate::input(inputs, 0)?, &mut state, out)?;
        let JoinState { groups, left, right } = state;
        groups.settle_if(|group| {
            left.is_group_empty(group) && right.as_ref().is_none_or(|r| r.is_group_empty(group))
        })
    }
}

fn wrong_slots() -> Error {
    Error::internal("SLOT_COUNT", "a join has other slots than it asked for")
}
