//! Absorbing the delta of one side: its pairs, its lone rows, and what it does to the other side's
//! lone rows.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array,
};
use arrow::compute::take_arrays;
use arrow::datatypes::Field;
use deltaic_batch::{Result, ZBatch};
use deltaic_state::{AccumulatorColumn, GroupTable, Multisets};

use super::keyed::{Keyed, parts};
use super::pairs::{FOUND_ROWS, PIECE_ROWS, Pairs, Probe, weight_overflow};
use super::side::{Lone, Side};
use super::spec::Join;
use crate::multiplicity::add_weights;
use crate::{Output, selection};

/// The state of a join.
pub(super) struct JoinState<'a> {
    /// Keys, with the sum of the weights of the left and of the right rows.
    pub(super) groups: &'a mut GroupTable,
    pub(super) left: &'a mut Multisets,
    /// `None` where the keys' sums are enough.
    pub(super) right: Option<&'a mut Multisets>,
}

impl JoinState<'_> {
    fn rows(&self, side: &Side) -> Option<&Multisets> {
        if side.is_left { Some(self.left) } else { self.right.as_deref() }
    }

    /// Sum of the weights of a side's rows, by group.
    fn totals(&self, side: &Side) -> Result<&[i64]> {
        match self.groups.accumulators() {
            [AccumulatorColumn::I64(left), AccumulatorColumn::I64(right)] => {
                Ok(if side.is_left { left } else { right })
            }
            _ => Err(super::wrong_slots()),
        }
    }

    /// Adds a delta to the rows and sums of its side.
    fn add(&mut self, keyed: &Keyed<'_>) -> Result<()> {
        let (side, weights) = (keyed.side, keyed.delta.weights());
        let [AccumulatorColumn::I64(left), AccumulatorColumn::I64(right)] =
            self.groups.accumulators_mut()
        else {
            return Err(super::wrong_slots());
        };
        add_weights(if side.is_left { left } else { right }, &keyed.group_of_row, weights)?;
        let rows = if side.is_left { Some(&mut *self.left) } else { self.right.as_deref_mut() };
        match rows {
            Some(rows) => {
                let values = side.values_of(keyed.delta.rows());
                rows.apply_in_order(&keyed.group_of_row, keyed.order.clone(), &values, weights)
            }
            None => Ok(()),
        }
    }
}

/// Adds `delta` to the state of `side`, and emits what that changes.
pub(super) fn absorb(
    join: &Join,
    side: &Side,
    delta: &ZBatch,
    state: &mut JoinState<'_>,
    out: &mut dyn Output,
) -> Result<()> {
    if delta.is_empty() {
        return Ok(());
    }
    let (delta, keyless) = side.split(delta)?;
    if let Some(keyless) = keyless
        && side.lone == Lone::Unmatched
    {
        join.emit_lone(side, keyless.rows().columns().to_vec(), keyless.weights().to_vec(), out)?;
    }
    if delta.is_empty() {
        return Ok(());
    }
    let keyed = Keyed::new(side, &delta, state.groups)?;
    let partner = join.other(side);
    let met = match state.rows(partner) {
        Some(other) if !other.is_empty() => {
            let totals = state.totals(partner)?;
            meet(&Probe { join, keyed: &keyed, other, totals }, out)?
        }
        _ => Met::default(),
    };
    emit_own(join, &keyed, &met, state, out)?;
    if partner.lone == Lone::Never {
        return state.add(&keyed);
    }
    if join.residual.is_some() {
        state.add(&keyed)?;
        return flip_rows(join, partner, met.gained, state, out);
    }
    let before = sums(&keyed, state.totals(side)?);
    state.add(&keyed)?;
    let after = sums(&keyed, state.totals(side)?);
    flip_keys(join, partner, &keyed.groups, &crossings(&before, &after), state, out)
}

/// The sums of the delta's groups.
fn sums(keyed: &Keyed<'_>, totals: &[i64]) -> Vec<i64> {
    keyed.groups.iter().map(|&group| totals[group as usize]).collect()
}

/// What the delta met on the other side.
#[derive(Default)]
struct Met {
    /// Per delta row, with a residual: has it a match? Empty when nobody asks.
    matched: Vec<bool>,
    /// Rows of the other side, and what the delta brings them. Empty when nobody asks.
    gained: Gains,
}

/// Rows of the other side that met the delta, not each once.
#[derive(Default)]
struct Gains {
    /// The rows with their own weights.
    rows: Vec<ZBatch>,
    /// Which row it is.
    numbers: Vec<usize>,
    /// Sum of the weights of the delta rows that match it.
    matches: Vec<i64>,
}

