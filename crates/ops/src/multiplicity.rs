//! Multiplicities: how often each key occurs, and which keys begin or cease to occur.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use deltaic_batch::{Error, Result};
use deltaic_state::{
    AccumulatorColumn, AccumulatorType, Crossings, GroupSpec, GroupTable, SlotSpec,
};

/// State of [`count`]: one counter per key.
pub(crate) fn slot(key: Vec<DataType>) -> SlotSpec {
    SlotSpec::Groups(GroupSpec { key, accumulators: vec![AccumulatorType::I64] })
}

/// Adds the weights to the counters of their keys and tells which crossed zero. A key occurs while
/// its count is above zero; one below zero is remembered, too.
pub(crate) fn count(
    counts: &mut GroupTable,
    key: &[ArrayRef],
    weights: &[i64],
) -> Result<Crossings> {
    let groups = counts.upsert(key, weights.len())?;
    let touched = counts.touched().to_vec();
    let [AccumulatorColumn::I64(values)] = counts.accumulators_mut() else {
        return Err(Error::internal("SLOT_KIND", "multiplicities need exactly one counter"));
    };
    let before: Vec<i64> = touched.iter().map(|&group| values[group as usize]).collect();
    add_weights(values, &groups, weights)?;
    let mut crossings = Crossings::default();
    // The touched groups are in the order of their first rows.
    let mut rows = (0_u32..).zip(&groups);
    for (group, before) in touched.iter().zip(before) {
        let first = rows.find(|(_, other)| *other == group);
        let Some((row, _)) = first else {
            return Err(Error::internal("GROUP_LOST", "a touched group has no row"));
        };
        let weight = match (before > 0, values[*group as usize] > 0) {
            (false, true) => 1,
            (true, false) => -1,
            _ => continue,
        };
        crossings.rows.push(row);
        crossings.weights.push(weight);
    }
    counts.settle()?;
    Ok(crossings)
}

/// Adds each row's weight to the counter of its group. Fails when one exceeds 64 bits.
pub fn add_weights(values: &mut [i64], groups: &[u32], weights: &[i64]) -> Result<()> {
    let mut any_overflow = false;
    for (&group, &weight) in groups.iter().zip(weights) {
        let value = &mut values[group as usize];
        let (sum, overflow) = value.overflowing_add(weight);
        *value = sum;
        any_overflow |= overflow;
    }
    if any_overflow {
        return Err(Error::data("WEIGHT_OVERFLOW", "a count of rows exceeds 64 bits"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int64Array;
    use deltaic_state::Slot;

    use super::*;

    fn step(state: &mut Slot, keys: &[Option<i64>], weights: &[i64]) -> Crossings {
        let key: ArrayRef = Arc::new(Int64Array::from(keys.to_vec()));
        count(state.groups().unwrap(), &[key], weights).unwrap()
    }

    #[test]
    fn only_crossings_are_told() {
        let mut state = Slot::try_new(&slot(vec![DataType::Int64])).unwrap();
        let crossings = step(&mut state, &[Some(1), None, Some(1), Some(2)], &[1, 1, 1, -1]);
        assert_eq!(crossings, Crossings { rows: vec![0, 1], weights: vec![1, 1] });
        let crossings = step(&mut state, &[Some(1), Some(2)], &[-1, 1]);
        assert_eq!(crossings, Crossings::default());
        let crossings = step(&mut state, &[None, Some(1)], &[-1, -1]);
        assert_eq!(crossings, Crossings { rows: vec![0, 1], weights: vec![-1, -1] });
        assert!(state.is_empty());
    }

    #[test]
    fn a_count_beyond_64_bits_is_an_error() {
        let mut state = Slot::try_new(&slot(vec![DataType::Int64])).unwrap();
        let key: ArrayRef = Arc::new(Int64Array::from(vec![1, 1]));
        let error = count(state.groups().unwrap(), &[key], &[i64::MAX, 1]).unwrap_err();
        assert_eq!(error.code(), "WEIGHT_OVERFLOW");
    }
}
