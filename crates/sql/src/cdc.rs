//! The clauses of AUTO CDC, in any order.

use sqlparser::tokenizer::Token;

use crate::ast::{CdcSource, CdcSpec, ColumnSelection, ParseError, ScdType, Span, Spanned};
use crate::errors::{error, unknown_clause};
use crate::query::{Placeholders, expression, parenthesised_query, table_query};
use crate::tokens::{Cursor, Tok};

/// `AUTO CDC` or `APPLY CHANGES`.
pub(crate) fn head(at: &mut Cursor<'_>) -> Result<(), ParseError> {
    if at.eat(&["APPLY", "CHANGES"]) {
        return Ok(());
    }
    at.expect(&["AUTO", "CDC"])
}

const CLAUSES: &[&str] = &[
    "FROM",
    "KEYS",
    "SEQUENCE BY",
    "APPLY AS DELETE WHEN",
    "APPLY AS TRUNCATE WHEN",
    "IGNORE NULL UPDATES",
    "COLUMNS",
    "STORED AS SCD TYPE",
    "TRACK HISTORY ON",
];

/// What has been read so far; each clause at most once.
#[derive(Debug, Default)]
struct Clauses {
    source: Option<CdcSource>,
    keys: Option<Vec<Spanned<String>>>,
    sequence_by: Option<Spanned<String>>,
    delete_when: Option<Spanned<String>>,
    truncate_when: Option<Spanned<String>>,
    ignore_null_updates: Option<ColumnSelection>,
    columns: Option<ColumnSelection>,
    scd_type: Option<ScdType>,
    track_history: Option<ColumnSelection>,
}

/// All clauses up to the end of the statement.
pub(crate) fn clauses(
    at: &mut Cursor<'_>,
    placeholders: &mut Placeholders,
) -> Result<CdcSpec, ParseError> {
    let start = at.here();
    let mut c = Clauses::default();
    while !at.at_end() {
        clause(at, &mut c, placeholders)?;
    }
    let span = Span { end: at.toks.last().map_or(start.end, |t| t.span.end), ..start };
    let Some(source) = c.source else {
        let hint = "write FROM STREAM(table) or FROM SNAPSHOT table".to_owned();
        let message = "AUTO CDC has no source (AUTOCDC_MISSING_SOURCE)".to_owned();
        return Err(error(start, message, Some(hint)));
    };
    let Some(keys) = c.keys else {
        let hint = "write KEYS (column, …)".to_owned();
        return Err(error(start, "AUTO CDC has no KEYS (AUTOCDC_EMPTY_KEYS)".into(), Some(hint)));
    };
    let track_history = c.track_history.unwrap_or_default();
    let scd_type = c.scd_type.unwrap_or(ScdType::Type1);
    if scd_type == ScdType::Type1 && track_history != ColumnSelection::All {
        let message = "TRACK HISTORY needs history (AUTOCDC_TRACK_HISTORY_REQUIRES_SCD2)";
        let hint = "write STORED AS SCD TYPE 2".to_owned();
        return Err(error(start, message.into(), Some(hint)));
    }
    Ok(CdcSpec {
        source,
        keys,
        sequence_by: c.sequence_by,
        delete_when: c.delete_when,
        truncate_when: c.truncate_when,
        ignore_null_updates: c.ignore_null_updates,
        columns: c.columns.unwrap_or_default(),
        scd_type,
        track_history,
        span,
    })
}

fn clause(
    at: &mut Cursor<'_>,
    c: &mut Clauses,
    placeholders: &mut Placeholders,
) -> Result<(), ParseError> {
    let place = at.here();
    if at.eat(&["FROM"]) {
        let source = source(at, placeholders)?;
        once(&mut c.source, source, "FROM", place)
    } else if at.eat(&["KEYS"]) {
        let keys = identifiers(at)?;
        if keys.is_empty() {
            let message = "KEYS is empty (AUTOCDC_EMPTY_KEYS)".to_owned();
            return Err(error(place, message, Some("name at least one column".into())));
        }
        once(&mut c.keys, keys, "KEYS", place)
    } else if at.eat(&["SEQUENCE", "BY"]) {
        let value = condition(at, "SEQUENCE BY")?;
        once(&mut c.sequence_by, value, "SEQUENCE BY", place)
    } else if at.eat(&["APPLY", "AS", "DELETE", "WHEN"]) {
        let value = condition(at, "APPLY AS DELETE WHEN")?;
        once(&mut c.delete_when, value, "APPLY AS DELETE", place)
    } else if at.eat(&["APPLY", "AS", "TRUNCATE", "WHEN"]) {
        let value = condition(at, "APPLY AS TRUNCATE WHEN")?;
        once(&mut c.truncate_when, value, "APPLY AS TRUNCATE", place)
    } else if at.eat(&["IGNORE", "NULL", "UPDATES"]) {
        let value = if at.eat(&["ON"]) { selection(at)? } else { ColumnSelection::All };
        once(&mut c.ignore_null_updates, value, "IGNORE NULL UPDATES", place)
    } else if at.eat(&["COLUMNS"]) {
        let value = selection(at)?;
        once(&mut c.columns, value, "COLUMNS", place)
    } else if at.eat(&["STORED", "AS", "SCD", "TYPE"]) {
        let value = scd_type(at)?;
        once(&mut c.scd_type, value, "STORED AS SCD TYPE", place)
    } else if at.eat(&["TRACK", "HISTORY", "ON"]) {
        let value = selection(at)?;
        once(&mut c.track_history, value, "TRACK HISTORY ON", place)
    } else {
        Err(unknown_clause(at, "AUTO CDC", CLAUSES))
    }
}

