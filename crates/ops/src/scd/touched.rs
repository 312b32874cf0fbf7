//! Which kept events a step has to look at.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::{concat, take};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::{Arrangement, GroupSpec, GroupTable, Matches, RowRef};

use crate::scd::ScdType;
use crate::scd::events::Events;
use crate::scd::layout::Layout;
use crate::scd::sequence::Sequence;
use crate::scd::stretch::Finder;

/// Rows per piece when all of the state is read.
const SCAN_ROWS: usize = 65_536;

/// The incoming events with the kept ones that they touch: those of their keys, or of the stretches
/// around them.
pub(super) fn near(
    layout: &Layout,
    scd_type: ScdType,
    kept: &mut Arrangement,
    incoming: Vec<ArrayRef>,
) -> Result<Events> {
    let keys = Keys::try_new(layout, &incoming)?;
    let first = UInt32Array::from_iter_values(keys.starts().map(|at| keys.order[at]));
    let key_columns: Result<Vec<ArrayRef>, _> =
        layout.keys.iter().map(|&at| take(&incoming[at], &first, None)).collect();
    let matches = kept.probe(&key_columns?, true)?;
    let kept = &*kept;
    let touched = match scd_type {
        ScdType::Type1 => Touched {
            rows: matches.rows,
            group: matches.probe,
            new: keys.group,
            partial: HashSet::new(),
        },
        ScdType::Type2 => stretches(layout, kept, &incoming, &keys, &matches)?,
    };
    let all: Vec<usize> = (0..incoming.len()).collect();
    let columns = kept.gather(&touched.rows, &all)?;
    let count = row_number(touched.rows.len())?;
    let mut group = touched.group;
    group.extend(touched.new);
    let columns = if count == 0 { incoming } else { concat_columns(&columns, &incoming)? };
    Events::try_new(layout, columns, count, group, touched.partial)
}

/// All kept events, with the incoming ones.
pub(super) fn all(layout: &Layout, kept: &Arrangement, incoming: &[ArrayRef]) -> Result<Events> {
    let kept = ZBatch::concat(&layout.schema, &kept.scan(SCAN_ROWS)?)?;
    let columns = concat_columns(kept.rows().columns(), incoming)?;
    let group = Keys::try_new(layout, &columns)?.group;
    Events::try_new(layout, columns, row_number(kept.num_rows())?, group, HashSet::new())
}

/// Kept events to look at.
#[derive(Debug, Default)]
struct Touched {
    rows: Vec<RowRef>,
    /// Group of each row.
    group: Vec<u32>,
    /// Group of each new event.
    new: Vec<u32>,
    /// Groups that are stretches.
    partial: HashSet<u32>,
}

/// Every key or stretch of a key is a group.
fn stretches(
    layout: &Layout,
    kept: &Arrangement,
    incoming: &[ArrayRef],
    keys: &Keys,
    matches: &Matches,
) -> Result<Touched> {
    let finder = Finder::try_new(layout, kept, incoming)?;
    let mut out = Touched { new: vec![0; keys.order.len()], ..Touched::default() };
    let mut ranges = vec![0..0; keys.ends.len()];
    let mut from = 0;
    for same in matches.probe.chunk_by(|a, b| a == b) {
        ranges[same[0] as usize] = from..from + same.len();
        from += same.len();
    }
    let mut group = 0;
    for ((start, &end), range) in keys.starts().zip(&keys.ends).zip(ranges) {
        let (new, rows) = (&keys.order[start..end], &matches.rows[range]);
        let Some((stretches, numbers)) = finder.stretches(rows, new)? else {
            out.add(rows, group);
            new.iter().for_each(|&event| out.new[event as usize] = group);
            group += 1;
            continue;
        };
        for (&event, number) in new.iter().zip(numbers) {
            out.new[event as usize] = group + row_number(number)?;
        }
        for stretch in stretches {
            out.add(&rows[stretch], group);
            out.partial.insert(group);
            group += 1;
        }
    }
    Ok(out)
}

impl Touched {
    fn add(&mut self, rows: &[RowRef], group: u32) {
        self.rows.extend_from_slice(rows);
        self.group.resize(self.rows.len(), group);
    }
}

/// Events by key.
#[derive(Debug)]
struct Keys {
    /// The number of each event's key, in the order in which keys are first met.
    group: Vec<u32>,
    /// All events, by number of key and sequence.
    order: Vec<u32>,
    /// Where each key ends in `order`.
    ends: Vec<usize>,
}

impl Keys {
    fn try_new(layout: &Layout, columns: &[ArrayRef]) -> Result<Self> {
        let keys: Vec<ArrayRef> = layout.keys.iter().map(|&at| columns[at].clone()).collect();
        let key = keys.iter().map(|column| column.data_type().clone()).collect();
        let mut table = GroupTable::try_new(&GroupSpec { key, accumulators: Vec::new() })?;
        let count = columns[layout.sequence()].len();
        row_number(count)?;
        let group = table.upsert(&keys, count)?;
        let sequence = Sequence::try_new(&columns[layout.sequence()])?;
        let order = sequence.order(&group, |_| 0);
        let mut ends = vec![0; table.len()];
        group.iter().for_each(|&group| ends[group as usize] += 1);
        let mut end = 0;
        for count in &mut ends {
            end += *count;
            *count = end;
        }
        Ok(Self { group, order, ends })
    }

    fn starts(&self) -> impl Iterator<Item = usize> {
        let firsts = usize::from(!self.ends.is_empty());
        std::iter::repeat_n(0, firsts).chain(self.ends.iter().copied()).take(self.ends.len())
    }
}

fn concat_columns(first: &[ArrayRef], second: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let pair = |(a, b): (&ArrayRef, &ArrayRef)| Ok(concat(&[a.as_ref(), b.as_ref()])?);
    first.iter().zip(second).map(pair).collect()
}

fn row_number(rows: usize) -> Result<u32> {
    u32::try_from(rows).map_err(|_| {
        Error::internal("SCD_STEP_ROWS", "more than 2^32 change events meet in one step")
    })
}
