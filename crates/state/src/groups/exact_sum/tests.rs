//! Exact sums against arithmetic on big integers written out here: decimal-free, digit by digit.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "digits are the low bits of wider integers"
)]

use proptest::prelude::*;

use super::ExactSum;

/// A signed big integer in base 2³², little-endian magnitude.
#[derive(Clone, Default, PartialEq, Debug)]
struct Big {
    negative: bool,
    digits: Vec<u32>,
}

impl Big {
    /// `x` in units of 2⁻¹⁰⁷⁴, by repeated doubling of its significand.
    fn from_float(x: f64) -> Self {
        let (mut magnitude, mut exponent) = (x.abs(), 0_u32);
        // Halving is exact above the subnormals: bring it to where the unit is 2⁻¹⁰⁷⁴.
        while magnitude >= f64::MIN_POSITIVE * 2.0 {
            magnitude /= 2.0;
            exponent += 1;
            if magnitude < f64::MIN_POSITIVE * 2.0 {
                break;
            }
        }
        let units = magnitude.to_bits();
        let mut digits = vec![units as u32, (units >> 32) as u32];
        for _ in 0..exponent {
            double(&mut digits);
        }
        let mut big = Self { negative: x < 0.0, digits };
        big.trim();
        big
    }

    fn trim(&mut self) {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        self.negative &= !self.digits.is_empty();
    }

    fn add(&self, other: &Self) -> Self {
        let mut sum = if self.negative == other.negative {
            let len = self.digits.len().max(other.digits.len()) + 1;
            let (mut digits, mut carry) = (vec![0_u32; len], 0_u64);
            for (i, digit) in digits.iter_mut().enumerate() {
                let at = |big: &Self| u64::from(*big.digits.get(i).unwrap_or(&0));
                carry += at(self) + at(other);
                *digit = carry as u32;
                carry >>= 32;
            }
            Self { negative: self.negative, digits }
        } else {
            let (large, small) =
                if less(&self.digits, &other.digits) { (other, self) } else { (self, other) };
            let (mut digits, mut borrow) = (large.digits.clone(), 0_i64);
            for (i, digit) in digits.iter_mut().enumerate() {
                borrow += i64::from(*digit) - i64::from(*small.digits.get(i).unwrap_or(&0));
                *digit = borrow as u32;
                borrow >>= 32;
            }
            Self { negative: large.negative, digits }
        };
        sum.trim();
        sum
    }

    fn bit(&self, i: usize) -> bool {
        self.digits.get(i / 32).is_some_and(|digit| digit >> (i % 32) & 1 == 1)
    }

    /// Nearest float, ties to even, by comparing with the neighbours' midpoint bit by bit.
    fn to_float(&self) -> f64 {
        let Some(top) = (0..self.digits.len() * 32).rev().find(|&i| self.bit(i)) else {
            return 0.0;
        };
        let mut significand = 0_u64;
        let lowest = top.saturating_sub(52);
        for i in (lowest..=top).rev() {
            significand = significand << 1 | u64::from(self.bit(i));
        }
        if lowest > 0 && self.bit(lowest - 1) {
            let below = (0..lowest - 1).any(|i| self.bit(i));
            if below || significand & 1 == 1 {
                significand += 1;
            }
        }
        let mut value = significand as f64 * f64::from_bits(1);
        for _ in 0..lowest {
            value *= 2.0;
        }
        if self.negative { -value } else { value }
    }
}

fn double(digits: &mut Vec<u32>) {
    let mut carry = 0;
    for digit in digits.iter_mut() {
        let next = *digit >> 31;
        *digit = *digit << 1 | carry;
        carry = next;
    }
    if carry != 0 {
        digits.push(carry);
    }
}

fn less(a: &[u32], b: &[u32]) -> bool {
    (a.len(), a.iter().rev().collect::<Vec<_>>()) < (b.len(), b.iter().rev().collect::<Vec<_>>())
}

fn exact(values: &[f64]) -> ExactSum {
    let mut sum = ExactSum::default();
    values.iter().for_each(|&x| sum.add(x, 1));
    sum
}

fn oracle(values: &[f64]) -> f64 {
    values.iter().fold(Big::default(), |sum, &x| sum.add(&Big::from_float(x))).to_float()
}

fn any_finite() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => any::<f64>().prop_filter("finite", |x| x.is_finite()),
        4 => (-1_000_000_i64..1_000_000).prop_map(|cents| cents as f64 / 100.0),
        2 => (-60_i32..60, -9_i64..9).prop_map(|(e, m)| m as f64 * 2_f64.powi(e)),
        1 => (0_u64..4).prop_map(f64::from_bits),
        1 => prop::sample::select(vec![f64::MAX, -f64::MAX, f64::MIN_POSITIVE, -0.0, 0.0, 1e16]),
    ]
}

