//! The text form of batches, for tests, documents and messages.
//!
//! One line per row: the weight (`+`, `-`, or with a number, as in `+3`), then the values, separated
//! by `|`. Blanks around values do not count. `NULL` is null. A value in double quotes is taken as
//! it stands, with `""` for a quote, `\n` and `\r` for line ends and `\\` for a backslash; numbers,
//! dates and the like are written as a cast from text reads them. Empty lines and lines that start
//! with `#` are skipped.
//!
//! ```text
//! +  1 | ann
//! -2 2 | NULL
//! + -3 | "a | b"
//! ```

use std::fmt::{self, Write};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::SchemaRef;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::{Error, Result, ZBatch};

impl ZBatch {
    /// Reads the text form: one line per row, weight first, values separated by `|`, as `Display`
    /// writes it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// # use deltaic_batch::ZBatch;
    /// let schema = Arc::new(Schema::new(vec![
    ///     Field::new("id", DataType::Int64, false),
    ///     Field::new("name", DataType::Utf8, true),
    /// ]));
    /// let batch = ZBatch::parse(&schema, "+ 1 | ann\n-2 2 | NULL\n")?;
    /// assert_eq!(batch.weights().as_ref(), &[1, -2]);
    /// assert_eq!(batch.to_string(), "+ 1 | ann\n-2 2 | NULL\n");
    /// # Ok::<(), deltaic_batch::Error>(())
    /// ```
    pub fn parse(schema: &SchemaRef, text: &str) -> Result<Self> {
        let width = schema.fields().len();
        let mut weights = Vec::new();
        let mut columns: Vec<Vec<Option<String>>> = vec![Vec::new(); width];
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
            let (weight, rest) = read_weight(line)?;
            let values = read_values(rest, line)?;
            let values = if width == 0 && rest.trim().is_empty() { Vec::new() } else { values };
            if values.len() != width {
                let found = values.len();
                return Err(wrong(line, &format!("{found} values for {width} columns")));
            }
            weights.push(weight);
            columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
        }
        let cast = CastOptions { safe: false, ..CastOptions::default() };
        let arrays = columns
            .into_iter()
            .zip(schema.fields())
            .map(|(column, field)| {
                let strings: ArrayRef = Arc::new(StringArray::from(column));
                cast_with_options(&strings, field.data_type(), &cast)
                    .map_err(|e| Error::from(e).object(field.name()))
            })
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(weights.len()));
        Self::try_new(RecordBatch::try_new_with_options(schema.clone(), arrays, &options)?, weights)
    }
}

