//! One file as record batches of the call's schema.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, new_null_array};
use arrow::datatypes::{Schema, SchemaRef};
use deltaic_batch::{Error, Result};

use super::convert::convert;
use super::csv;
use super::json::Json;
use super::json_columns::column;
use super::listing::FileEntry;
use super::malformed::{Draft, Misfit, wrong_type};
use super::metadata::{metadata_column, metadata_field};
use super::options::{FileOptions, Format};
use super::parquet;
use super::schema::FileSchema;
use super::text::read_text;

/// Rows of a file; with the `_metadata` column last if asked for.
pub(crate) fn read_file(
    root: &Path,
    file: &FileEntry,
    options: &FileOptions,
    schema: &FileSchema,
    with_metadata: bool,
) -> Result<Vec<RecordBatch>> {
    let path = file.full_path(root);
    let batches = match options.format {
        Format::Parquet => {
            let rows = parquet::read(&path, &file.path, &schema.data)?;
            rows.into_iter().map(|b| without_extras(&b, schema)).collect::<Result<Vec<_>>>()?
        }
        Format::Csv => {
            let text = read_text(&path, &file.path, &options.encoding)?;
            vec![read_csv(&text, options, schema, &file.path)?]
        }
        Format::Json => {
            let text = read_text(&path, &file.path, &options.encoding)?;
            vec![read_json(&text, options, schema, &file.path)?]
        }
    };
    if !with_metadata {
        return Ok(batches);
    }
    batches
        .into_iter()
        .map(|batch| {
            let mut fields = batch.schema().fields().to_vec();
            fields.push(Arc::new(metadata_field()));
            let mut columns = batch.columns().to_vec();
            columns.push(metadata_column(file, batch.num_rows())?);
            Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
        })
        .collect()
}

/// Parquet rows always fit; the extra columns are NULL.
fn without_extras(batch: &RecordBatch, schema: &FileSchema) -> Result<RecordBatch> {
    let mut columns = batch.columns().to_vec();
    for field in schema.rows.fields().iter().skip(columns.len()) {
        columns.push(new_null_array(field.data_type(), batch.num_rows()));
    }
    record_batch(&schema.rows, columns, batch.num_rows())
}

fn record_batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

fn read_csv(
    text: &str,
    options: &FileOptions,
    schema: &FileSchema,
    file: &str,
) -> Result<RecordBatch> {
    let width = schema.data.fields().len();
    let split = csv::split(text, options, Some(width), file)?;
    let rows = split.rows.len();
    let mut draft = Draft { columns: Vec::new(), rows, misfits: Vec::new(), extra: Vec::new() };
    let positions = csv_positions(&split, schema, options, file)?;
    for (field, position) in schema.data.fields().iter().zip(&positions) {
        let texts: Option<&StringArray> = position.and_then(|i| split.columns.get(i));
        let Some(texts) = texts else {
            draft.columns.push(new_null_array(field.data_type(), rows));
            continue;
        };
        let (array, bad) = convert(texts, field.data_type(), options)?;
        draft.columns.push(array);
        draft.misfits.extend(bad.into_iter().map(|row| Misfit {
            row,
            cell: Some((field.name().clone(), quoted(texts.value(row)))),
            message: wrong_type(texts.value(row), field.data_type()),
        }));
    }
    csv_widths(&split, &mut draft, options);
    csv_unknown_columns(&split, &positions, &mut draft, options);
    let place = |row: usize| (split.rows[row].line, split.rows[row].raw);
    let (columns, rows) = draft.finish(options, &schema.rows, file, place)?;
    record_batch(&schema.rows, columns, rows)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Position in the file of each column of the schema: by header, else by order.
fn csv_positions(
    split: &csv::CsvText<'_>,
    schema: &FileSchema,
    options: &FileOptions,
    file: &str,
) -> Result<Vec<Option<usize>>> {
    let fields = schema.data.fields();
    let Some(header) = &split.header else {
        return Ok((0..fields.len()).map(Some).collect());
    };
    let find = |name: &str| header.iter().position(|h| h.eq_ignore_ascii_case(name));
    let positions: Vec<Option<usize>> = fields.iter().map(|f| find(f.name())).collect();
    if positions.iter().all(Option::is_none) && options.schema.is_some() {
        return Err(Error::data(
            "MALFORMED_ROW",
            format!("no declared column is in the header ({})", header.join(", ")),
        )
        .object(format!("{file}:1"))
        .hint("columns are matched by name; set header => false if the first line is data"));
    }
    Ok(positions)
}

/// Rows with too few or too many fields.
fn csv_widths(split: &csv::CsvText<'_>, draft: &mut Draft, options: &FileOptions) {
    let width = split.columns.len();
    for (row, place) in split.rows.iter().enumerate() {
        let rescued = place.fields > width && options.rescued_column.is_some();
        if place.fields != width && !rescued {
            let message = format!("the row has {} fields, expected {width}", place.fields);
            draft.misfits.push(Misfit { row, cell: None, message });
        }
    }
    let extra = split.extra.iter();
    draft.extra.extend(extra.map(|(row, i, text)| (*row, format!("_c{i}"), quoted(text))));
}

/// Header columns that the schema does not have are rescued.
fn csv_unknown_columns(
    split: &csv::CsvText<'_>,
    positions: &[Option<usize>],
    draft: &mut Draft,
    options: &FileOptions,
) {
    if options.rescued_column.is_none() {
        return;
    }
    for (i, name) in split.names().iter().enumerate() {
        if positions.contains(&Some(i)) {
            continue;
        }
        for row in 0..split.rows.len() {
            if let Some(text) = split.cell(i, row) {
                draft.extra.push((row, name.clone(), quoted(text)));
            }
        }
    }
}

/// A JSON row: where it stands and what it holds.
pub(super) struct JsonRow<'a> {
    pub(super) line: u64,
    pub(super) raw: &'a str,
    pub(super) value: std::result::Result<Json<'a>, String>,
}

