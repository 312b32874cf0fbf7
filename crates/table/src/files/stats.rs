//! Statistics of a data file, as the log's JSON has them.

use std::fmt::Write;

use arrow::array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::{max, max_string, min, min_string};
use arrow::datatypes::{DataType, Fields};
use arrow::temporal_conversions::{date32_to_datetime, timestamp_us_to_datetime};

/// Columns (leaves) with statistics, counted from the left, as other writers do by default.
const COLUMNS_MAX: usize = 32;
/// Characters of a string that its bounds keep.
const PREFIX_CHARS: usize = 32;

/// Statistics of a file with these rows. `numRecords` and `tightBounds` come first ([`widen`]).
pub(crate) fn stats_json(rows: &[RecordBatch]) -> String {
    let num_records: usize = rows.iter().map(RecordBatch::num_rows).sum();
    let mut stats = Columns { left: COLUMNS_MAX, ..Columns::default() };
    if let Some(first) = rows.first() {
        let schema = first.schema();
        let columns: Vec<Vec<ArrayRef>> = (0..first.num_columns())
            .map(|i| rows.iter().map(|r| r.column(i).clone()).collect())
            .collect();
        stats.add_all(schema.fields(), &columns);
    }
    let Columns { min, max, nulls, .. } = stats;
    format!(
        r#"{{"numRecords":{num_records},"tightBounds":true,"minValues":{{{min}}},"maxValues":{{{max}}},"nullCount":{{{nulls}}}}}"#
    )
}

