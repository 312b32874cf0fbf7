//! Syntax errors: making them, describing tokens, near names, and what `sqlparser` reports.

use sqlparser::parser::ParserError;
use sqlparser::tokenizer::Token;

use crate::ast::{ParseError, Span};
use crate::tokens::{Cursor, Tok};

/// An error at a place.
pub(crate) fn error(span: Span, message: String, hint: Option<String>) -> ParseError {
    ParseError { message, hint, span }
}

/// A token as it is named in messages.
pub(crate) fn describe(tok: &Tok) -> String {
    match &tok.inner.token {
        Token::SingleQuotedString(s) => format!("the string '{s}'"),
        token => format!("'{token}'"),
    }
}

/// `did you mean X?` if one of `known` is near to `word`.
pub(crate) fn near(word: &str, known: &[&str]) -> Option<String> {
    let word = word.to_ascii_uppercase();
    known
        .iter()
        .map(|k| (strsim::damerau_levenshtein(&word, k), *k))
        .filter(|(distance, k)| *distance > 0 && *distance <= 1.max(k.len() / 3))
        .min()
        .map(|(_, k)| format!("did you mean {k}?"))
}

/// An unknown word where one of `known` may stand.
pub(crate) fn unknown_clause(at: &Cursor<'_>, place: &str, known: &[&str]) -> ParseError {
    let near = at.peek(0).and_then(Tok::word).and_then(|w| near(w, known));
    let hint = near.unwrap_or_else(|| format!("possible here: {}", known.join(", ")));
    let found = at.peek(0).map_or_else(|| "the end".into(), describe);
    error(at.here(), format!("{found} is not a clause of {place}"), Some(hint))
}

/// Turns an error of `sqlparser` about tokens of `part` into ours.
pub(crate) fn from_sqlparser(e: &ParserError, part: &Cursor<'_>) -> ParseError {
    let text = match e {
        ParserError::TokenizerError(s) | ParserError::ParserError(s) => s.as_str(),
        ParserError::RecursionLimitExceeded => "the query is nested too deeply",
    };
    let (message, place) = match text.rsplit_once(" at Line: ") {
        Some((message, place)) => (message, parse_place(place)),
        None => (text, None),
    };
    let tok = place.and_then(|(line, column)| {
        part.toks.iter().find(|t| (t.span.line, t.span.column) == (line, column))
    });
    let span = tok.map_or(part.end, |t| t.span);
    let message = message.replacen("Expected: ", "expected ", 1);
    let message = message.replacen("sql parser error: ", "", 1);
    let message = message.replace("found: EOF", "found the end");
    let message = match (message.split_once(", found: "), tok) {
        (Some((expected, _)), Some(tok)) => format!("{expected}, found {}", describe(tok)),
        _ => message.replacen("found: ", "found ", 1),
    };
    let hint = tok.and_then(Tok::word).and_then(near_clause);
    error(span, message, hint)
}

/// `3, Column: 7` → (3, 7).
fn parse_place(place: &str) -> Option<(u64, u64)> {
    let (line, column) = place.split_once(", Column: ")?;
    Some((line.trim().parse().ok()?, column.trim().parse().ok()?))
}

/// Near names among the words of queries.
pub(crate) fn near_clause(word: &str) -> Option<String> {
    near(word, CLAUSE_WORDS)
}

/// Words that open the clauses of a query, for near names.
const CLAUSE_WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "JOIN",
    "INNER",
    "LEFT",
    "RIGHT",
    "FULL",
    "OUTER",
    "CROSS",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "USING",
    "QUALIFY",
    "DISTINCT",
    "BETWEEN",
];
