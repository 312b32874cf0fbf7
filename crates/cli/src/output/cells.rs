//! Values as text, the same in every form of output: `2026-01-31`, `2026-01-31 10:00:00.5`,
//! `2026-01-31 10:00:00Z` for instants, decimals with all their digits.

use std::io;

use arrow::array::{Array, AsArray as _};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};

use super::unprintable;

/// How arrow writes what is not written here.
pub(crate) fn options() -> FormatOptions<'static> {
    FormatOptions::default()
        .with_display_error(false)
        .with_null("NULL")
        .with_duration_format(DurationFormat::ISO8601)
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"))
        .with_datetime_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_date_format(Some("%Y-%m-%d"))
        .with_time_format(Some("%H:%M:%S%.f"))
}

/// Text of the values of a column.
pub(crate) struct Cells<'a> {
    array: &'a dyn Array,
    formatter: ArrayFormatter<'a>,
    zoned: bool,
}

impl<'a> Cells<'a> {
    /// Of a column.
    pub(crate) fn try_new(
        array: &'a dyn Array,
        options: &'a FormatOptions<'a>,
    ) -> io::Result<Self> {
        let formatter = ArrayFormatter::try_new(array, options).map_err(unprintable)?;
        let zoned = matches!(array.data_type(), DataType::Timestamp(_, Some(_)));
        Ok(Self { array, formatter, zoned })
    }

    /// Text of a row, `None` for NULL.
    pub(crate) fn text(&self, row: usize) -> io::Result<Option<String>> {
        if self.array.is_null(row) {
            return Ok(None);
        }
        if let Some(text) = special_float(self.array, row) {
            return Ok(Some(text.into()));
        }
        let mut text = self.formatter.value(row).try_to_string().map_err(unprintable)?;
        if self.zoned && text.ends_with("+00:00") {
            text.replace_range(text.len() - 6.., "Z");
        }
        Ok(Some(text))
    }
}

/// `NaN`, `Infinity`, `-Infinity`.
pub(crate) fn special_float(array: &dyn Array, row: usize) -> Option<&'static str> {
    let value = match array.data_type() {
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row),
        DataType::Float32 => f64::from(array.as_primitive::<Float32Type>().value(row)),
        _ => return None,
    };
    match value {
        v if v.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}
