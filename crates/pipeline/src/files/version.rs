//! Versions of snapshots, from the paths of their files: `versionPattern => 'day=([0-9-]+)'`.

use arrow::datatypes::{DataType, TimeUnit};
use chrono::{DateTime, NaiveDate, NaiveDateTime};
use deltaic_batch::{Error, Result};
use regex::Regex;

/// What tells the version of a snapshot in files.
#[derive(Debug, Clone)]
pub enum FileVersions {
    /// `versionPattern`.
    Pattern(VersionPattern),
    /// `versionColumn`: the name of a column.
    Column(String),
}

/// A pattern whose first group is a version, and the type of all versions.
#[derive(Debug, Clone)]
pub struct VersionPattern {
    pattern: Regex,
    data_type: DataType,
}

/// Forms of a date in a path.
const DATES: [&str; 3] = ["%Y-%m-%d", "%Y_%m_%d", "%Y/%m/%d"];
/// Forms of a timestamp in a path, without a zone.
const TIMESTAMPS: [&str; 6] = [
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H-%M-%S",
    "%Y-%m-%d_%H-%M-%S",
    "%Y%m%dT%H%M%S",
    "%Y-%m-%dT%H:%M",
];

impl VersionPattern {
    /// Versions are numbers if all paths have one, else dates, else timestamps; without paths they
    /// are numbers.
    pub(crate) fn infer<'p>(
        pattern: &str,
        paths: impl Iterator<Item = &'p str> + Clone,
    ) -> Result<Self> {
        let wrong = |why: String| {
            Error::user("SNAPSHOT_VERSION", format!("versionPattern '{pattern}' {why}")).hint(
                "the first group is the version: 'v([0-9]+)', 'day=([0-9]{4}-[0-9]{2}-[0-9]{2})'",
            )
        };
        let pattern = Regex::new(pattern)
            .map_err(|e| wrong(format!("is no regular expression: {}", last_line(&e))))?;
        if pattern.captures_len() < 2 {
            return Err(wrong("has no group in parentheses".into()));
        }
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        for data_type in [DataType::Int64, DataType::Date32, timestamp] {
            let this = Self { pattern: pattern.clone(), data_type };
            if paths.clone().all(|path| this.version(path).is_ok()) {
                return Ok(this);
            }
        }
        let numbers = Self { pattern, data_type: DataType::Int64 };
        for path in paths {
            if numbers.text(path).is_none() {
                numbers.version(path)?;
            }
        }
        Err(wrong("finds versions that are not all numbers, all dates or all timestamps".into()))
    }

    /// Type of the versions.
    pub(crate) fn data_type(&self) -> &DataType {
        &self.data_type
    }

    fn text<'p>(&self, path: &'p str) -> Option<&'p str> {
        self.pattern.captures(path)?.get(1).map(|group| group.as_str())
    }

    /// The version of a file: a number, days or microseconds since 1970.
    pub(crate) fn version(&self, path: &str) -> Result<i64> {
        let found = self.text(path).and_then(|text| parsed(text, &self.data_type));
        found.ok_or_else(|| {
            let message = format!("versionPattern finds no version in the path of '{path}'");
            Error::user("SNAPSHOT_VERSION", message)
                .hint("correct the pattern, or leave the file out with fileNamePattern")
        })
    }
}

/// What is wrong with a pattern; the lines before repeat it.
fn last_line(error: &regex::Error) -> String {
    error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

fn parsed(text: &str, data_type: &DataType) -> Option<i64> {
    match data_type {
        DataType::Int64 => text.parse().ok(),
        DataType::Date32 => {
            let date = DATES.iter().find_map(|form| NaiveDate::parse_from_str(text, form).ok())?;
            Some(date.signed_duration_since(NaiveDate::default()).num_days())
        }
        _ => {
            if let Ok(time) = DateTime::parse_from_rfc3339(text) {
                return Some(time.timestamp_micros());
            }
            let form = |form: &&str| NaiveDateTime::parse_from_str(text, form).ok();
            let time = TIMESTAMPS.iter().find_map(form);
            let midnight = || parsed(text, &DataType::Date32).map(|days| days * 86_400_000_000);
            time.map(|time| time.and_utc().timestamp_micros()).or_else(midnight)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, paths: &[&str]) -> Result<(DataType, Vec<i64>)> {
        let versions = VersionPattern::infer(pattern, paths.iter().copied())?;
        let all = paths.iter().map(|path| versions.version(path)).collect::<Result<_>>()?;
        Ok((versions.data_type().clone(), all))
    }

    #[test]
    fn numbers_dates_and_timestamps() {
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let numbers = found(r"v(\d+)\.csv", &["in/v2.csv", "in/v10.csv"]).unwrap();
        assert_eq!(numbers, (DataType::Int64, vec![2, 10]));
        let dates = found("day=([^/]+)/", &["day=1970-01-02/a", "day=1970_02_01/a"]).unwrap();
        assert_eq!(dates, (DataType::Date32, vec![1, 31]));
        let times = found("at_(.+).json", &["at_1970-01-01T00-00-01.json", "at_1970-01-02.json"]);
        assert_eq!(times.unwrap(), (timestamp, vec![1_000_000, 86_400_000_000]));
        assert_eq!(found("v(.*)", &[]).unwrap().0, DataType::Int64);
    }

    #[test]
    fn what_is_no_version_is_an_error() {
        for (pattern, paths) in [
            ("v(", vec![]),
            (r"v\d+", vec![]),
            (r"v(\d+)", vec!["v1", "w2"]),
            ("v(.*)", vec!["v1", "vx"]),
        ] {
            assert_eq!(found(pattern, &paths).unwrap_err().code(), "SNAPSHOT_VERSION", "{pattern}");
        }
    }
}
