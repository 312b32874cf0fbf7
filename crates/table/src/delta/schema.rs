//! Arrow types ↔ Delta types.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use deltaic_batch::{Error, Result};
use serde_json::{Map, Value, json};

/// Names that the change feed needs for itself.
pub(crate) const CHANGE_TYPE: &str = "_change_type";
const RESERVED: [&str; 3] = [CHANGE_TYPE, "_commit_version", "_commit_timestamp"];

/// What a schema becomes when a table is made of it: the rows of the table come back in this one.
///
/// Unsigned integers are widened to the next signed type (`UInt64` to `Decimal128(20, 0)`), all
/// kinds of strings, binaries and lists become `Utf8`, `Binary` and `List`, dictionaries their
/// values, time stamps microseconds (with a zone: in UTC). Types without a Delta counterpart (Null,
/// times, durations, intervals, decimals of more than 38 digits …) are refused.
///
/// ```
/// use std::sync::Arc;
/// use arrow::datatypes::{DataType, Field, Schema};
/// let schema = Schema::new(vec![Field::new("n", DataType::UInt8, true)]);
/// let stored = deltaic_table::table_schema(&schema).unwrap();
/// assert_eq!(stored.field(0).data_type(), &DataType::Int16);
/// ```
pub fn table_schema(schema: &Schema) -> Result<SchemaRef> {
    let mut names = HashSet::new();
    for field in schema.fields() {
        let name = field.name().to_lowercase();
        if RESERVED.contains(&name.as_str()) {
            return Err(Error::user(
                "RESERVED_COLUMN",
                "the change feed needs this name for itself",
            )
            .object(field.name())
            .hint("give the column another name"));
        }
        if !names.insert(name) {
            return Err(Error::user(
                "DUPLICATE_COLUMN",
                "two columns have this name (case does not count)",
            )
            .object(field.name())
            .hint("give one of them another name"));
        }
    }
    if schema.fields().is_empty() {
        return Err(Error::user("NO_COLUMNS", "a table needs at least one column"));
    }
    Ok(Arc::new(Schema::new(map_fields(schema.fields())?)))
}

fn map_fields(fields: &Fields) -> Result<Fields> {
    fields.iter().map(|f| map_field(f, f.name(), f.is_nullable())).collect()
}

fn map_field(field: &Field, name: &str, nullable: bool) -> Result<FieldRef> {
    let data_type = map_type(field.data_type())
        .map_err(|e| e.object(name).hint("cast the column to a type that tables can hold"))?;
    let comment = field.metadata().get("comment");
    let metadata: HashMap<String, String> =
        comment.map(|c| ("comment".into(), c.clone())).into_iter().collect();
    Ok(Arc::new(Field::new(name, data_type, nullable).with_metadata(metadata)))
}

fn map_type(data_type: &DataType) -> Result<DataType> {
    use DataType as T;
    Ok(match data_type {
        T::Boolean | T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::Float32 | T::Float64 => {
            data_type.clone()
        }
        T::UInt8 => T::Int16,
        T::UInt16 => T::Int32,
        T::UInt32 => T::Int64,
        T::UInt64 => T::Decimal128(20, 0),
        T::Float16 => T::Float32,
        T::Utf8 | T::LargeUtf8 | T::Utf8View => T::Utf8,
        T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => T::Binary,
        T::Date32 | T::Date64 => T::Date32,
        T::Timestamp(_, None) => T::Timestamp(TimeUnit::Microsecond, None),
        T::Timestamp(_, Some(_)) => T::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        T::Decimal32(p, s) | T::Decimal64(p, s) | T::Decimal128(p, s) | T::Decimal256(p, s)
            if *p <= 38 && *s >= 0 =>
        {
            T::Decimal128(*p, *s)
        }
        T::Struct(fields) if !fields.is_empty() => T::Struct(map_fields(fields)?),
        T::List(f)
        | T::LargeList(f)
        | T::FixedSizeList(f, _)
        | T::ListView(f)
        | T::LargeListView(f) => T::List(map_field(f, "element", f.is_nullable())?),
        T::Map(entries, _) => match entries.data_type() {
            T::Struct(kv) if kv.len() == 2 => map_type_of(&kv[0], &kv[1])?,
            _ => return Err(unsupported(data_type)),
        },
        T::Dictionary(_, values) => map_type(values)?,
        T::RunEndEncoded(_, values) => map_type(values.data_type())?,
        _ => return Err(unsupported(data_type)),
    })
}

