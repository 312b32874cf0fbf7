//! Rows as lines of text, as DataFusion's files write them, and their comparison.
//!
//! A line is the row's values with spaces between. Lines are compared word by word; numbers as
//! numbers, so that how many digits are written does not matter; without regard to their order.

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};
use deltaic_batch::ZBatch;

/// Digits that numbers have in common when they are the same.
const TOLERANCE: f64 = 1e-9;

/// The rows of some batches.
pub(super) fn of(batches: &[RecordBatch]) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    for batch in batches {
        lines.extend(of_batch(batch)?);
    }
    lines.sort();
    Ok(lines)
}

/// Each row as often as its weight says.
pub(super) fn of_bag(bag: &ZBatch) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    for (line, &weight) in of_batch(bag.rows())?.into_iter().zip(bag.weights().iter()) {
        let count = usize::try_from(weight).map_err(|_| format!("{line}: {weight} times"))?;
        lines.extend(std::iter::repeat_n(line, count));
    }
    lines.sort();
    Ok(lines)
}

fn of_batch(batch: &RecordBatch) -> Result<Vec<String>, String> {
    let options =
        FormatOptions::new().with_null("NULL").with_duration_format(DurationFormat::Pretty);
    let formatters = (batch.columns().iter())
        .map(|column| ArrayFormatter::try_new(column, &options))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| e.to_string())?;
    let cell = |row: usize, at: usize| {
        let column = batch.column(at);
        let text = formatters[at].value(row).to_string();
        match column.data_type() {
            DataType::Utf8 if text.is_empty() && column.is_valid(row) => "(empty)".to_owned(),
            _ => text,
        }
    };
    let line = |row| {
        let cells: Vec<String> = (0..batch.num_columns()).map(|at| cell(row, at)).collect();
        cells.join(" ")
    };
    Ok((0..batch.num_rows()).map(line).collect())
}

/// The same rows in any order.
pub(super) fn are_same(ours: &[String], theirs: &[String]) -> bool {
    let words = |lines: &[String]| -> Vec<Vec<Word>> {
        let mut lines: Vec<Vec<Word>> =
            lines.iter().map(|line| line.split_whitespace().map(Word::of).collect()).collect();
        lines.sort_by(|a, b| order(a, b));
        lines
    };
    let (ours, theirs) = (words(ours), words(theirs));
    ours.len() == theirs.len()
        && ours
            .iter()
            .zip(&theirs)
            .all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b)))
}

/// A part of a line.
#[derive(Debug, PartialEq)]
enum Word {
    Number(f64),
    Text(String),
}

impl Word {
    fn of(text: &str) -> Self {
        let text = text.strip_suffix('Z').unwrap_or(text);
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Self::Number(number),
            _ => Self::Text(text.to_ascii_lowercase().replace("infinity", "inf")),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => {
                (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()).max(1e-3)
            }
            (a, b) => a == b,
        }
    }
}

/// Any order in which numbers that are nearly the same lie together.
fn order(a: &[Word], b: &[Word]) -> std::cmp::Ordering {
    let key = |word: &Word| match word {
        Word::Number(number) => format!("0 {number:.6e}"),
        Word::Text(text) => format!("1 {text}"),
    };
    a.iter().map(key).cmp(b.iter().map(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers_and_lines_in_any_order() {
        let lines = |lines: &[&str]| lines.iter().map(|&l| l.to_owned()).collect::<Vec<_>>();
        assert!(are_same(&lines(&["1.50 a", "2 b"]), &lines(&["2.0  b", "1.5 a"])));
        assert!(are_same(&lines(&["0.1"]), &lines(&["0.10000000000000001"])));
        assert!(are_same(&lines(&["2020-01-01T00:00:00Z"]), &lines(&["2020-01-01T00:00:00"])));
        assert!(!are_same(&lines(&["1.5"]), &lines(&["1.6"])));
        assert!(!are_same(&lines(&["a"]), &lines(&["a", "a"])));
    }
}
