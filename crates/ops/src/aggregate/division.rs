//! Division of exact sums by counts.

use arrow::datatypes::i256;

/// Integers up to this magnitude are exact in a 64-bit float.
const EXACT_MAX: u128 = 1 << 53;

/// `sum / count` rounded once to the nearest float, ties to even; `None` unless the count is
/// positive.
#[expect(clippy::cast_precision_loss, reason = "rounding is what this is about")]
pub(super) fn divide_integer(sum: i128, count: i64) -> Option<f64> {
    let divisor = u128::try_from(count).ok().filter(|&count| count > 0)?;
    if sum == 0 {
        return Some(0.0);
    }
    let magnitude = sum.unsigned_abs();
    if magnitude <= EXACT_MAX && divisor <= EXACT_MAX {
        // Both operands are exact, so that the division is what rounds.
        return Some(sum as f64 / count as f64);
    }
    // A quotient of at least 64 bits, its last bit set if anything is below: rounding that to 53
    // bits is rounding the true quotient. Scaling back by a power of two is exact.
    let shift = magnitude.leading_zeros();
    let dividend = magnitude << shift;
    let quotient = (dividend / divisor) | u128::from(!dividend.is_multiple_of(divisor));
    let scale = f64::from_bits(u64::from(1023 - shift) << 52);
    let value = quotient as f64 * scale;
    Some(if sum < 0 { -value } else { value })
}

/// `sum × 10^scale_up / count`, cut off; `None` if it has more than 128 bits. The count is positive.
pub(super) fn divide_decimal(sum: i256, scale_up: u32, count: i64) -> Option<i128> {
    let factor = 10_i128.checked_pow(scale_up)?;
    if let Some(scaled) = sum.to_i128().and_then(|sum| sum.checked_mul(factor)) {
        return scaled.checked_div(count.into());
    }
    // A product beyond 256 bits divided by 63 is beyond 128, too.
    let scaled = sum.checked_mul(i256::from_i128(factor))?;
    scaled.checked_div(i256::from_i128(count.into()))?.to_i128()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn averages_of_integers_are_fractional() {
        assert_eq!(divide_integer(7, 2), Some(3.5));
        assert_eq!(divide_integer(-1, 3), Some(-1.0 / 3.0));
        assert_eq!(divide_integer(0, 3).map(f64::to_bits), Some(0));
        assert_eq!(divide_integer(0, i64::MAX), Some(0.0));
        assert_eq!(divide_integer(1, 0), None);
    }

    #[test]
    fn great_sums_are_rounded_once() {
        // (2^53 + 1) · 3 / 3: the sum rounded first would give 2^53 + 2 or 2^53.
        assert_eq!(divide_integer(3 * ((1 << 54) + 2), 3), Some(((1_i64 << 54) + 2) as f64));
        assert_eq!(divide_integer(i128::MAX, i64::MAX), Some(18446744073709551616.0));
        assert_eq!(divide_integer(i128::MIN, 1), Some(-(2_f64.powi(127))));
    }

    #[test]
    fn averages_of_decimals_are_cut_off() {
        let sum = i256::from_i128;
        assert_eq!(divide_decimal(sum(20), 1, 3), Some(66));
        assert_eq!(divide_decimal(sum(-20), 1, 3), Some(-66));
        let great = sum(i128::MAX).wrapping_mul(sum(4));
        assert_eq!(divide_decimal(great, 0, 4), Some(i128::MAX));
        assert_eq!(divide_decimal(great, 0, 3), None);
        assert_eq!(divide_decimal(great, 38, 4), None);
    }

    proptest! {
        /// The nearest float is the one whose distance is no greater than its neighbours'.
        #[test]
        fn the_quotient_is_the_nearest_float(sum in any::<i128>(), count in 1_i64.., shift in 0..127_u32) {
            let sum = sum >> shift;
            let value = divide_integer(sum, count).expect("the count is positive");
            // Distance to sum / count, times count and a power of two that depends on the exponent
            // alone; `None` where it has more than 256 bits.
            let distance = |x: f64| -> Option<i256> {
                let bits = x.abs().to_bits();
                let exponent = i32::try_from(bits >> 52).ok()? - 1075;
                let significand = i256::from_i128(((bits & ((1 << 52) - 1)) | 1 << 52).into());
                let product = significand.checked_mul(i256::from_i128(count.into()))?;
                let sum = i256::from_i128(sum).checked_abs()?;
                let power = |n: i32| i256::from_i128(2).checked_pow(n.try_into().ok()?);
                let (product, sum) = if exponent >= 0 {
                    (product.checked_mul(power(exponent)?)?, sum)
                } else {
                    (product, sum.checked_mul(power(-exponent)?)?)
                };
                product.checked_sub(sum)?.checked_abs()
            };
            prop_assume!(value != 0.0);
            let unit = |x: f64| x.abs().to_bits() >> 52;
            for neighbour in [value.next_up(), value.next_down()] {
                if unit(neighbour) != unit(value) {
                    continue;
                }
                if let (Some(ours), Some(theirs)) = (distance(value), distance(neighbour)) {
                    prop_assert!(ours <= theirs);
                }
            }
        }
    }
}
