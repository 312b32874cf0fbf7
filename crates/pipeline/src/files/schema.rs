//! Schema of a `read_files` call: declared, or inferred and then evolved by its mode.

use std::path::Path;
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Error, Result};
use deltaic_plan::Session;
use serde::{Deserialize, Serialize};

use super::infer::{Inferred, csv_columns, merge_columns, object_columns};
use super::json::Json;
use super::listing::FileEntry;
use super::options::{Evolution, FileOptions, Format};
use super::{csv, parquet, reader, text};

/// What was inferred so far; stored with a flow's progress.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct StoredSchema {
    /// Columns in the order in which they were first seen.
    columns: Vec<(String, Inferred)>,
    /// Parquet: column definitions of the files' own types, as Arrow IPC in hexadecimal.
    arrow: Option<String>,
}

/// Schema of the rows of a call.
#[derive(Debug, Clone)]
pub(crate) struct FileSchema {
    /// Columns of the files.
    pub(crate) data: SchemaRef,
    /// The same, then the rescued and the corrupt-record column where asked for.
    pub(crate) rows: SchemaRef,
    /// To be stored, when it was inferred.
    pub(crate) stored: Option<StoredSchema>,
}

/// Finds the schema; reads the new files when nothing is declared.
pub(crate) fn resolve_schema(
    root: &Path,
    options: &FileOptions,
    session: &Session,
    stored: Option<&StoredSchema>,
    new_files: &[FileEntry],
) -> Result<FileSchema> {
    if let Some(schema) = &options.schema {
        return with_extras(schema, options, session, None);
    }
    let (data, stored) = if options.format == Format::Parquet {
        parquet_schema(root, session, stored, new_files)?
    } else {
        text_schema(root, options, session, stored, new_files)?
    };
    if data.fields().is_empty() {
        return Err(Error::user(
            "CANNOT_INFER_SCHEMA",
            "there are no files yet from which columns could be inferred (UNABLE_TO_INFER_SCHEMA)",
        )
        .object(&options.path)
        .hint("land a file, or declare the columns: schema => 'id INT, …'"));
    }
    with_extras(&data, options, session, Some(stored))
}

fn text_schema(
    root: &Path,
    options: &FileOptions,
    session: &Session,
    stored: Option<&StoredSchema>,
    new_files: &[FileEntry],
) -> Result<(SchemaRef, StoredSchema)> {
    let (mut found, mut has_rows) = (Vec::new(), false);
    for file in new_files {
        let (columns, rows) = infer_file(root, file, options)?;
        found = merge_columns(found, columns);
        has_rows |= rows;
    }
    let mut columns = match stored {
        Some(stored) => evolve(stored.columns.clone(), found, options)?,
        None => found,
    };
    if has_rows {
        columns = columns.into_iter().map(|(name, t)| (name, t.settled())).collect();
    }
    let ddl: Vec<String> = columns
        .iter()
        .map(|(name, t)| format!("`{}` {}", name.replace('`', "``"), t.ddl()))
        .collect();
    let schema = if ddl.is_empty() {
        Arc::new(Schema::empty())
    } else {
        session.parse_schema(&ddl.join(", "))?
    };
    Ok((hinted(&schema, options), StoredSchema { columns, arrow: None }))
}

/// The columns of a file, and whether it has rows.
fn infer_file(
    root: &Path,
    file: &FileEntry,
    options: &FileOptions,
) -> Result<(Vec<(String, Inferred)>, bool)> {
    let text = text::read_text(&file.full_path(root), &file.path, &options.encoding)?;
    if options.format == Format::Csv {
        let split = csv::split(&text, options, None, &file.path)?;
        let has_rows = split.columns.iter().any(|column| !column.is_empty());
        return Ok((csv_columns(&split, options.infer_types), has_rows));
    }
    let (mut columns, mut has_rows) = (Vec::new(), false);
    for row in reader::json_rows(&text, options) {
        // Malformed rows are the reader's business, by its mode.
        if let Ok(Json::Object(fields, _)) = row.value {
            columns = merge_columns(columns, object_columns(&fields));
            has_rows = true;
        }
    }
    if !options.infer_types {
        columns.iter_mut().for_each(|(_, t)| *t = Inferred::Text);
    }
    Ok((columns, has_rows))
}

