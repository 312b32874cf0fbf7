//! A query → [`Query`]: streaming reads and table functions become placeholders, in the text and
//! in the tokens that `sqlparser` checks. The user's text is edited in place, never printed from
//! a tree, so that lines, comments and spelling stay.

use sqlparser::dialect::GenericDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::ast::{Edit, ParseError, Query, Span};

use crate::errors::{error, from_sqlparser, near};
use crate::relations;
use crate::streams::{self, Replacement};
use crate::tokens::{Cursor, Tok};

/// How deep expressions may nest.
const DEPTH_MAX: usize = 128;

/// Hands out placeholder names that are unique over all files of a project.
#[derive(Debug)]
pub(crate) struct Placeholders {
    file: usize,
    next: usize,
}

impl Placeholders {
    /// For one file.
    pub(crate) fn new(file: usize) -> Self {
        Self { file, next: 0 }
    }

    /// The next name.
    pub(crate) fn fresh(&mut self) -> String {
        let name = format!("__source_{}_{}", self.file, self.next);
        self.next += 1;
        name
    }
}

/// The rest of `at` as a query.
pub(crate) fn query(
    at: &mut Cursor<'_>,
    placeholders: &mut Placeholders,
) -> Result<Query, ParseError> {
    const HEADS: &[&str] = &["SELECT", "WITH", "FROM", "VALUES", "TABLE"];
    let opens = HEADS.iter().any(|w| at.sees(&[w])) || at.sees_token(&Token::LParen);
    if !opens {
        let hint = at.peek(0).and_then(Tok::word).and_then(|w| near(w, &HEADS[..2]));
        return Err(at.expected("a query (SELECT … or WITH …)", hint));
    }
    let part = Cursor::new(at.text, &at.toks[at.pos..], at.end);
    at.pos = at.toks.len();
    build(&part, "", placeholders)
}

/// `(query) [[AS] alias]`, the whole of `at`.
pub(crate) fn parenthesised_query(
    at: &mut Cursor<'_>,
    placeholders: &mut Placeholders,
) -> Result<Query, ParseError> {
    let mut inner = at.parenthesised("a query")?;
    if at.eat(&["AS"]) || !at.at_end() {
        at.identifier("an alias")?;
    }
    at.finish("the source")?;
    query(&mut inner, placeholders)
}

/// `[STREAM] table`, `STREAM(table)`, `[STREAM] read_files(…)`: all rows of it. The whole of `at`.
pub(crate) fn table_query(
    at: &mut Cursor<'_>,
    placeholders: &mut Placeholders,
) -> Result<Query, ParseError> {
    if at.at_end() {
        return Err(at.expected("a table", None));
    }
    build(at, "SELECT * FROM ", placeholders)
}

/// Checks that the whole of `at` is one expression.
pub(crate) fn expression(at: &mut Cursor<'_>, what: &str) -> Result<(), ParseError> {
    if at.at_end() {
        return Err(at.expected(&format!("an expression for {what}"), None));
    }
    let tokens = at.toks.iter().map(|t| t.inner.clone()).collect();
    let mut parser = parser(tokens);
    parser.parse_expr().map_err(|e| from_sqlparser(&e, at))?;
    at.pos = parser.index();
    at.finish(what)
}

fn parser(tokens: Vec<TokenWithSpan>) -> Parser<'static> {
    Parser::new(&GenericDialect {})
        .with_recursion_limit(DEPTH_MAX)
        .with_tokens_with_locations(tokens)
}

/// `prefix` stands before the part in the text (and is a table position at its end).
fn build(
    part: &Cursor<'_>,
    prefix: &str,
    placeholders: &mut Placeholders,
) -> Result<Query, ParseError> {
    let replacements = streams::find(part, !prefix.is_empty(), placeholders)?;
    let tree = parse(part, prefix, &replacements)?;
    let found = relations::collect(&tree, part, &replacements, placeholders)?;
    let mut pieces: Vec<(usize, usize, String)> =
        replacements.iter().filter_map(|r| r.piece(part)).collect();
    pieces.extend(found.pieces);
    let span = part.span();
    pieces.sort_by_key(|p| (p.0, p.1));
    let (text, edits) = edit(part.source(), span.start, prefix, &pieces);
    Ok(Query {
        original: part.source().to_owned(),
        text,
        sources: found.sources,
        unbounded: found.unbounded,
        joins: found.joins,
        span,
        edits,
    })
}

