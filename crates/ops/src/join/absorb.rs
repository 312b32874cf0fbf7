//! Absorbing the delta of one side: its pairs, its lone rows, and what it does to the other side's
//! lone rows.

use arrow::array::new_null_array;
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take_arrays;
use arrow::datatypes::{Field, Schema};
use deltaic_batch::{Result, ZBatch};
use deltaic_state::{Arrangement, Matches, RowRef};

use super::pairs::{Probe, weight_overflow};
use super::side::{Lone, Side};
use super::spec::Join;
use crate::{Output, selection};

/// Rows gathered at once.
const GATHER_ROWS: usize = 1 << 16;

/// Adds `delta` to `own`, the state of `side`, and emits what that changes, given the `other` side.
pub(super) fn absorb(
    join: &Join,
    side: &Side,
    delta: &ZBatch,
    own: &mut Arrangement,
    other: &Arrangement,
    out: &mut dyn Output,
) -> Result<()> {
    if delta.is_empty() {
        return Ok(());
    }
    let (keyed, keyless) = side.split(delta)?;
    if let Some(keyless) = keyless
        && side.lone == Lone::Unmatched
    {
        join.emit_lone(side, keyless.rows().columns().to_vec(), keyless.weights().to_vec(), out)?;
    }
    if keyed.is_empty() {
        return Ok(());
    }
    let partner = join.other(side);
    if other.is_empty() {
        if side.lone == Lone::Unmatched {
            join.emit_lone(side, keyed.rows().columns().to_vec(), keyed.weights().to_vec(), out)?;
        }
        return own.apply(&side.store(&keyed)?);
    }
    let met = meet(&Probe { join, side, delta: &keyed, other }, out)?;
    emit_own(join, side, &keyed, &met.matched, out)?;
    if partner.lone == Lone::Never {
        return own.apply(&side.store(&keyed)?);
    }
    if join.residual.is_some() {
        own.apply(&side.store(&keyed)?)?;
        return flip_rows(join, partner, &met.gained, other, own, out);
    }
    let key = side.key_of(keyed.rows());
    let before = own.key_weights(&key, join.null_equals_null)?;
    own.apply(&side.store(&keyed)?)?;
    let after = own.key_weights(&key, join.null_equals_null)?;
    flip_keys(join, partner, &key, &crossings(&before, &after), other, out)
}

/// What the delta met on the other side.
#[derive(Default)]
struct Met {
    /// Per delta row: has it a match? Empty when nobody asks.
    matched: Vec<bool>,
    /// Rows of the other side, each once, and what the delta brings it. Empty when nobody asks.
    gained: Vec<Gain>,
}

/// A row of the other side that met the delta.
#[derive(Clone, Copy)]
struct Gain {
    row: RowRef,
    /// The row's own weight.
    weight: i64,
    /// Sum of the weights of the delta rows that match it.
    matches: i64,
}

/// Emits the pairs, and finds out what [`Met`] says.
fn meet(probe: &Probe<'_>, out: &mut dyn Output) -> Result<Met> {
    let (join, side) = (probe.join, probe.side);
    let wants_matched = side.lone != Lone::Never;
    let wants_gained = join.residual.is_some() && join.other(side).lone != Lone::Never;
    let emits_pairs = join.kind.emits_pairs();
    let mut met = Met::default();
    if !emits_pairs && !wants_gained {
        if wants_matched {
            met.matched = probe.match_weights()?.iter().map(|&w| w != 0).collect();
        }
        return Ok(met);
    }
    if wants_matched {
        met.matched = vec![false; probe.delta.num_rows()];
    }
    let delta_weights = probe.delta.weights();
    probe.for_each_block(|pairs| {
        if wants_matched {
            pairs.probe.iter().for_each(|&i| met.matched[i as usize] = true);
        }
        if wants_gained {
            for ((&i, &row), &weight) in pairs.probe.iter().zip(&pairs.rows).zip(&pairs.weights) {
                met.gained.push(Gain { row, weight, matches: delta_weights[i as usize] });
            }
        }
        if emits_pairs { probe.emit(pairs, out) } else { Ok(()) }
    })?;
    met.gained = sum_by_row(met.gained)?;
    Ok(met)
}

/// One entry per row, with the sum of its matches; rows whose sum is zero are left out.
fn sum_by_row(mut gained: Vec<Gain>) -> Result<Vec<Gain>> {
    gained.sort_unstable_by_key(|gain| gain.row);
    let mut sums: Vec<Gain> = Vec::new();
    for gain in gained {
        match sums.last_mut() {
            Some(sum) if sum.row == gain.row => {
                sum.matches = sum.matches.checked_add(gain.matches).ok_or_else(weight_overflow)?;
            }
            _ => sums.push(gain),
        }
    }
    sums.retain(|gain| gain.matches != 0);
    Ok(sums)
}

/// Emits the delta's own lone rows.
fn emit_own(
    join: &Join,
    side: &Side,
    delta: &ZBatch,
    matched: &[bool],
    out: &mut dyn Output,
) -> Result<()> {
    let wanted = match side.lone {
        Lone::Never => return Ok(()),
        Lone::Matched => true,
        Lone::Unmatched => false,
    };
    let keep: BooleanArray = matched.iter().map(|&m| Some(m == wanted)).collect();
    let lone = selection::filter(delta, &keep)?;
    let (rows, weights) = lone.into_parts();
    join.emit_lone(side, rows.columns().to_vec(), weights.to_vec(), out)
}

/// Per entry: +1 when it has gained its first match, −1 when it has lost its last one, else 0.
fn crossings(before: &[i64], after: &[i64]) -> Vec<i64> {
    before.iter().zip(after).map(|(&b, &a)| i64::from(a != 0) - i64::from(b != 0)).collect()
}

