//! JSON: one array of row objects, one row per line. Numbers that JSON readers would round
//! (decimals) are strings, as are NaN and the infinities; structs are objects, lists are arrays,
//! maps are objects by the text of their keys.

use std::io::{self, Write};

use arrow::array::{Array, AsArray as _, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use arrow::util::display::FormatOptions;

use super::cells::{Cells, options, special_float};

/// Writes the value of a row.
type Encoder<'a> = Box<dyn Fn(usize, &mut Vec<u8>) -> io::Result<()> + 'a>;

/// Writes the rows.
pub(super) fn write(
    out: &mut dyn Write,
    schema: &Schema,
    batches: &[RecordBatch],
) -> io::Result<()> {
    let names: Vec<String> = schema.fields().iter().map(|f| string(f.name())).collect();
    let options = options();
    let mut first = true;
    let mut buffer = Vec::new();
    out.write_all(b"[")?;
    for batch in batches {
        let columns: Vec<Encoder<'_>> = (batch.columns().iter())
            .map(|c| encoder(c.as_ref(), &options))
            .collect::<io::Result<_>>()?;
        for row in 0..batch.num_rows() {
            buffer.clear();
            buffer.extend_from_slice(if first { b"\n{" } else { b",\n{" });
            first = false;
            for (n, (name, column)) in names.iter().zip(&columns).enumerate() {
                buffer.extend_from_slice(if n > 0 { b", " } else { b"" });
                buffer.extend_from_slice(name.as_bytes());
                buffer.extend_from_slice(b": ");
                column(row, &mut buffer)?;
            }
            buffer.push(b'}');
            out.write_all(&buffer)?;
        }
    }
    out.write_all(if first { b"]\n" } else { b"\n]\n" })
}

/// The text as a JSON string.
fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn encoder<'a>(array: &'a dyn Array, options: &'a FormatOptions<'a>) -> io::Result<Encoder<'a>> {
    let value = of_values(array, options)?;
    Ok(Box::new(move |row, out| {
        if array.is_null(row) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        value(row, out)
    }))
}

/// For rows that are not NULL.
fn of_values<'a>(array: &'a dyn Array, options: &'a FormatOptions<'a>) -> io::Result<Encoder<'a>> {
    use DataType as T;
    match array.data_type() {
        T::Null => Ok(Box::new(|_, out| {
            out.extend_from_slice(b"null");
            Ok(())
        })),
        T::Boolean
        | T::Int8
        | T::Int16
        | T::Int32
        | T::Int64
        | T::UInt8
        | T::UInt16
        | T::UInt32
        | T::UInt64 => text(array, options, false),
        T::Float32 | T::Float64 => {
            let (plain, quoted) = (text(array, options, false)?, text(array, options, true)?);
            Ok(Box::new(move |row, out| match special_float(array, row) {
                Some(_) => quoted(row, out),
                None => plain(row, out),
            }))
        }
        T::Struct(fields) => {
            let columns = array.as_struct().columns();
            let names: Vec<String> = fields.iter().map(|f| string(f.name())).collect();
            let values: Vec<Encoder<'a>> =
                columns.iter().map(|c| encoder(c.as_ref(), options)).collect::<io::Result<_>>()?;
            Ok(Box::new(move |row, out| {
                entries(out, b'{', b'}', 0..values.len(), |n, out| {
                    out.extend_from_slice(names[n].as_bytes());
                    out.extend_from_slice(b": ");
                    values[n](row, out)
                })
            }))
        }
        T::List(_) => {
            let list = array.as_list::<i32>();
            let values = encoder(list.values().as_ref(), options)?;
            let offset =
                |n: usize| usize::try_from(list.value_offsets()[n]).map_err(io::Error::other);
            Ok(Box::new(move |row, out| {
                entries(out, b'[', b']', offset(row)?..offset(row + 1)?, &values)
            }))
        }
        T::Map(..) => {
            let map = array.as_map();
            let keys = Cells::try_new(map.keys().as_ref(), options)?;
            let values = encoder(map.values().as_ref(), options)?;
            let offset =
                |n: usize| usize::try_from(map.value_offsets()[n]).map_err(io::Error::other);
            Ok(Box::new(move |row, out| {
                entries(out, b'{', b'}', offset(row)?..offset(row + 1)?, |n, out| {
                    let key = keys.text(n)?.unwrap_or_default();
                    out.extend_from_slice(string(&key).as_bytes());
                    out.extend_from_slice(b": ");
                    values(n, out)
                })
            }))
        }
        _ => text(array, options, true),
    }
}

