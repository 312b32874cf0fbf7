//! The records of a file.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::answer::Answer;

/// The engine whose side is taken.
const ENGINE: &str = "postgresql";

/// A record that counts.
#[derive(Debug)]
pub(super) enum Record {
    /// A statement that succeeds.
    Statement(String),
    /// A query.
    Query(Query),
}

/// How the values of an answer are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// As they come.
    None,
    /// By row.
    Rows,
    /// Each value by itself.
    Values,
}

/// A query and its answer.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) sql: String,
    /// `I`, `R` or `T` per column.
    types: String,
    sort: Sort,
    /// The lines below the rule: values, or their number and hash.
    lines: Vec<String>,
    is_renamed: bool,
}

/// The text of a file; one that ends in `.gz` is compressed.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let say = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(say)?;
    if path.extension().is_some_and(|extension| extension == "gz") {
        flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).map_err(say)?;
    } else {
        let mut file = file;
        file.read_to_end(&mut bytes).map_err(say)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// All records up to a `halt`.
pub(super) fn parse(text: &str) -> Vec<Record> {
    let lines: Vec<&str> =
        text.lines().map(str::trim_end).filter(|line| !line.starts_with('#')).collect();
    let mut records = Vec::new();
    for block in lines.split(|line| line.is_empty()) {
        let is_about = |line: &&&str| line.starts_with("skipif") || line.starts_with("onlyif");
        let about: Vec<&&str> = block.iter().take_while(is_about).collect();
        let block = &block[about.len()..];
        let counts = about.iter().all(|line| {
            let mut words = line.split_whitespace();
            (words.next() == Some("onlyif")) == (words.next() == Some(ENGINE))
        });
        let Some((head, body)) = block.split_first().filter(|_| counts) else { continue };
        let words: Vec<&str> = head.split_whitespace().collect();
        match words.as_slice() {
            ["halt", ..] => break,
            ["statement", "ok", ..] => records.push(Record::Statement(body.join("\n"))),
            ["query", types, rest @ ..] => {
                let sort = match rest.first() {
                    Some(&"rowsort") => Sort::Rows,
                    Some(&"valuesort") => Sort::Values,
                    _ => Sort::None,
                };
                let rule = body.iter().position(|line| *line == "----").unwrap_or(body.len());
                let lines = body.iter().skip(rule + 1).map(|line| (*line).to_owned()).collect();
                let sql = body[..rule].join("\n");
                let types = (*types).to_owned();
                records.push(Record::Query(Query { sql, types, sort, lines, is_renamed: false }));
            }
            _ => {}
        }
    }
    records
}

impl Query {
    /// The same query with other names of its columns.
    pub(super) fn renamed(&self) -> Self {
        let names: Vec<String> = (0..self.types.len()).map(|i| format!("x{i}")).collect();
        let sql = format!("SELECT * FROM ({}) AS v({})", self.sql, names.join(", "));
        let (types, lines) = (self.types.clone(), self.lines.clone());
        Self { sql, types, sort: self.sort, lines, is_renamed: true }
    }

    /// It begins as a query, and has no parameters.
    pub(super) fn is_of_rows(&self) -> bool {
        let first = self.sql.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
        let word: String = first.chars().take_while(char::is_ascii_alphabetic).collect();
        let is_query = ["SELECT", "WITH", "VALUES"].contains(&word.to_ascii_uppercase().as_str());
        // A LIMIT does not end a series here, of which all numbers are read.
        let lower = self.sql.to_ascii_lowercase();
        let is_endless = (lower.contains("generate_series(") || lower.contains("range("))
            && lower.split(|c: char| !c.is_ascii_digit()).any(|number| number.len() > 6);
        is_query && self.types != "error" && !self.sql.contains('$') && !is_endless
    }

    /// The answer's lines.
    pub(super) fn lines(&self) -> &[String] {
        &self.lines
    }

    pub(super) fn is_renamed(&self) -> bool {
        self.is_renamed
    }

    /// The expected answer, shortly.
    pub(super) fn expected(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().take(8).map(String::as_str).collect();
        lines.join(" ")
    }

    /// True when the file expects these rows.
    pub(super) fn is_answered_by(&self, answer: &Answer) -> bool {
        let Some(mut rows) = answer.texts(&self.types) else { return false };
        if self.sort == Sort::Rows {
            rows.sort();
        }
        let mut values: Vec<String> = rows.into_iter().flatten().collect();
        if self.sort == Sort::Values {
            values.sort();
        }
        if let [line] = self.lines.as_slice()
            && let Some((count, hash)) = line.split_once(" values hashing to ")
        {
            return count.parse() == Ok(values.len()) && hash == super::answer::md5(&values);
        }
        values == self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_other_engines_are_left_out() {
        let text = "# a comment\nstatement ok\nCREATE TABLE t(a INTEGER)\n\nonlyif mysql\nquery I nosort\nSELECT 1\n----\n1\n\nskipif postgresql\nstatement ok\nNO\n\nonlyif postgresql # why\nquery IT rowsort\nSELECT a,\n b FROM t\n----\n1\nx\n\nhalt\n\nstatement ok\nNEVER\n";
        let records = parse(text);
        assert_eq!(records.len(), 2);
        assert!(matches!(&records[0], Record::Statement(sql) if sql.starts_with("CREATE")));
        let Record::Query(query) = &records[1] else { panic!("a query") };
        assert_eq!((query.sql.as_str(), query.sort), ("SELECT a,\n b FROM t", Sort::Rows));
        assert_eq!(query.lines, ["1", "x"]);
    }
}
