//! Rows in the columns of another schema: by name without regard to case, cast where types differ.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use arrow::util::display::FormatOptions;
use deltaic_batch::{Error, Result, ZBatch};

use deltaic_plan::type_name;

/// The batch in the columns of `schema`. Missing columns are NULL; a value that does not fit and a
/// NULL in a NOT NULL column are errors.
pub(crate) fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch.clone());
    }
    let columns = schema
        .fields()
        .iter()
        .map(|field| column(batch, field))
        .collect::<Result<Vec<ArrayRef>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

fn column(batch: &RecordBatch, field: &Field) -> Result<ArrayRef> {
    let array = match position(batch.schema_ref(), field.name()) {
        None => new_null_array(field.data_type(), batch.num_rows()),
        Some(i) if batch.column(i).data_type() == field.data_type() => batch.column(i).clone(),
        Some(i) => {
            let options = CastOptions { safe: false, format_options: FormatOptions::default() };
            cast_with_options(batch.column(i), field.data_type(), &options)
                .map_err(|e| Error::from(e).object(field.name()))?
        }
    };
    if !field.is_nullable() && array.null_count() > 0 {
        return Err(Error::data(
            "NOT_NULL_VIOLATION",
            format!("{} of the new rows have NULL in a NOT NULL column", array.null_count()),
        )
        .object(field.name())
        .hint("drop NOT NULL, or leave such rows out with a WHERE or an expectation"));
    }
    Ok(array)
}

/// Position of a column by name without regard to case; the exact spelling wins.
pub(crate) fn position(schema: &Schema, name: &str) -> Option<usize> {
    let fields = schema.fields();
    fields
        .iter()
        .position(|f| f.name() == name)
        .or_else(|| fields.iter().position(|f| f.name().eq_ignore_ascii_case(name)))
}

/// [`conform`] for a delta.
pub(crate) fn conform_delta(delta: &ZBatch, schema: &SchemaRef) -> Result<ZBatch> {
    ZBatch::try_new(conform(delta.rows(), schema)?, delta.weights().clone())
}

/// The same columns, all of which may be NULL.
pub(crate) fn nullable(schema: &Schema) -> Schema {
    let loose = |f: &FieldRef| Arc::new(Field::clone(f).with_nullable(true));
    Schema::new(schema.fields().iter().map(loose).collect::<Vec<_>>())
}

/// How a table's schema must change for rows of a new schema.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SchemaChange {
    /// Not at all.
    None,
    /// Columns come on, or are no longer NOT NULL: the whole new schema.
    Added(SchemaRef),
    /// A type changed: what is wrong.
    Incompatible(String),
}

/// Compares a table's schema with that of new rows. Columns that only the table has stay.
pub(crate) fn schema_change(table: &Schema, rows: &Schema) -> SchemaChange {
    let mut fields = table.fields().to_vec();
    let mut loosened = false;
    for field in rows.fields() {
        match position(table, field.name()) {
            None => fields.push(Arc::new(Field::clone(field).with_nullable(true))),
            Some(i) if same_type(table.field(i), field) => {
                if field.is_nullable() && !fields[i].is_nullable() {
                    fields[i] = Arc::new(Field::clone(&fields[i]).with_nullable(true));
                    loosened = true;
                }
            }
            Some(i) => {
                return SchemaChange::Incompatible(format!(
                    "column '{}' is {} in the table and {} now",
                    field.name(),
                    type_name(table.field(i).data_type()),
                    type_name(field.data_type())
                ));
            }
        }
    }
    if fields.len() == table.fields().len() && !loosened {
        return SchemaChange::None;
    }
    SchemaChange::Added(Arc::new(Schema::new(fields)))
}

/// Equal as far as tables tell types apart.
pub(crate) fn same_type(a: &Field, b: &Field) -> bool {
    use arrow::datatypes::DataType as T;
    let text = |t: &T| matches!(t, T::Utf8 | T::LargeUtf8 | T::Utf8View);
    let binary = |t: &T| matches!(t, T::Binary | T::LargeBinary | T::BinaryView);
    let (a, b) = (a.data_type(), b.data_type());
    match (a, b) {
        (a, b) if text(a) && text(b) => true,
        (a, b) if binary(a) && binary(b) => true,
        (T::Timestamp(_, Some(_)), T::Timestamp(_, Some(_)))
        | (T::Timestamp(_, None), T::Timestamp(_, None)) => true,
        // Tables have no unsigned integers.
        (T::UInt8, T::Int16) | (T::Int16, T::UInt8) => true,
        (T::UInt16, T::Int32) | (T::Int32, T::UInt16) => true,
        (T::UInt32, T::Int64) | (T::Int64, T::UInt32) => true,
        (T::UInt64, T::Decimal128(20, 0)) | (T::Decimal128(20, 0), T::UInt64) => true,
        (T::List(a) | T::LargeList(a), T::List(b) | T::LargeList(b)) => same_type(a, b),
        (T::Map(a, _), T::Map(b, _)) => same_type(a, b),
        (T::Struct(a), T::Struct(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|(a, b)| a.name().eq_ignore_ascii_case(b.name()) && same_type(a, b))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, Int64Array};
    use arrow::datatypes::DataType;

    fn schema(fields: &[(&str, DataType)]) -> SchemaRef {
        let fields: Vec<Field> =
            fields.iter().map(|(n, t)| Field::new(*n, t.clone(), true)).collect();
        Arc::new(Schema::new(fields))
    }

    #[test]
    fn by_name_without_case_and_cast() {
        let from = schema(&[("B", DataType::Int32), ("a", DataType::Int32)]);
        let batch = RecordBatch::try_new(
            from,
            vec![Arc::new(Int32Array::from(vec![1])), Arc::new(Int32Array::from(vec![2]))],
        )
        .unwrap();
        let to = schema(&[("a", DataType::Int64), ("b", DataType::Int32), ("c", DataType::Utf8)]);
        let out = conform(&batch, &to).unwrap();
        assert_eq!(out.column(0).as_ref(), &Int64Array::from(vec![2]) as &dyn Array);
        assert_eq!(out.column(2).null_count(), 1);
    }

    #[test]
    fn new_columns_are_added_and_changed_types_refused() {
        let table = schema(&[("a", DataType::Int64), ("old", DataType::Utf8)]);
        let same = schema(&[("A", DataType::Int64)]);
        assert_eq!(schema_change(&table, &same), SchemaChange::None);
        let more = schema(&[("a", DataType::Int64), ("n", DataType::Int64)]);
        let SchemaChange::Added(all) = schema_change(&table, &more) else { panic!("added") };
        assert_eq!(all.fields().len(), 3);
        let other = schema(&[("a", DataType::Utf8)]);
        assert!(matches!(schema_change(&table, &other), SchemaChange::Incompatible(_)));
    }
}
