//! Exact sum of 64-bit floats: a superaccumulator (Neal, 2015) over a small window.
//!
//! Every finite float is an integer times 2⁻¹⁰⁷⁴, so a sum of floats is an integer too, of at most
//! some 2,200 bits, and integer addition neither rounds nor depends on order. The sum is kept as a
//! two's complement integer. Nearly always the values of a group lie close enough for a window of
//! 256 bits, which starts at a multiple of 64 bits below the first value; an addition is then one
//! shift and two 128-bit additions. A value that does not fit moves the window, or, when the sum
//! and the value together span more than the window, widens it to all of the range, once and for
//! good. Infinities and NaNs are counted. So −x takes back exactly what x added.

/// Bits of a word of the window's position.
const WORD_BITS: u32 = 64;
/// Words of the window.
const WINDOW_WORDS: usize = 4;
/// Words of the whole range: 2,098 bits for one value, 63 for its weight, and a sign.
const WIDE_WORDS: usize = 36;
/// Greatest weight whose product with a 53-bit significand fits into 64 bits with a sign.
const SMALL_WEIGHT_MAX: u64 = 1 << 9;

/// Exact, retractable sum of floats; [`ExactSum::value`] is the correctly rounded result.
///
/// ```
/// use deltaic_state::ExactSum;
///
/// let mut sum = ExactSum::default();
/// for x in [0.1, 1e300, 0.2, -1e300] {
///     sum.add(x, 1);
/// }
/// assert_eq!(sum.value(), 0.1 + 0.2);
/// sum.add(0.1, -1);
/// sum.add(0.2, -1);
/// assert!(sum.is_zero());
/// ```
#[derive(Debug, Clone, Default)]
pub struct ExactSum {
    /// Bits 0 to 127 of the window.
    low: u128,
    /// Bits 128 to 255, with the sign.
    high: u128,
    /// The whole range instead of the window, when one window was not enough.
    wide: Option<Box<Wide>>,
    /// The window's first word.
    start: u8,
}

/// Sum over the whole range of floats, and the values that are no numbers.
#[derive(Debug, Clone)]
struct Wide {
    words: [u64; WIDE_WORDS],
    positive_infinities: i64,
    negative_infinities: i64,
    nans: i64,
}

/// A finite float as a signed integer times 2^(position − 1074); `None` if it is not finite.
#[inline]
fn decompose(x: f64) -> Option<(i64, u32)> {
    let bits = x.to_bits();
    let exponent = (bits >> 52) & 0x7ff;
    if exponent == 0x7ff {
        return None;
    }
    let hidden = u64::from(exponent != 0) << 52;
    let significand = ((bits & ((1 << 52) - 1)) | hidden).cast_signed();
    let signed = if bits >> 63 == 0 { significand } else { -significand };
    // At most 2,045, so the conversion never falls back.
    Some((signed, u32::try_from(exponent.saturating_sub(1)).unwrap_or(0)))
}

impl ExactSum {
    /// Adds `x` `weight` times.
    #[inline]
    pub fn add(&mut self, x: f64, weight: i64) {
        match decompose(x) {
            Some((0, _)) => {}
            Some((significand, position)) if weight.unsigned_abs() <= SMALL_WEIGHT_MAX => {
                self.add_integer(i128::from(significand * weight), position);
            }
            Some((significand, position)) => {
                let product = i128::from(significand) * i128::from(weight);
                let low = product & i128::from(u64::MAX);
                self.add_integer(low, position);
                self.add_integer(product >> WORD_BITS, position + WORD_BITS);
            }
            None => self.widen().count(x, weight),
        }
    }

    /// Adds `integer` × 2^position; its magnitude is below 2⁶⁴.
    #[inline]
    fn add_integer(&mut self, integer: i128, position: u32) {
        if self.wide.is_some() || !self.add_to_window(integer, position) {
            self.add_outside(integer, position);
        }
    }

    /// Adds to the window; false, and no change, when it does not fit.
    #[inline]
    fn add_to_window(&mut self, integer: i128, position: u32) -> bool {
        let shifted = integer << (position % WORD_BITS);
        let sign = (shifted >> 127).cast_unsigned();
        let value = shifted.cast_unsigned();
        let (low, high) = match (position / WORD_BITS).wrapping_sub(u32::from(self.start)) {
            0 => (value, sign),
            1 => (value << WORD_BITS, (sign << WORD_BITS) | (value >> WORD_BITS)),
            2 => (0, value),
            _ => return false,
        };
        let (low, carry) = self.low.overflowing_add(low);
        let sum = self.high.wrapping_add(high).wrapping_add(u128::from(carry));
        let overflow = (self.high ^ sum) & (high ^ sum);
        if overflow >> 127 != 0 {
            return false;
        }
        (self.low, self.high) = (low, sum);
        true
    }

    /// Moves the window to where sum and value fit, else gives it up.
    #[cold]
    fn add_outside(&mut self, integer: i128, position: u32) {
        if integer == 0 {
            return;
        }
        let moved = self.wide.is_none() && self.move_window(position);
        if moved && self.add_to_window(integer, position) {
            return;
        }
        self.widen().add(integer, position);
    }

