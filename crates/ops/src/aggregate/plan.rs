//! From calls to what is kept and computed: sources of rows, accumulators, extremes, results.
//!
//! Calls share what they can: `SUM(x)`, `AVG(x)` and `COUNT(x)` keep one sum and one count.

use arrow::datatypes::{DataType, IntervalUnit};
use deltaic_batch::{Error, Result};
use deltaic_state::AccumulatorType;

use super::spec::{AggregateCall, AggregateFunction, AggregateSpec};

/// Precision up to which a decimal times any 64-bit weight, and any sum that a group's 64-bit row
/// count allows, fits into 128 bits.
const NARROW_PRECISION_MAX: u8 = 19;

/// Which rows of the delta count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Source {
    /// Rows where this column is not NULL.
    pub(crate) not_null: Option<usize>,
    /// Rows where this boolean column is TRUE.
    pub(crate) filter: Option<usize>,
    /// Each value of a group once: the position of its multisets.
    pub(crate) distinct: Option<usize>,
}

/// What is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// The weights of the rows.
    Count,
    /// The weights of the rows where this boolean column is TRUE.
    CountTrue(usize),
    /// A numeric column times the weights.
    Sum(usize),
}

/// One accumulator column of the group table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accumulator {
    /// Position of its source.
    pub(crate) source: usize,
    pub(crate) measure: Measure,
    pub(crate) kind: AccumulatorType,
}

/// A multiset of values per group: those of a column in the rows where a filter is TRUE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) input: usize,
    pub(crate) filter: Option<usize>,
}

/// How a call's result comes about; numbers are positions of accumulators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Count(usize),
    /// NULL where the count is zero.
    Sum {
        sum: usize,
        count: usize,
    },
    /// What the sum of floats loses by rounding.
    Rest {
        sum: usize,
        count: usize,
    },
    /// Of a decimal: the power of ten between the scales of input and output.
    Avg {
        sum: usize,
        count: usize,
        scale_up: u32,
    },
    /// All or any of the `count` values are TRUE.
    All {
        trues: usize,
        count: usize,
    },
    Any {
        trues: usize,
        count: usize,
    },
    /// The least or the greatest value; `values` is the position of the multisets.
    Extreme {
        values: usize,
        greatest: bool,
    },
}

/// All of it. The first source is all rows, the first accumulator their number.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) sources: Vec<Source>,
    pub(crate) accumulators: Vec<Accumulator>,
    pub(crate) outcomes: Vec<Outcome>,
    /// Whose values are kept per group, for MIN, MAX and DISTINCT.
    pub(crate) multisets: Vec<Values>,
}

impl Plan {
    pub(crate) fn try_new(spec: &AggregateSpec) -> Result<Self> {
        let rows = Accumulator { source: 0, measure: Measure::Count, kind: AccumulatorType::I64 };
        let mut plan = Self {
            sources: vec![Source::default()],
            accumulators: vec![rows],
            outcomes: Vec::new(),
            multisets: Vec::new(),
        };
        for call in &spec.calls {
            let outcome = plan.add(spec, call).map_err(|e| e.object(call.output.name()))?;
            plan.outcomes.push(outcome);
        }
        Ok(plan)
    }

    fn add(&mut self, spec: &AggregateSpec, call: &AggregateCall) -> Result<Outcome> {
        use AggregateFunction as F;
        let output = call.output.data_type();
        if let Some(filter) = call.filter
            && column_type(spec, filter)? != &DataType::Boolean
        {
            return Err(unsupported("the filter is not a boolean column"));
        }
        let input = match (call.function, call.input) {
            (F::CountStar, _) => {
                check(is_count(output), "a count is a 64-bit integer")?;
                let source = Source { filter: call.filter, ..Source::default() };
                return Ok(Outcome::Count(self.count(source)));
            }
            (_, Some(input)) => input,
            (_, None) => return Err(unsupported("the function needs an argument")),
        };
        let input_type = column_type(spec, input)?;
        if matches!(call.function, F::Min | F::Max) {
            check(is_ordered(input_type), &format!("{input_type} has no order here"))?;
            check(output == input_type, "an extreme has the type of its argument")?;
            let values = self.values(call, input);
            return Ok(Outcome::Extreme { values, greatest: call.function == F::Max });
        }
        let source = self.source(spec, call, input);
        match call.function {
            F::Count => {
                check(is_count(output), "a count is a 64-bit integer")?;
                Ok(Outcome::Count(self.count(source)))
            }
            F::Sum => {
                check_sum(input_type, output)?;
                let sum = self.sum(source, input, input_type)?;
                Ok(Outcome::Sum { sum, count: self.count(source) })
            }
            F::SumRest => {
                let floats = input_type.is_floating() && output == &DataType::Float64;
                check(floats, "what is left of a sum is that of floats")?;
                let sum = self.sum(source, input, input_type)?;
                Ok(Outcome::Rest { sum, count: self.count(source) })
            }
            F::Avg => {
                let scale_up = check_avg(input_type, output)?;
                let sum = self.sum(source, input, input_type)?;
                Ok(Outcome::Avg { sum, count: self.count(source), scale_up })
            }
            F::BoolAnd | F::BoolOr => {
                let boolean = input_type == &DataType::Boolean && output == input_type;
                check(boolean, "argument and result are booleans")?;
                let count = self.count(source);
                let trues =
                    self.accumulator(source, Measure::CountTrue(input), AccumulatorType::I64);
                Ok(if call.function == F::BoolAnd {
                    Outcome::All { trues, count }
                } else {
                    Outcome::Any { trues, count }
                })
            }
            F::CountStar | F::Min | F::Max => Err(unsupported("the function was dealt with")),
        }
    }