fn map_type_of(key: &Field, value: &Field) -> Result<DataType> {
    let key = map_field(key, "key", false)?;
    let value = map_field(value, "value", value.is_nullable())?;
    let entries = Field::new("key_value", DataType::Struct([key, value].into()), false);
    Ok(DataType::Map(Arc::new(entries), false))
}

fn unsupported(data_type: &DataType) -> Error {
    Error::user("UNSUPPORTED_TYPE", format!("tables cannot hold values of type {data_type}"))
}

/// A table's schema as Delta writes it (`schemaString`). The schema is one of [`table_schema`].
pub(crate) fn to_json(schema: &Schema) -> Result<String> {
    Ok(struct_json(schema.fields())?.to_string())
}

fn struct_json(fields: &Fields) -> Result<Value> {
    let fields: Result<Vec<Value>> = fields
        .iter()
        .map(|f| {
            let metadata: Map<String, Value> =
                f.metadata().iter().map(|(k, v)| (k.clone(), json!(v))).collect();
            Ok(json!({
                "name": f.name(), "type": type_json(f.data_type())?,
                "nullable": f.is_nullable(), "metadata": metadata,
            }))
        })
        .collect();
    Ok(json!({"type": "struct", "fields": fields?}))
}

fn type_json(data_type: &DataType) -> Result<Value> {
    use DataType as T;
    Ok(match data_type {
        T::Boolean => json!("boolean"),
        T::Int8 => json!("byte"),
        T::Int16 => json!("short"),
        T::Int32 => json!("integer"),
        T::Int64 => json!("long"),
        T::Float32 => json!("float"),
        T::Float64 => json!("double"),
        T::Utf8 => json!("string"),
        T::Binary => json!("binary"),
        T::Date32 => json!("date"),
        T::Timestamp(TimeUnit::Microsecond, None) => json!("timestamp_ntz"),
        T::Timestamp(TimeUnit::Microsecond, Some(_)) => json!("timestamp"),
        T::Decimal128(p, s) => json!(format!("decimal({p},{s})")),
        T::Struct(fields) => struct_json(fields)?,
        T::List(f) => json!({
            "type": "array", "elementType": type_json(f.data_type())?,
            "containsNull": f.is_nullable(),
        }),
        T::Map(entries, _) => match entries.data_type() {
            T::Struct(kv) if kv.len() == 2 => json!({
                "type": "map", "keyType": type_json(kv[0].data_type())?,
                "valueType": type_json(kv[1].data_type())?, "valueContainsNull": kv[1].is_nullable(),
            }),
            _ => return Err(unsupported(data_type)),
        },
        _ => return Err(unsupported(data_type)),
    })
}

/// Reads `schemaString`.
pub(crate) fn from_json(text: &str) -> Result<SchemaRef> {
    let value: Value = serde_json::from_str(text)
        .map_err(|e| Error::storage("LOG_CORRUPT", format!("malformed schema: {e}")))?;
    Ok(Arc::new(Schema::new(struct_from(&value)?)))
}

fn struct_from(value: &Value) -> Result<Fields> {
    let fields = value["fields"].as_array().ok_or_else(|| malformed(value))?;
    fields
        .iter()
        .map(|f| {
            let name = f["name"].as_str().ok_or_else(|| malformed(f))?;
            let data_type = type_from(&f["type"]).map_err(|e| e.object(name))?;
            let metadata = f["metadata"]["comment"].as_str();
            let metadata = metadata.map(|c| ("comment".into(), c.into())).into_iter().collect();
            let nullable = f["nullable"].as_bool().unwrap_or(true);
            Ok(Field::new(name, data_type, nullable).with_metadata(metadata))
        })
        .collect()
}