/// Emits the pairs, and finds out what [`Met`] says.
fn meet(probe: &Probe<'_>, out: &mut dyn Output) -> Result<Met> {
    let (join, keyed) = (probe.join, probe.keyed);
    let has_residual = join.residual.is_some();
    let wants_matched = has_residual && keyed.side.lone != Lone::Never;
    let wants_gained = has_residual && join.other(keyed.side).lone != Lone::Never;
    let emits_pairs = join.kind.emits_pairs();
    let mut met = Met::default();
    if !(emits_pairs || wants_matched || wants_gained) {
        return Ok(met);
    }
    if wants_matched {
        met.matched = vec![false; keyed.delta.num_rows()];
    }
    probe.for_each_block(|pairs| {
        if wants_matched {
            pairs.probe.iter().for_each(|&i| met.matched[i as usize] = true);
        }
        if wants_gained {
            met.gained.add(probe, pairs)?;
        }
        if emits_pairs { probe.emit(pairs, out) } else { Ok(()) }
    })?;
    Ok(met)
}

impl Gains {
    /// Adds the other side's rows of a block, each once.
    fn add(&mut self, probe: &Probe<'_>, pairs: &Pairs) -> Result<()> {
        let weights = probe.keyed.delta.weights();
        let mut firsts: Vec<u32> = (0..).take(pairs.rows.len()).collect();
        firsts.sort_by_key(|&at| pairs.rows[at as usize]);
        let mut sums: Vec<(u32, i64)> = Vec::new();
        for at in firsts {
            let pair = at as usize;
            let weight = weights[pairs.probe[pair] as usize];
            match sums.last_mut() {
                Some((first, sum)) if pairs.rows[*first as usize] == pairs.rows[pair] => {
                    *sum = sum.checked_add(weight).ok_or_else(weight_overflow)?;
                }
                _ => sums.push((at, weight)),
            }
        }
        let partner = probe.join.other(probe.keyed.side);
        let width = partner.schema.fields().len();
        let columns = if partner.is_left {
            &pairs.columns[..width]
        } else {
            &pairs.columns[pairs.columns.len() - width..]
        };
        let rows: Vec<u32> = sums.iter().map(|(at, _)| *at).collect();
        let own = rows.iter().map(|&at| pairs.weights[at as usize]).collect::<Vec<_>>();
        self.numbers.extend(rows.iter().map(|&at| pairs.rows[at as usize]));
        self.matches.extend(sums.iter().map(|(_, sum)| *sum));
        let columns = take_arrays(columns, &UInt32Array::from(rows), None)?;
        self.rows.push(batch(partner, columns, own)?);
        Ok(())
    }

    /// Each row once, with the sum of its matches; rows whose sum is zero are left out.
    fn summed(self, partner: &Side) -> Result<(ZBatch, Vec<i64>)> {
        let all = ZBatch::concat(&partner.schema, &self.rows)?;
        let mut order: Vec<u32> = (0..).take(self.numbers.len()).collect();
        order.sort_by_key(|&at| self.numbers[at as usize]);
        let mut sums: Vec<(u32, i64)> = Vec::new();
        for at in order {
            let matches = self.matches[at as usize];
            match sums.last_mut() {
                Some((first, sum))
                    if self.numbers[*first as usize] == self.numbers[at as usize] =>
                {
                    *sum = sum.checked_add(matches).ok_or_else(weight_overflow)?;
                }
                _ => sums.push((at, matches)),
            }
        }
        sums.retain(|(_, matches)| *matches != 0);
        let (rows, matches): (Vec<u32>, Vec<i64>) = sums.into_iter().unzip();
        Ok((all.take(&UInt32Array::from(rows))?, matches))
    }
}

