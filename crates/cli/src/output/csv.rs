//! CSV: a header line, quotes where needed, NULL as nothing and an empty text as `""`.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;

use super::cells::{Cells, options};

/// Writes the rows.
pub(super) fn write(
    out: &mut dyn Write,
    schema: &Schema,
    batches: &[RecordBatch],
) -> io::Result<()> {
    let names: Vec<String> = schema.fields().iter().map(|f| quoted(f.name())).collect();
    writeln!(out, "{}", names.join(","))?;
    let options = options();
    for batch in batches {
        let columns: Vec<Cells<'_>> = (batch.columns().iter())
            .map(|c| Cells::try_new(c.as_ref(), &options))
            .collect::<io::Result<_>>()?;
        for row in 0..batch.num_rows() {
            for (n, column) in columns.iter().enumerate() {
                if n > 0 {
                    out.write_all(b",")?;
                }
                if let Some(text) = column.text(row)? {
                    out.write_all(quoted(&text).as_bytes())?;
                }
            }
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    let plain = !text.is_empty() && !text.contains([',', '"', '\n', '\r']);
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}
