//! An aligned table: numbers to the right, the rest to the left.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;

use super::cells::{Cells, options};

/// Writes the rows, and their number when there are many.
pub(super) fn write(
    out: &mut dyn Write,
    schema: &Schema,
    batches: &[RecordBatch],
) -> io::Result<()> {
    let names: Vec<String> = schema.fields().iter().map(|f| one_line(f.name())).collect();
    let right: Vec<bool> = schema.fields().iter().map(|f| f.data_type().is_numeric()).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let options = options();
    for batch in batches {
        let columns: Vec<Cells<'_>> = (batch.columns().iter())
            .map(|c| Cells::try_new(c.as_ref(), &options))
            .collect::<io::Result<_>>()?;
        for row in 0..batch.num_rows() {
            let cells =
                columns.iter().map(|c| Ok(one_line(&c.text(row)?.unwrap_or("NULL".into()))));
            rows.push(cells.collect::<io::Result<_>>()?);
        }
    }
    write_text(out, &names, &rows, &right)
}

/// Writes rows of text; `right` tells which columns are set to the right.
pub(crate) fn write_text(
    out: &mut dyn Write,
    names: &[String],
    rows: &[Vec<String>],
    right: &[bool],
) -> io::Result<()> {
    let width = |text: &str| text.chars().count();
    let mut widths: Vec<usize> = names.iter().map(|n| width(n)).collect();
    for row in rows {
        for (w, cell) in widths.iter_mut().zip(row) {
            *w = width(cell).max(*w);
        }
    }
    let line = |cells: &[String]| -> String {
        let mut line = String::new();
        for (n, cell) in cells.iter().enumerate() {
            let gap = " ".repeat(widths[n] - width(cell));
            line += if n > 0 { "  " } else { "" };
            line += &if right[n] { format!("{gap}{cell}") } else { format!("{cell}{gap}") };
        }
        line.trim_end().to_owned()
    };
    writeln!(out, "{}", line(names))?;
    let rule: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
    writeln!(out, "{}", rule.join("  "))?;
    for row in rows {
        writeln!(out, "{}", line(row))?;
    }
    if rows.len() > 20 {
        writeln!(out, "({} rows)", rows.len())?;
    }
    Ok(())
}

/// Line breaks and tabs would break the table.
fn one_line(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
}