/// The statistics of a file that got a deletion vector: bounds still hold but are no longer met,
/// and counts of NULLs are those before. Of statistics that others wrote only the count is kept.
pub(crate) fn widen(stats: &str, num_records: u64) -> String {
    const TIGHT: &str = r#","tightBounds":true,"#;
    const WIDE: &str = r#","tightBounds":false,"#;
    let count = format!(r#"{{"numRecords":{num_records}"#);
    match stats.strip_prefix(&count) {
        Some(rest) if rest.starts_with(WIDE) => stats.into(),
        Some(rest) if rest.starts_with(TIGHT) => format!("{count}{WIDE}{}", &rest[TIGHT.len()..]),
        _ => format!(r#"{count},"tightBounds":false}}"#),
    }
}

/// The three objects, as the inner text of JSON objects.
#[derive(Debug, Default)]
struct Columns {
    left: usize,
    min: String,
    max: String,
    nulls: String,
}

impl Columns {
    fn add_all(&mut self, fields: &Fields, columns: &[Vec<ArrayRef>]) {
        for (field, chunks) in fields.iter().zip(columns) {
            if self.left == 0 {
                return;
            }
            match field.data_type() {
                DataType::Struct(inner) => self.add_struct(field.name(), inner, chunks),
                DataType::List(_) | DataType::Map(_, _) => self.left -= 1,
                _ => {
                    self.left -= 1;
                    let nulls: usize = chunks.iter().map(|c| c.null_count()).sum();
                    push(&mut self.nulls, field.name(), &nulls.to_string());
                    let (min, max) = bounds(chunks);
                    min.inspect(|v| push(&mut self.min, field.name(), v));
                    max.inspect(|v| push(&mut self.max, field.name(), v));
                }
            }
        }
    }

    /// A field of a struct is NULL where the struct is.
    fn add_struct(&mut self, name: &str, inner: &Fields, chunks: &[ArrayRef]) {
        let columns: Option<Vec<Vec<ArrayRef>>> = (0..inner.len())
            .map(|i| {
                let field = |c: &ArrayRef| {
                    let s = c.as_struct();
                    let outer = s.nulls().cloned();
                    let array = s.column(i).to_data();
                    let nulls = arrow::buffer::NullBuffer::union(array.nulls(), outer.as_ref());
                    let array = array.into_builder().nulls(nulls).build().ok()?;
                    Some(arrow::array::make_array(array))
                };
                chunks.iter().map(field).collect()
            })
            .collect();
        let Some(columns) = columns else { return };
        let mut nested = Self { left: self.left, ..Self::default() };
        nested.add_all(inner, &columns);
        self.left = nested.left;
        for (out, part) in [
            (&mut self.min, nested.min),
            (&mut self.max, nested.max),
            (&mut self.nulls, nested.nulls),
        ] {
            if !part.is_empty() {
                push(out, name, &format!("{{{part}}}"));
            }
        }
    }
}

fn push(out: &mut String, name: &str, value: &str) {
    let comma = if out.is_empty() { "" } else { "," };
    // Writing to a string cannot fail.
    let _ = write!(out, "{comma}{}:{value}", serde_json::Value::from(name));
}

/// Least and greatest value as JSON, where the type has them.
fn bounds(chunks: &[ArrayRef]) -> (Option<String>, Option<String>) {
    let Some(first) = chunks.first() else { return (None, None) };
    match first.data_type() {
        DataType::Int8 => typed::<Int8Type>(chunks, |v| Some(v.to_string())),
        DataType::Int16 => typed::<Int16Type>(chunks, |v| Some(v.to_string())),
        DataType::Int32 => typed::<Int32Type>(chunks, |v| Some(v.to_string())),
        DataType::Int64 => typed::<Int64Type>(chunks, |v| Some(v.to_string())),
        DataType::Float32 => {
            let (low, high) = extremes::<Float32Type>(chunks);
            floats(low.map(f64::from), high.map(f64::from))
        }
        DataType::Float64 => {
            let (low, high) = extremes::<Float64Type>(chunks);
            floats(low, high)
        }
        DataType::Decimal128(_, scale) => {
            let scale = usize::from(scale.unsigned_abs());
            typed::<Decimal128Type>(chunks, |v| Some(decimal(v, scale)))
        }
        DataType::Date32 => typed::<Date32Type>(chunks, |v| {
            let date = date32_to_datetime(v)?.date();
            in_common_years(&date.format("%Y-%m-%d").to_string())
        }),
        DataType::Timestamp(_, zone) => {
            let utc = if zone.is_some() { "Z" } else { "" };
            typed::<TimestampMicrosecondType>(chunks, |v| {
                let time = timestamp_us_to_datetime(v)?;
                in_common_years(&format!("{}{utc}", time.format("%Y-%m-%dT%H:%M:%S%.6f")))
            })
        }
        DataType::Utf8 => strings(chunks),
        _ => (None, None),
    }
}

/// Years that every reader can parse.
fn in_common_years(text: &str) -> Option<String> {
    let (year, _) = text.split_once('-')?;
    let common = year.len() == 4 && year.bytes().all(|b| b.is_ascii_digit());
    common.then(|| format!("\"{text}\""))
}

fn extremes<T: ArrowPrimitiveType>(chunks: &[ArrayRef]) -> (Option<T::Native>, Option<T::Native>)
where
    T::Native: arrow::array::ArrowNativeTypeOp,
{
    use arrow::array::ArrowNativeTypeOp;
    let fold = |each: fn(&arrow::array::PrimitiveArray<T>) -> Option<T::Native>, less: bool| {
        let found = chunks.iter().filter_map(|c| each(c.as_primitive::<T>()));
        found.reduce(|a, b| if a.is_lt(b) == less { a } else { b })
    };
    (fold(min::<T>, true), fold(max::<T>, false))
}

fn typed<T: ArrowPrimitiveType>(
    chunks: &[ArrayRef],
    text: impl Fn(T::Native) -> Option<String>,
) -> (Option<String>, Option<String>)
where
    T::Native: arrow::array::ArrowNativeTypeOp,
{
    let (low, high) = extremes::<T>(chunks);
    (low.and_then(&text), high.and_then(&text))
}

/// Bounds of floats. With a NaN or an infinity there is no bound that JSON can tell; zeros get the
/// sign that makes the bound hold in total order too.
fn floats(low: Option<f64>, high: Option<f64>) -> (Option<String>, Option<String>) {
    let (Some(low), Some(high)) = (low, high) else { return (None, None) };
    if low.is_nan() || high.is_nan() {
        return (None, None);
    }
    let text = |v: f64, zero: &str| {
        let text = if v == 0.0 { zero.into() } else { serde_json::Value::from(v).to_string() };
        v.is_finite().then_some(text)
    };
    (text(low, "-0.0"), text(high, "0.0"))
}

fn decimal(value: i128, scale: usize) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let point = if scale == 0 { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

fn strings(chunks: &[ArrayRef]) -> (Option<String>, Option<String>) {
    let arrays: Vec<&StringArray> = chunks.iter().map(|c| c.as_string::<i32>()).collect();
    let low = arrays.iter().filter_map(|a| min_string(*a)).min();
    let high = arrays.iter().filter_map(|a| max_string(*a)).max();
    let quoted = |text: String| serde_json::Value::from(text).to_string();
    let low = low.map(|text| quoted(text.chars().take(PREFIX_CHARS).collect()));
    (low, high.and_then(upper_bound).map(quoted))
}

/// A short text that is not less than `text`.
fn upper_bound(text: &str) -> Option<String> {
    let mut chars = text.chars();
    let prefix: String = chars.by_ref().take(PREFIX_CHARS).collect();
    match chars.next() {
        None => Some(prefix),
        Some(char::MAX) => None,
        Some(_) => Some(prefix + "\u{10FFFF}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Date32Array, Decimal128Array, Float64Array, Int64Array, StructArray};
    use serde_json::{Value, json};

    use super::*;

    fn stats(columns: Vec<(&str, ArrayRef)>) -> Value {
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let halves = [rows.slice(0, 1), rows.slice(1, rows.num_rows() - 1)];
        serde_json::from_str(&stats_json(&halves)).unwrap()
    }

    #[test]
    fn bounds_and_counts() {
        let decimals = Decimal128Array::from(vec![Some(-5), None, Some(1234)]);
        let decimals = decimals.with_precision_and_scale(10, 2).unwrap();
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None, Some(-1)]));
        let stats = stats(vec![
            ("i", ints.clone()),
            ("d", Arc::new(decimals)),
            ("f", Arc::new(Float64Array::from(vec![0.0, 1.5, -0.0]))),
            ("nan", Arc::new(Float64Array::from(vec![0.0, f64::NAN, 1.0]))),
            ("day", Arc::new(Date32Array::from(vec![0, 19_000, 4_000_000]))),
            ("s", Arc::new(StringArray::from(vec!["b\"", &"z".repeat(40), "c"]))),
            ("st", Arc::new(StructArray::try_from(vec![("x", ints)]).unwrap())),
        ]);
        assert_eq!((&stats["numRecords"], &stats["tightBounds"]), (&json!(3), &json!(true)));
        assert_eq!(
            stats["minValues"],
            json!({"i": -1, "d": -0.05, "f": -0.0, "day": "1970-01-01", "s": "b\"", "st": {"x": -1}})
        );
        let high = format!("{}\u{10FFFF}", "z".repeat(32));
        assert_eq!(stats["maxValues"]["s"], json!(high));
        assert_eq!(stats["maxValues"]["d"], json!(12.34));
        assert_eq!(stats["maxValues"]["day"], Value::Null);
        assert_eq!(stats["nullCount"]["i"], json!(1));
        assert_eq!(stats["nullCount"]["st"], json!({"x": 1}));
    }

    #[test]
    fn widened_bounds() {
        let ours =
            r#"{"numRecords":3,"tightBounds":true,"minValues":{"s":",\"tightBounds\":true,"}}"#;
        let wide = widen(ours, 3);
        assert!(
            wide.starts_with(r#"{"numRecords":3,"tightBounds":false,"minValues":{"s":",\"tight"#)
        );
        assert!(wide.ends_with(r#"\"tightBounds\":true,"}}"#));
        assert_eq!(widen(&wide, 3), wide);
        let foreign = r#"{"minValues":{"a":1},"numRecords":3}"#;
        assert_eq!(widen(foreign, 3), r#"{"numRecords":3,"tightBounds":false}"#);
    }
}
