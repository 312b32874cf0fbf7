//! A file → statements: split at `;`, dispatched by their first words.

use sqlparser::tokenizer::Token;

use crate::ast::{ParseError, Query, Span, Statement};
use crate::dataset::dataset;
use crate::errors::{describe, error, near};
use crate::flow::flow;
use crate::query::{Placeholders, query};
use crate::settings::{set, sink, use_name};
use crate::tokens::{Cursor, Tok, tokenize};

/// All statements of a file. Goes on after an error, so that all are reported. `file` numbers the
/// file within its project and only serves to make placeholders unique.
///
/// ```
/// use deltaic_sql::{Statement, parse_file};
///
/// let text = "CREATE MATERIALIZED VIEW v AS SELECT a FROM t; CREATE TABLE u;";
/// let (statements, errors) = parse_file(text, 0);
/// assert!(matches!(&statements[..], [Statement::Dataset(d)] if d.name.parts == ["v"]));
/// assert!(errors[0].hint.as_ref().is_some_and(|h| h.contains("STREAMING TABLE")));
/// ```
pub fn parse_file(text: &str, file: usize) -> (Vec<Statement>, Vec<ParseError>) {
    let (toks, open) = tokenize(text);
    let mut placeholders = Placeholders::new(file);
    let (mut statements, mut errors) = (Vec::new(), Vec::new());
    let parts = split(text, &toks, &mut errors);
    let count = parts.len();
    for (n, mut part) in parts.into_iter().enumerate() {
        match statement(&mut part, &mut placeholders) {
            Ok(statement) => statements.push(statement),
            // What an open quote has swallowed is missing at the end of the last statement.
            Err(_) if open.is_some() && n + 1 == count => {}
            Err(e) => errors.push(e),
        }
    }
    errors.extend(open);
    errors.sort_by_key(|e| e.span.start);
    (statements, errors)
}

/// One query by itself, as `deltaic query` takes it. `file` as in [`parse_file`].
///
/// ```
/// let query = deltaic_sql::parse_query("SELECT * FROM table_changes('t', 1)", 0)?;
/// assert!(matches!(query.sources[0].table, deltaic_sql::TableRef::Changes { from: 1, .. }));
/// # Ok::<(), deltaic_sql::ParseError>(())
/// ```
pub fn parse_query(text: &str, file: usize) -> Result<Query, ParseError> {
    let (toks, open) = tokenize(text);
    if let Some(e) = open {
        return Err(e);
    }
    let end = end_of(text, &toks);
    let toks = match toks.iter().rposition(|t| !t.is_token(&Token::SemiColon)) {
        Some(last) => &toks[..=last],
        None => &[],
    };
    if let Some(t) = toks.iter().find(|t| t.is_token(&Token::SemiColon)) {
        let hint = Some("give one query at a time".to_owned());
        return Err(error(t.span, "there is more than one statement".into(), hint));
    }
    query(&mut Cursor::new(text, toks, end), &mut Placeholders::new(file))
}

/// Statements at `;`. A `CREATE` at the start of a line where a statement is under way is reported
/// as a missing `;` and begins a statement of its own, so that both are read.
fn split<'a>(text: &'a str, toks: &'a [Tok], errors: &mut Vec<ParseError>) -> Vec<Cursor<'a>> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0_i64);
    let mut push = |from: usize, to: usize, end: Span| {
        if from < to {
            parts.push(Cursor::new(text, &toks[from..to], end));
        }
    };
    for (n, t) in toks.iter().enumerate() {
        match t.inner.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::SemiColon => {
                push(start, n, t.span);
                (start, depth) = (n + 1, 0);
            }
            _ if n > start && depth <= 0 && t.starts_line && opens_statement(&toks[n..]) => {
                let hint = "end the statement above with ';'".to_owned();
                errors.push(error(t.span, "expected ';' before CREATE".into(), Some(hint)));
                push(start, n, t.span);
                (start, depth) = (n, 0);
            }
            _ => {}
        }
    }
    push(start, toks.len(), end_of(text, toks));
    parts
}

fn opens_statement(toks: &[Tok]) -> bool {
    const SECOND: &[&str] = &[
        "OR",
        "PRIVATE",
        "STREAMING",
        "MATERIALIZED",
        "TEMPORARY",
        "TEMP",
        "LIVE",
        "VIEW",
        "FLOW",
        "SINK",
        "TABLE",
    ];
    toks[0].is("CREATE") && toks.get(1).is_some_and(|t| SECOND.iter().any(|w| t.is(w)))
}

/// The place behind the last token.
fn end_of(text: &str, toks: &[Tok]) -> Span {
    let Some(last) = toks.last() else {
        return Span { start: text.len(), end: text.len(), line: 1, column: 1 };
    };
    let end = last.inner.span.end;
    Span { start: last.span.end, end: last.span.end, line: end.line, column: end.column }
}

const STATEMENTS: &[&str] = &["CREATE", "SET", "USE"];

fn statement(
    at: &mut Cursor<'_>,
    placeholders: &mut Placeholders,
) -> Result<Statement, ParseError> {
    let span = at.span();
    let statement = if at.eat(&["CREATE"]) {
        if at.eat(&["FLOW"]) {
            Statement::Flow(Box::new(flow(at, span, placeholders)?))
        } else if at.eat(&["SINK"]) {
            Statement::Sink(sink(at, span)?)
        } else if let Some(dataset) = dataset(at, span, placeholders)? {
            Statement::Dataset(Box::new(dataset))
        } else {
            return Err(unknown_create(at));
        }
    } else if at.eat(&["SET"]) {
        set(at, span)?
    } else if at.eat(&["USE"]) {
        use_name(at)?
    } else {
        return Err(not_a_statement(at));
    };
    at.finish("the statement")?;
    Ok(statement)
}

fn unknown_create(at: &mut Cursor<'_>) -> ParseError {
    const KINDS: &[&str] = &["STREAMING", "MATERIALIZED", "TEMPORARY", "VIEW", "FLOW", "SINK"];
    let _ = at.eat(&["OR", "REFRESH"]) || at.eat(&["OR", "REPLACE"]);
    if at.sees(&["TABLE"]) || at.sees(&["EXTERNAL", "TABLE"]) {
        let hint = "write CREATE STREAMING TABLE (rows are appended or kept by AUTO CDC) or \
                    CREATE MATERIALIZED VIEW (always equal to its query)";
        return error(at.here(), "a pipeline has no plain tables".into(), Some(hint.into()));
    }
    let pair = [("STREAMING", "TABLE"), ("MATERIALIZED", "VIEW")];
    for (first, second) in pair {
        if at.eat(&[first]) {
            return at.expected(&format!("{second} after {first}"), None);
        }
    }
    let hint = at.peek(0).and_then(Tok::word).and_then(|w| near(w, KINDS));
    let what = "STREAMING TABLE, MATERIALIZED VIEW, TEMPORARY VIEW, VIEW, FLOW or SINK";
    at.expected(what, hint)
}

fn not_a_statement(at: &Cursor<'_>) -> ParseError {
    let found = at.peek(0).map_or_else(|| "the end".into(), describe);
    let near = at.peek(0).and_then(Tok::word).and_then(|w| near(w, STATEMENTS));
    let hint = near.unwrap_or_else(|| {
        "a pipeline file holds CREATE … statements, SET and USE; run queries with 'deltaic query'"
            .into()
    });
    error(at.here(), format!("{found} does not begin a pipeline statement"), Some(hint))
}
