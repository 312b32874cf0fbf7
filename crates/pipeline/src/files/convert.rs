//! A column of texts as a column of a type. What cannot be converted becomes NULL and is reported.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, Date32Array, StringArray, StringBuilder, TimestampMicrosecondArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, TimeUnit};
use arrow::util::display::FormatOptions;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeZone};
use deltaic_batch::{Error, Result};

use super::options::FileOptions;

/// The column, and the rows whose text does not fit the type (ascending).
pub(super) fn convert(
    texts: &StringArray,
    to: &DataType,
    options: &FileOptions,
) -> Result<(ArrayRef, Vec<usize>)> {
    match to {
        DataType::Date32 if options.date_format.is_some() => Ok(formatted_dates(texts, options)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) if options.timestamp_format.is_some() => {
            Ok(formatted_timestamps(texts, zone.as_deref(), options))
        }
        _ => by_cast(texts, to),
    }
}

fn by_cast(texts: &StringArray, to: &DataType) -> Result<(ArrayRef, Vec<usize>)> {
    let array = safe_cast(texts, to)?;
    if array.null_count() == texts.null_count() {
        return Ok((array, Vec::new()));
    }
    let failed: Vec<usize> =
        (0..texts.len()).filter(|&i| texts.is_valid(i) && array.is_null(i)).collect();
    // The kernels know fewer spellings than people write: try again with plainer ones.
    let mut plainer = StringBuilder::new();
    let mut next = failed.iter().copied().peekable();
    for i in 0..texts.len() {
        if texts.is_null(i) {
            plainer.append_null();
        } else if next.next_if_eq(&i).is_some() {
            plainer.append_option(plainer_text(texts.value(i), to));
        } else {
            plainer.append_value(texts.value(i));
        }
    }
    let array = safe_cast(&plainer.finish(), to)?;
    let bad = failed.into_iter().filter(|&i| array.is_null(i)).collect();
    Ok((array, bad))
}

fn safe_cast(texts: &StringArray, to: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: true, format_options: FormatOptions::default() };
    cast_with_options(texts, to, &options).map_err(|e| {
        Error::user("FILE_COLUMN_TYPE", format!("a text cannot be read as {to}: {e}"))
            .hint("declare the column as STRING and convert it in the query")
    })
}

/// The same value in a spelling that the cast kernels know, if there is one.
fn plainer_text(text: &str, to: &DataType) -> Option<String> {
    let trimmed = text.trim();
    match to {
        t if t.is_integer() => integer_text(trimmed),
        DataType::Decimal128(..) | DataType::Decimal256(..) => {
            expand_exponent(trimmed).or_else(|| Some(trimmed.to_string()))
        }
        _ => Some(trimmed.to_string()),
    }
}

/// `1.2e6` and `7.0` are integers too, if nothing is lost.
fn integer_text(text: &str) -> Option<String> {
    let expanded = expand_exponent(text)?;
    match expanded.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|b| b == b'0') => Some(whole.to_string()),
        Some(_) => None,
        None => Some(expanded),
    }
}

/// A decimal number without exponent and leading plus: `-1.25e-1` is `-0.125`.
fn expand_exponent(text: &str) -> Option<String> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(i) => (&rest[..i], rest[i + 1..].parse::<i32>().ok()?),
        None => (rest, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let sound = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !sound || exponent.unsigned_abs() > 400 {
        return None;
    }
    let point = i32::try_from(whole.len()).ok()? + exponent;
    let length = i32::try_from(digits.len()).ok()?;
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or(0));
    let number = if point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else if point >= length {
        format!("{digits}{}", zeros(point - length))
    } else {
        let at = usize::try_from(point).ok()?;
        format!("{}.{}", &digits[..at], &digits[at..])
    };
    Some(format!("{sign}{number}"))
}

fn formatted_dates(texts: &StringArray, options: &FileOptions) -> (ArrayRef, Vec<usize>) {
    let format = options.date_format.as_deref().unwrap_or("%Y-%m-%d");
    let mut bad = Vec::new();
    let epoch = NaiveDate::default();
    let array: Date32Array = texts
        .iter()
        .enumerate()
        .map(|(i, text)| {
            let text = text?;
            let date = NaiveDate::parse_from_str(text.trim(), format).ok();
            let days = date.and_then(|d| i32::try_from((d - epoch).num_days()).ok());
            if days.is_none() {
                bad.push(i);
            }
            days
        })
        .collect();
    (Arc::new(array), bad)
}