#[test]
fn order_does_not_matter_and_nothing_is_lost() {
    assert_eq!(exact(&[1e16, 1.0, 1.0, -1e16]).value(), 2.0);
    assert_eq!(exact(&[1e300, 1.0, -1e300]).value(), 1.0);
    assert_eq!(exact(&[0.1; 10]).value(), 1.0);
    assert_eq!(exact(&[f64::MAX, f64::MAX, -f64::MAX]).value(), f64::MAX);
}

#[test]
fn overflow_of_the_finished_sum_is_infinite() {
    assert_eq!(exact(&[f64::MAX, f64::MAX]).value(), f64::INFINITY);
    assert_eq!(exact(&[-f64::MAX, -f64::MAX]).value(), f64::NEG_INFINITY);
    let half_ulp = 2_f64.powi(970);
    assert_eq!(exact(&[f64::MAX, half_ulp]).value(), f64::INFINITY);
    assert_eq!(exact(&[f64::MAX, half_ulp, -1.0]).value(), f64::MAX);
}

#[test]
fn zero_is_positive() {
    assert_eq!(exact(&[-0.0, -0.0]).value().to_bits(), 0);
    assert_eq!(exact(&[-1.5, 1.5]).value().to_bits(), 0);
}

#[test]
fn values_that_are_no_numbers_are_counted() {
    let mut sum = exact(&[1.0, f64::INFINITY]);
    assert_eq!(sum.value(), f64::INFINITY);
    sum.add(f64::NEG_INFINITY, 1);
    assert!(sum.value().is_nan());
    sum.add(f64::INFINITY, -1);
    assert_eq!(sum.value(), f64::NEG_INFINITY);
    sum.add(f64::NAN, 1);
    assert!(sum.value().is_nan());
    sum.add(f64::NAN, -1);
    sum.add(f64::NEG_INFINITY, -1);
    assert_eq!(sum.value(), 1.0);
    sum.add(1.0, -1);
    assert!(sum.is_zero());
}

#[test]
fn great_weights_are_exact() {
    let mut sum = ExactSum::default();
    sum.add(0.1, i64::MAX);
    sum.add(0.1, -(i64::MAX - 3));
    assert_eq!(sum.value(), oracle(&[0.1; 3]));
    sum.add(f64::MAX, i64::MIN);
    assert_eq!(sum.value(), f64::NEG_INFINITY);
    sum.add(f64::MAX, i64::MAX);
    sum.add(f64::MAX, 1);
    assert_eq!(sum.value(), oracle(&[0.1; 3]));
}

#[test]
fn the_window_moves_when_its_sum_is_gone() {
    let mut sum = exact(&[1e-200]);
    sum.add(1e-200, -1);
    sum.add(1e200, 1);
    assert_eq!(sum.value(), 1e200);
    assert_eq!(sum.heap_bytes(), 0);
}

#[test]
fn damaged_bytes_are_refused() {
    assert!(ExactSum::decode(&[]).is_none());
    assert!(ExactSum::decode(&[33; 33]).is_none());
    assert!(ExactSum::decode(&[0; 34]).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn sums_are_correctly_rounded(values in prop::collection::vec(any_finite(), 0..40)) {
        prop_assert_eq!(exact(&values).value().to_bits(), oracle(&values).to_bits());
    }

    #[test]
    fn retraction_undoes(
        values in prop::collection::vec((any_finite(), -600_i64..600), 0..40),
        keep in prop::collection::vec(any_finite(), 0..5),
    ) {
        let mut sum = exact(&keep);
        values.iter().for_each(|&(x, weight)| sum.add(x, weight));
        values.iter().rev().for_each(|&(x, weight)| sum.add(x, -weight));
        prop_assert_eq!(sum.value().to_bits(), oracle(&keep).to_bits());
        keep.iter().for_each(|&x| sum.add(x, -1));
        prop_assert!(sum.is_zero());
    }

    #[test]
    fn a_sum_of_sums_is_the_sum(values in prop::collection::vec(any_finite(), 0..20), cut in 0..20_usize) {
        let (first, second) = values.split_at(cut.min(values.len()));
        let mut sum = exact(first);
        sum.merge(&exact(second));
        prop_assert_eq!(sum.value().to_bits(), exact(&values).value().to_bits());
        for &value in &values {
            sum.add(value, -1);
        }
        prop_assert!(sum.is_zero());
    }

    #[test]
    fn bytes_keep_the_sum(values in prop::collection::vec(any_finite(), 0..20), more in any_finite()) {
        let mut sum = exact(&values);
        let mut bytes = Vec::new();
        sum.encode(&mut bytes);
        let mut read = ExactSum::decode(&bytes).expect("own bytes");
        sum.add(more, 1);
        read.add(more, 1);
        prop_assert_eq!(read.value().to_bits(), sum.value().to_bits());
    }
}
