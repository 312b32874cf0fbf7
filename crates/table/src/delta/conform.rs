//! Brings rows into a table's schema: by name, adding columns that are missing as NULL, changing
//! the layout of values (strings, lists, time units …) but never a value.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, ListArray, MapArray, RecordBatch,
    RecordBatchOptions, StructArray, new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit};
use deltaic_batch::{Error, Result};

/// Columns that the rows lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// An error: the rows come from our caller.
    Refuse,
    /// NULL: the rows come from a file that is older than the column.
    Null,
}

/// `rows` in the schema of a table.
pub(crate) fn conform(
    rows: &RecordBatch,
    schema: &SchemaRef,
    missing: Missing,
) -> Result<RecordBatch> {
    if Arc::ptr_eq(&rows.schema(), schema) || rows.schema().fields() == schema.fields() {
        return with_schema(schema, rows.columns().to_vec(), rows.num_rows());
    }
    let source = rows.schema();
    if missing == Missing::Refuse {
        refuse_others(&source, schema)?;
    }
    let columns = schema.fields().iter().enumerate().map(|(at, field)| {
        let found = match source.fields().get(at) {
            Some(f) if f.name() == field.name() => Some(at),
            _ => source.index_of(field.name()).ok(),
        };
        match found {
            Some(i) => conform_array(rows.column(i), field).map_err(|e| e.object(field.name())),
            None => Ok(new_null_array(field.data_type(), rows.num_rows())),
        }
    });
    with_schema(schema, columns.collect::<Result<_>>()?, rows.num_rows())
}

fn refuse_others(source: &Schema, schema: &Schema) -> Result<()> {
    let unknown = source.fields().iter().find(|f| schema.index_of(f.name()).is_err());
    let absent = schema.fields().iter().find(|f| source.index_of(f.name()).is_err());
    match (unknown, absent) {
        (None, None) => Ok(()),
        (Some(field), _) => Err(mismatch("the table has no such column", field)),
        (None, Some(field)) => Err(mismatch("the rows lack this column of the table", field)),
    }
}

fn mismatch(what: &str, field: &Field) -> Error {
    Error::internal("SCHEMA_MISMATCH", what).object(field.name())
}

