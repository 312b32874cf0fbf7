//! MIN and MAX: the first or last value of each group.

use arrow::array::{Array, ArrayRef, UInt32Array};
use deltaic_batch::Result;
use deltaic_state::{GroupRows, Multisets};

use super::plan::{Outcome, Plan};

/// Least and greatest values of some groups, in ascending order.
#[derive(Debug)]
pub(super) struct Extremes<'a> {
    plan: &'a Plan,
    groups: &'a [u32],
    /// By position of the multisets, both, where calls ask for both.
    both: Vec<Option<[ArrayRef; 2]>>,
}

impl<'a> Extremes<'a> {
    pub(super) fn new(plan: &'a Plan, groups: &'a [u32]) -> Self {
        Self { plan, groups, both: vec![None; plan.multisets.len()] }
    }

    /// The least or greatest value of each group; NULL where it has none. `at` is the position of
    /// the multisets.
    pub(super) fn values(
        &mut self,
        multisets: &Multisets,
        at: usize,
        greatest: bool,
    ) -> Result<ArrayRef> {
        let is_asked = |asked: bool| {
            let wanted = Outcome::Extreme { values: at, greatest: asked };
            self.plan.outcomes.contains(&wanted)
        };
        if !(is_asked(false) && is_asked(true)) {
            let found = match greatest {
                true => multisets.last(self.groups)?,
                false => multisets.first(self.groups, 1)?,
            };
            return per_group(&found, self.groups.len());
        }
        let count = self.groups.len();
        let both = match self.both[at].take() {
            Some(both) => both,
            None => {
                // Both are mostly in one block, which is searched once.
                let (first, last) = multisets.ends(self.groups)?;
                [per_group(&first, count)?, per_group(&last, count)?]
            }
        };
        let values = both[usize::from(greatest)].clone();
        self.both[at] = Some(both);
        Ok(values)
    }
}

/// One value for each of `count` groups.
fn per_group(found: &GroupRows, count: usize) -> Result<ArrayRef> {
    let [column] = found.columns.as_slice() else {
        return Err(super::accumulate::wrong_type());
    };
    if column.len() == count {
        return Ok(column.clone());
    }
    let mut start = 0;
    let places = found.ends.iter().map(|&end| {
        let place = (start < end).then_some(start);
        start = end;
        place
    });
    Ok(arrow::compute::take(column, &places.collect::<UInt32Array>(), None)?)
}
