//! From event numbers to columns: each output column is gathered once.

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Result, ZBatch};

use crate::Output;
use crate::scd::ScdType;
use crate::scd::events::Events;
use crate::scd::layout::Layout;
use crate::scd::normal::Normal;
use crate::scd::versions::{OPEN, Versions};

/// Rows per piece of output.
const PIECE_ROWS: usize = 65_536;

/// Target rows at `gone` of `old` with weight −1, and at `come` of `new` with +1, in pieces.
pub(super) fn emit(
    layout: &Layout,
    schema: &SchemaRef,
    scd_type: ScdType,
    events: &Events,
    sides: [(&Versions, &[usize], i64); 2],
    out: &mut dyn Output,
) -> Result<()> {
    for (versions, rows, weight) in sides {
        for rows in rows.chunks(PIECE_ROWS) {
            let pick = |from: &[u32]| pick(from, rows);
            let base = pick(&versions.base);
            let ignored: Vec<UInt32Array> = versions.ignored.iter().map(|c| pick(c)).collect();
            let mut columns = event_columns(layout, events, layout.width, &base, &ignored)?;
            if scd_type == ScdType::Type2 {
                let sequence = &events.columns[layout.sequence()];
                columns.push(rows_of(sequence, &pick(&versions.start))?);
                columns.push(take(sequence, &pick(&versions.end), None)?);
            }
            let batch = RecordBatch::try_new(schema.clone(), columns)?;
            out.push(ZBatch::try_new(batch, vec![weight; rows.len()])?)?;
        }
    }
    Ok(())
}

/// What changes in the kept events: those that no longer stand as they did go, merged and new ones
/// come.
pub(super) fn kept_change(layout: &Layout, events: &Events, normal: &Normal) -> Result<ZBatch> {
    let mut stays = vec![false; events.kept as usize];
    let mut come = Vec::new();
    for (at, &base) in normal.base.iter().enumerate() {
        if base < events.kept && normal.is_plainly(at, base) {
            stays[base as usize] = true;
        } else {
            come.push(at);
        }
    }
    let gone: Vec<u32> = (0..events.kept).filter(|&event| !stays[event as usize]).collect();
    let all = |from: &[u32]| -> UInt32Array {
        gone.iter().copied().chain(come.iter().map(|&at| from[at])).collect()
    };
    let ignored: Vec<UInt32Array> = normal.ignored.iter().map(|column| all(column)).collect();
    let columns =
        event_columns(layout, events, events.columns.len(), &all(&normal.base), &ignored)?;
    let mut weights = vec![-1; gone.len()];
    weights.resize(gone.len() + come.len(), 1);
    ZBatch::try_new(RecordBatch::try_new(layout.schema.clone(), columns)?, weights)
}

fn event_columns(
    layout: &Layout,
    events: &Events,
    width: usize,
    base: &UInt32Array,
    ignored: &[UInt32Array],
) -> Result<Vec<ArrayRef>> {
    (0..width)
        .map(|at| {
            let own = layout.ignored.iter().position(|&column| column == at);
            let rows = own.map_or(base, |column| &ignored[column]);
            rows_of(&events.columns[at], rows)
        })
        .collect()
}

/// The rows of a column; of rows that follow each other, as of new keys, without a copy.
fn rows_of(column: &ArrayRef, rows: &UInt32Array) -> Result<ArrayRef> {
    let first = rows.values().first().map_or(0, |&first| first as usize);
    let follows = |(at, &row): (usize, &u32)| row as usize == first + at;
    if rows.null_count() == 0 && rows.values().iter().enumerate().all(follows) {
        return Ok(column.slice(first, rows.len()));
    }
    Ok(take(column, rows, None)?)
}

fn pick(from: &[u32], rows: &[usize]) -> UInt32Array {
    rows.iter().map(|&row| Some(from[row]).filter(|&event| event != OPEN)).collect()
}
