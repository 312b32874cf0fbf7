//! Table positions of a query, by tokens: `STREAM x`, `STREAM(x)`, `read_files(…)` and
//! `table_changes(…)` become placeholders before `sqlparser` sees them, since it reads
//! `FROM STREAM s` as a table called STREAM with the alias s.

use sqlparser::keywords::{Keyword, RESERVED_FOR_TABLE_ALIAS};
use sqlparser::tokenizer::Token;

use crate::ast::{Name, ParseError, QuerySource, Span, TableRef};
use crate::calls;
use crate::query::{Placeholders, error_at, span_of, word};
use crate::relations::external;
use crate::tokens::{Cursor, Tok};

/// Tokens `from..to` of the part, and what stands for them.
#[derive(Debug)]
pub(crate) struct Replacement {
    /// First token.
    pub(crate) from: usize,
    /// Token after the last.
    pub(crate) to: usize,
    /// Tokens for the parser.
    pub(crate) tokens: Vec<Token>,
    /// Text for the planner.
    pub(crate) text: String,
    /// The source that it names, if any.
    pub(crate) source: Option<QuerySource>,
}

impl Replacement {
    /// File bytes and new text.
    pub(crate) fn piece(&self, part: &Cursor<'_>) -> Option<(usize, usize, String)> {
        let end = match part.toks.get(self.to) {
            // `LIVE.` goes with what stands between it and the name.
            Some(next) if self.source.is_none() => next.span.start,
            _ => part.toks.get(self.to.checked_sub(1)?)?.span.end,
        };
        Some((part.toks.get(self.from)?.span.start, end, self.text.clone()))
    }
}

/// One level of parentheses.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    /// A `SELECT`, or a list of tables, stands here: `FROM` opens a list of tables.
    query: bool,
    /// In the list of tables.
    tables: bool,
}

/// All replacements of a query, in order. `table_first`: it begins with a table.
pub(crate) fn find(
    part: &Cursor<'_>,
    table_first: bool,
    placeholders: &mut Placeholders,
) -> Result<Vec<Replacement>, ParseError> {
    let mut found = Vec::new();
    let mut levels = vec![Level { query: true, tables: table_first }];
    let mut table_next = table_first;
    let mut at = part.clone();
    while let Some(tok) = at.peek(0) {
        if table_next && let Some(replacement) = source(&mut at, placeholders)? {
            found.push(replacement);
            table_next = false;
            continue;
        }
        if !table_next && let Some(replacement) = live_column(&at) {
            found.push(replacement);
        }
        table_next = step(tok, &at, &mut levels, table_next);
        at.pos += 1;
    }
    Ok(found)
}

/// Follows clauses and parentheses; whether a table comes next.
fn step(tok: &Tok, at: &Cursor<'_>, levels: &mut Vec<Level>, table_next: bool) -> bool {
    match tok.inner.token {
        Token::LParen => {
            levels.push(Level { query: table_next, tables: table_next });
            return table_next;
        }
        Token::RParen => {
            if levels.len() > 1 {
                levels.pop();
            }
            return false;
        }
        _ => {}
    }
    let Some(level) = levels.last_mut() else {
        return false;
    };
    if tok.is_token(&Token::Comma) {
        return level.tables;
    }
    const ENDS_TABLES: &[&str] = &[
        "SELECT",
        "WHERE",
        "GROUP",
        "HAVING",
        "QUALIFY",
        "WINDOW",
        "ORDER",
        "SORT",
        "CLUSTER",
        "DISTRIBUTE",
        "LIMIT",
        "OFFSET",
        "UNION",
        "INTERSECT",
        "EXCEPT",
        "MINUS",
    ];
    let Some(text) = tok.word() else {
        return false;
    };
    let is = |w: &str| text.eq_ignore_ascii_case(w);
    let after_dot = at.pos > 0 && at.toks[at.pos - 1].is_token(&Token::Period);
    if after_dot {
        return false;
    }
    if is("FROM") {
        // `IS DISTINCT FROM`, and `EXTRACT(x FROM y)` (no query at that level), are expressions.
        let distinct = at.pos > 1
            && at.toks[at.pos - 1].is("DISTINCT")
            && (at.toks[at.pos - 2].is("IS") || at.toks[at.pos - 2].is("NOT"));
        if level.query && !distinct {
            level.tables = true;
            return true;
        }
        return false;
    }
    if is("SELECT") {
        *level = Level { query: true, tables: false };
        return false;
    }
    if ENDS_TABLES.iter().any(|w| is(w)) {
        level.tables = false;
        return false;
    }
    (is("JOIN") && level.tables) || (is("LATERAL") && table_next)
}

/// Table functions that stand for a source.
const FUNCTIONS: [&str; 3] = ["read_files", "table_changes", "table_changes_by_path"];

/// A streaming read or a table function in table position.
fn source(
    at: &mut Cursor<'_>,
    placeholders: &mut Placeholders,
) -> Result<Option<Replacement>, ParseError> {
    let from = at.pos;
    let call = |n: usize| {
        at.peek(n + 1).is_some_and(|t| t.is_token(&Token::LParen))
            && at.peek(n).is_some_and(|t| FUNCTIONS.iter().any(|name| t.is(name)))
    };
    if call(0) {
        return Ok(Some(function(at, from, false, placeholders)?));
    }
    if !at.sees(&["STREAM"]) {
        return Ok(None);
    }
    match at.peek(1) {
        Some(t) if t.is_token(&Token::LParen) => Ok(Some(stream_call(at, from, placeholders)?)),
        Some(t) if names_table(t) => {
            at.pos += 1;
            if at.peek(1).is_some_and(|t| t.is_token(&Token::LParen)) {
                return Ok(Some(function(at, from, true, placeholders)?));
            }
            let name = at.name("the table to read as a stream")?;
            let to = at.pos;
            Ok(Some(stream(at, from, to, &name, to - 1, placeholders)))
        }
        // A table that is called stream.
        _ => Ok(None),
    }
}