fn with_schema(schema: &SchemaRef, columns: Vec<ArrayRef>, num_rows: usize) -> Result<RecordBatch> {
    for (column, field) in columns.iter().zip(schema.fields()) {
        if !field.is_nullable() && column.null_count() > 0 {
            return Err(Error::data("NOT_NULL_VIOLATED", "a NULL in a column that is NOT NULL")
                .object(field.name()));
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(num_rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

/// One array with the type of `field`.
fn conform_array(array: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    use DataType as T;
    let (from, to) = (array.data_type(), field.data_type());
    if from == to {
        return Ok(array.clone());
    }
    match (from, to) {
        (T::Struct(_), T::Struct(fields)) => {
            let source = array.as_struct();
            let columns = fields.iter().map(|f| match source.column_by_name(f.name()) {
                Some(column) => conform_array(column, f),
                None => Ok(new_null_array(f.data_type(), source.len())),
            });
            let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
            let nulls = source.nulls().cloned();
            Ok(Arc::new(StructArray::try_new(fields.clone(), columns, nulls)?))
        }
        (T::List(_), T::List(element)) => {
            let source = array.as_list::<i32>();
            let values = conform_array(source.values(), element)?;
            let (offsets, nulls) = (source.offsets().clone(), source.nulls().cloned());
            Ok(Arc::new(ListArray::try_new(element.clone(), offsets, values, nulls)?))
        }
        (T::FixedSizeList(_, _), T::List(_)) => {
            let source: &FixedSizeListArray = array.as_fixed_size_list();
            let element = Arc::new(Field::new("element", source.value_type(), true));
            let list = cast(array, &T::List(element))?;
            conform_array(&list, field)
        }
        (T::LargeList(e) | T::ListView(e) | T::LargeListView(e), T::List(_)) => {
            conform_array(&cast(array, &T::List(e.clone()))?, field)
        }
        (T::Map(_, _), T::Map(entries, sorted)) => {
            let source = array.as_map();
            let T::Struct(kv) = entries.data_type() else { return cast(array, to) };
            let columns = vec![
                conform_array(source.keys(), &kv[0])?,
                conform_array(source.values(), &kv[1])?,
            ];
            let pairs = StructArray::try_new(kv.clone(), columns, None)?;
            let (offsets, nulls) = (source.offsets().clone(), source.nulls().cloned());
            Ok(Arc::new(MapArray::try_new(entries.clone(), offsets, pairs, nulls, *sorted)?))
        }
        (T::Timestamp(TimeUnit::Nanosecond, _), T::Timestamp(TimeUnit::Microsecond, _)) => {
            refuse_lost_nanoseconds(array)?;
            cast(array, to)
        }
        (T::Dictionary(_, values), _) => conform_array(&cast(array, values)?, field),
        (T::RunEndEncoded(_, values), _) => conform_array(&cast(array, values.data_type())?, field),
        _ if is_lossless(from, to) => cast(array, to),
        _ => Err(Error::internal(
            "SCHEMA_MISMATCH",
            format!("a column of type {from} where the table has {to}"),
        )),
    }
}

/// Casts that change the layout or widen, and nothing else.
fn is_lossless(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    match to {
        T::Utf8 => matches!(from, T::LargeUtf8 | T::Utf8View),
        T::Binary => matches!(from, T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_)),
        T::Int16 => matches!(from, T::Int8 | T::UInt8),
        T::Int32 => matches!(from, T::Int8 | T::Int16 | T::UInt8 | T::UInt16),
        T::Int64 => from.is_integer() && from != &T::UInt64,
        T::Float32 => from == &T::Float16,
        T::Float64 => matches!(from, T::Float16 | T::Float32),
        T::Date32 => from == &T::Date64,
        T::Timestamp(_, None) => matches!(from, T::Timestamp(_, None) | T::Date32),
        T::Timestamp(_, Some(_)) => matches!(from, T::Timestamp(_, Some(_))),
        T::Decimal128(p, s) => match from {
            T::UInt64 => *p >= 20 && *s == 0,
            T::Decimal32(q, r) | T::Decimal64(q, r) | T::Decimal128(q, r) | T::Decimal256(q, r) => {
                r <= s && i16::from(*q) - i16::from(*r) <= i16::from(*p) - i16::from(*s)
            }
            _ => false,
        },
        _ => false,
    }
}

fn refuse_lost_nanoseconds(array: &ArrayRef) -> Result<()> {
    let nanoseconds = cast(array, &DataType::Int64)?;
    if nanoseconds.as_primitive::<Int64Type>().iter().flatten().all(|ns| ns % 1_000 == 0) {
        return Ok(());
    }
    Err(Error::data("TIMESTAMP_PRECISION", "a time stamp is finer than a microsecond")
        .hint("round it, for example with date_trunc('microsecond', …)"))
}

fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(array, to, &options)?)
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        Int32Array, ListBuilder, StringArray, StringViewArray, StringViewBuilder,
        TimestampNanosecondArray, UInt8Array,
    };

    use super::*;
    use crate::delta::schema::table_schema;

    fn rows(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn layouts_change_and_values_do_not() {
        let mut tags = ListBuilder::new(StringViewBuilder::new());
        tags.append_value([Some("x"), None]);
        tags.append_null();
        let batch = rows(vec![
            ("n", Arc::new(UInt8Array::from(vec![200, 3]))),
            ("s", Arc::new(StringViewArray::from(vec!["a", "b"]))),
            ("t", Arc::new(TimestampNanosecondArray::from(vec![Some(5_000), None]))),
            ("tags", Arc::new(tags.finish())),
        ]);
        let schema = table_schema(&batch.schema()).unwrap();
        let stored = conform(&batch, &schema, Missing::Refuse).unwrap();
        assert_eq!(stored.schema(), schema);
        let text = arrow::util::display::array_value_to_string(stored.column(2), 0).unwrap();
        assert_eq!(text, "1970-01-01T00:00:00.000005");
        assert_eq!(stored.column(3).as_list::<i32>().value(0).as_string::<i32>().value(0), "x");
        let turned = batch.project(&[3, 1, 0, 2]).unwrap();
        assert_eq!(conform(&turned, &schema, Missing::Refuse).unwrap(), stored);
    }

    #[test]
    fn missing_columns_are_null_only_in_old_files() {
        let batch = rows(vec![("a", Arc::new(Int32Array::from(vec![1])))]);
        let schema = Arc::new(Schema::new(vec![
            Field::new("b", DataType::Utf8, true),
            Field::new("a", DataType::Int32, true),
        ]));
        let wide = conform(&batch, &schema, Missing::Null).unwrap();
        assert_eq!((wide.column(0).null_count(), wide.column(1).null_count()), (1, 0));
        let e = conform(&batch, &schema, Missing::Refuse).unwrap_err();
        assert_eq!((e.code(), e.get_object()), ("SCHEMA_MISMATCH", Some("b")));
    }

    #[test]
    fn lost_values_are_refused() {
        let code = |array: ArrayRef, to: DataType, nullable: bool| {
            let schema = Arc::new(Schema::new(vec![Field::new("c", to, nullable)]));
            conform(&rows(vec![("c", array)]), &schema, Missing::Refuse).unwrap_err()
        };
        let fine: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1]));
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert_eq!(code(fine, micros, true).code(), "TIMESTAMP_PRECISION");
        let text: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
        assert_eq!(code(text, DataType::Int32, true).code(), "SCHEMA_MISMATCH");
        let null: ArrayRef = Arc::new(Int32Array::from(vec![None]));
        assert_eq!(code(null, DataType::Int32, false).code(), "NOT_NULL_VIOLATED");
    }
}
