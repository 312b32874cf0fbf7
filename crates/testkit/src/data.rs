//! Tables and epochs of changes, drawn from tapes.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::ZBatch;

use crate::query::{Column, Kind};
use crate::{Bag, Row, Tape, Value, add_row, to_delta};

/// One delta per named source.
pub type Epoch = Vec<(String, ZBatch)>;

const fn column(kind: Kind, summable: bool) -> Column {
    Column { kind, summable }
}

const T: &[(&str, Column)] = &[
    ("k", column(Kind::Int, true)),
    ("a", column(Kind::Int, true)),
    ("x", column(Kind::Float, true)),
    ("s", column(Kind::Text, false)),
    ("d", column(Kind::Decimal, true)),
];

const U: &[(&str, Column)] = &[
    ("k", column(Kind::Int, true)),
    ("big", column(Kind::Int, false)),
    ("y", column(Kind::Float, false)),
    ("s", column(Kind::Text, false)),
    ("dt", column(Kind::Date, false)),
];

/// Names of the tables that queries and epochs are drawn over.
pub fn table_names() -> &'static [&'static str] {
    &["t", "u"]
}

/// Columns of a table.
pub fn table_columns(name: &str) -> &'static [(&'static str, Column)] {
    if name == "u" { U } else { T }
}

/// Schema of a table; every column may be NULL.
pub fn table_schema(name: &str) -> SchemaRef {
    let field = |(name, column): &(&str, Column)| {
        let data_type = match column.kind {
            Kind::Int => DataType::Int64,
            Kind::Float => DataType::Float64,
            Kind::Text => DataType::Utf8,
            Kind::Decimal => DataType::Decimal128(12, 2),
            Kind::DecimalSum => DataType::Decimal128(22, 2),
            Kind::Date => DataType::Date32,
        };
        Field::new(*name, data_type, true)
    };
    Arc::new(Schema::new(table_columns(name).iter().map(field).collect::<Vec<_>>()))
}

/// A value of a column: few of them, so that rows repeat and keys meet, with the odd ones among
/// them. Columns that may be added up keep to values whose sums are exact.
fn draw_value(tape: &mut Tape<'_>, column: Column) -> Value {
    if tape.chance(30) {
        return Value::Null;
    }
    let odd_nan = f64::from_bits(0xfff8_0000_0000_1234);
    match (column.kind, column.summable) {
        // Half of all keys are 0.
        (Kind::Int, true) => Value::Int(tape.pick(&[0, 1, 0, 2, 0, 3, 0, -1, 0, 40])),
        (Kind::Int, false) => Value::Int(tape.pick(&[
            0,
            1,
            2,
            i128::from(i64::MIN),
            i128::from(i64::MAX),
            9_007_199_254_740_993,
        ])),
        (Kind::Float, true) => Value::Float(tape.pick(&[
            0.0,
            0.5,
            -0.0,
            -1.25,
            3.0,
            1024.0,
            f64::NAN,
            odd_nan,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ])),
        (Kind::Float, false) => Value::Float(tape.pick(&[
            0.0,
            -0.0,
            0.5,
            f64::MAX,
            f64::MIN_POSITIVE,
            5e-324,
            f64::NAN,
            odd_nan,
            f64::INFINITY,
        ])),
        (Kind::Text, _) => Value::text(tape.pick(&[
            "a",
            "",
            "b",
            "ab",
            "é",
            "a value that is longer than an inlined string view, twice over",
        ])),
        (Kind::Decimal | Kind::DecimalSum, _) => {
            Value::Decimal(tape.pick(&[0, 1, -250, 999_999_999_999, -999_999_999_999]), 2)
        }
        (Kind::Date, _) => Value::Date(tape.pick(&[0, 19_000, -1, 19_001, -700_000, 2_900_000])),
    }
}

/// A constant that occurs in a column of this kind.
pub(crate) fn constant_of(tape: &mut Tape<'_>, column: Column) -> Value {
    let value = match column.kind {
        Kind::Float => Value::Float(tape.pick(&[0.0, 0.5, 3.0])),
        Kind::Date => Value::Date(tape.pick(&[19_000, 0])),
        Kind::Int => Value::Int(tape.pick(&[0, 1, 2])),
        Kind::Text | Kind::Decimal | Kind::DecimalSum => draw_value(tape, column),
    };
    if value.is_null() { constant_of(tape, column) } else { value }
}

fn draw_row(tape: &mut Tape<'_>, table: &str) -> Row {
    table_columns(table).iter().map(|(_, column)| draw_value(tape, *column)).collect()
}

/// Changes of the tables, epoch by epoch: `tapes[e][c]` decides the `c`-th change of epoch `e`.
/// Inserts, copies of rows, deletes, updates, and rows that come and go within an epoch; a table
/// never holds a row a negative number of times at the end of an epoch. The deltas are raw: rows
/// may repeat, cancel, and be retracted before they are inserted.
pub fn draw_epochs(tapes: &[Vec<Vec<u8>>]) -> Result<Vec<Epoch>, String> {
    let mut tables: BTreeMap<&str, Bag> = BTreeMap::new();
    let mut epochs = Vec::new();
    for changes in tapes {
        let mut deltas: BTreeMap<&str, Vec<(Row, i64)>> = BTreeMap::new();
        for bytes in changes {
            let mut tape = Tape::new(bytes);
            let name = tape.pick(table_names());
            let table = tables.entry(name).or_default();
            let rows = draw_change(&mut tape, name, table);
            for (row, weight) in &rows {
                add_row(table, row.clone(), *weight);
            }
            deltas.entry(name).or_default().extend(rows);
        }
        let epoch: Result<Epoch, String> = deltas
            .iter()
            .map(|(name, rows)| Ok(((*name).to_owned(), to_delta(&table_schema(name), rows)?)))
            .collect();
        epochs.push(epoch?);
    }
    Ok(epochs)
}

fn draw_change(tape: &mut Tape<'_>, name: &str, table: &Bag) -> Vec<(Row, i64)> {
    let what = tape.choose(10);
    let existing = table.keys().nth(tape.choose(table.len())).cloned();
    match (what, existing) {
        (4, Some(row)) => vec![(row, 1)],
        (5 | 6, Some(row)) => vec![(row, -1)],
        (7 | 8, Some(row)) => {
            let mut after = row.clone();
            let at = tape.choose(row.len());
            after[at] = draw_value(tape, table_columns(name)[at].1);
            vec![(row, -1), (after, 1)]
        }
        (9, _) => {
            let row = draw_row(tape, name);
            vec![(row.clone(), -1), (row, 1)]
        }
        _ => vec![(draw_row(tape, name), 1)],
    }
}

/// The sum of the epochs' deltas, table by table; every table is there.
pub fn integrate(epochs: &[Epoch]) -> Result<BTreeMap<String, Bag>, String> {
    let mut tables: BTreeMap<String, Bag> =
        table_names().iter().map(|name| ((*name).to_owned(), Bag::new())).collect();
    for (name, delta) in epochs.iter().flatten() {
        let table = tables.entry(name.clone()).or_default();
        for (row, weight) in crate::to_bag(delta)? {
            add_row(table, row, weight);
        }
    }
    Ok(tables)
}
