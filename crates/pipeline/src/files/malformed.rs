//! Rows that do not fit: the modes of `read_files`, the corrupt record and the rescued column.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, StringArray};
use arrow::compute::filter;
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result};

use super::options::{FileOptions, Mode};
use deltaic_plan::type_name;

/// Something in a row that does not fit the schema.
#[derive(Debug)]
pub(super) struct Misfit {
    pub(super) row: usize,
    /// Column and its value as JSON, when one value is the matter and not the row as a whole.
    pub(super) cell: Option<(String, String)>,
    pub(super) message: String,
}

/// A file's columns before the modes are applied.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) columns: Vec<ArrayRef>,
    pub(super) rows: usize,
    pub(super) misfits: Vec<Misfit>,
    /// Values of fields that the schema does not have: (row, name, value as JSON).
    pub(super) extra: Vec<(usize, String, String)>,
}

impl Draft {
    /// Columns in the order of `schema`: data, then rescued and corrupt where asked for.
    pub(super) fn finish<'a>(
        mut self,
        options: &FileOptions,
        schema: &SchemaRef,
        file: &str,
        place: impl Fn(usize) -> (u64, &'a str),
    ) -> Result<(Vec<ArrayRef>, usize)> {
        self.misfits.sort_by_key(|m| m.row);
        let rescues = options.rescued_column.is_some();
        let mode = options.effective_mode();
        let counts = |m: &&Misfit| !(rescues && m.cell.is_some());
        if mode == Mode::FailFast
            && let Some(misfit) = self.misfits.iter().find(counts)
        {
            return Err(malformed(file, place(misfit.row).0, misfit));
        }
        let corrupt: BTreeMap<usize, ()> =
            self.misfits.iter().filter(counts).map(|m| (m.row, ())).collect();
        if options.rescued_column.is_some() {
            self.columns.push(Arc::new(self.rescued()));
        }
        if options.corrupt_column.is_some() {
            let texts = (0..self.rows).map(|row| corrupt.contains_key(&row).then(|| place(row).1));
            self.columns.push(Arc::new(texts.collect::<StringArray>()));
        }
        let mut rows = self.rows;
        if mode == Mode::DropMalformed && !corrupt.is_empty() {
            let keep: BooleanArray =
                (0..rows).map(|row| Some(!corrupt.contains_key(&row))).collect();
            for column in &mut self.columns {
                *column = filter(column, &keep)?;
            }
            rows -= corrupt.len();
        }
        for (column, field) in self.columns.iter_mut().zip(schema.fields()) {
            if column.data_type() != field.data_type() {
                *column = arrow::compute::cast(column, field.data_type())?;
            }
        }
        Ok((self.columns, rows))
    }

    /// One JSON object per row that has something to rescue.
    fn rescued(&self) -> StringArray {
        let mut by_row: BTreeMap<usize, Vec<(&str, &str)>> = BTreeMap::new();
        for misfit in &self.misfits {
            if let Some((name, value)) = &misfit.cell {
                by_row.entry(misfit.row).or_default().push((name, value));
            }
        }
        for (row, name, value) in &self.extra {
            by_row.entry(*row).or_default().push((name, value));
        }
        let text = |fields: &Vec<(&str, &str)>| {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{}:{value}", serde_json::Value::from(*name)))
                .collect();
            format!("{{{}}}", fields.join(","))
        };
        (0..self.rows).map(|row| by_row.get(&row).map(text)).collect()
    }
}

fn malformed(file: &str, line: u64, misfit: &Misfit) -> Error {
    let message = match &misfit.cell {
        Some((column, _)) => format!("column '{column}': {}", misfit.message),
        None => misfit.message.clone(),
    };
    Error::data("MALFORMED_ROW", format!("{message} (MALFORMED_RECORD_IN_PARSING)"))
        .object(format!("{file}:{line}"))
        .hint(
            "correct the file, or set mode => 'PERMISSIVE' (NULL), mode => 'DROPMALFORMED', \
             rescuedDataColumn or columnNameOfCorruptRecord",
        )
}

/// Message about a value of the wrong type, its text shortened.
pub(super) fn wrong_type(text: &str, to: &arrow::datatypes::DataType) -> String {
    let short: String = text.chars().take(60).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("'{short}{dots}' is no {}", type_name(to))
}
