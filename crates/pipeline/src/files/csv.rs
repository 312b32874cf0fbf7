//! CSV text as columns of texts: RFC 4180 with a choice of delimiter, quote and escape.
//!
//! A doubled quote inside quotes is a quote. Line breaks inside quotes belong to the value. An
//! unquoted empty field is NULL, a quoted one is the empty text. Blank lines are skipped.

use arrow::array::{Array, StringArray, StringBuilder};
use deltaic_batch::{Error, Result};

use super::options::FileOptions;

/// One file's rows, before conversion to types.
#[derive(Debug)]
pub(super) struct CsvText<'a> {
    /// Names of the header line, if there is one.
    pub(super) header: Option<Vec<String>>,
    /// Columns by position; as many as the header or else the longest row has.
    pub(super) columns: Vec<StringArray>,
    /// Place of each row.
    pub(super) rows: Vec<RowText<'a>>,
    /// Fields beyond the header's width: (row, position, text).
    pub(super) extra: Vec<(usize, usize, String)>,
}

/// Where a row stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowText<'a> {
    pub(super) line: u64,
    pub(super) raw: &'a str,
    pub(super) fields: usize,
}

/// Splits a file. `width` is the number of columns when there is no header to tell.
pub(super) fn split<'a>(
    text: &'a str,
    options: &FileOptions,
    width: Option<usize>,
    name: &str,
) -> Result<CsvText<'a>> {
    let mut scanner = Scanner { bytes: text.as_bytes(), text, pos: 0, line: 1, options, name };
    let mut record = Record::default();
    let mut header = None;
    if options.header {
        while scanner.next(&mut record)? {
            if !record.blank() {
                header = Some(record.texts());
                break;
            }
        }
        if header.is_none() {
            return Ok(CsvText {
                header,
                columns: Vec::new(),
                rows: Vec::new(),
                extra: Vec::new(),
            });
        }
    }
    let width = header.as_ref().map(Vec::len).or(width);
    let mut out = Columns::new(width, options.null_value.as_deref());
    while scanner.next(&mut record)? {
        if !record.blank() {
            out.push(&record, &text[record.start..record.end]);
        }
    }
    let Columns { builders, rows, extra, .. } = out;
    let columns = builders.into_iter().map(|mut b| b.finish()).collect();
    Ok(CsvText { header, columns, rows, extra })
}

/// Columns under construction.
struct Columns<'a, 'o> {
    width: Option<usize>,
    null_value: Option<&'o str>,
    builders: Vec<StringBuilder>,
    rows: Vec<RowText<'a>>,
    extra: Vec<(usize, usize, String)>,
}

impl<'a, 'o> Columns<'a, 'o> {
    fn new(width: Option<usize>, null_value: Option<&'o str>) -> Self {
        let builders = (0..width.unwrap_or(0)).map(|_| StringBuilder::new()).collect();
        Self { width, null_value, builders, rows: Vec::new(), extra: Vec::new() }
    }

    fn push(&mut self, record: &Record, raw: &'a str) {
        let row = self.rows.len();
        if self.width.is_none() {
            while self.builders.len() < record.ends.len() {
                let mut builder = StringBuilder::new();
                builder.append_nulls(row);
                self.builders.push(builder);
            }
        }
        for (i, builder) in self.builders.iter_mut().enumerate() {
            match record.field(i) {
                Some((text, quoted))
                    if quoted || !(text.is_empty() || Some(text) == self.null_value) =>
                {
                    builder.append_value(text);
                }
                _ => builder.append_null(),
            }
        }
        for i in self.builders.len()..record.ends.len() {
            let text = record.field(i).map_or_else(String::new, |(text, _)| text.to_string());
            self.extra.push((row, i, text));
        }
        self.rows.push(RowText { line: record.line, raw, fields: record.ends.len() });
    }
}

/// One record's fields, unquoted, in one buffer that is used again for the next.
#[derive(Default)]
struct Record {
    buffer: String,
    /// End of each field in the buffer, and whether it was quoted.
    ends: Vec<(usize, bool)>,
    line: u64,
    start: usize,
    end: usize,
}

impl Record {
    fn blank(&self) -> bool {
        matches!(self.ends.as_slice(), [(0, false)] | [])
    }