fn text<'a>(
    array: &'a dyn Array,
    options: &'a FormatOptions<'a>,
    quoted: bool,
) -> io::Result<Encoder<'a>> {
    let cells = Cells::try_new(array, options)?;
    Ok(Box::new(move |row, out| {
        let text = cells.text(row)?.unwrap_or_default();
        let text = if quoted { string(&text) } else { text };
        out.extend_from_slice(text.as_bytes());
        Ok(())
    }))
}

fn entries(
    out: &mut Vec<u8>,
    open: u8,
    close: u8,
    range: std::ops::Range<usize>,
    entry: impl Fn(usize, &mut Vec<u8>) -> io::Result<()>,
) -> io::Result<()> {
    out.push(open);
    let start = range.start;
    for n in range {
        if n > start {
            out.extend_from_slice(b", ");
        }
        entry(n, out)?;
    }
    out.push(close);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, Decimal128Array, Float64Array, Int64Array, ListArray, StringArray, StructArray,
        TimestampMicrosecondArray,
    };
    use arrow::datatypes::{Field, Int32Type};
    use serde_json::{Value, json};

    use super::*;

    fn encode(columns: Vec<(&str, ArrayRef)>) -> Value {
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(n, a)| (n, a, true)),
        )
        .unwrap();
        let mut out = Vec::new();
        write(&mut out, &batch.schema(), &[batch]).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn values_of_every_kind() {
        let decimals = Decimal128Array::from(vec![Some(12_300), None])
            .with_precision_and_scale(10, 2)
            .unwrap();
        let times = TimestampMicrosecondArray::from(vec![Some(1_500_000), Some(0)]);
        let got = encode(vec![
            ("i", Arc::new(Int64Array::from(vec![Some(9_007_199_254_740_993), None]))),
            ("d", Arc::new(decimals)),
            ("f", Arc::new(Float64Array::from(vec![f64::NAN, 2.5]))),
            ("s", Arc::new(StringArray::from(vec!["a\"\n", ""]))),
            ("t", Arc::new(times.clone())),
            ("z", Arc::new(times.with_timezone("UTC"))),
        ]);
        assert_eq!(
            got,
            json!([
                {"i": 9_007_199_254_740_993_i64, "d": "123.00", "f": "NaN", "s": "a\"\n",
                 "t": "1970-01-01 00:00:01.500", "z": "1970-01-01 00:00:01.500Z"},
                {"i": null, "d": null, "f": 2.5, "s": "", "t": "1970-01-01 00:00:00",
                 "z": "1970-01-01 00:00:00Z"},
            ])
        );
    }

    #[test]
    fn nested_values() {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
            Some(vec![Some(1), None]),
            None,
            Some(vec![]),
        ]);
        let field = Arc::new(Field::new("x", DataType::Int64, true));
        let x: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let s = StructArray::new(vec![field].into(), vec![x], None);
        let got = encode(vec![("l", Arc::new(list)), ("s", Arc::new(s))]);
        let want = json!([
            {"l": [1, null], "s": {"x": 1}},
            {"l": null, "s": {"x": null}},
            {"l": [], "s": {"x": 3}},
        ]);
        assert_eq!(got, want);
    }

    #[test]
    fn no_rows_are_an_empty_array() {
        let mut out = Vec::new();
        write(&mut out, &Schema::empty(), &[]).unwrap();
        assert_eq!(out, b"[]\n");
    }
}
