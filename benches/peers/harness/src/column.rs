//! Columns in memory, numbers or strings, read from files of 64-bit numbers.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::Result;

/// Multiplier that scatters customer numbers over 64 bits; odd, so that it can be undone.
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;
const STATUS: [&str; 5] = ["OPEN", "PAID", "SHIPPED", "CLOSED", "CANCELLED"];
const TIER: [&str; 4] = ["bronze", "silver", "gold", "platinum"];
const REGION: [&str; 8] = ["EMEA", "NORAM", "LATAM", "APAC", "AFRICA", "ANZ", "NORDICS", "CEE"];

/// One column of an input.
#[derive(Debug, Clone)]
pub enum Column {
    /// Numbers.
    Ints(Vec<i64>),
    /// Strings.
    Texts(Texts),
}

/// Strings one after the other: string `i` lies between `offsets[i]` and `offsets[i + 1]`.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    /// One more than there are strings.
    pub offsets: Vec<i32>,
    /// All strings.
    pub text: String,
}

impl Column {
    /// The numbers.
    ///
    /// # Panics
    ///
    /// If these are strings.
    pub fn ints(&self) -> &[i64] {
        match self {
            Self::Ints(ints) => ints,
            Self::Texts(_) => panic!("not a column of numbers"),
        }
    }

    /// The strings.
    ///
    /// # Panics
    ///
    /// If these are numbers.
    pub fn texts(&self) -> &Texts {
        match self {
            Self::Ints(_) => panic!("not a column of strings"),
            Self::Texts(texts) => texts,
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Ints(ints) => ints.len(),
            Self::Texts(texts) => texts.offsets.len() - 1,
        }
    }

    /// True when there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows from `from` on, `count` of them.
    pub fn part(&self, from: usize, count: usize) -> Self {
        match self {
            Self::Ints(ints) => Self::Ints(ints[from..from + count].to_vec()),
            Self::Texts(texts) => {
                let mut part = Texts::with_capacity(count);
                (from..from + count).for_each(|i| part.push(texts.get(i)));
                Self::Texts(part)
            }
        }
    }

    /// The column of this name from its codes: words and customers as strings.
    fn with_strings(name: &str, codes: Vec<i64>) -> Self {
        let words: &[&str] = match name {
            "customer_id" => &[],
            "status" => &STATUS,
            "tier" => &TIER,
            "region" => &REGION,
            _ => return Self::Ints(codes),
        };
        let mut texts = Texts::with_capacity(codes.len());
        for code in codes {
            match usize::try_from(code).ok().and_then(|code| words.get(code)) {
                Some(word) => texts.push(word),
                None => texts.push(&customer_text(code)),
            }
        }
        Self::Texts(texts)
    }
}

impl Texts {
    fn with_capacity(count: usize) -> Self {
        let mut offsets = Vec::with_capacity(count + 1);
        offsets.push(0);
        Self { offsets, text: String::with_capacity(count * 16) }
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.offsets.push(i32::try_from(self.text.len()).unwrap_or(i32::MAX));
    }

    /// String `i`.
    #[inline]
    pub fn get(&self, i: usize) -> &str {
        let (from, to) = (self.offsets[i], self.offsets[i + 1]);
        &self.text[usize::try_from(from).unwrap_or(0)..usize::try_from(to).unwrap_or(0)]
    }
}

/// A customer's number as a string: 16 hexadecimal digits.
pub fn customer_text(customer: i64) -> String {
    format!("{:016x}", customer.cast_unsigned().wrapping_mul(SCATTER))
}

/// The customer's number back from its string.
#[inline]
pub fn text_customer(text: &str) -> i64 {
    let digit = |byte: u8| u64::from((byte & 15) + 9 * (byte >> 6));
    let scattered = text.bytes().fold(0, |all, byte| (all << 4) | digit(byte));
    scattered.wrapping_mul(const { inverse(SCATTER) }).cast_signed()
}

/// The code of a tier; −1 for the empty string.
#[inline]
pub fn text_word(text: &str) -> i64 {
    match text.as_bytes().first() {
        Some(b'b') => 0,
        Some(b's') => 1,
        Some(b'g') => 2,
        Some(_) => 3,
        None => -1,
    }
}

/// The number by which `odd` times it is 1, modulo 2^64 (Newton's iteration).
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut round = 0;
    while round < 5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        round += 1;
    }
    inverse
}

/// The files of a table, one per column.
pub(crate) struct Table {
    columns: Vec<(String, File)>,
    rows: usize,
    strings: bool,
}

impl Table {
    pub(crate) fn open(data: &Path, name: &str, columns: &[&str], strings: bool) -> Result<Self> {
        let open = |column: &&str| -> Result<(String, File)> {
            let path = data.join("raw").join(format!("{name}.{column}.bin"));
            let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok(((*column).to_owned(), file))
        };
        let columns: Vec<(String, File)> = columns.iter().map(open).collect::<Result<_>>()?;
        let bytes = columns.first().ok_or("a table without columns")?.1.metadata()?.len();
        Ok(Self { rows: usize::try_from(bytes)? / 8, columns, strings })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The rows from `from` on, at most `count` of them.
    pub(crate) fn read(&self, from: usize, count: usize) -> Result<Vec<Column>> {
        let count = count.min(self.rows - from);
        let mut bytes = vec![0; count * 8];
        let mut columns = Vec::with_capacity(self.columns.len());
        for (name, file) in &self.columns {
            file.read_exact_at(&mut bytes, u64::try_from(from * 8)?)?;
            let numbers = bytes.as_chunks::<8>().0.iter().map(|&bytes| i64::from_le_bytes(bytes));
            let numbers = numbers.collect();
            let strings = self.strings;
            columns.push(match strings {
                true => Column::with_strings(name, numbers),
                false => Column::Ints(numbers),
            });
        }
        Ok(columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_customer_survives_the_way_to_a_string_and_back() {
        for customer in [0, 1, 7, 999_999, i64::MAX] {
            assert_eq!(text_customer(&customer_text(customer)), customer);
        }
    }

    #[test]
    fn tiers_have_codes() {
        for (code, tier) in (0..).zip(TIER) {
            assert_eq!(text_word(tier), code);
        }
        assert_eq!(text_word(""), -1);
    }
}