/// Columns that were known keep their types; what is new comes in by the mode.
fn evolve(
    known: Vec<(String, Inferred)>,
    found: Vec<(String, Inferred)>,
    options: &FileOptions,
) -> Result<Vec<(String, Inferred)>> {
    let mode = options.evolution.unwrap_or(Evolution::AddNewColumns);
    let mut out = known;
    for (name, inferred) in found {
        match out.iter_mut().find(|(k, _)| k.eq_ignore_ascii_case(&name)) {
            Some((_, t)) if *t == Inferred::Unknown => *t = inferred,
            Some((_, t)) => {
                // A struct may gain fields, like the row.
                if let (Inferred::Struct(a), Inferred::Struct(b)) = (&*t, &inferred) {
                    *t = Inferred::Struct(evolve(a.clone(), b.clone(), options)?);
                }
            }
            None => match mode {
                Evolution::AddNewColumns => out.push((name, inferred)),
                Evolution::Rescue | Evolution::None => {}
                Evolution::FailOnNewColumns => {
                    return Err(Error::data(
                        "NEW_COLUMN",
                        format!("new files have a column '{name}' that was not there before (UNKNOWN_FIELD_EXCEPTION)"),
                    )
                    .object(&options.path)
                    .hint("set schemaEvolutionMode => 'addNewColumns', or declare the schema"));
                }
            },
        }
    }
    Ok(out)
}

fn parquet_schema(
    root: &Path,
    session: &Session,
    stored: Option<&StoredSchema>,
    new_files: &[FileEntry],
) -> Result<(SchemaRef, StoredSchema)> {
    let mut fields: Vec<Field> = Vec::new();
    let mut add = |schema: &Schema| {
        for field in schema.fields() {
            if !fields.iter().any(|f| f.name().eq_ignore_ascii_case(field.name())) {
                fields.push(Field::clone(field));
            }
        }
    };
    if let Some(text) = stored.and_then(|s| s.arrow.as_deref()) {
        add(&*schema_from_hex(text)?);
    }
    for file in new_files {
        add(&*parquet::file_schema(&file.full_path(root), &file.path)?);
    }
    let schema = parquet::table_schema(&Schema::new(fields), session)?;
    let stored = StoredSchema { columns: Vec::new(), arrow: Some(schema_to_hex(&schema)?) };
    Ok((schema, stored))
}

fn schema_to_hex(schema: &Schema) -> Result<String> {
    let mut writer = arrow::ipc::writer::StreamWriter::try_new(Vec::new(), schema)?;
    writer.finish()?;
    Ok(writer.into_inner()?.iter().map(|b| format!("{b:02x}")).collect())
}

fn schema_from_hex(text: &str) -> Result<SchemaRef> {
    let damaged = || Error::storage("PROGRESS_DAMAGED", "a stored file schema cannot be read");
    let bytes: Vec<u8> = (0..text.len() / 2)
        .map(|i| text.get(2 * i..2 * i + 2).and_then(|h| u8::from_str_radix(h, 16).ok()))
        .collect::<Option<_>>()
        .ok_or_else(damaged)?;
    let reader =
        arrow::ipc::reader::StreamReader::try_new(bytes.as_slice(), None).map_err(|_| damaged())?;
    Ok(reader.schema())
}

/// Replaces the types of the columns that `schemaHints` names.
fn hinted(schema: &SchemaRef, options: &FileOptions) -> SchemaRef {
    let Some(hints) = &options.hints else { return schema.clone() };
    let mut fields: Vec<Field> = schema.fields().iter().map(|f| Field::clone(f)).collect();
    for hint in hints.fields() {
        match fields.iter_mut().find(|f| f.name().eq_ignore_ascii_case(hint.name())) {
            Some(field) => *field = field.clone().with_data_type(hint.data_type().clone()),
            None => fields.push(Field::clone(hint)),
        }
    }
    Arc::new(Schema::new(fields))
}

fn with_extras(
    schema: &SchemaRef,
    options: &FileOptions,
    session: &Session,
    stored: Option<StoredSchema>,
) -> Result<FileSchema> {
    let extras: Vec<&String> =
        [&options.rescued_column, &options.corrupt_column].into_iter().flatten().collect();
    let is_extra = |name: &str| extras.iter().any(|e| e.eq_ignore_ascii_case(name));
    // Whatever the declaration says, files may lack a value: NOT NULL is the table's business.
    let data: Vec<Field> = schema
        .fields()
        .iter()
        .filter(|f| !is_extra(f.name()))
        .map(|f| Field::clone(f).with_nullable(true))
        .collect();
    let mut rows = data.clone();
    if !extras.is_empty() {
        let text: DataType = session.parse_schema("s STRING")?.field(0).data_type().clone();
        rows.extend(extras.iter().map(|name| Field::new(name.as_str(), text.clone(), true)));
    }
    let (data, rows) = (Arc::new(Schema::new(data)), Arc::new(Schema::new(rows)));
    Ok(FileSchema { data, rows, stored })
}