    /// Puts the window's start one word below `position` if the sum fits there, else as low as
    /// the sum allows.
    fn move_window(&mut self, position: u32) -> bool {
        let mut words = [0; WIDE_WORDS];
        self.spread(&mut words);
        let target = usize::try_from(position / WORD_BITS).unwrap_or(0);
        let first = words.iter().position(|&word| word != 0).unwrap_or(usize::MAX);
        let start = target.saturating_sub(1).min(first).min(WIDE_WORDS - WINDOW_WORDS);
        let sign = fill(&words);
        let top = words.iter().rposition(|&word| word != sign).map_or(start, |last| last + 1);
        // One more word than the digits need, for the sign and what is added later.
        if top >= start + WINDOW_WORDS {
            return false;
        }
        let pair = |i: usize| u128::from(words[i]) | (u128::from(words[i + 1]) << WORD_BITS);
        (self.low, self.high) = (pair(start), pair(start + 2));
        self.start = u8::try_from(start).unwrap_or(0);
        true
    }

    /// Writes the window, sign-extended, into zeroed words of the whole range.
    fn spread(&self, words: &mut [u64; WIDE_WORDS]) {
        let start = usize::from(self.start);
        words[start..start + WINDOW_WORDS].copy_from_slice(&self.window());
        let sign = fill(words.get(..start + WINDOW_WORDS).unwrap_or(&[]));
        words[start + WINDOW_WORDS..].fill(sign);
    }

    fn window(&self) -> [u64; WINDOW_WORDS] {
        let [a, b] = halves(self.low);
        let [c, d] = halves(self.high);
        [a, b, c, d]
    }

    fn widen(&mut self) -> &mut Wide {
        if self.wide.is_none() {
            let mut words = [0; WIDE_WORDS];
            self.spread(&mut words);
            (self.low, self.high, self.start) = (0, 0, 0);
            let (positive_infinities, negative_infinities, nans) = (0, 0, 0);
            self.wide =
                Some(Box::new(Wide { words, positive_infinities, negative_infinities, nans }));
        }
        self.wide.get_or_insert_with(|| Box::new(Wide::zero()))
    }

    /// Adds what another sum has added.
    pub fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        let (wide, other) = (self.widen(), other.widen());
        let mut carry = false;
        for (word, &more) in wide.words.iter_mut().zip(&other.words) {
            (*word, carry) = word.carrying_add(more, carry);
        }
        wide.positive_infinities += other.positive_infinities;
        wide.negative_infinities += other.negative_infinities;
        wide.nans += other.nans;
    }

    /// True if every added value was taken back.
    #[inline]
    pub fn is_zero(&self) -> bool {
        self.low | self.high == 0 && self.wide.as_ref().is_none_or(|wide| wide.is_zero())
    }

    /// The sum, rounded once to nearest, ties to even; zero is +0.0. Infinities of both signs, or
    /// a NaN, make it the canonical NaN.
    pub fn value(&self) -> f64 {
        match &self.wide {
            None => round(&self.window(), u32::from(self.start)),
            Some(wide) => wide.value(),
        }
    }

    /// What [`ExactSum::value`] loses by rounding, rounded; 0 where the sum is no number.
    pub fn rest(&self) -> f64 {
        let value = self.value();
        if !value.is_finite() {
            return 0.0;
        }
        let mut rest = self.clone();
        rest.add(value, -1);
        rest.value()
    }

    /// Bytes held outside of the value itself.
    pub fn heap_bytes(&self) -> usize {
        self.wide.as_ref().map_or(0, |_| size_of::<Wide>())
    }

    /// Appends the bytes that [`ExactSum::decode`] reads.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        match &self.wide {
            None => {
                bytes.push(self.start);
                self.window().iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            }
            Some(wide) => {
                let counts = [wide.positive_infinities, wide.negative_infinities, wide.nans];
                wide.words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
                counts.iter().for_each(|count| bytes.extend(count.to_le_bytes()));
            }
        }
    }

    /// Reads [`ExactSum::encode`]'s bytes; `None` if they are damaged.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        const WIDE_BYTES: usize = 8 * (WIDE_WORDS + 3);
        if bytes.len() == WIDE_BYTES {
            let mut words = [0; WIDE_WORDS];
            let (digits, counts) = bytes.split_at(8 * WIDE_WORDS);
            digits.chunks_exact(8).zip(&mut words).for_each(|(bytes, word)| *word = le(bytes));
            let count = |i: usize| le(&counts[8 * i..8 * (i + 1)]).cast_signed();
            let (positive_infinities, negative_infinities, nans) = (count(0), count(1), count(2));
            let wide = Wide { words, positive_infinities, negative_infinities, nans };
            return Some(Self { wide: Some(Box::new(wide)), ..Self::default() });
        }
        let (&start, window) = bytes.split_first()?;
        let fits = usize::from(start) <= WIDE_WORDS - WINDOW_WORDS;
        if window.len() != 8 * WINDOW_WORDS || !fits {
            return None;
        }
        let word = |i: usize| u128::from(le(&window[8 * i..8 * (i + 1)]));
        let (low, high) = (word(0) | word(1) << WORD_BITS, word(2) | word(3) << WORD_BITS);
        Some(Self { low, high, start, wide: None })
    }
}