/// The sign with which a lone row of a side appears when it has gained its first match.
fn sign(lone: Lone) -> i64 {
    if lone == Lone::Matched { 1 } else { -1 }
}

/// Emits the partner's rows of keys whose weight on this side has crossed zero.
fn flip_keys(
    join: &Join,
    partner: &Side,
    key: &[ArrayRef],
    crossings: &[i64],
    partner_rows: &Arrangement,
    out: &mut dyn Output,
) -> Result<()> {
    let flipped = distinct_keys(key, crossings)?;
    for from in (0..flipped.num_rows()).step_by(GATHER_ROWS) {
        let part = flipped.slice(from, GATHER_ROWS.min(flipped.num_rows() - from));
        let matches = partner_rows.probe(part.rows().columns(), join.null_equals_null)?;
        let directions = part.weights();
        flip_matches(join, partner, &matches, directions, partner_rows, out)?;
    }
    Ok(())
}

/// Emits the partner's rows of keys that have gained their first match (direction +) or lost their
/// last one (−).
fn flip_matches(
    join: &Join,
    partner: &Side,
    matches: &Matches,
    directions: &[i64],
    partner_rows: &Arrangement,
    out: &mut dyn Output,
) -> Result<()> {
    let columns = partner.columns();
    for from in (0..matches.rows.len()).step_by(GATHER_ROWS) {
        let block = from..(from + GATHER_ROWS).min(matches.rows.len());
        let weights = (matches.probe[block.clone()].iter().zip(&matches.weights[block.clone()]))
            .map(|(&i, &w)| {
                let direction = sign(partner.lone) * directions[i as usize].signum();
                w.checked_mul(direction).ok_or_else(weight_overflow)
            })
            .collect::<Result<Vec<i64>>>()?;
        let rows = partner_rows.gather(&matches.rows[block], &columns)?;
        join.emit_lone(partner, rows, weights, out)?;
    }
    Ok(())
}

/// The distinct keys with a crossing; the sign of a key's weight is the direction.
fn distinct_keys(key: &[ArrayRef], crossings: &[i64]) -> Result<ZBatch> {
    let (rows, weights): (Vec<u32>, Vec<i64>) =
        (0..).zip(crossings).filter(|(_, c)| **c != 0).map(|(i, &c): (u32, _)| (i, c)).unzip();
    let fields: Vec<Field> = (key.iter().enumerate())
        .map(|(i, k)| Field::new(i.to_string(), k.data_type().clone(), true))
        .collect();
    let columns = take_arrays(key, &UInt32Array::from(rows), None)?;
    let options = RecordBatchOptions::new().with_row_count(Some(weights.len()));
    let schema = std::sync::Arc::new(Schema::new(fields));
    let rows = RecordBatch::try_new_with_options(schema, columns, &options)?;
    ZBatch::try_new(rows, weights)?.consolidate()
}

/// Emits the partner's rows, of those that met the delta, whose number of matches has crossed zero.
fn flip_rows(
    join: &Join,
    partner: &Side,
    gained: &[Gain],
    partner_rows: &Arrangement,
    own: &Arrangement,
    out: &mut dyn Output,
) -> Result<()> {
    let all = partner.columns();
    for block in gained.chunks(GATHER_ROWS) {
        let rows: Vec<RowRef> = block.iter().map(|gain| gain.row).collect();
        let columns = partner_rows.gather(&rows, &all)?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(partner.schema.clone(), columns, &options)?;
        let delta = ZBatch::inserts(batch);
        let after = Probe { join, side: partner, delta: &delta, other: own }.match_weights()?;
        let before: Vec<i64> = (after.iter().zip(block))
            .map(|(&after, gain)| after.checked_sub(gain.matches))
            .collect::<Option<_>>()
            .ok_or_else(weight_overflow)?;
        let weights = (crossings(&before, &after).iter().zip(block))
            .map(|(&crossing, gain)| gain.weight.checked_mul(crossing * sign(partner.lone)))
            .collect::<Option<Vec<i64>>>()
            .ok_or_else(weight_overflow)?;
        let flips: BooleanArray = weights.iter().map(|&w| Some(w != 0)).collect();
        let delta = ZBatch::try_new(delta.into_parts().0, weights)?;
        let (rows, weights) = selection::filter(&delta, &flips)?.into_parts();
        join.emit_lone(partner, rows.columns().to_vec(), weights.to_vec(), out)?;
    }
    Ok(())
}

impl Join {
    /// The side that `side` is joined to.
    pub(super) fn other(&self, side: &Side) -> &Side {
        if side.is_left { &self.right } else { &self.left }
    }

    /// Emits rows of one side; the other side's columns, if there are any, become NULL.
    fn emit_lone(
        &self,
        side: &Side,
        mut columns: Vec<ArrayRef>,
        weights: Vec<i64>,
        out: &mut dyn Output,
    ) -> Result<()> {
        if weights.is_empty() {
            return Ok(());
        }
        if self.kind.emits_pairs() {
            let fields = self.other(side).schema.fields();
            let padding = fields.iter().map(|f| new_null_array(f.data_type(), weights.len()));
            columns = if side.is_left {
                columns.into_iter().chain(padding).collect()
            } else {
                padding.chain(columns).collect()
            };
        }
        self.emit(columns, weights, out)
    }

    /// Emits rows of the output.
    pub(super) fn emit(
        &self,
        columns: Vec<ArrayRef>,
        weights: Vec<i64>,
        out: &mut dyn Output,
    ) -> Result<()> {
        let options = RecordBatchOptions::new().with_row_count(Some(weights.len()));
        let rows = RecordBatch::try_new_with_options(self.spec.output.clone(), columns, &options)?;
        out.push(ZBatch::try_new(rows, weights)?)
    }
}