fn parse(
    part: &Cursor<'_>,
    prefix: &str,
    replacements: &[Replacement],
) -> Result<sqlparser::ast::Query, ParseError> {
    let mut tokens: Vec<TokenWithSpan> =
        prefix.split_whitespace().map(|w| TokenWithSpan::wrap(prefix_token(w))).collect();
    let mut next = 0;
    for r in replacements {
        tokens.extend(part.toks[next..r.from].iter().map(|t| t.inner.clone()));
        let span = part.toks[r.from].inner.span;
        tokens.extend(r.tokens.iter().map(|t| TokenWithSpan::new(t.clone(), span)));
        next = r.to;
    }
    tokens.extend(part.toks[next..].iter().map(|t| t.inner.clone()));
    let mut parser = parser(tokens);
    let tree = parser.parse_query().map_err(|e| with_last_word(from_sqlparser(&e, part), part))?;
    let left = parser.peek_token();
    if left.token != Token::EOF {
        let place = left.span.start;
        let e = ParserError::ParserError(format!(
            "Expected: the end of the query, found: {left} at Line: {}, Column: {}",
            place.line, place.column
        ));
        return Err(with_last_word(from_sqlparser(&e, part), part));
    }
    Ok(*tree)
}

fn prefix_token(word: &str) -> Token {
    if word == "*" { Token::Mul } else { Token::make_word(word, None) }
}

/// A misspelt clause word is read as an alias, and the error comes one word later: looks there too.
fn with_last_word(mut e: ParseError, part: &Cursor<'_>) -> ParseError {
    if e.hint.is_none() {
        let n = part.toks.iter().position(|t| t.span.start == e.span.start);
        let before = n.unwrap_or(part.toks.len()).checked_sub(1);
        let word = before.and_then(|n| part.toks[n].word());
        e.hint = word.and_then(crate::errors::near_clause);
    }
    e
}

/// Replaces the pieces (file bytes, new text) and keeps the line breaks of what they replace.
fn edit(
    source: &str,
    offset: usize,
    prefix: &str,
    pieces: &[(usize, usize, String)],
) -> (String, Vec<Edit>) {
    let mut text = prefix.to_owned();
    let mut edits = Vec::new();
    if !prefix.is_empty() {
        let (text_start, text_end) = (0, prefix.len());
        edits.push(Edit { original_start: 0, original_end: 0, text_start, text_end });
    }
    let mut next = 0;
    for (start, end, new) in pieces {
        let (original_start, original_end) = (start - offset, end - offset);
        text.push_str(&source[next..original_start]);
        let text_start = text.len();
        text.push_str(new);
        let breaks = source[original_start..original_end].matches('\n').count();
        text.extend(std::iter::repeat_n('\n', breaks));
        edits.push(Edit { original_start, original_end, text_start, text_end: text.len() });
        next = original_end;
    }
    text.push_str(&source[next..]);
    (text, edits)
}

/// An unquoted word, or a quoted one.
pub(crate) fn word(value: &str, quote_style: Option<char>) -> Token {
    match quote_style {
        Some(_) => {
            let keyword = sqlparser::keywords::Keyword::NoKeyword;
            Token::Word(Word { value: value.to_owned(), quote_style, keyword })
        }
        None => Token::make_word(value, None),
    }
}

/// An error at tokens `from..to` of a part.
pub(crate) fn error_at(
    part: &Cursor<'_>,
    from: usize,
    to: usize,
    message: String,
    hint: Option<String>,
) -> ParseError {
    error(span_of(part, from, to), message, hint)
}

/// Place of tokens `from..to` of a part.
pub(crate) fn span_of(part: &Cursor<'_>, from: usize, to: usize) -> Span {
    Cursor::new(part.text, &part.toks[from.min(part.toks.len())..to.min(part.toks.len())], part.end)
        .span()
}