/// `STREAM(table)` or `STREAM(read_files(…))`, which comes next.
fn stream_call(
    at: &mut Cursor<'_>,
    from: usize,
    placeholders: &mut Placeholders,
) -> Result<Replacement, ParseError> {
    at.pos += 1;
    let mut inner = at.parenthesised("a table")?;
    let to = at.pos;
    if !inner.peek(1).is_some_and(|t| t.is_token(&Token::LParen)) {
        let name = inner.name("the table to read as a stream")?;
        let name_at = from + 1 + inner.pos;
        inner.finish("STREAM(table)")?;
        return Ok(stream(at, from, to, &name, name_at, placeholders));
    }
    // Positions of tokens count from the start of the whole part.
    let mut call = Cursor { toks: &at.toks[..to - 1], pos: from + 2, ..inner };
    let replacement = function(&mut call, from, true, placeholders)?;
    call.finish("STREAM(…)")?;
    Ok(Replacement { to, ..replacement })
}

/// What follows `STREAM` is a table and not the next clause.
fn names_table(tok: &Tok) -> bool {
    match &tok.inner.token {
        Token::Word(w) if w.quote_style.is_some() => true,
        Token::Word(w) => !ends_table(w.keyword) && !tok.is("AS"),
        _ => false,
    }
}

/// The keyword cannot be an alias.
fn ends_table(keyword: Keyword) -> bool {
    const MORE: &[Keyword] = &[Keyword::AS, Keyword::SEMI, Keyword::ANTI, Keyword::TABLESAMPLE];
    RESERVED_FOR_TABLE_ALIAS.contains(&keyword) || MORE.contains(&keyword)
}

/// `STREAM t`: the placeholder, with the table's name (its token is `name_at`) as alias unless one
/// follows.
fn stream(
    at: &Cursor<'_>,
    from: usize,
    to: usize,
    name: &Name,
    name_at: usize,
    placeholders: &mut Placeholders,
) -> Replacement {
    let placeholder = placeholders.fresh();
    let mut tokens = vec![word(&placeholder, None)];
    let mut text = placeholder.clone();
    let aliased = at.toks.get(to).is_some_and(|t| match &t.inner.token {
        Token::Word(w) => {
            w.quote_style.is_some() || w.keyword == Keyword::AS || !ends_table(w.keyword)
        }
        _ => false,
    });
    let table = external(&name.parts, name.span).unwrap_or_else(|| TableRef::Table(name.clone()));
    if !aliased && matches!(table, TableRef::Table(_)) {
        let tok = &at.toks[name_at];
        tokens.extend([word("AS", None), tok.inner.token.clone()]);
        text = format!("{placeholder} AS {}", &at.text[tok.span.start..tok.span.end]);
    }
    let span = span_of(at, from, to);
    let source = QuerySource { placeholder, table, streaming: true, span };
    Replacement { from, to, tokens, text, source: Some(source) }
}

/// One of [`FUNCTIONS`], whose name comes next.
fn function(
    at: &mut Cursor<'_>,
    from: usize,
    streaming: bool,
    placeholders: &mut Placeholders,
) -> Result<Replacement, ParseError> {
    let name_at = at.pos;
    let name = at.identifier("read_files or a table")?;
    let mut arguments = at.parenthesised("its arguments")?;
    let to = at.pos;
    let span: Span = span_of(at, name_at, to);
    let table = match name.value.to_ascii_lowercase().as_str() {
        "read_files" => TableRef::Files(calls::read_files(&mut arguments, span)?),
        "table_changes" => calls::table_changes(&mut arguments)?,
        "table_changes_by_path" => calls::table_changes_by_path(&mut arguments)?,
        other => {
            let hint = "STREAM takes a table or read_files(…)".to_owned();
            let message = format!("'{other}' cannot be read as a stream");
            return Err(error_at(at, name_at, to, message, Some(hint)));
        }
    };
    let placeholder = placeholders.fresh();
    let tokens = vec![word(&placeholder, None)];
    let text = placeholder.clone();
    let span = span_of(at, from, to);
    let source = QuerySource { placeholder, table, streaming, span };
    Ok(Replacement { from, to, tokens, text, source: Some(source) })
}

/// `LIVE.t.column` outside of table positions: without `LIVE.`.
fn live_column(at: &Cursor<'_>) -> Option<Replacement> {
    let dot = |n: usize| at.peek(n).is_some_and(|t| t.is_token(&Token::Period));
    let three = at.sees(&["LIVE"]) && dot(1) && dot(3) && at.peek(4).is_some();
    let first = at.pos == 0 || !at.toks[at.pos - 1].is_token(&Token::Period);
    (three && first).then(|| Replacement {
        from: at.pos,
        to: at.pos + 2,
        tokens: Vec::new(),
        text: String::new(),
        source: None,
    })
}
