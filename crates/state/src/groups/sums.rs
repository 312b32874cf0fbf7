//! Sums of 128 bits by group, of which nearly all fit into 64: those take eight bytes each.

use std::collections::HashMap;

/// Stands for a sum that is in the map.
const LONG: i64 = i64::MIN;

/// One sum per group. It wraps at 128 bits, which cancels out where the end result fits.
///
/// ```
/// let mut sums = deltaic_state::Sums::default();
/// sums.resize(2);
/// sums.add(1, i128::from(i64::MAX));
/// sums.add(1, 3);
/// assert_eq!((sums.get(0), sums.get(1)), (0, i128::from(i64::MAX) + 3));
/// ```
#[derive(Debug, Default)]
pub struct Sums {
    short: Vec<i64>,
    /// Those that do not fit into `short`, and no others.
    long: HashMap<u32, i128>,
}

impl Sums {
    /// Makes room for groups below `len`, at zero.
    pub fn resize(&mut self, len: usize) {
        self.short.resize(len, 0);
    }

    /// The sum of a group.
    #[inline]
    pub fn get(&self, group: u32) -> i128 {
        match self.short[group as usize] {
            LONG => self.get_long(group),
            short => short.into(),
        }
    }

    #[cold]
    fn get_long(&self, group: u32) -> i128 {
        self.long.get(&group).copied().unwrap_or_default()
    }

    /// Adds to the sum of a group.
    #[inline]
    pub fn add(&mut self, group: u32, value: i128) {
        let short = &mut self.short[group as usize];
        match i64::try_from(i128::from(*short).wrapping_add(value)) {
            Ok(sum) if *short != LONG && sum != LONG => *short = sum,
            _ => self.set(group, self.get(group).wrapping_add(value)),
        }
    }

    /// Adds a term to the sum of a group each.
    pub fn add_each(&mut self, groups: &[u32], terms: impl Iterator<Item = i128>) {
        // Those that do not fit come last, so that the loop keeps its pointers.
        let (short, mut others) = (self.short.as_mut_slice(), Vec::new());
        for (&group, term) in groups.iter().zip(terms) {
            let short = &mut short[group as usize];
            match i64::try_from(i128::from(*short).wrapping_add(term)) {
                Ok(sum) if *short != LONG && sum != LONG => *short = sum,
                _ => others.push((group, term)),
            }
        }
        others.into_iter().for_each(|(group, term)| self.add(group, term));
    }

    /// Overwrites the sum of a group.
    #[cold]
    pub fn set(&mut self, group: u32, sum: i128) {
        let short = i64::try_from(sum).unwrap_or(LONG);
        self.short[group as usize] = short;
        if short == LONG {
            self.long.insert(group, sum);
        } else {
            self.long.remove(&group);
        }
    }

    /// True when the sum of a group is zero.
    #[inline]
    pub fn is_zero(&self, group: usize) -> bool {
        self.short[group] == 0
    }

    /// Bytes held in memory.
    pub fn memory_bytes(&self) -> usize {
        self.short.capacity() * size_of::<i64>()
            + self.long.capacity() * size_of::<(u32, i128, u8)>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_plain_sums(
            values in prop::collection::vec(
                (0_u32..3, prop_oneof![
                    -3_i128..3,
                    Just(i64::MAX.into()),
                    Just(i64::MIN.into()),
                    Just(i128::MAX),
                    Just(i128::MIN),
                    any::<i128>(),
                ]),
                0..60,
            ),
        ) {
            let (mut sums, mut model) = (Sums::default(), [0_i128; 3]);
            sums.resize(3);
            let mut at_once = Sums::default();
            at_once.resize(3);
            let groups: Vec<u32> = values.iter().map(|(group, _)| *group).collect();
            at_once.add_each(&groups, values.iter().map(|(_, value)| *value));
            for group in 0..3 {
                let of_group = values.iter().filter(|(g, _)| *g == group);
                let sum = of_group.fold(0_i128, |sum, (_, value)| sum.wrapping_add(*value));
                prop_assert_eq!(at_once.get(group), sum);
            }
            // In the end everything is taken back.
            let back = values.iter().rev().map(|&(group, value)| (group, value.wrapping_neg()));
            for (group, value) in values.iter().copied().chain(back.collect::<Vec<_>>()) {
                sums.add(group, value);
                let sum = &mut model[group as usize];
                *sum = sum.wrapping_add(value);
                prop_assert_eq!(sums.get(group), *sum);
                prop_assert_eq!(sums.is_zero(group as usize), *sum == 0);
                let long = model.iter().filter(|&&s| i64::try_from(s).is_ok_and(|s| s != LONG));
                prop_assert_eq!(sums.long.len(), 3 - long.count());
            }
            prop_assert_eq!(model, [0; 3]);
        }
    }
}
