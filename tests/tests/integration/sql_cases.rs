//! The recorded cases of kind `sql`: rows and net changes of a view after every batch.
//!
//! `cases/README.md` has the format. Doubles are compared with a relative tolerance, decimals and
//! timestamps by value.

use std::fs;
use std::path::Path;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use deltaic::{View, ZBatch, schema};
use serde_json::Value;

/// A batch that leaves BIGINT: an error, as SUM over BIGINT is exact or an error.
const OVERFLOWS: [(&str, usize); 1] = [("C015", 1)];

#[test]
fn sql_cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut failures = Vec::new();
    let mut count = 0;
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "json")) {
        let case: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        if case["kind"] == "sql" {
            count += 1;
            if let Err(failure) = run(&case) {
                failures.push(format!("{}: {failure}\n  {}", case["id"], case["sql"]));
            }
        }
    }
    assert_eq!(count, 45, "number of cases");
    assert!(failures.is_empty(), "{} of {count} fail\n{}", failures.len(), failures.join("\n"));
}

struct Table {
    name: String,
    schema: SchemaRef,
    batches: Vec<String>,
}

fn run(case: &Value) -> Result<(), String> {
    let tables: Vec<Table> = case["tables"].as_object().unwrap().iter().map(table).collect();
    let id = case["id"].as_str().unwrap();
    let plan = || {
        let schemas = tables.iter().map(|t| (t.name.clone(), t.schema.clone()));
        View::sql(case["sql"].as_str().unwrap(), schemas)
    };
    let start = || plan().map_err(|e| e.to_string());
    let mut view = start()?;
    let expected = case["expected_after_each_batch"].as_array().unwrap();
    for (i, rows) in expected.iter().enumerate() {
        let delta = view.apply(changes(&tables, i..i + 1));
        if OVERFLOWS.contains(&(id, i)) {
            let error = delta.expect_err("the sum does not fit");
            assert_eq!(error.code(), "ARITHMETIC_OVERFLOW", "{error}");
            // A failed update is not kept; the next one starts from the tables.
            view = start()?;
            view.apply(changes(&tables, 0..i)).map_err(|e| e.to_string())?;
            view.apply(changes(&tables, i..i + 2)).map_err(|e| e.to_string())?;
            return same(&view.snapshot().unwrap(), &expected[i + 1], i + 1);
        }
        let delta = delta.map_err(|e| format!("batch {i}: {e}"))?;
        same(&view.snapshot().map_err(|e| e.to_string())?, rows, i)?;
        if i > 0 {
            same_changes(&delta, &case["expected_net_changes"][i], i)?;
        }
    }
    Ok(())
}

fn table((name, table): (&String, &Value)) -> Table {
    let columns: Vec<String> = table["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| {
            let data_type = match c["type"].as_str().unwrap() {
                "TIMESTAMP" => "TIMESTAMP_NTZ",
                other => other,
            };
            format!("{} {data_type}", c["name"].as_str().unwrap())
        })
        .collect();
    let batches = table["batches"].as_array().unwrap().iter().map(batch_text).collect();
    Table { name: name.clone(), schema: schema(&columns.join(", ")).unwrap(), batches }
}

/// A batch in the text form of Z-set batches.
fn batch_text(batch: &Value) -> String {
    let lines = batch.as_array().unwrap().iter().map(|change| {
        let sign = if change["op"] == 1 { "+" } else { "-" };
        let values: Vec<String> =
            change["row"].as_array().unwrap().iter().map(value_text).collect();
        format!("{sign} {}\n", values.join(" | "))
    });
    lines.collect()
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::String(text) => format!("\"{}\"", text.replace('"', "\"\"")),
        other => other.to_string(),
    }
}

/// The changes of some batches, all tables at once.
fn changes(tables: &[Table], batches: std::ops::Range<usize>) -> Vec<(String, ZBatch)> {
    (tables.iter())
        .flat_map(|table| {
            let texts = table.batches.get(batches.clone()).unwrap_or_default();
            texts
                .iter()
                .map(|text| (table.name.clone(), ZBatch::parse(&table.schema, text).unwrap()))
        })
        .collect()
}

fn same(actual: &RecordBatch, expected: &Value, batch: usize) -> Result<(), String> {
    let types: Vec<DataType> = data_types(actual);
    let mut expected: Vec<Vec<String>> =
        expected.as_array().unwrap().iter().map(|row| expected_row(row, &types)).collect();
    let mut actual = rows(actual);
    expected.sort();
    actual.sort();
    if expected == actual {
        return Ok(());
    }
    Err(format!("batch {batch}: expected {expected:?}, got {actual:?}"))
}

fn same_changes(actual: &ZBatch, expected: &Value, batch: usize) -> Result<(), String> {
    let types = data_types(actual.rows());
    let mut wanted: Vec<(Vec<String>, i64)> = Vec::new();
    for change in expected.as_array().unwrap() {
        wanted.push((expected_row(&change["row"], &types), change["op"].as_i64().unwrap()));
    }
    let mut got: Vec<(Vec<String>, i64)> = Vec::new();
    for (row, weight) in rows(actual.rows()).into_iter().zip(actual.weights().iter()) {
        let copies = usize::try_from(weight.unsigned_abs()).unwrap();
        got.extend(std::iter::repeat_n((row, weight.signum()), copies));
    }
    wanted.sort();
    got.sort();
    if wanted == got {
        return Ok(());
    }
    Err(format!("batch {batch}: expected changes {wanted:?}, got {got:?}"))
}

fn data_types(batch: &RecordBatch) -> Vec<DataType> {
    batch.schema().fields().iter().map(|field| field.data_type().clone()).collect()
}

fn rows(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::default();
    (0..batch.num_rows())
        .map(|row| {
            let cells = batch.columns().iter().map(|column| {
                if column.is_null(row) {
                    return "NULL".to_owned();
                }
                let text =
                    ArrayFormatter::try_new(column, &options).unwrap().value(row).to_string();
                canonical(&text, column.data_type())
            });
            cells.collect()
        })
        .collect()
}

fn expected_row(row: &Value, types: &[DataType]) -> Vec<String> {
    let values = row.as_array().unwrap();
    assert_eq!(values.len(), types.len(), "number of columns");
    (values.iter().zip(types))
        .map(|(value, data_type)| match value {
            Value::Null => "NULL".into(),
            Value::String(text) => canonical(text, data_type),
            other => canonical(&other.to_string(), data_type),
        })
        .collect()
}

/// Equal texts for equal values of a type.
fn canonical(text: &str, data_type: &DataType) -> String {
    match data_type {
        DataType::Float32 | DataType::Float64 => {
            let value: f64 = match text {
                "Infinity" => f64::INFINITY,
                "-Infinity" => f64::NEG_INFINITY,
                other => other.parse().unwrap_or(f64::NAN),
            };
            format!("{:.9e}", if value == 0.0 { 0.0 } else { value })
        }
        DataType::Timestamp(..) => {
            let text = text.replace('T', " ");
            let text = text.trim_end_matches('Z').trim_end_matches("+00");
            if text.contains('.') { shortened(text) } else { text.to_owned() }
        }
        data_type if data_type.is_numeric() && text.contains('.') => shortened(text),
        _ => text.to_owned(),
    }
}

fn shortened(text: &str) -> String {
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
