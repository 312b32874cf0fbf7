//! What an aggregate is asked to compute: keys and calls.

use std::fmt;

use arrow::datatypes::{Field, SchemaRef};

/// Declares an [`crate::Aggregate`].
#[derive(Debug, Clone)]
pub struct AggregateSpec {
    /// Schema of the input rows.
    pub input: SchemaRef,
    /// Input columns to group by; none means one row over all of the input, always.
    pub keys: Vec<usize>,
    /// One output column each, after the key columns.
    pub calls: Vec<AggregateCall>,
}

/// One aggregate function call.
#[derive(Debug, Clone)]
pub struct AggregateCall {
    /// The function.
    pub function: AggregateFunction,
    /// Count each different value of a group once (`COUNT(DISTINCT x)`, `SUM(DISTINCT x)`, …).
    pub distinct: bool,
    /// Its argument, a column of the input; `None` for [`AggregateFunction::CountStar`] alone.
    pub input: Option<usize>,
    /// A boolean column of the input: only rows where it is TRUE count.
    pub filter: Option<usize>,
    /// The output column. Its type decides how the result is represented.
    pub output: Field,
}

/// The functions with an incremental form of their own.
///
/// Input and output types:
///
/// | function | input | output |
/// |---|---|---|
/// | `CountStar`, `Count` | none, anything | Int64 (or UInt64) |
/// | `Sum` | integers | Int64, UInt64, Decimal128 |
/// | `Sum` | Float16, Float32, Float64 | Float64 |
/// | `SumRest` | Float16, Float32, Float64 | Float64 |
/// | `Sum` | Decimal32, Decimal64, Decimal128 | any of these, of the same scale |
/// | `Avg` | integers, floats | Float64 |
/// | `Avg` | Decimal32, Decimal64, Decimal128 | any of these, scale not below the input's |
/// | `Min`, `Max` | anything with an order | the input's type |
/// | `BoolAnd`, `BoolOr` | Boolean | Boolean |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    /// `COUNT(*)`.
    CountStar,
    /// `COUNT(x)`: values that are not NULL.
    Count,
    /// `SUM(x)`.
    Sum,
    /// What [`Self::Sum`] of floats loses when the exact sum is rounded.
    SumRest,
    /// `AVG(x)`.
    Avg,
    /// `MIN(x)`.
    Min,
    /// `MAX(x)`.
    Max,
    /// `BOOL_AND(x)`.
    BoolAnd,
    /// `BOOL_OR(x)`.
    BoolOr,
}

impl fmt::Display for AggregateSpec {
    /// `by region: SUM(amount), COUNT(*) FILTER (is_open)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |&column: &usize| match self.input.fields().get(column) {
            Some(field) => field.name().clone(),
            None => format!("#{column}"),
        };
        if !self.keys.is_empty() {
            let keys: Vec<String> = self.keys.iter().map(name).collect();
            write!(f, "by {}", keys.join(", "))?;
        }
        for (i, call) in self.calls.iter().enumerate() {
            let separator = match (i, self.keys.is_empty()) {
                (0, true) => "",
                (0, false) => ": ",
                _ => ", ",
            };
            let distinct = if call.distinct { "DISTINCT " } else { "" };
            let argument = call.input.as_ref().map_or_else(|| "*".to_owned(), name);
            write!(f, "{separator}{}({distinct}{argument})", call.function)?;
            if let Some(filter) = &call.filter {
                write!(f, " FILTER ({})", name(filter))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for AggregateFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CountStar | Self::Count => "COUNT",
            Self::Sum => "SUM",
            Self::SumRest => "SUM_REST",
            Self::Avg => "AVG",
            Self::Min => "MIN",
            Self::Max => "MAX",
            Self::BoolAnd => "BOOL_AND",
            Self::BoolOr => "BOOL_OR",
        })
    }
}
