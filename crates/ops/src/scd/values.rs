//! [`Values`]: rows compared column by column, without an encoded copy of them.

use std::cmp::Ordering;
use std::fmt;

use arrow::array::{ArrayRef, DynComparator, make_comparator};
use arrow::compute::SortOptions;
use deltaic_batch::Result;

/// Some columns of rows, in canonical order, NULL first; of no columns, all rows are equal. Events of
/// a key are compared with their neighbours only, most of them with none, and differ early.
pub(super) struct Values(Vec<DynComparator>);

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Values({} columns)", self.0.len())
    }
}

impl Values {
    /// The columns at `positions` of `all`.
    pub(super) fn of(all: &[ArrayRef], positions: &[usize]) -> Result<Self> {
        let options = SortOptions { descending: false, nulls_first: true };
        let column = |&at: &usize| Ok(make_comparator(&all[at], &all[at], options)?);
        positions.iter().map(column).collect::<Result<_>>().map(Self)
    }

    pub(super) fn cmp(&self, a: u32, b: u32) -> Ordering {
        if a == b {
            return Ordering::Equal;
        }
        let (a, b) = (a as usize, b as usize);
        let mut orders = self.0.iter().map(|column| column(a, b));
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    pub(super) fn eq(&self, a: u32, b: u32) -> bool {
        self.cmp(a, b).is_eq()
    }
}
