//! SUM and AVG of floats without rounding on the way, for what DataFusion executes.
//!
//! DataFusion adds floats in the order in which they come, so that its sum depends on the order of
//! the rows. These functions take its functions' places, and give what the operators of a view give:
//! the exact sum, rounded once.

use std::collections::HashMap;
use std::mem::size_of;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Float64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_datafusion_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use deltaic_state::ExactSum;

static SUM: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| FloatSum::function(What::Sum));
static AVG: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| FloatSum::function(What::Average));
/// `sum_rest(DOUBLE)`: what the sum loses when it is rounded.
pub(super) static REST: LazyLock<Arc<AggregateUDF>> =
    LazyLock::new(|| FloatSum::function(What::Rest));

/// What is made of the exact sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    Sum,
    Average,
    Rest,
}

/// The exact form of a function over Float64, if it is a sum.
pub(super) fn exact(name: &str) -> Option<Arc<AggregateUDF>> {
    match name {
        "sum" => Some(SUM.clone()),
        "avg" => Some(AVG.clone()),
        _ => None,
    }
}

/// `sum(DOUBLE)`, `avg(DOUBLE)` or `sum_rest(DOUBLE)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FloatSum {
    what: What,
    signature: Signature,
}

impl FloatSum {
    fn function(what: What) -> Arc<AggregateUDF> {
        let signature = Signature::exact(vec![DataType::Float64], Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(Self { what, signature }))
    }
}

impl AggregateUDFImpl for FloatSum {
    fn name(&self) -> &str {
        match self.what {
            What::Sum => "sum",
            What::Average => "avg",
            What::Rest => "sum_rest",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let distinct = args.is_distinct.then(HashMap::new);
        Ok(Box::new(One { what: self.what, total: Total::default(), distinct }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}[total]", args.name), DataType::Binary, false))])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(
        &self,
        _: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Many { what: self.what, totals: Vec::new() }))
    }
}

/// Sum and number of the values of a group.
#[derive(Debug, Clone, Default)]
struct Total {
    sum: ExactSum,
    count: i64,
}

impl Total {
    fn add(&mut self, value: f64, weight: i64) {
        self.sum.add(value, weight);
        self.count += weight;
    }

    #[expect(clippy::cast_precision_loss, reason = "no group has 2^53 rows")]
    fn value(&self, what: What) -> Option<f64> {
        match (self.count, what) {
            (0, _) => None,
            (_, What::Sum) => Some(self.sum.value()),
            (_, What::Rest) => Some(self.sum.rest()),
            (count, What::Average) => Some(self.sum.value() / count as f64),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.count.to_le_bytes().to_vec();
        self.sum.encode(&mut bytes);
        bytes
    }

    fn merge(&mut self, bytes: &[u8]) -> Result<()> {
        let (count, sum) = bytes.split_first_chunk().ok_or_else(damaged)?;
        let sum = ExactSum::decode(sum).ok_or_else(damaged)?;
        self.count += i64::from_le_bytes(*count);
        self.sum.merge(&sum);
        Ok(())
    }
}

fn damaged() -> DataFusionError {
    exec_datafusion_err!("a partial sum of floats is damaged")
}

/// The sum of one group or window; with DISTINCT how often each value is there, by its bits.
#[derive(Debug)]
struct One {
    what: What,
    total: Total,
    distinct: Option<HashMap<u64, i64>>,
}

impl One {
    fn add(&mut self, values: &[ArrayRef], weight: i64) -> Result<()> {
        let canonical: Vec<ArrayRef> = values.iter().map(deltaic_batch::canonicalize).collect();
        for value in floats(&canonical)?.iter().flatten() {
            self.add_value(value, weight);
        }
        Ok(())
    }

    /// Adds a canonical value.
    fn add_value(&mut self, value: f64, weight: i64) {
        let Some(distinct) = &mut self.distinct else { return self.total.add(value, weight) };
        let times = distinct.entry(value.to_bits()).or_default();
        let before = *times;
        *times += weight;
        match (before > 0, *times > 0) {
            (false, true) => self.total.add(value, 1),
            (true, false) => self.total.add(value, -1),
            _ => {}
        }
    }
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values, 1)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values, -1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.total.value(self.what)))
    }

    fn size(&self) -> usize {
        let distinct = self.distinct.as_ref().map_or(0, |d| d.capacity() * size_of::<(u64, i64)>());
        size_of::<Self>() + self.total.sum.heap_bytes() + distinct
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let bytes = match &self.distinct {
            None => self.total.encode(),
            Some(distinct) => {
                let present = distinct.iter().filter(|(_, times)| **times > 0);
                present.flat_map(|(bits, _)| bits.to_le_bytes()).collect()
            }
        };
        Ok(vec![ScalarValue::Binary(Some(bytes))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for bytes in totals(states)?.iter().flatten() {
            if self.distinct.is_none() {
                self.total.merge(bytes)?;
                continue;
            }
            let (values, rest) = bytes.as_chunks();
            if !rest.is_empty() {
                return Err(damaged());
            }
            for bits in values {
                self.add_value(f64::from_bits(u64::from_le_bytes(*bits)), 1);
            }
        }
        Ok(())
    }
}

/// The sums of all groups.
#[derive(Debug)]
struct Many {
    what: What,
    totals: Vec<Total>,
}

/// A group's rows pass when the filter is true for them.
fn passes(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl GroupsAccumulator for Many {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        self.totals.resize_with(groups, Total::default);
        for (row, (value, &group)) in floats(values)?.iter().zip(group_indices).enumerate() {
            if let Some(value) = value
                && passes(filter, row)
            {
                self.totals[group].add(value, 1);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let totals = emit_to.take_needed(&mut self.totals);
        let values = totals.iter().map(|total| total.value(self.what));
        Ok(Arc::new(values.collect::<Float64Array>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let totals = emit_to.take_needed(&mut self.totals);
        let encoded = totals.iter().map(Total::encode);
        Ok(vec![Arc::new(BinaryArray::from_iter_values(encoded))])
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        group_indices: &[usize],
        groups: usize,
    ) -> Result<()> {
        self.totals.resize_with(groups, Total::default);
        for (bytes, &group) in totals(states)?.iter().zip(group_indices) {
            self.totals[group].merge(bytes.ok_or_else(damaged)?)?;
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let encoded = floats(values)?.iter().enumerate().map(|(row, value)| {
            let mut total = Total::default();
            if let Some(value) = value
                && passes(filter, row)
            {
                total.add(value, 1);
            }
            total.encode()
        });
        Ok(vec![Arc::new(BinaryArray::from_iter_values(encoded))])
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.totals.capacity() * size_of::<Total>()
    }
}

fn floats(values: &[ArrayRef]) -> Result<&Float64Array> {
    let column = values.first().and_then(|column| column.as_primitive_opt::<Float64Type>());
    column.ok_or_else(|| exec_datafusion_err!("a sum of floats of something else"))
}

fn totals(states: &[ArrayRef]) -> Result<&BinaryArray> {
    states.first().and_then(|column| column.as_binary_opt::<i32>()).ok_or_else(damaged)
}