fn formatted_timestamps(
    texts: &StringArray,
    zone: Option<&str>,
    options: &FileOptions,
) -> (ArrayRef, Vec<usize>) {
    let format = options.timestamp_format.as_deref().unwrap_or("%Y-%m-%d %H:%M:%S%.f");
    let mut bad = Vec::new();
    let tz: Option<Tz> = zone.and_then(|zone| zone.parse().ok());
    let array: TimestampMicrosecondArray = texts
        .iter()
        .enumerate()
        .map(|(i, text)| {
            let text = text?.trim();
            let micros = DateTime::parse_from_str(text, format)
                .map(|t| t.timestamp_micros())
                .ok()
                .or_else(|| local_micros(local_time(text, format)?, tz));
            if micros.is_none() {
                bad.push(i);
            }
            micros
        })
        .collect();
    let array = match zone {
        Some(zone) => array.with_timezone(zone),
        None => array,
    };
    (Arc::new(array), bad)
}

fn local_time(text: &str, format: &str) -> Option<NaiveDateTime> {
    let date = || NaiveDate::parse_from_str(text, format).ok().map(|d| d.and_time(NaiveTime::MIN));
    NaiveDateTime::parse_from_str(text, format).ok().or_else(date)
}

/// A time without zone is one of the column's zone; at a clock change the earlier one.
fn local_micros(time: NaiveDateTime, zone: Option<Tz>) -> Option<i64> {
    match zone {
        None => Some(time.and_utc().timestamp_micros()),
        Some(zone) => zone.from_local_datetime(&time).earliest().map(|t| t.timestamp_micros()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::cast::AsArray;
    use arrow::array::{Decimal128Array, Int64Array};

    fn options() -> FileOptions {
        FileOptions::plain("x.csv", super::super::options::Format::Csv)
    }

    #[test]
    fn integers_in_other_spellings_are_exact() {
        let texts = StringArray::from(vec![
            Some("9007199254740993"),
            Some("1.2e6"),
            Some(" 7 "),
            Some("1.5"),
            Some("x"),
            None,
        ]);
        let (array, bad) = convert(&texts, &DataType::Int64, &options()).unwrap();
        let expected = Int64Array::from(vec![
            Some(9007199254740993),
            Some(1200000),
            Some(7),
            None,
            None,
            None,
        ]);
        assert_eq!(array.as_primitive::<arrow::datatypes::Int64Type>(), &expected);
        assert_eq!(bad, [3, 4]);
    }

    #[test]
    fn decimals_keep_all_digits() {
        let texts =
            StringArray::from(vec!["12345678901234567890.123456789012345678", "1.1e0", "-2.5E-1"]);
        let (array, bad) = convert(&texts, &DataType::Decimal128(38, 18), &options()).unwrap();
        let array: &Decimal128Array = array.as_primitive();
        assert_eq!(array.value_as_string(0), "12345678901234567890.123456789012345678");
        assert_eq!(array.value_as_string(1), "1.100000000000000000");
        assert_eq!(array.value_as_string(2), "-0.250000000000000000");
        assert!(bad.is_empty());
    }

    #[test]
    fn patterns_of_dates_and_timestamps() {
        let mut options = options();
        options.date_format = Some("%d/%m/%Y".into());
        options.timestamp_format = Some("%d/%m/%Y %H:%M".into());
        let texts = StringArray::from(vec!["31/01/2024", "2024-01-31"]);
        let (array, bad) = convert(&texts, &DataType::Date32, &options).unwrap();
        assert_eq!(array.as_primitive::<arrow::datatypes::Date32Type>().value(0), 19753);
        assert_eq!(bad, [1]);
        let texts = StringArray::from(vec!["01/01/1970 00:01"]);
        let micros = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let (array, bad) = convert(&texts, &micros, &options).unwrap();
        assert!(bad.is_empty());
        assert_eq!(array.data_type(), &micros);
    }
}