    fn field(&self, i: usize) -> Option<(&str, bool)> {
        let (end, quoted) = *self.ends.get(i)?;
        let start = if i == 0 { 0 } else { self.ends[i - 1].0 };
        Some((&self.buffer[start..end], quoted))
    }

    fn texts(&self) -> Vec<String> {
        (0..self.ends.len())
            .filter_map(|i| self.field(i).map(|(text, _)| text.trim().to_string()))
            .collect()
    }
}

struct Scanner<'a, 'o> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    line: u64,
    options: &'o FileOptions,
    name: &'o str,
}

impl Scanner<'_, '_> {
    /// Reads the next record; false at the end of the file.
    fn next(&mut self, record: &mut Record) -> Result<bool> {
        self.skip_comments();
        record.buffer.clear();
        record.ends.clear();
        record.line = self.line;
        record.start = self.pos;
        if self.pos >= self.bytes.len() {
            return Ok(false);
        }
        loop {
            let quoted = self.options.quote.is_some() && self.peek() == self.options.quote;
            if quoted {
                self.quoted(record)?;
            }
            self.unquoted(record);
            record.ends.push((record.buffer.len(), quoted));
            record.end = self.pos;
            match self.peek() {
                Some(b) if b == self.options.delimiter => self.pos += 1,
                Some(b'\r') => {
                    self.pos += 1 + usize::from(self.bytes.get(self.pos + 1) == Some(&b'\n'));
                    self.line += 1;
                    return Ok(true);
                }
                Some(_) => {
                    self.pos += 1;
                    self.line += 1;
                    return Ok(true);
                }
                None => return Ok(true),
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    fn skip_comments(&mut self) {
        while self.options.comment.is_some() && self.peek() == self.options.comment {
            let rest = &self.bytes[self.pos..];
            self.pos += rest.iter().position(|b| *b == b'\n').map_or(rest.len(), |i| i + 1);
            self.line += 1;
        }
    }

    /// Copies up to the next delimiter or line break.
    fn unquoted(&mut self, record: &mut Record) {
        let delimiter = self.options.delimiter;
        let rest = &self.bytes[self.pos..];
        let length = rest
            .iter()
            .position(|b| *b == delimiter || *b == b'\n' || *b == b'\r')
            .unwrap_or(rest.len());
        record.buffer.push_str(&self.text[self.pos..self.pos + length]);
        self.pos += length;
    }

    /// Copies a quoted part, from its opening to behind its closing quote.
    fn quoted(&mut self, record: &mut Record) -> Result<()> {
        let (quote, escape) = (self.options.quote.unwrap_or(b'"'), self.options.escape);
        self.pos += 1;
        loop {
            let rest = &self.bytes[self.pos..];
            let Some(length) = rest.iter().position(|b| *b == quote || Some(*b) == escape) else {
                return Err(Error::data(
                    "MALFORMED_ROW",
                    "a quote is not closed before the end of the file",
                )
                .object(format!("{}:{}", self.name, record.line))
                .hint(
                    "close it; or set quote => '' when quotes have no meaning, or escape => '\\\\' \
                     when they are escaped so",
                ));
            };
            let part = &self.text[self.pos..self.pos + length];
            self.line += part.bytes().map(|b| u64::from(b == b'\n')).sum::<u64>();
            record.buffer.push_str(part);
            self.pos += length;
            let next = self.bytes.get(self.pos + 1).copied();
            let escaped =
                self.peek() == escape && next.is_some_and(|b| b == quote || Some(b) == escape);
            if escaped || (self.peek() == Some(quote) && next == Some(quote)) {
                record.buffer.push(char::from(next.unwrap_or(quote)));
                self.pos += 2;
            } else if self.peek() == Some(quote) {
                self.pos += 1;
                return Ok(());
            } else {
                record.buffer.push(char::from(self.bytes[self.pos]));
                self.pos += 1;
            }
        }
    }
}

impl CsvText<'_> {
    /// Names of the columns: the header's, or `_c0`, `_c1` …
    pub(super) fn names(&self) -> Vec<String> {
        match &self.header {
            Some(names) => names.clone(),
            None => (0..self.columns.len()).map(|i| format!("_c{i}")).collect(),
        }
    }

    /// Text of a cell as the file has it, for messages.
    pub(super) fn cell(&self, column: usize, row: usize) -> Option<&str> {
        let column = self.columns.get(column)?;
        column.is_valid(row).then(|| column.value(row))
    }
}
