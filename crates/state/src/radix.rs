//! Sorting by 32-bit numbers: by counting digits, least significant first.

/// Below this many entries, a comparison sort is as fast as counting.
const ENTRIES_MIN: usize = 256;
/// Bits of the number that one pass looks at.
const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;

/// Sorts entries by their number, equal ones by themselves. The entries are in ascending order if
/// their numbers are equal.
pub(crate) fn sort_by_number<T: Copy + Ord + Default>(
    entries: &mut [T],
    number: impl Fn(T) -> u32 + Copy,
) {
    if entries.len() < ENTRIES_MIN {
        entries.sort_unstable();
        return;
    }
    let greatest = entries.iter().fold(0, |all, entry| all | number(*entry));
    let passes = (u32::BITS - greatest.leading_zeros()).div_ceil(DIGIT_BITS);
    let mut other = vec![T::default(); entries.len()];
    let (mut source, mut target) = (&mut *entries, other.as_mut_slice());
    for pass in 0..passes {
        scatter(source, target, |entry| {
            (number(entry) >> (pass * DIGIT_BITS)) as usize & (DIGITS - 1)
        });
        std::mem::swap(&mut source, &mut target);
    }
    if passes % 2 == 1 {
        entries.copy_from_slice(&other);
    }
}

/// Copies entries in the order of one digit, stably.
fn scatter<T: Copy>(source: &[T], target: &mut [T], digit: impl Fn(T) -> usize) {
    let mut places = [0_usize; DIGITS];
    source.iter().for_each(|&entry| places[digit(entry)] += 1);
    let mut sum = 0;
    for place in &mut places {
        sum += std::mem::replace(place, sum);
    }
    for &entry in source {
        let place = &mut places[digit(entry)];
        target[*place] = entry;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_entries_are_sorted_as_few_are() {
        let mut random = 1_u64;
        for (count, bits) in [(0, 5), (3, 32), (255, 9), (256, 9), (5_000, 20), (5_000, 32)] {
            let mut entries: Vec<u64> = (0..count)
                .map(|i| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (random >> 32 >> (32 - bits)) << 32 | i
                })
                .collect();
            let mut expected = entries.clone();
            expected.sort_unstable();
            sort_by_number(&mut entries, |entry| u32::try_from(entry >> 32).unwrap());
            assert_eq!(entries, expected);
            let mut numbers: Vec<u32> =
                expected.iter().rev().map(|entry| u32::try_from(entry >> 32).unwrap()).collect();
            sort_by_number(&mut numbers, |number| number);
            assert!(numbers.is_sorted());
            assert_eq!(numbers.len(), expected.len());
        }
    }
}
