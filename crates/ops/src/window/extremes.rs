//! MIN and MAX over spans: the best row is kept at the front of a queue of those that may follow it
//! (Lemire, 2006).

use std::collections::VecDeque;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{SortOptions, concat, nullif, sort_to_indices, take};
use deltaic_batch::Result;

use super::plan::Extreme;
use super::side::{Side, Spans};
use crate::aggregate::accumulate::wrong_type;

/// The least or greatest value over each span, NULL where there is none. `base`, one value per
/// stretch, counts too.
pub(super) fn over_spans(
    extreme: Extreme,
    entries: &RecordBatch,
    side: &Side,
    (spans, stretch): (&Spans, &[u32]),
    base: Option<&ArrayRef>,
) -> Result<ArrayRef> {
    let column = seen(extreme, entries)?;
    let greatest = extreme.greatest;
    let all = match base {
        Some(base) => concat(&[column.as_ref(), base.as_ref()])?,
        None => column.clone(),
    };
    let options = SortOptions { descending: greatest, nulls_first: false };
    let order = sort_to_indices(&all, Some(options), None)?;
    let mut rank = vec![0_u32; all.len()];
    (0_u32..).zip(order.values()).for_each(|(place, &at)| rank[at as usize] = place);
    let nulls = all.logical_nulls();
    let is_valid = |at: u32| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at as usize));
    let count = u32::try_from(column.len()).unwrap_or(u32::MAX);

    // Rows with their value's place in `all`; the base is before any row.
    let mut queue: VecDeque<(Option<u32>, u32)> = VecDeque::new();
    let (mut last, mut next) = (None, 0);
    let mut best = Vec::with_capacity(stretch.len());
    for ((&low, &high), &stretch) in spans.low.iter().zip(&spans.high).zip(stretch) {
        if last != Some(stretch) {
            last = Some(stretch);
            queue.clear();
            next = low;
            if base.is_some() && is_valid(count + stretch) {
                queue.push_back((None, count + stretch));
            }
        }
        // Rows that no later span sees are passed over.
        next = next.max(low);
        while next < high {
            let entry = side.rows[next as usize];
            if is_valid(entry) {
                let worse = |other: u32| rank[other as usize] >= rank[entry as usize];
                while queue.back().is_some_and(|&(_, other)| worse(other)) {
                    queue.pop_back();
                }
                queue.push_back((Some(next), entry));
            }
            next += 1;
        }
        while queue.front().is_some_and(|&(row, _)| row.is_some_and(|row| row < low)) {
            queue.pop_front();
        }
        best.push(queue.front().map(|&(_, at)| at));
    }
    Ok(take(&all, &best.into_iter().collect::<UInt32Array>(), None)?)
}

/// The column, NULL where the filter is not TRUE.
fn seen(extreme: Extreme, entries: &RecordBatch) -> Result<ArrayRef> {
    let column = entries.column(extreme.values.input);
    let Some(filter) = extreme.values.filter else { return Ok(column.clone()) };
    let filter = entries.column(filter).as_boolean_opt().ok_or_else(wrong_type)?;
    let hidden = filter.iter().map(|is_true| Some(is_true != Some(true))).collect();
    Ok(nullif(column, &hidden)?)
}