impl Wide {
    fn zero() -> Self {
        let (positive_infinities, negative_infinities, nans) = (0, 0, 0);
        Self { words: [0; WIDE_WORDS], positive_infinities, negative_infinities, nans }
    }

    fn is_zero(&self) -> bool {
        let counts = self.positive_infinities | self.negative_infinities | self.nans;
        counts == 0 && self.words.iter().all(|&word| word == 0)
    }

    /// Counts a value that is not finite. The group's row count, which is checked, bounds these.
    fn count(&mut self, x: f64, weight: i64) {
        let counter = if x.is_nan() {
            &mut self.nans
        } else if x > 0.0 {
            &mut self.positive_infinities
        } else {
            &mut self.negative_infinities
        };
        *counter = counter.wrapping_add(weight);
    }

    /// Adds `integer` × 2^position to the words, sign-extended through all of them.
    fn add(&mut self, integer: i128, position: u32) {
        let shifted = integer << (position % WORD_BITS);
        let [low, high] = halves(shifted.cast_unsigned());
        let [sign, _] = halves((shifted >> 127).cast_unsigned());
        let first = usize::try_from(position / WORD_BITS).unwrap_or(0);
        let mut carry = false;
        for (i, word) in self.words.iter_mut().enumerate().skip(first) {
            let addend = match i - first {
                0 => low,
                1 => high,
                _ => sign,
            };
            (*word, carry) = word.carrying_add(addend, carry);
        }
    }

    fn value(&self) -> f64 {
        let (positive, negative) = (self.positive_infinities > 0, self.negative_infinities > 0);
        match (self.nans > 0 || positive && negative, positive, negative) {
            (true, _, _) => f64::NAN,
            (_, true, _) => f64::INFINITY,
            (_, _, true) => f64::NEG_INFINITY,
            _ => round(&self.words, 0),
        }
    }
}

fn halves(x: u128) -> [u64; 2] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = x.to_le_bytes();
    [u64::from_le_bytes([a, b, c, d, e, f, g, h]), u64::from_le_bytes([i, j, k, l, m, n, o, p])]
}

/// Little-endian word; zero when there are not eight bytes.
fn le(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// What the words above the last one are: all ones if it is negative.
fn fill(words: &[u64]) -> u64 {
    if words.last().is_some_and(|word| word >> 63 != 0) { u64::MAX } else { 0 }
}

/// The float nearest to a two's complement integer × 2^(64·start − 1074), ties to even.
fn round<const WORDS: usize>(words: &[u64; WORDS], start: u32) -> f64 {
    let negative = fill(words) != 0;
    let mut magnitude = [0; WORDS];
    let mut carry = negative;
    for (digit, &word) in magnitude.iter_mut().zip(words) {
        let flipped = if negative { !word } else { word };
        (*digit, carry) = flipped.overflowing_add(u64::from(carry));
    }
    let Some(top_word) = magnitude.iter().rposition(|&digit| digit != 0) else {
        return 0.0;
    };
    let top_bit = WORD_BITS - 1 - magnitude[top_word].leading_zeros();
    // Upper 64 bits of the magnitude, the leading one at bit 63, and whether any bit is below.
    let mut leading = magnitude[top_word] << (WORD_BITS - 1 - top_bit);
    let mut rest = 0;
    if top_word > 0 {
        let next = magnitude[top_word - 1];
        if top_bit < WORD_BITS - 1 {
            leading |= next >> (top_bit + 1);
            rest |= next << (WORD_BITS - 1 - top_bit);
        } else {
            rest |= next;
        }
        rest |= magnitude[..top_word - 1].iter().fold(0, |all, digit| all | digit);
    }
    let words_below = u64::from(start) + u64::try_from(top_word).unwrap_or(0);
    let top = words_below * u64::from(WORD_BITS) + u64::from(top_bit);
    let bits = if top < 53 { leading >> (63 - top) } else { pack(leading, rest != 0, top) };
    f64::from_bits(bits | u64::from(negative) << 63)
}

/// Bits of the float with these leading bits and the leading one at 2^(top − 1074), top ≥ 53.
fn pack(leading: u64, sticky: bool, top: u64) -> u64 {
    const INFINITY: u64 = 0x7ff << 52;
    let exponent = top - 51;
    if exponent >= 0x7ff {
        return INFINITY;
    }
    let significand = leading >> 11;
    let (half, below) = (leading & 0x400 != 0, leading & 0x3ff != 0 || sticky);
    let up = half && (below || significand & 1 != 0);
    // A carry out of the significand lands in the exponent, as it should.
    ((exponent - 1) << 52) + significand + u64::from(up)
}

#[cfg(test)]
mod tests;
