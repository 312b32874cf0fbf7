//! Arguments of `read_files`, `table_changes` and `table_changes_by_path`.

use std::collections::BTreeMap;

use sqlparser::tokenizer::Token;

use crate::ast::{Name, ParseError, ReadFiles, Span, TableRef};
use crate::errors::error;
use crate::tokens::Cursor;

/// `'path', name => value, …`.
pub(crate) fn read_files(at: &mut Cursor<'_>, span: Span) -> Result<ReadFiles, ParseError> {
    let mut path = None;
    let mut options = BTreeMap::new();
    while !at.at_end() {
        let place = at.here();
        let named = at.peek(1).is_some_and(|t| t.is_token(&Token::RArrow));
        if named {
            let name = at.identifier("the name of an option")?.value.to_ascii_lowercase();
            at.pos += 1;
            let value = value(at)?;
            if name == "path" {
                path = Some(value);
            } else if options.insert(name.clone(), value).is_some() {
                return Err(error(place, format!("option '{name}' is given twice"), None));
            }
        } else if path.is_none() && options.is_empty() {
            path = Some(at.string("the path of the files")?);
        } else {
            let hint = "options are written name => value".to_owned();
            return Err(at.expected("an option", Some(hint)));
        }
        if !at.eat_token(&Token::Comma) && !at.at_end() {
            return Err(at.expected("',' or ')' in read_files", None));
        }
    }
    let Some(path) = path else {
        let hint = "write read_files('folder', format => 'json')".to_owned();
        return Err(error(span, "read_files has no path".into(), Some(hint)));
    };
    Ok(ReadFiles { path, options, span })
}

/// A string, number, TRUE or FALSE as its text.
fn value(at: &mut Cursor<'_>) -> Result<String, ParseError> {
    let sign = if at.eat_token(&Token::Minus) { "-" } else { "" };
    let value = match at.peek(0) {
        Some(tok) => match (&tok.inner.token, tok.string()) {
            (_, Some(s)) if sign.is_empty() => s.to_owned(),
            (Token::Number(n, _), _) => format!("{sign}{n}"),
            (Token::Word(w), _) if sign.is_empty() && (tok.is("TRUE") || tok.is("FALSE")) => {
                w.value.to_ascii_lowercase()
            }
            _ => return Err(at.expected("a string, a number, TRUE or FALSE", None)),
        },
        None => return Err(at.expected("a value", None)),
    };
    at.pos += 1;
    Ok(value)
}

/// `'table', from[, to]`; the table may be ``delta.`/path` ``.
pub(crate) fn table_changes(at: &mut Cursor<'_>) -> Result<TableRef, ParseError> {
    let span = at.here();
    let table = match at.peek(0).and_then(|t| t.string()) {
        Some(text) => {
            at.pos += 1;
            let path = text.get(..7).filter(|start| start.eq_ignore_ascii_case("delta.`"));
            if let Some(path) = path.and_then(|_| text[7..].strip_suffix('`')) {
                let path = path.to_owned();
                let (from, to) = versions(at, "table_changes('delta.`/path`', from[, to])")?;
                return Ok(TableRef::ExternalChanges { path, from, to });
            }
            let mut parts: Vec<String> =
                text.split('.').map(|p| p.trim().trim_matches('`').to_owned()).collect();
            if parts.len() > 1 && parts[0].eq_ignore_ascii_case("live") {
                parts.remove(0);
            }
            Name { parts, span }
        }
        None => at.name("the name of a table in quotes")?,
    };
    let (from, to) = versions(at, "table_changes('table', from[, to])")?;
    Ok(TableRef::Changes { table, from, to })
}

/// `'/path', from[, to]`.
pub(crate) fn table_changes_by_path(at: &mut Cursor<'_>) -> Result<TableRef, ParseError> {
    let Some(path) = at.peek(0).and_then(|t| t.string()).map(str::to_owned) else {
        return Err(at.expected("the path of a Delta table in quotes", None));
    };
    at.pos += 1;
    let (from, to) = versions(at, "table_changes_by_path('/path', from[, to])")?;
    Ok(TableRef::ExternalChanges { path, from, to })
}

/// `, from[, to]` up to the end.
fn versions(at: &mut Cursor<'_>, call: &str) -> Result<(i64, Option<i64>), ParseError> {
    at.expect_token(&Token::Comma)?;
    let from = version(at)?;
    let to = if at.eat_token(&Token::Comma) { Some(version(at)?) } else { None };
    at.finish(call)?;
    Ok((from, to))
}

fn version(at: &mut Cursor<'_>) -> Result<i64, ParseError> {
    let number = match at.peek(0).map(|t| &t.inner.token) {
        Some(Token::Number(n, _)) => n.parse().ok(),
        _ => None,
    };
    let Some(number) = number else {
        let hint = "versions are listed by 'deltaic history TABLE'".to_owned();
        return Err(at.expected("a version number", Some(hint)));
    };
    at.pos += 1;
    Ok(number)
}