/// Rows of a JSON file: one object per line, or with `multiLine` objects and arrays of objects.
pub(super) fn json_rows<'a>(text: &'a str, options: &FileOptions) -> Vec<JsonRow<'a>> {
    if options.multi_line {
        return json_documents(text);
    }
    let mut rows = Vec::new();
    for (i, raw) in text.split('\n').enumerate() {
        let raw = raw.strip_suffix('\r').unwrap_or(raw);
        if !raw.trim().is_empty() {
            let line = u64::try_from(i).unwrap_or(u64::MAX - 1) + 1;
            rows.push(JsonRow { line, raw, value: Json::parse(raw) });
        }
    }
    rows
}

fn json_documents(text: &str) -> Vec<JsonRow<'_>> {
    let line_of = |at: usize| 1 + text[..at].bytes().map(|b| u64::from(b == b'\n')).sum::<u64>();
    match Json::parse_all(text) {
        Err((at, message)) => {
            vec![JsonRow { line: line_of(at), raw: text, value: Err(message) }]
        }
        Ok(values) => values
            .into_iter()
            .flat_map(|(at, value)| {
                let line = line_of(at);
                let items = match value {
                    Json::Array(items, _) => items,
                    other => vec![other],
                };
                items.into_iter().map(move |value| {
                    let raw = match &value {
                        Json::Object(_, raw) | Json::Array(_, raw) => raw,
                        _ => "",
                    };
                    JsonRow { line, raw, value: Ok(value) }
                })
            })
            .collect(),
    }
}

fn read_json(
    text: &str,
    options: &FileOptions,
    schema: &FileSchema,
    file: &str,
) -> Result<RecordBatch> {
    let rows = json_rows(text, options);
    let fields = schema.data.fields();
    let mut draft =
        Draft { columns: Vec::new(), rows: rows.len(), misfits: Vec::new(), extra: Vec::new() };
    let mut cells: Vec<Vec<Option<&Json<'_>>>> = vec![vec![None; rows.len()]; fields.len()];
    let mut names = FieldNames::new(&schema.data);
    for (row, json) in rows.iter().enumerate() {
        let members = match &json.value {
            Ok(Json::Object(members, _)) => members,
            Ok(_) => {
                draft.misfits.push(row_misfit(row, "the row is not a JSON object".to_string()));
                continue;
            }
            Err(message) => {
                draft
                    .misfits
                    .push(row_misfit(row, format!("the row is not valid JSON: {message}")));
                continue;
            }
        };
        for (i, (name, value)) in members.iter().enumerate() {
            match names.find(i, name) {
                Some(column) if cells[column][row].is_none() => cells[column][row] = Some(value),
                Some(_) if options.rescued_column.is_none() => {
                    let message = format!("field '{name}' is there twice");
                    draft.misfits.push(row_misfit(row, message));
                }
                _ if options.rescued_column.is_some() => {
                    draft.extra.push((row, name.to_string(), value.to_text()));
                }
                _ => {}
            }
        }
    }
    for (field, cells) in fields.iter().zip(&cells) {
        let (array, bad) = column(cells, field.data_type(), options)?;
        draft.columns.push(array);
        for row in bad {
            let text = cells[row].map_or_else(String::new, Json::to_text);
            let message = wrong_type(&text, field.data_type());
            draft.misfits.push(Misfit { row, cell: Some((field.name().clone(), text)), message });
        }
    }
    let place = |row: usize| (rows[row].line, rows[row].raw);
    let (columns, rows) = draft.finish(options, &schema.rows, file, place)?;
    record_batch(&schema.rows, columns, rows)
}

fn row_misfit(row: usize, message: String) -> Misfit {
    Misfit { row, cell: None, message }
}

/// Finds columns by name without regard to case. Rows mostly have their fields in the same order,
/// so the last answer for a position is tried first.
struct FieldNames {
    by_name: HashMap<String, usize>,
    last: Vec<(String, Option<usize>)>,
}

impl FieldNames {
    fn new(schema: &Schema) -> Self {
        let names = schema.fields().iter().enumerate();
        Self { by_name: names.map(|(i, f)| (f.name().to_lowercase(), i)).collect(), last: vec![] }
    }

    fn find(&mut self, position: usize, name: &str) -> Option<usize> {
        if let Some((last, column)) = self.last.get(position)
            && last == name
        {
            return *column;
        }
        let column = self.by_name.get(&name.to_lowercase()).copied();
        self.last.truncate(position);
        if self.last.len() == position {
            self.last.push((name.to_string(), column));
        }
        column
    }
}
