//! Types that nobody declared: from all values of a column, by a small lattice.

use serde::{Deserialize, Serialize};

use super::csv::CsvText;
use super::json::Json;

/// What is known of a column's type. Stored with a flow's progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Inferred {
    /// No row seen yet: the first one decides, also in a later update.
    Unknown,
    Boolean,
    Integer,
    /// An integer of more than 64 bits.
    Wide,
    Double,
    Date,
    Timestamp,
    Struct(Vec<(String, Inferred)>),
    List(Box<Inferred>),
    Text,
}

impl Inferred {
    /// The least type that holds the values of both.
    pub(super) fn merge(self, other: Self) -> Self {
        use Inferred as T;
        match (self, other) {
            (a, b) if a == b => a,
            (T::Unknown, b) => b,
            (a, T::Unknown) => a,
            (T::Integer, T::Wide) | (T::Wide, T::Integer) => T::Wide,
            (T::Integer | T::Wide, T::Double) | (T::Double, T::Integer | T::Wide) => T::Double,
            (T::Date, T::Timestamp) | (T::Timestamp, T::Date) => T::Timestamp,
            (T::List(a), T::List(b)) => T::List(Box::new(a.merge(*b))),
            (T::Struct(a), T::Struct(b)) => T::Struct(merge_columns(a, b)),
            _ => T::Text,
        }
    }

    /// The type when there are rows: a column of nothing but NULL is text from then on, as in the table
    /// that has its rows.
    pub(super) fn settled(self) -> Self {
        match self {
            Inferred::Unknown => Inferred::Text,
            Inferred::List(item) => Inferred::List(Box::new(item.settled())),
            Inferred::Struct(fields) => {
                Inferred::Struct(fields.into_iter().map(|(name, t)| (name, t.settled())).collect())
            }
            known => known,
        }
    }

    /// The type in the words of a column definition.
    pub(super) fn ddl(&self) -> String {
        match self {
            Inferred::Boolean => "BOOLEAN".into(),
            Inferred::Integer => "BIGINT".into(),
            Inferred::Wide => "DECIMAL(38,0)".into(),
            Inferred::Double => "DOUBLE".into(),
            Inferred::Date => "DATE".into(),
            Inferred::Timestamp => "TIMESTAMP".into(),
            Inferred::List(item) => format!("ARRAY<{}>", item.ddl()),
            Inferred::Struct(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, t)| format!("`{}`: {}", name.replace('`', "``"), t.ddl()))
                    .collect();
                format!("STRUCT<{}>", fields.join(", "))
            }
            Inferred::Unknown | Inferred::Text => "STRING".into(),
        }
    }
}

/// Columns of both by name without regard to case; new ones come last, the first spelling stays.
pub(super) fn merge_columns(
    mut known: Vec<(String, Inferred)>,
    new: Vec<(String, Inferred)>,
) -> Vec<(String, Inferred)> {
    for (name, inferred) in new {
        match known.iter_mut().find(|(k, _)| k.eq_ignore_ascii_case(&name)) {
            Some((_, t)) => {
                let before = std::mem::replace(t, Inferred::Unknown);
                *t = before.merge(inferred);
            }
            None => known.push((name, inferred)),
        }
    }
    known
}

/// Types of a CSV file's columns.
pub(super) fn csv_columns(text: &CsvText<'_>, infer_types: bool) -> Vec<(String, Inferred)> {
    let mut out = Vec::new();
    for (i, name) in text.names().into_iter().enumerate() {
        let mut inferred = Inferred::Unknown;
        for value in text.columns.get(i).into_iter().flatten().flatten() {
            if inferred == Inferred::Text {
                break;
            }
            let of_value = if infer_types { of_text(value) } else { Inferred::Text };
            inferred = inferred.merge(of_value);
        }
        out.push((name, inferred));
    }
    out
}

fn of_text(text: &str) -> Inferred {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        // A leading zero means something (postal codes): keep the text.
        return if digits.len() > 1 && digits.starts_with('0') {
            Inferred::Text
        } else {
            integer(text)
        };
    }
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return Inferred::Boolean;
    }
    let number_like = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || matches!(digits, "NaN" | "Infinity" | "Inf");
    if number_like && text.parse::<f64>().is_ok() {
        return Inferred::Double;
    }
    if chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok() && text.len() == 10 {
        return Inferred::Date;
    }
    let timestamp_like = text.len() >= 16 && text.as_bytes().get(4) == Some(&b'-');
    if timestamp_like
        && arrow::compute::kernels::cast_utils::string_to_timestamp_nanos(text).is_ok()
    {
        return Inferred::Timestamp;
    }
    Inferred::Text
}

fn integer(text: &str) -> Inferred {
    match text.parse::<i64>() {
        Ok(_) => Inferred::Integer,
        Err(_) if text.len() <= 38 => Inferred::Wide,
        Err(_) => Inferred::Double,
    }
}

/// Type of a JSON value.
pub(super) fn of_json(value: &Json<'_>) -> Inferred {
    match value {
        Json::Null => Inferred::Unknown,
        Json::Bool(_) => Inferred::Boolean,
        Json::Number(n) if n.contains(['.', 'e', 'E']) => Inferred::Double,
        Json::Number(n) => integer(n),
        Json::String(_) => Inferred::Text,
        Json::Array(items, _) => Inferred::List(Box::new(
            items.iter().map(of_json).fold(Inferred::Unknown, Inferred::merge),
        )),
        Json::Object(fields, _) => Inferred::Struct(object_columns(fields)),
    }
}

/// Types of an object's fields.
pub(super) fn object_columns(
    fields: &[(std::borrow::Cow<'_, str>, Json<'_>)],
) -> Vec<(String, Inferred)> {
    let columns = fields.iter().map(|(name, value)| (name.to_string(), of_json(value))).collect();
    merge_columns(Vec::new(), columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_narrowest_type_that_loses_nothing() {
        for (text, expected) in [
            ("12", Inferred::Integer),
            ("-0", Inferred::Integer),
            ("007", Inferred::Text),
            ("123456789012345678901", Inferred::Wide),
            ("1.5e3", Inferred::Double),
            ("NaN", Inferred::Double),
            ("nano", Inferred::Text),
            ("2024-01-31", Inferred::Date),
            ("2024-13-31", Inferred::Text),
            ("2024-01-31T10:00:00Z", Inferred::Timestamp),
            ("TRUE", Inferred::Boolean),
            ("inf", Inferred::Text),
        ] {
            assert_eq!(of_text(text), expected, "{text}");
        }
    }

    #[test]
    fn structs_merge_by_name_without_case() {
        let a = of_json(&Json::parse(r#"{"Id": 1, "x": null}"#).unwrap());
        let b = of_json(&Json::parse(r#"{"id": 2.5, "X": [1]}"#).unwrap());
        assert_eq!(a.merge(b).ddl(), "STRUCT<`Id`: DOUBLE, `x`: ARRAY<BIGINT>>");
    }
}