impl fmt::Display for ZBatch {
    /// One line per row, as [`ZBatch::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = FormatOptions::new();
        let formatters = self
            .rows()
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| fmt::Error)?;
        for (row, weight) in self.weights().iter().enumerate() {
            match weight {
                1 => f.write_str("+")?,
                -1 => f.write_str("-")?,
                other => write!(f, "{other:+}")?,
            }
            for (i, (formatter, column)) in formatters.iter().zip(self.rows().columns()).enumerate()
            {
                f.write_str(if i == 0 { " " } else { " | " })?;
                if column.is_null(row) {
                    f.write_str("NULL")?;
                } else {
                    let value = formatter.value(row).try_to_string().map_err(|_| fmt::Error)?;
                    write_value(f, &value)?;
                }
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}

fn write_value(f: &mut fmt::Formatter<'_>, value: &str) -> fmt::Result {
    let plain = !value.is_empty()
        && value != "NULL"
        && value.trim() == value
        && !value.contains(['|', '"', '\n', '\r']);
    if plain {
        return f.write_str(value);
    }
    f.write_str("\"")?;
    for c in value.chars() {
        match c {
            '"' => f.write_str("\"\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            other => f.write_char(other)?,
        }
    }
    f.write_str("\"")
}

fn wrong(line: &str, what: &str) -> Error {
    Error::user("BATCH_TEXT", format!("{what} in the line `{line}`"))
}

fn read_weight(line: &str) -> Result<(i64, &str)> {
    let digits = line.get(1..).unwrap_or("").bytes().take_while(u8::is_ascii_digit).count();
    let (weight, rest) = line.split_at_checked(1 + digits).unwrap_or((line, ""));
    let weight = match weight {
        "+" => 1,
        "-" => -1,
        number if number.starts_with(['+', '-']) => {
            number.parse().map_err(|_| wrong(line, "a weight that is not a 64-bit integer"))?
        }
        _ => return Err(wrong(line, "no weight (`+`, `-`, `+3`)")),
    };
    Ok((weight, rest))
}

/// The values of a line; `None` is NULL.
fn read_values(rest: &str, line: &str) -> Result<Vec<Option<String>>> {
    let mut values = Vec::new();
    let mut rest = rest.trim_start();
    loop {
        let after;
        if let Some(quoted) = rest.strip_prefix('"') {
            let (value, end) = read_quoted(quoted).ok_or_else(|| wrong(line, "an open quote"))?;
            values.push(Some(value));
            after = quoted[end..].trim_start();
            if !after.is_empty() && !after.starts_with('|') {
                return Err(wrong(line, "text after a quoted value"));
            }
        } else {
            let end = rest.find('|').unwrap_or(rest.len());
            let value = rest[..end].trim();
            values.push((value != "NULL").then(|| value.to_owned()));
            after = &rest[end..];
        }
        match after.strip_prefix('|') {
            Some(next) => rest = next.trim_start(),
            None => return Ok(values),
        }
    }
}

/// The value up to the closing quote, and where the text goes on after it.
fn read_quoted(text: &str) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                if chars.next_if(|next| next.1 == '"').is_none() {
                    return Some((value, at + 1));
                }
                value.push('"');
            }
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                'r' => '\r',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field, Schema, TimeUnit};

    fn schema(types: &[DataType]) -> SchemaRef {
        let field = |(i, t): (usize, &DataType)| Field::new(format!("c{i}"), t.clone(), true);
        Arc::new(Schema::new(types.iter().enumerate().map(field).collect::<Vec<_>>()))
    }

    #[test]
    fn what_is_written_is_read_back() {
        let schema = schema(&[
            DataType::Int32,
            DataType::Utf8,
            DataType::Float64,
            DataType::Date32,
            DataType::Decimal128(10, 2),
            DataType::Timestamp(TimeUnit::Microsecond, None),
            DataType::Boolean,
        ]);
        let text = "+ 1 | ann | 1.5 | 2024-02-29 | 3.10 | 2024-01-01T10:00:00 | true\n\
                    -7 -2 | \"a | \"\"b\"\"\" | NULL | NULL | NULL | NULL | false\n\
                    - NULL | \"NULL\" | NaN | NULL | -0.01 | NULL | NULL\n\
                    + 3 | \"\" | -inf | NULL | NULL | NULL | NULL\n";
        let batch = ZBatch::parse(&schema, text).unwrap();
        assert_eq!(batch.to_string(), text);
        assert_eq!(batch.weights().as_ref(), &[1, -7, -1, 1]);
    }

    #[test]
    fn blanks_comments_and_empty_lines_do_not_count() {
        let batch = ZBatch::parse(&schema(&[DataType::Int8]), "\n # note\n  +2   5  \n").unwrap();
        assert_eq!(batch.to_string(), "+2 5\n");
        let empty = ZBatch::parse(&schema(&[]), "+\n-3").unwrap();
        assert_eq!(empty.to_string(), "+\n-3\n");
    }

    #[test]
    fn mistakes_are_errors() {
        let schema = schema(&[DataType::Int8]);
        for text in ["1", "+ 1 | 2", "+99999999999999999999 1", "+ \"1", "+ \"1\" x", "é 1"] {
            assert_eq!(ZBatch::parse(&schema, text).unwrap_err().code(), "BATCH_TEXT", "{text}");
        }
        assert_eq!(ZBatch::parse(&schema, "+ x").unwrap_err().code(), "CAST_INVALID_INPUT");
        assert!(ZBatch::parse(&schema, "+ 300").is_err());
    }
}
