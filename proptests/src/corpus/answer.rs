//! Rows as the format writes them.

use std::fmt::Write as _;

use arrow::array::RecordBatch;
use deltaic_batch::ZBatch;
use deltaic_testkit::{Value, batch_rows};
use md5::{Digest, Md5};

/// Rows in the order in which they came.
#[derive(Debug)]
pub(super) struct Answer {
    rows: Vec<Vec<Value>>,
}

impl Answer {
    pub(super) fn of(batches: &[RecordBatch]) -> Result<Self, String> {
        let mut rows = Vec::new();
        for batch in batches {
            rows.extend(batch_rows(batch)?);
        }
        Ok(Self { rows })
    }

    /// Each row as often as its weight says.
    pub(super) fn of_bag(bag: &ZBatch) -> Result<Self, String> {
        let mut rows = Vec::new();
        for (row, &weight) in batch_rows(bag.rows())?.into_iter().zip(bag.weights().iter()) {
            let count =
                usize::try_from(weight).map_err(|_| format!("{row:?} is there {weight} times"))?;
            rows.extend(std::iter::repeat_n(row, count));
        }
        Ok(Self { rows })
    }

    /// The same rows in any order.
    pub(super) fn is_same_bag(&self, other: &Self) -> bool {
        let sorted = |rows: &[Vec<Value>]| {
            let mut rows = rows.to_vec();
            rows.sort();
            rows
        };
        self.rows.len() == other.rows.len() && sorted(&self.rows) == sorted(&other.rows)
    }

    /// Its first rows, for people.
    pub(super) fn shown(&self) -> String {
        let first: Vec<String> = self.rows.iter().take(4).map(|row| format!("{row:?}")).collect();
        format!("{} rows: {}", self.rows.len(), first.join(" "))
    }

    /// Every value as text; `None` if the rows have another number of columns.
    pub(super) fn texts(&self, types: &str) -> Option<Vec<Vec<String>>> {
        let kinds: Vec<char> = types.chars().collect();
        let row = |row: &Vec<Value>| {
            let texts = row.iter().zip(&kinds).map(|(value, kind)| text(value, *kind)).collect();
            (row.len() == kinds.len()).then_some(texts)
        };
        self.rows.iter().map(row).collect()
    }
}

/// A value in a column of whole numbers (`I`), of numbers with three digits (`R`), or of text.
fn text(value: &Value, kind: char) -> String {
    match (value, kind) {
        (Value::Null, _) => "NULL".to_owned(),
        (Value::Bool(b), 'I') => u8::from(*b).to_string(),
        (Value::Int(i), 'R') => format!("{i}.000"),
        (Value::Int(i), _) => i.to_string(),
        (Value::Float(f), 'I') => format!("{:.0}", f.trunc()),
        (Value::Float(f), _) => format!("{f:.3}"),
        (Value::Decimal(unscaled, scale), _) => {
            let digits = format!("{unscaled}e-{scale}").parse::<f64>().unwrap_or(f64::NAN);
            text(&Value::Float(digits), kind)
        }
        // The number at its start.
        (Value::Text(text), 'I') => {
            let sign = text.starts_with(['-', '+']).into();
            let end =
                text[sign..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |at| at + sign);
            text[..end].parse::<i128>().unwrap_or(0).to_string()
        }
        (Value::Text(text), _) if text.is_empty() => "(empty)".to_owned(),
        (Value::Text(text), _) => text.clone(),
        (other, _) => format!("{other:?}"),
    }
}

/// The hash of values, each ended by a line feed.
pub(super) fn md5(values: &[String]) -> String {
    let mut hash = Md5::new();
    for value in values {
        hash.update(value);
        hash.update("\n");
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_the_format_has_them() {
        assert_eq!(text(&Value::Float(-2.5), 'I'), "-2");
        assert_eq!(text(&Value::Int(3), 'R'), "3.000");
        assert_eq!(text(&Value::Decimal(-1250, 2), 'R'), "-12.500");
        assert_eq!(text(&Value::text(""), 'T'), "(empty)");
        assert_eq!(text(&Value::text("-12ab"), 'I'), "-12");
        assert_eq!(text(&Value::text("ab"), 'I'), "0");
        assert_eq!(md5(&["1".to_owned()]), "b026324c6904b2a9cb4b88d6d61c81d1");
    }
}
