//! Types by the names that SQL has for them.

use arrow::datatypes::DataType;

/// `BIGINT`, `STRING`, `ARRAY<INT>` …
pub fn type_name(data_type: &DataType) -> String {
    use DataType as T;
    match data_type {
        T::Null => "VOID".into(),
        T::Boolean => "BOOLEAN".into(),
        T::Int8 => "TINYINT".into(),
        T::Int16 => "SMALLINT".into(),
        T::Int32 => "INT".into(),
        T::Int64 => "BIGINT".into(),
        T::Float32 => "FLOAT".into(),
        T::Float64 => "DOUBLE".into(),
        T::Utf8 | T::LargeUtf8 | T::Utf8View => "STRING".into(),
        T::Binary | T::LargeBinary | T::BinaryView => "BINARY".into(),
        T::Date32 => "DATE".into(),
        T::Timestamp(_, Some(_)) => "TIMESTAMP".into(),
        T::Timestamp(_, None) => "TIMESTAMP_NTZ".into(),
        T::Decimal128(p, s) | T::Decimal256(p, s) => format!("DECIMAL({p},{s})"),
        T::List(item) | T::LargeList(item) => format!("ARRAY<{}>", type_name(item.data_type())),
        T::Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|f| format!("{}: {}", f.name(), type_name(f.data_type())))
                .collect();
            format!("STRUCT<{}>", fields.join(", "))
        }
        T::Map(entries, _) => match entries.data_type() {
            T::Struct(pair) if pair.len() == 2 => format!(
                "MAP<{}, {}>",
                type_name(pair[0].data_type()),
                type_name(pair[1].data_type())
            ),
            other => other.to_string(),
        },
        other => other.to_string(),
    }
}