fn type_from(value: &Value) -> Result<DataType> {
    use DataType as T;
    if let Some(name) = value.as_str() {
        return Ok(match name {
            "boolean" => T::Boolean,
            "byte" => T::Int8,
            "short" => T::Int16,
            "integer" => T::Int32,
            "long" => T::Int64,
            "float" => T::Float32,
            "double" => T::Float64,
            "string" => T::Utf8,
            "binary" => T::Binary,
            "date" => T::Date32,
            "timestamp" => T::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            "timestamp_ntz" => T::Timestamp(TimeUnit::Microsecond, None),
            name => decimal_from(name).ok_or_else(|| {
                Error::storage("UNSUPPORTED_TABLE", format!("type {name:?} is not supported"))
            })?,
        });
    }
    match value["type"].as_str() {
        Some("struct") => Ok(T::Struct(struct_from(value)?)),
        Some("array") => {
            let nullable = value["containsNull"].as_bool().unwrap_or(true);
            let element = Field::new("element", type_from(&value["elementType"])?, nullable);
            Ok(T::List(Arc::new(element)))
        }
        Some("map") => {
            let nullable = value["valueContainsNull"].as_bool().unwrap_or(true);
            let key = Field::new("key", type_from(&value["keyType"])?, false);
            map_type_of(&key, &Field::new("value", type_from(&value["valueType"])?, nullable))
        }
        _ => Err(malformed(value)),
    }
}

fn decimal_from(name: &str) -> Option<DataType> {
    let (p, s) = name.strip_prefix("decimal(")?.strip_suffix(')')?.split_once(',')?;
    Some(DataType::Decimal128(p.trim().parse().ok()?, s.trim().parse().ok()?))
}

fn malformed(value: &Value) -> Error {
    Error::storage("LOG_CORRUPT", format!("malformed type in a table's schema: {value}"))
}

/// True when a type, at any depth, needs the table feature `timestampNtz`.
pub(crate) fn has_timestamp_ntz(fields: &Fields) -> bool {
    fields.iter().any(|f| type_has_ntz(f.data_type()))
}

fn type_has_ntz(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(_, None) => true,
        DataType::Struct(fields) => has_timestamp_ntz(fields),
        DataType::List(f) | DataType::Map(f, _) => type_has_ntz(f.data_type()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_survive_the_log() {
        let list = DataType::new_list(DataType::Utf8View, true);
        let inner = Fields::from(vec![
            Field::new("x", DataType::Date64, false),
            Field::new("y", list, true),
        ]);
        let map = Field::new_map(
            "m",
            "entries",
            Field::new("keys", DataType::Utf8, false),
            Field::new("values", DataType::Struct(inner.clone()), true),
            false,
            true,
        );
        let zone = DataType::Timestamp(TimeUnit::Second, Some("Europe/Paris".into()));
        let schema = Schema::new(vec![
            Field::new("a", DataType::UInt64, false)
                .with_metadata([("comment".into(), "what \"a\" is".into())].into()),
            Field::new("b", DataType::Decimal256(38, 10), true),
            Field::new("c", zone, true),
            Field::new("d", DataType::Timestamp(TimeUnit::Nanosecond, None), true),
            Field::new("e", DataType::Struct(inner), true),
            map,
        ]);
        let stored = table_schema(&schema).unwrap();
        assert_eq!(stored.field(0).data_type(), &DataType::Decimal128(20, 0));
        assert_eq!(from_json(&to_json(&stored).unwrap()).unwrap(), stored);
        assert_eq!(table_schema(&stored).unwrap(), stored);
        assert!(has_timestamp_ntz(stored.fields()));
    }

    #[test]
    fn what_a_table_cannot_hold_is_refused() {
        let code = |fields: Vec<Field>| table_schema(&Schema::new(fields)).unwrap_err();
        let null = code(vec![Field::new("n", DataType::Null, true)]);
        assert_eq!((null.code(), null.get_object()), ("UNSUPPORTED_TYPE", Some("n")));
        let int = |name: &str| Field::new(name, DataType::Int64, true);
        assert_eq!(code(vec![int("a"), int("A")]).code(), "DUPLICATE_COLUMN");
        assert_eq!(code(vec![int("_change_type")]).code(), "RESERVED_COLUMN");
        assert_eq!(code(vec![]).code(), "NO_COLUMNS");
        let wide = Field::new("w", DataType::Decimal256(40, 1), true);
        assert_eq!(code(vec![wide]).code(), "UNSUPPORTED_TYPE");
    }
}
