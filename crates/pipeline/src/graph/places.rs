//! Places and objects of errors.

use deltaic_batch::{Error, Location};
use deltaic_sql::{Query, Span, Spanned};

/// The place of a span in the file of this path.
pub(super) fn location(file: &str, span: Span) -> Location {
    Location { file: file.to_owned(), line: span.line, column: span.column }
}

/// The same error at another place and about this dataset.
pub(super) fn relocate(error: &Error, location: Location, object: &str) -> Error {
    let moved = Error::new(error.class(), error.code(), error.message());
    let moved = moved.object(object).at(location);
    match error.get_hint() {
        Some(hint) => moved.hint(hint),
        None => moved,
    }
}

/// An error about what a query reads, which the message names: the error is about the dataset.
pub(super) fn of_input(error: &Error, location: Location, object: &str) -> Error {
    let Some(input) = error.get_object().filter(|input| *input != object) else {
        return relocate(error, location, object);
    };
    let message = format!("'{input}': {}", error.message());
    let named = Error::new(error.class(), error.code(), message);
    let named = match error.get_hint() {
        Some(hint) => named.hint(hint),
        None => named,
    };
    relocate(&named, location, object)
}

/// An error about a query's text, at its place in the file.
pub(super) fn in_query(error: &Error, query: &Query, file: &str, object: &str) -> Error {
    let span = error.location().map_or(query.span, |at| query.locate(at.line, at.column));
    relocate(error, location(file, span), object)
}

/// An error about an expression's text, at its place in the file.
pub(super) fn in_text(error: &Error, text: &Spanned<String>, file: &str, object: &str) -> Error {
    let mut at = location(file, text.span);
    if let Some(within) = error.location() {
        at.column = if within.line <= 1 {
            at.column + within.column.saturating_sub(1)
        } else {
            within.column
        };
        at.line += within.line.saturating_sub(1);
    }
    relocate(error, at, object)
}

/// Errors are told in the order of the text.
pub(super) fn sort_key(error: &Error) -> (String, u64, u64) {
    error.location().map_or_else(Default::default, |l| (l.file.clone(), l.line, l.column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_within_an_expression() {
        let span = Span { start: 0, end: 0, line: 4, column: 10 };
        let text = Spanned { value: "a +\n  b".to_owned(), span };
        let at = |line, column| {
            let at = Location { file: String::new(), line, column };
            let error = in_text(&Error::user("X", "m").at(at).hint("h"), &text, "f.sql", "o");
            assert_eq!((error.get_object(), error.get_hint()), (Some("o"), Some("h")));
            error.location().unwrap().to_string()
        };
        assert_eq!(at(1, 3), "f.sql:4:12");
        assert_eq!(at(2, 3), "f.sql:5:3");
    }
}
