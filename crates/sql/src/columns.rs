//! The list in parentheses after a dataset's name: columns and expectations.

use sqlparser::tokenizer::Token;

use crate::ast::{Column, Expectation, OnViolation, ParseError, Spanned};
use crate::errors::{error, unknown_clause};
use crate::query::expression;
use crate::tokens::{Cursor, Tok};

/// `(col type [NOT NULL] [COMMENT s], …, CONSTRAINT c EXPECT (cond) [ON VIOLATION …], …)`.
pub(crate) fn column_list(
    at: &mut Cursor<'_>,
) -> Result<(Vec<Column>, Vec<Expectation>), ParseError> {
    let mut list = at.parenthesised("a list of columns and constraints")?;
    let (mut columns, mut expectations) = (Vec::new(), Vec::new());
    while !list.at_end() {
        if list.eat(&["CONSTRAINT"]) {
            expectations.push(expectation(&mut list)?);
        } else {
            columns.push(column(&mut list)?);
        }
        if !list.eat_token(&Token::Comma) && !list.at_end() {
            return Err(list.expected("',' or ')' in the list of columns", None));
        }
    }
    Ok((columns, expectations))
}

/// `name EXPECT (condition) [ON VIOLATION …]`, after `CONSTRAINT`.
fn expectation(at: &mut Cursor<'_>) -> Result<Expectation, ParseError> {
    let name = at.identifier("the name of the constraint")?;
    if !at.eat(&["EXPECT"]) {
        let hint = "a dataset knows only CONSTRAINT name EXPECT (condition); primary and foreign \
                    keys are not supported";
        return Err(at.expected("EXPECT", Some(hint.into())));
    }
    let mut part = at.parenthesised("the condition that every row should meet")?;
    let condition = Spanned { value: part.source().to_owned(), span: part.span() };
    expression(&mut part, "the condition")?;
    let action = if at.eat(&["ON"]) {
        at.expect(&["VIOLATION"])?;
        violation(at)?
    } else {
        OnViolation::Warn
    };
    Ok(Expectation { name, condition, action })
}

fn violation(at: &mut Cursor<'_>) -> Result<OnViolation, ParseError> {
    if at.eat(&["DROP", "ROW"]) {
        return Ok(OnViolation::DropRow);
    }
    if at.eat(&["FAIL", "UPDATE"]) {
        return Ok(OnViolation::FailUpdate);
    }
    if at.eat(&["QUARANTINE"]) {
        return Ok(OnViolation::Quarantine);
    }
    Err(unknown_clause(at, "ON VIOLATION", &["DROP ROW", "FAIL UPDATE", "QUARANTINE"]))
}

/// `name [type] [NOT NULL] [COMMENT s]`. Without a type (views), the type is empty.
fn column(at: &mut Cursor<'_>) -> Result<Column, ParseError> {
    let name = at.identifier("a column name or CONSTRAINT")?;
    let data_type = data_type(at)?;
    let mut column = Column { name, data_type, not_null: false, comment: None };
    while !at.at_end() && !at.sees_token(&Token::Comma) {
        if at.eat(&["NOT", "NULL"]) {
            column.not_null = true;
        } else if at.eat(&["COMMENT"]) {
            column.comment = Some(at.string("a comment")?);
        } else if !at.eat(&["NULL"]) {
            let known = ["NOT NULL", "COMMENT"];
            let mut e = unknown_clause(at, &format!("column '{}'", column.name.value), &known);
            if at.sees(&["CONSTRAINT"]) {
                e.hint = Some("write a ',' before CONSTRAINT".into());
            }
            return Err(e);
        }
    }
    Ok(column)
}

/// Text of a type: `DECIMAL(10, 2)`, `ARRAY<STRING>`, `STRUCT<a: INT, b: MAP<STRING, INT>>`, …
fn data_type(at: &mut Cursor<'_>) -> Result<String, ParseError> {
    let start = at.pos;
    let mut open: Vec<(Token, crate::ast::Span)> = Vec::new();
    while let Some(tok) = at.peek(0) {
        if open.is_empty() && ends_type(at, at.pos > start) {
            break;
        }
        match &tok.inner.token {
            Token::LParen | Token::Lt => open.push((tok.inner.token.clone(), tok.span)),
            Token::RParen | Token::Gt => {
                open.pop();
            }
            Token::ShiftRight => {
                open.pop();
                open.pop();
            }
            _ => {}
        }
        at.pos += 1;
    }
    if let Some((token, span)) = open.first() {
        return Err(error(*span, format!("this '{token}' of a type is never closed"), None));
    }
    Ok(Cursor::new(at.text, &at.toks[start..at.pos], at.end).source().to_owned())
}

fn ends_type(at: &Cursor<'_>, begun: bool) -> bool {
    const AFTER: &[&str] = &["NOT", "NULL", "COMMENT", "CONSTRAINT", "PRIMARY", "DEFAULT"];
    const TWO_WORDS: &[&str] =
        &["PRECISION", "WITH", "WITHOUT", "TIME", "ZONE", "UNSIGNED", "LOCAL"];
    at.sees_token(&Token::Comma)
        || AFTER.iter().any(|w| at.sees(&[w]))
        || (begun
            && at.peek(0).and_then(Tok::word).is_some()
            && !TWO_WORDS.iter().any(|w| at.sees(&[w])))
}