/// Emits the delta's own lone rows.
fn emit_own(
    join: &Join,
    keyed: &Keyed<'_>,
    met: &Met,
    state: &JoinState<'_>,
    out: &mut dyn Output,
) -> Result<()> {
    let (side, delta) = (keyed.side, keyed.delta);
    let wanted = match side.lone {
        Lone::Never => return Ok(()),
        Lone::Matched => true,
        Lone::Unmatched => false,
    };
    let keep: BooleanArray = if join.residual.is_none() {
        let totals = state.totals(join.other(side))?;
        let has_match = keyed.group_of_row.iter().map(|&group| totals[group as usize] != 0);
        has_match.map(|matched| Some(matched == wanted)).collect()
    } else if met.matched.is_empty() {
        // There was nothing to meet.
        std::iter::repeat_n(Some(!wanted), delta.num_rows()).collect()
    } else {
        met.matched.iter().map(|&matched| Some(matched == wanted)).collect()
    };
    let (rows, weights) = selection::filter(delta, &keep)?.into_parts();
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

/// Emits the partner's rows of groups that have gained their first match (crossing +) or lost their
/// last one (−).
fn flip_keys(
    join: &Join,
    partner: &Side,
    groups: &[u32],
    crossings: &[i64],
    state: &JoinState<'_>,
    out: &mut dyn Output,
) -> Result<()> {
    let flipped = groups.iter().zip(crossings).filter(|(_, c)| **c != 0);
    let (groups, crossings): (Vec<u32>, Vec<i64>) = flipped.map(|(&g, &c)| (g, c)).unzip();
    let Some(rows) = state.rows(partner) else { return Err(super::wrong_slots()) };
    for part in parts(&groups, state.totals(partner)?, FOUND_ROWS) {
        let found = rows.rows(&groups[part.clone()])?;
        let (mut group_of_row, mut weights) = (Vec::new(), Vec::new());
        for (at, &end) in part.zip(&found.ends) {
            let direction = sign(partner.lone) * crossings[at];
            for &weight in &found.weights[group_of_row.len()..end as usize] {
                group_of_row.push(groups[at]);
                weights.push(weight.checked_mul(direction).ok_or_else(weight_overflow)?);
            }
        }
        for from in (0..weights.len()).step_by(PIECE_ROWS) {
            let length = PIECE_ROWS.min(weights.len() - from);
            let key = state.groups.keys(&group_of_row[from..from + length])?;
            let values: Vec<ArrayRef> =
                found.columns.iter().map(|column| column.slice(from, length)).collect();
            let columns = partner.whole(&key, &values)?;
            join.emit_lone(partner, columns, weights[from..from + length].to_vec(), out)?;
        }
    }
    Ok(())
}

/// Emits the partner's rows, of those that met the delta, whose number of matches has crossed zero.
fn flip_rows(
    join: &Join,
    partner: &Side,
    gained: Gains,
    state: &mut JoinState<'_>,
    out: &mut dyn Output,
) -> Result<()> {
    let (rows, gained) = gained.summed(partner)?;
    for from in (0..rows.num_rows()).step_by(PIECE_ROWS) {
        let length = PIECE_ROWS.min(rows.num_rows() - from);
        let part = rows.slice(from, length);
        let keyed = Keyed::new(partner, &part, state.groups)?;
        let own = join.other(partner);
        let Some(other) = state.rows(own) else { return Err(super::wrong_slots()) };
        let totals = state.totals(own)?;
        let after = Probe { join, keyed: &keyed, other, totals }.match_weights()?;
        let before: Vec<i64> = (after.iter().zip(&gained[from..from + length]))
            .map(|(&after, &gained)| after.checked_sub(gained))
            .collect::<Option<_>>()
            .ok_or_else(weight_overflow)?;
        let weights = (crossings(&before, &after).iter().zip(part.weights().iter()))
            .map(|(&crossing, weight)| weight.checked_mul(crossing * sign(partner.lone)))
            .collect::<Option<Vec<i64>>>()
            .ok_or_else(weight_overflow)?;
        let flips: BooleanArray = weights.iter().map(|&w| Some(w != 0)).collect();
        let part = ZBatch::try_new(part.into_parts().0, weights)?;
        let (rows, weights) = selection::filter(&part, &flips)?.into_parts();
        join.emit_lone(partner, rows.columns().to_vec(), weights.to_vec(), out)?;
    }
    Ok(())
}

/// Rows of one side.
fn batch(side: &Side, columns: Vec<ArrayRef>, weights: Vec<i64>) -> Result<ZBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(weights.len()));
    let rows = RecordBatch::try_new_with_options(side.schema.clone(), columns, &options)?;
    ZBatch::try_new(rows, weights)
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
        columns: Vec<ArrayRef>,
        weights: Vec<i64>,
        out: &mut dyn Output,
    ) -> Result<()> {
        if weights.is_empty() {
            return Ok(());
        }
        let column = |(&column, field): (&usize, &Arc<Field>)| {
            let (is_left, column) = self.locate(column);
            if is_left == side.is_left {
                columns[column].clone()
            } else {
                new_null_array(field.data_type(), weights.len())
            }
        };
        let columns = self.columns.iter().zip(self.spec.output.fields()).map(column).collect();
        self.emit(columns, weights, out)
    }

    /// Whether a column of a pair is one of the left side, and its number there.
    pub(super) fn locate(&self, column: usize) -> (bool, usize) {
        let width = self.left.schema.fields().len();
        if column < width { (true, column) } else { (false, column - width) }
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
