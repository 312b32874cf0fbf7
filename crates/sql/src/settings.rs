//! `CREATE SINK`, `SET`, `USE`, and lists of `key = value`.

use std::collections::BTreeMap;

use sqlparser::tokenizer::Token;

use crate::ast::{ParseError, Sink, Span, Statement};
use crate::errors::unknown_clause;
use crate::tokens::Cursor;

/// `name FORMAT fmt [OPTIONS (…)]`, after `CREATE SINK`.
pub(crate) fn sink(at: &mut Cursor<'_>, span: Span) -> Result<Sink, ParseError> {
    at.eat(&["IF", "NOT", "EXISTS"]);
    let name = at.name("the name of the sink")?;
    let (mut format, mut options) = (None, BTreeMap::new());
    while !at.at_end() {
        if at.eat(&["FORMAT"]) {
            format = Some(match at.peek(0).and_then(|t| t.string()) {
                Some(_) => at.string("a format")?,
                None => at.identifier("a format such as delta, json or kafka")?.value,
            });
        } else if at.eat(&["OPTIONS"]) {
            options = properties(at)?;
        } else {
            return Err(unknown_clause(at, "CREATE SINK", &["FORMAT", "OPTIONS"]));
        }
    }
    let Some(format) = format else {
        return Err(at.expected("FORMAT and the sink's format", None));
    };
    Ok(Sink { name, format, options, span })
}

/// `(key [=] value, …)`; keys are words joined by dots, or strings.
pub(crate) fn properties(at: &mut Cursor<'_>) -> Result<BTreeMap<String, String>, ParseError> {
    let mut list = at.parenthesised("a list of key = value")?;
    let mut properties = BTreeMap::new();
    while !list.at_end() {
        let key = key(&mut list)?;
        list.eat_token(&Token::Eq);
        properties.insert(key, value(&mut list)?);
        if !list.eat_token(&Token::Comma) {
            list.finish("the list of properties: a ',' or ')'")?;
        }
    }
    Ok(properties)
}

fn key(at: &mut Cursor<'_>) -> Result<String, ParseError> {
    if at.peek(0).is_some_and(|t| matches!(t.inner.token, Token::SingleQuotedString(_))) {
        return at.string("a key");
    }
    let mut key = at.identifier("a key")?.value;
    while at.eat_token(&Token::Period) {
        key.push('.');
        key.push_str(&at.identifier("the rest of the key after '.'")?.value);
    }
    Ok(key)
}

/// A string, number or word as its text.
fn value(at: &mut Cursor<'_>) -> Result<String, ParseError> {
    let negative = at.eat_token(&Token::Minus);
    let Some(tok) = at.peek(0) else {
        return Err(at.expected("a value", None));
    };
    let value = match (&tok.inner.token, tok.string()) {
        (_, Some(s)) if !negative => s.to_owned(),
        (Token::Number(n, _), _) => format!("{}{n}", if negative { "-" } else { "" }),
        (Token::Word(w), _) if !negative => w.value.clone(),
        _ => return Err(at.expected("a value: a string, a number, TRUE or FALSE", None)),
    };
    at.pos += 1;
    Ok(value)
}

/// `key = value`, after `SET`. The value reaches to the end of the statement.
pub(crate) fn set(at: &mut Cursor<'_>, span: Span) -> Result<Statement, ParseError> {
    let key = key(at)?;
    at.expect_token(&Token::Eq)?;
    let rest = Cursor::new(at.text, &at.toks[at.pos..], at.end);
    let value = match rest.toks {
        [] => return Err(at.expected("a value", None)),
        [one] => one.string().map_or_else(|| rest.source().to_owned(), str::to_owned),
        _ => rest.source().to_owned(),
    };
    at.pos = at.toks.len();
    Ok(Statement::Set { key, value, span })
}

/// `[CATALOG | SCHEMA | DATABASE] name`, after `USE`.
pub(crate) fn use_name(at: &mut Cursor<'_>) -> Result<Statement, ParseError> {
    let qualified = at.peek(1).is_some();
    let catalog = qualified && at.eat(&["CATALOG"]);
    if qualified && !catalog && !at.eat(&["SCHEMA"]) {
        at.eat(&["DATABASE"]);
    }
    let name = at.name("the name of a catalog or schema")?;
    at.finish("USE")?;
    Ok(Statement::Use { catalog, name })
}
