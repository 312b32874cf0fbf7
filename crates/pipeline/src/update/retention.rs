//! `deltaic.cdc.tombstoneRetention`: how late a change event may be, on the scale of its sequence.

use arrow::datatypes::{DataType, TimeUnit};
use deltaic_batch::{Error, Result};

/// The configuration key.
pub(crate) const RETENTION: &str = "deltaic.cdc.tombstoneRetention";

/// Units of time, by their names without `s`, in seconds.
const UNITS: [(&str, u64); 5] =
    [("second", 1), ("minute", 60), ("hour", 3_600), ("day", 86_400), ("week", 604_800)];

/// A retention in units of a sequence's type: `100` for numbers, `7 days` for dates and timestamps.
pub(crate) fn parse(text: &str, sequence: &DataType) -> Result<u64> {
    let words: Vec<String> =
        text.split_whitespace().map(|word| word.trim_matches('\'').to_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let words = words.strip_prefix(&["interval"]).unwrap_or(&words);
    let number = |word: &str| word.parse::<u64>().ok();
    let seconds = |count: &str, unit: &str| {
        let unit = unit.strip_suffix('s').unwrap_or(unit);
        let (_, length) = UNITS.iter().find(|(name, _)| *name == unit)?;
        number(count)?.checked_mul(*length)
    };
    let per_second = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    let found = match (sequence, words) {
        (DataType::Date32, [count, unit]) => seconds(count, unit).map(|seconds| seconds / 86_400),
        (DataType::Timestamp(scale, _), [count, unit]) => {
            seconds(count, unit).and_then(|seconds| seconds.checked_mul(per_second(scale)))
        }
        (integer, [count]) if integer.is_integer() => number(count),
        _ => None,
    };
    found.ok_or_else(|| {
        let message = format!("{RETENTION} is '{text}', and the sequence {sequence}");
        let hint = "write a number for a sequence of whole numbers, and a time such as '7 days' for \
                    dates and timestamps";
        Error::user("CONFIGURATION_VALUE", message).hint(hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_the_scale_of_the_sequence() {
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        assert_eq!(parse("100", &DataType::Int64).unwrap(), 100);
        assert_eq!(parse("7 days", &DataType::Date32).unwrap(), 7);
        assert_eq!(parse("INTERVAL '2' HOURS", &timestamp).unwrap(), 7_200_000_000);
        assert_eq!(parse("1 week", &timestamp).unwrap(), 604_800_000_000);
        for (text, sequence) in [
            ("7 days", DataType::Int64),
            ("7", timestamp),
            ("x", DataType::Int64),
            ("1", DataType::Utf8),
        ] {
            assert_eq!(parse(text, &sequence).unwrap_err().code(), "CONFIGURATION_VALUE", "{text}");
        }
    }
}
