//! Standard output: rows as a table, CSV or JSON.

mod cells;
mod csv;
mod json;
mod table;

use std::io::{self, BufWriter, Stdout, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;

use crate::args::RowFormat;
use crate::complaint::Complaint;

/// Buffered standard output. A reader that goes away ends the command without noise.
#[derive(Debug)]
pub(crate) struct Out(BufWriter<Stdout>);

impl Out {
    /// The process's.
    pub(crate) fn stdout() -> Self {
        Self(BufWriter::new(io::stdout()))
    }

    /// A line.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Complaint> {
        Ok(writeln!(self.0, "{text}")?)
    }

    /// Writes what is buffered.
    pub(crate) fn flush(&mut self) -> Result<(), Complaint> {
        Ok(self.0.flush()?)
    }

    /// Rows in a form.
    pub(crate) fn rows(
        &mut self,
        schema: &Schema,
        batches: &[RecordBatch],
        format: RowFormat,
    ) -> Result<(), Complaint> {
        let out = &mut self.0;
        match format {
            RowFormat::Table => table::write(out, schema, batches)?,
            RowFormat::Csv => csv::write(out, schema, batches)?,
            RowFormat::Json => json::write(out, schema, batches)?,
        }
        Ok(())
    }
}

/// Rows whose values could not be put into text.
fn unprintable(e: arrow::error::ArrowError) -> io::Error {
    io::Error::other(e)
}