    fn source(&mut self, spec: &AggregateSpec, call: &AggregateCall, input: usize) -> Source {
        let distinct = call.distinct.then(|| self.values(call, input));
        let not_null = spec.input.field(input).is_nullable().then_some(input);
        Source { not_null, filter: call.filter, distinct }
    }

    fn values(&mut self, call: &AggregateCall, input: usize) -> usize {
        position(&mut self.multisets, Values { input, filter: call.filter })
    }

    fn accumulator(&mut self, source: Source, measure: Measure, kind: AccumulatorType) -> usize {
        let source = position(&mut self.sources, source);
        position(&mut self.accumulators, Accumulator { source, measure, kind })
    }

    fn count(&mut self, source: Source) -> usize {
        self.accumulator(source, Measure::Count, AccumulatorType::I64)
    }

    fn sum(&mut self, source: Source, input: usize, input_type: &DataType) -> Result<usize> {
        let kind = match input_type {
            _ if input_type.is_integer() => AccumulatorType::I128,
            _ if input_type.is_floating() => AccumulatorType::Exact,
            DataType::Decimal32(_, _) | DataType::Decimal64(_, _) => AccumulatorType::I128,
            DataType::Decimal128(precision, _) if *precision <= NARROW_PRECISION_MAX => {
                AccumulatorType::I128
            }
            DataType::Decimal128(_, _) => AccumulatorType::I256,
            other => return Err(unsupported(&format!("{other} cannot be added up here"))),
        };
        Ok(self.accumulator(source, Measure::Sum(input), kind))
    }
}

/// Where `item` is in `items`, at their end if it was not there.
fn position<T: PartialEq>(items: &mut Vec<T>, item: T) -> usize {
    items.iter().position(|other| *other == item).unwrap_or_else(|| {
        items.push(item);
        items.len() - 1
    })
}

pub(crate) fn column_type(spec: &AggregateSpec, column: usize) -> Result<&DataType> {
    spec.input.fields().get(column).map(|field| field.data_type()).ok_or_else(|| {
        Error::internal("COLUMN_INDEX", format!("an aggregate refers to column {column}"))
    })
}

fn unsupported(why: &str) -> Error {
    Error::user("UNSUPPORTED_AGGREGATE", format!("this aggregate cannot be kept fresh: {why}"))
}

fn check(condition: bool, why: &str) -> Result<()> {
    if condition { Ok(()) } else { Err(unsupported(why)) }
}

fn is_count(output: &DataType) -> bool {
    matches!(output, DataType::Int64 | DataType::UInt64)
}

/// Types whose order SQL and the row encoding agree on.
fn is_ordered(input: &DataType) -> bool {
    use DataType as D;
    input.is_integer()
        || input.is_floating()
        || matches!(
            input,
            D::Boolean
                | D::Utf8
                | D::LargeUtf8
                | D::Utf8View
                | D::Binary
                | D::LargeBinary
                | D::BinaryView
                | D::FixedSizeBinary(_)
                | D::Date32
                | D::Date64
                | D::Time32(_)
                | D::Time64(_)
                | D::Timestamp(_, _)
                | D::Duration(_)
                | D::Interval(IntervalUnit::YearMonth)
                | D::Decimal32(_, _)
                | D::Decimal64(_, _)
                | D::Decimal128(_, _)
                | D::Decimal256(_, _)
        )
}

/// Scale of a decimal of up to 128 bits; integers have scale 0.
fn exact_scale(data_type: &DataType) -> Option<i8> {
    match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale) => Some(*scale),
        other => other.is_integer().then_some(0),
    }
}

fn check_sum(input: &DataType, output: &DataType) -> Result<()> {
    let wide = matches!(output, DataType::Int64 | DataType::UInt64) || !output.is_integer();
    let fits = match (exact_scale(input), exact_scale(output)) {
        (Some(input), Some(output)) => input == output && wide,
        _ => input.is_floating() && output == &DataType::Float64,
    };
    check(fits, &format!("a sum of {input} as {output}"))
}

fn check_avg(input: &DataType, output: &DataType) -> Result<u32> {
    let wrong = || unsupported(&format!("an average of {input} as {output}"));
    if output == &DataType::Float64 && (input.is_integer() || input.is_floating()) {
        return Ok(0);
    }
    match (exact_scale(input), exact_scale(output)) {
        (Some(from), Some(to)) if !input.is_integer() && !output.is_integer() => {
            let up = i16::from(to) - i16::from(from);
            // At 10^38, a sum that overflows 256 bits has an average that overflows 128.
            u32::try_from(up).ok().filter(|&up| up <= 38).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}
