//! [`Value`], [`Row`] and [`Bag`]: plain data that shares nothing with the kernel, for oracles.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array,
    Int64Array, RecordBatch, RecordBatchOptions, StringArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, SchemaRef, TimeUnit,
    TimestampMicrosecondType,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use deltaic_batch::ZBatch;

/// One SQL value. NULL is least; NaN equals itself and is the greatest number; −0.0 is 0.0.
#[derive(Debug, Clone)]
pub enum Value {
    /// NULL.
    Null,
    /// BOOLEAN.
    Bool(bool),
    /// Any integer.
    Int(i128),
    /// REAL or DOUBLE.
    Float(f64),
    /// DECIMAL as unscaled value and scale.
    Decimal(i128, i8),
    /// TEXT.
    Text(String),
    /// Days since 1970.
    Date(i32),
    /// Microseconds since 1970.
    Timestamp(i64),
    /// Anything else, as Arrow prints it.
    Other(String),
}

impl Value {
    /// Text, for short tests.
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// True for NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Int(_) => 2,
            Self::Float(_) => 3,
            Self::Decimal(..) => 4,
            Self::Text(_) => 5,
            Self::Date(_) => 6,
            Self::Timestamp(_) => 7,
            Self::Other(_) => 8,
        }
    }
}

fn cmp_float(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => cmp_float(*a, *b),
            (Self::Decimal(a, s), Self::Decimal(b, t)) => s.cmp(t).then(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) | (Self::Other(a), Self::Other(b)) => a.cmp(b),
            (Self::Date(a), Self::Date(b)) => a.cmp(b),
            (Self::Timestamp(a), Self::Timestamp(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

/// A row.
pub type Row = Vec<Value>;

/// A multiset of rows; no entry has count zero.
pub type Bag = BTreeMap<Row, i64>;

/// Adds `weight` copies of `row`.
pub fn add_row(bag: &mut Bag, row: Row, weight: i64) {
    let count = bag.entry(row.clone()).or_insert(0);
    *count += weight;
    if *count == 0 {
        bag.remove(&row);
    }
}

/// Adds all of `other`.
pub fn add_bag(bag: &mut Bag, other: &Bag) {
    for (row, weight) in other {
        add_row(bag, row.clone(), *weight);
    }
}

/// The values of a column.
pub fn column_values(column: &ArrayRef) -> Result<Vec<Value>, String> {
    let say = |e: arrow::error::ArrowError| e.to_string();
    let rows = 0..column.len();
    let value = |row: usize, get: &dyn Fn(usize) -> Value| {
        if column.is_null(row) { Value::Null } else { get(row) }
    };
    let all = |get: &dyn Fn(usize) -> Value| rows.clone().map(|row| value(row, get)).collect();
    Ok(match column.data_type() {
        DataType::Null => vec![Value::Null; column.len()],
        DataType::Boolean => all(&|row| Value::Bool(column.as_boolean().value(row))),
        DataType::UInt64 => {
            let typed = column.as_primitive::<arrow::datatypes::UInt64Type>();
            all(&|row| Value::Int(i128::from(typed.value(row))))
        }
        t if t.is_integer() => {
            let typed = cast(column, &DataType::Int64).map_err(say)?;
            let typed = typed.as_primitive::<Int64Type>();
            all(&|row| Value::Int(i128::from(typed.value(row))))
        }
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let typed = cast(column, &DataType::Float64).map_err(say)?;
            let typed = typed.as_primitive::<Float64Type>();
            all(&|row| Value::Float(typed.value(row)))
        }
        DataType::Decimal128(_, scale) => {
            let typed = column.as_primitive::<Decimal128Type>();
            all(&|row| Value::Decimal(typed.value(row), *scale))
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let typed = cast(column, &DataType::Utf8).map_err(say)?;
            let typed = typed.as_string::<i32>();
            all(&|row| Value::Text(typed.value(row).to_owned()))
        }
        DataType::Date32 => {
            let typed = column.as_primitive::<Date32Type>();
            all(&|row| Value::Date(typed.value(row)))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let typed = column.as_primitive::<TimestampMicrosecondType>();
            all(&|row| Value::Timestamp(typed.value(row)))
        }
        _ => {
            let options = FormatOptions::default();
            let shown = ArrayFormatter::try_new(column.as_ref(), &options).map_err(say)?;
            all(&|row| Value::Other(shown.value(row).to_string()))
        }
    })
}

/// Rows of a record batch, in order.
pub fn batch_rows(batch: &RecordBatch) -> Result<Vec<Row>, String> {
    let columns: Result<Vec<Vec<Value>>, String> =
        batch.columns().iter().map(column_values).collect();
    let columns = columns?;
    Ok((0..batch.num_rows())
        .map(|row| columns.iter().map(|column| column[row].clone()).collect())
        .collect())
}

/// The sum of a delta's rows.
pub fn to_bag(delta: &ZBatch) -> Result<Bag, String> {
    let mut bag = Bag::new();
    for (row, weight) in batch_rows(delta.rows())?.into_iter().zip(delta.weights().iter()) {
        add_row(&mut bag, row, *weight);
    }
    Ok(bag)
}

/// A delta with one physical row per entry, as given.
pub fn to_delta(schema: &SchemaRef, rows: &[(Row, i64)]) -> Result<ZBatch, String> {
    let columns: Result<Vec<ArrayRef>, String> = schema
        .fields()
        .iter()
        .enumerate()
        .map(|(at, field)| {
            let values: Vec<&Value> = rows.iter().map(|(row, _)| &row[at]).collect();
            to_column(field.data_type(), &values)
        })
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let batch = RecordBatch::try_new_with_options(schema.clone(), columns?, &options)
        .map_err(|e| e.to_string())?;
    let weights: Vec<i64> = rows.iter().map(|(_, weight)| *weight).collect();
    ZBatch::try_new(batch, weights).map_err(|e| e.to_string())
}

/// A bag as a consolidated delta.
pub fn bag_to_delta(schema: &SchemaRef, bag: &Bag) -> Result<ZBatch, String> {
    let rows: Vec<(Row, i64)> = bag.iter().map(|(row, weight)| (row.clone(), *weight)).collect();
    to_delta(schema, &rows)
}

/// The types that [`to_delta`] can make.
pub(crate) fn to_column(data_type: &DataType, values: &[&Value]) -> Result<ArrayRef, String> {
    let misfit = |value: &Value| format!("{value:?} is no {data_type}");
    macro_rules! typed {
        ($array:ty, $value:ident => $($pattern:pat => $convert:expr),+) => {{
            let values: Result<Vec<_>, String> = values
                .iter()
                .map(|&$value| match $value {
                    Value::Null => Ok(None),
                    $($pattern => $convert.map(Some).ok_or_else(|| misfit($value)),)+
                    other => Err(misfit(other)),
                })
                .collect();
            Arc::new(<$array>::from(values?)) as ArrayRef
        }};
    }
    Ok(match data_type {
        DataType::Boolean => typed!(BooleanArray, v => Value::Bool(b) => Some(*b)),
        DataType::Int8 => {
            let wide = to_column(&DataType::Int64, values)?;
            cast(&wide, data_type).map_err(|e| e.to_string())?
        }
        DataType::Int32 => typed!(Int32Array, v => Value::Int(i) => i32::try_from(*i).ok()),
        DataType::Int64 => typed!(Int64Array, v => Value::Int(i) => i64::try_from(*i).ok()),
        DataType::Float64 => typed!(Float64Array, v => Value::Float(f) => Some(*f)),
        DataType::Utf8 => typed!(StringArray, v => Value::Text(t) => Some(t.clone())),
        DataType::Date32 => typed!(Date32Array, v => Value::Date(d) => Some(*d)),
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            typed!(TimestampMicrosecondArray, v => Value::Timestamp(t) => Some(*t))
        }
        DataType::Decimal128(precision, scale) => {
            let column =
                typed!(Decimal128Array, v => Value::Decimal(d, s) => (s == scale).then_some(*d));
            let column = column.as_primitive::<Decimal128Type>().clone();
            let column = column.with_precision_and_scale(*precision, *scale);
            Arc::new(column.map_err(|e| e.to_string())?)
        }
        other => return Err(format!("no test data of type {other}")),
    })
}