fn once<T>(slot: &mut Option<T>, value: T, clause: &str, place: Span) -> Result<(), ParseError> {
    if slot.replace(value).is_some() {
        return Err(error(place, format!("{clause} is given twice"), None));
    }
    Ok(())
}

/// A clause starts here (used to find where an expression ends).
fn starts_clause(at: &Cursor<'_>) -> bool {
    const HEADS: &[&[&str]] = &[
        &["FROM"],
        &["KEYS"],
        &["SEQUENCE", "BY"],
        &["APPLY", "AS"],
        &["IGNORE", "NULL", "UPDATES"],
        &["STORED", "AS"],
        &["TRACK", "HISTORY"],
    ];
    let columns = at.sees(&["COLUMNS"])
        && at.peek(1).is_some_and(|t| t.is_token(&Token::LParen) || t.is_token(&Token::Mul));
    // `IS [NOT] DISTINCT FROM` goes on.
    let distinct = at.pos > 0 && at.sees(&["FROM"]) && at.toks[at.pos - 1].is("DISTINCT");
    !distinct && (columns || HEADS.iter().any(|h| at.sees(h)))
}

fn condition(at: &mut Cursor<'_>, clause: &str) -> Result<Spanned<String>, ParseError> {
    let mut part = at.until(starts_clause);
    let value = Spanned { value: part.source().to_owned(), span: part.span() };
    expression(&mut part, clause)?;
    Ok(value)
}

/// `{STREAM … | (subquery)}` or `SNAPSHOT {table | read_files(…) | (subquery)}`, after `FROM`.
fn source(at: &mut Cursor<'_>, placeholders: &mut Placeholders) -> Result<CdcSource, ParseError> {
    let snapshot = at.sees(&["SNAPSHOT"])
        && at.peek(1).is_some_and(|t| t.identifier().is_some() || t.is_token(&Token::LParen));
    if snapshot {
        at.pos += 1;
    }
    let mut part = at.until(starts_clause);
    let subquery = part.sees_token(&Token::LParen);
    let query = if subquery {
        parenthesised_query(&mut part, placeholders)?
    } else {
        table_query(&mut part, placeholders)?
    };
    let streaming = query.sources.iter().any(|s| s.streaming);
    if snapshot {
        if streaming {
            let hint = "a snapshot is read whole: leave STREAM out".to_owned();
            return Err(error(query.span, "FROM SNAPSHOT reads a stream".into(), Some(hint)));
        }
        return Ok(CdcSource::Snapshot(query));
    }
    if !subquery && !streaming {
        let message = format!("AUTO CDC reads '{}' as a batch", query.original);
        let hint = format!("write FROM STREAM({}), or FROM SNAPSHOT", query.original);
        return Err(error(query.span, message, Some(hint)));
    }
    Ok(CdcSource::Events(query))
}

fn scd_type(at: &mut Cursor<'_>) -> Result<ScdType, ParseError> {
    let scd_type = match at.peek(0).map(|t| &t.inner.token) {
        Some(Token::Number(n, _)) if n == "1" => ScdType::Type1,
        Some(Token::Number(n, _)) if n == "2" => ScdType::Type2,
        _ => return Err(at.expected("1 or 2", None)),
    };
    at.pos += 1;
    Ok(scd_type)
}

/// `(a, b)`, `a, b`, `* EXCEPT (a, b)`.
fn selection(at: &mut Cursor<'_>) -> Result<ColumnSelection, ParseError> {
    if at.eat_token(&Token::Mul) {
        if at.eat(&["EXCEPT"]) {
            return Ok(ColumnSelection::Except(identifiers(at)?));
        }
        return Ok(ColumnSelection::All);
    }
    Ok(ColumnSelection::Only(identifiers(at)?))
}

/// A list of names with or without parentheses.
pub(crate) fn identifiers(at: &mut Cursor<'_>) -> Result<Vec<Spanned<String>>, ParseError> {
    let mut list = if at.sees_token(&Token::LParen) {
        at.parenthesised("a list of columns")?
    } else {
        let start = at.pos;
        while at.peek(0).is_some_and(|t| t.identifier().is_some()) {
            at.pos += 1;
            if !at.eat_token(&Token::Comma) {
                break;
            }
        }
        if at.pos == start {
            return Err(at.expected("a list of columns", None));
        }
        Cursor::new(at.text, &at.toks[start..at.pos], at.here())
    };
    let mut names: Vec<Spanned<String>> = Vec::new();
    while !list.at_end() {
        let name = list.identifier("a column name (AUTOCDC_NON_COLUMN_IDENTIFIER)")?;
        if list.sees_token(&Token::Period) {
            let message = "a column name has one part (AUTOCDC_MULTIPART_COLUMN_IDENTIFIER)";
            return Err(error(name.span, message.into(), None));
        }
        if names.iter().any(|n| n.value.eq_ignore_ascii_case(&name.value)) {
            return Err(error(name.span, format!("column '{}' is listed twice", name.value), None));
        }
        names.push(name);
        if !list.eat_token(&Token::Comma) && !list.at_end() {
            let found = list.peek(0).and_then(Tok::word).is_none();
            let hint = found.then(|| "columns only, no expressions".to_owned());
            return Err(list.expected("',' or ')'", hint));
        }
    }
    Ok(names)
}
