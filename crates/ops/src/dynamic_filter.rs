//! Dynamic filter: the rows whose value compares as asked with one value that changes.
//!
//! **Meaning**: the rows of the left input whose `value` column compares so with the one row of the
//! right input; none while the right input has no row. With the clock on the right it is a temporal
//! filter (`WHERE ts > now() - INTERVAL 1 DAY`).
//!
//! **Incremental form**: a delta of rows is filtered by the bound that holds after the step. When the
//! bound moves, the rows between the old and the new one enter or leave, found in the order of their
//! values: O(rows of the delta · log) + O(log + rows that enter or leave), whichever way it moves.
//!
//! **State**: slot 0, the rows in order of their values, but those without a value; slot 1, the bound.
//!
//! **Nulls**: a row without a value is never in the output, and no row is while the bound is NULL.
//!
//! **Refuses**: a bound of another type than the values, and types without an order.

use std::slice;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, Scalar};
use arrow::compute::SortOptions;
use arrow::compute::kernels::{boolean, cmp};
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::{MultisetColumn, MultisetSpec, Multisets, Slot, SlotSpec};

use crate::selection;
use crate::{Algebra, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext, input};

/// All rows are in one group.
const GROUP: u32 = 0;
/// Most rows of one output piece.
const PIECE_ROWS_MAX: usize = 1 << 14;

/// First and last value, if there is one.
type Range<'a> = (Option<&'a ArrayRef>, Option<&'a ArrayRef>);

/// How a value must compare with the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `value < bound`
    Less,
    /// `value <= bound`
    LessOrEqual,
    /// `value = bound`
    Equal,
    /// `value >= bound`
    GreaterOrEqual,
    /// `value > bound`
    Greater,
}

impl Comparison {
    /// Which of the values compare so with the bound; NULL where one of them is.
    fn holds(self, values: &dyn Array, bound: &ArrayRef) -> Result<BooleanArray> {
        let (values, bound) = (&values, &Scalar::new(bound.clone()));
        Ok(match self {
            Self::Less => cmp::lt(values, bound),
            Self::LessOrEqual => cmp::lt_eq(values, bound),
            Self::Equal => cmp::eq(values, bound),
            Self::GreaterOrEqual => cmp::gt_eq(values, bound),
            Self::Greater => cmp::gt(values, bound),
        }?)
    }
}

/// Declares a dynamic filter.
#[derive(Debug, Clone)]
pub struct DynamicFilterSpec {
    /// Schema of the rows.
    pub input: SchemaRef,
    /// The column that is compared.
    pub value: usize,
    /// How.
    pub comparison: Comparison,
    /// Schema of the right input: one column.
    pub bound: SchemaRef,
    /// One line of explain.
    pub detail: String,
}

/// The dynamic filter operator.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::datatypes::{DataType, Field, Schema};
/// # use deltaic_batch::ZBatch;
/// # use deltaic_ops::{Comparison, DynamicFilter, DynamicFilterSpec, Operator, StepContext};
/// # use deltaic_state::Slot;
/// let input = Arc::new(Schema::new(vec![
///     Field::new("id", DataType::Utf8, false),
///     Field::new("at", DataType::Int64, true),
/// ]));
/// let bound = Arc::new(Schema::new(vec![Field::new("now", DataType::Int64, true)]));
/// let filter = DynamicFilter::try_new(DynamicFilterSpec {
///     input: input.clone(),
///     value: 1,
///     comparison: Comparison::Greater,
///     bound: bound.clone(),
///     detail: "at > now".into(),
/// })?;
/// let mut state: Vec<Slot> =
///     filter.spec().slots.iter().map(Slot::try_new).collect::<Result<_, _>>()?;
///
/// let mut step = |epoch, rows: &str, clock: &str| -> Result<String, deltaic_batch::Error> {
///     let mut out: Vec<ZBatch> = Vec::new();
///     let inputs = [ZBatch::parse(&input, rows)?, ZBatch::parse(&bound, clock)?];
///     filter.step(&inputs, &mut state, &mut out, &StepContext { epoch, shard: 0, shards: 1 })?;
///     Ok(out.iter().map(ToString::to_string).collect())
/// };
/// assert_eq!(step(0, "+ a | 3\n+ b | 5\n+ c | 9", "+ 4")?, "+ b | 5\n+ c | 9\n");
/// assert_eq!(step(1, "", "- 4\n+ 6")?, "- b | 5\n");
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
#[derive(Debug)]
pub struct DynamicFilter {
    value: usize,
    comparison: Comparison,
    /// The input's columns in the order of the state: the value, then the others.
    columns: Vec<usize>,
    spec: OperatorSpec,
}

impl DynamicFilter {
    /// Checks `spec`; a user error (`UNSUPPORTED_TYPE`) if a column has no order.
    pub fn try_new(spec: DynamicFilterSpec) -> Result<Self> {
        let DynamicFilterSpec { input, value, comparison, bound, detail } = spec;
        let types = (input.fields().get(value).map(|f| f.data_type()), bound.fields().first());
        let ((Some(of_value), Some(of_bound)), 1) = (types, bound.fields().len()) else {
            return Err(misused("a dynamic filter has one value column and one bound"));
        };
        if of_value != of_bound.data_type() {
            return Err(misused(&format!("{of_value} is compared with {}", of_bound.data_type())));
        }
        let others = (0..input.fields().len()).filter(|&column| column != value);
        let columns: Vec<usize> = [value].into_iter().chain(others).collect();
        let ordered = |columns: &[usize], schema: &SchemaRef| {
            let column = |&column: &usize| MultisetColumn {
                data_type: schema.field(column).data_type().clone(),
                options: SortOptions::default(),
            };
            SlotSpec::Multisets(MultisetSpec { columns: columns.iter().map(column).collect() })
        };
        let slots = vec![ordered(&columns, &input), ordered(&[0], &bound)];
        slots.iter().try_for_each(|slot| Slot::try_new(slot).map(drop))?;
        let operator = OperatorSpec {
            name: "DynamicFilter",
            detail,
            inputs: vec![
                InputSpec { schema: input.clone(), exchange: Exchange::ByKey(vec![value]) },
                InputSpec { schema: bound, exchange: Exchange::Broadcast },
            ],
            output: input,
            slots,
            algebra: Algebra::NonLinear,
            output_is_set: false,
        };
        Ok(Self { value, comparison, columns, spec: operator })
    }

    /// The rows that enter or leave as the bound moves, as their weights say.
    fn moved(
        &self,
        rows: &Multisets,
        before: Option<&ArrayRef>,
        after: Option<&ArrayRef>,
        out: &mut dyn Output,
    ) -> Result<()> {
        let Some((from, to)) = self.range(before, after)? else { return Ok(()) };
        let found = rows.between(GROUP, from.map(slice::from_ref), to.map(slice::from_ref))?;
        let holds = |bound: Option<&ArrayRef>| match bound {
            Some(bound) => self.comparison.holds(found.columns[0].as_ref(), bound).map(Some),
            None => Ok(None),
        };
        let (old, new) = (holds(before)?, holds(after)?);
        let is_in = |holds: &Option<BooleanArray>, row: usize| {
            holds.as_ref().is_some_and(|holds| holds.is_valid(row) && holds.value(row))
        };
        let change = |row: usize| i64::from(is_in(&new, row)) - i64::from(is_in(&old, row));
        let weights = found.weights.iter().enumerate();
        let weights: Vec<i64> = weights.map(|(row, weight)| weight * change(row)).collect();
        let keep: BooleanArray = weights.iter().map(|&weight| Some(weight != 0)).collect();
        let mut columns = found.columns.clone();
        for (&column, values) in self.columns.iter().zip(found.columns) {
            columns[column] = values;
        }
        let rows = RecordBatch::try_new(self.spec.output.clone(), columns)?;
        let moved = selection::filter(&ZBatch::try_new(rows, weights)?, &keep)?;
        for start in (0..moved.num_rows()).step_by(PIECE_ROWS_MAX) {
            out.push(moved.slice(start, PIECE_ROWS_MAX.min(moved.num_rows() - start)))?;
        }
        Ok(())
    }

    /// The values outside which no row enters or leaves.
    fn range<'a>(
        &self,
        before: Option<&'a ArrayRef>,
        after: Option<&'a ArrayRef>,
    ) -> Result<Option<Range<'a>>> {
        Ok(match (before, after) {
            (None, None) => None,
            (Some(one), None) | (None, Some(one)) => Some(match self.comparison {
                Comparison::Less | Comparison::LessOrEqual => (None, Some(one)),
                Comparison::Equal => (Some(one), Some(one)),
                Comparison::GreaterOrEqual | Comparison::Greater => (Some(one), None),
            }),
            (Some(one), Some(other)) => {
                let is_less = cmp::lt(one, other)?.value(0);
                Some(if is_less { (Some(one), Some(other)) } else { (Some(other), Some(one)) })
            }
        })
    }
}

/// The bound that holds, without NULL.
fn bound(bounds: &Multisets) -> Result<Option<ArrayRef>> {
    let rows = bounds.rows(&[GROUP])?;
    match rows.weights.as_slice() {
        [] => Ok(None),
        [1] => Ok(rows.columns.first().filter(|bound| bound.logical_null_count() == 0).cloned()),
        weights => Err(misused(&format!("bounds with the weights {weights:?}"))),
    }
}

fn misused(what: &str) -> Error {
    Error::internal("DYNAMIC_FILTER", what)
}

impl Operator for DynamicFilter {
    fn spec(&self) -> &OperatorSpec {
        &self.spec
    }

    fn step(
        &self,
        inputs: &[ZBatch],
        state: &mut [Slot],
        out: &mut dyn Output,
        _cx: &StepContext,
    ) -> Result<()> {
        let (delta, moves) = (input(inputs, 0)?, input(inputs, 1)?);
        let [rows, bounds] = state else {
            return Err(Error::internal("SLOT_COUNT", "a dynamic filter has two slots"));
        };
        let (rows, bounds) = (rows.multisets()?, bounds.multisets()?);
        let before = bound(bounds)?;
        let of = vec![GROUP; moves.num_rows()];
        bounds.apply(&of, moves.rows().columns(), moves.weights())?;
        let after = bound(bounds)?;
        match (moves.is_empty(), self.comparison) {
            (true, _) => {}
            // Nothing between the two moves.
            (false, Comparison::Equal) => {
                self.moved(rows, before.as_ref(), None, out)?;
                self.moved(rows, None, after.as_ref(), out)?;
            }
            (false, _) => self.moved(rows, before.as_ref(), after.as_ref(), out)?,
        }
        if delta.is_empty() {
            return Ok(());
        }
        let has_value = boolean::is_not_null(delta.rows().column(self.value))?;
        let delta = selection::filter(delta, &has_value)?;
        let columns: Vec<ArrayRef> =
            self.columns.iter().map(|&column| delta.rows().column(column).clone()).collect();
        if let Some(bound) = after {
            let keep = self.comparison.holds(columns[0].as_ref(), &bound)?;
            out.push(selection::filter(&delta, &keep)?)?;
        }
        rows.apply(&vec![GROUP; delta.num_rows()], &columns, delta.weights())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field, Schema};
    use proptest::prelude::*;

    use super::*;

    fn schema(names: &[&str]) -> SchemaRef {
        let field = |name: &&str| Field::new(*name, DataType::Int64, true);
        Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()))
    }

    fn filter(comparison: Comparison) -> DynamicFilter {
        let (input, bound) = (schema(&["id", "at"]), schema(&["bound"]));
        let detail = String::new();
        DynamicFilter::try_new(DynamicFilterSpec { input, value: 1, comparison, bound, detail })
            .unwrap()
    }

    fn shown(value: Option<i64>) -> String {
        value.map_or("NULL".to_owned(), |value| value.to_string())
    }

    const ALL: [Comparison; 5] = [
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Equal,
        Comparison::GreaterOrEqual,
        Comparison::Greater,
    ];

    fn is_in(comparison: Comparison, value: i64, bound: i64) -> bool {
        match comparison {
            Comparison::Less => value < bound,
            Comparison::LessOrEqual => value <= bound,
            Comparison::Equal => value == bound,
            Comparison::GreaterOrEqual => value >= bound,
            Comparison::Greater => value > bound,
        }
    }

    #[test]
    fn a_second_bound_is_refused() {
        let filter = filter(Comparison::Less);
        let mut state: Vec<Slot> =
            filter.spec().slots.iter().map(|slot| Slot::try_new(slot).unwrap()).collect();
        let bounds = ZBatch::parse(&schema(&["bound"]), "+ 1\n+ 2").unwrap();
        let inputs = [ZBatch::empty(schema(&["id", "at"])), bounds];
        let cx = StepContext { epoch: 0, shard: 0, shards: 1 };
        let error = filter.step(&inputs, &mut state, &mut Vec::new(), &cx).unwrap_err();
        assert_eq!(error.code(), "DYNAMIC_FILTER");
    }

    proptest! {
        #[test]
        fn equals_the_definition(
            epochs in prop::collection::vec(
                (
                    prop::collection::vec((0..4_i64, prop::option::of(0..30_i64), -1..3_i64), 0..40),
                    prop::option::of(prop::option::of(-1..31_i64)),
                    any::<bool>(),
                ),
                1..8,
            ),
            which in 0..ALL.len(),
        ) {
            let comparison = ALL[which];
            let filter = filter(comparison);
            let mut state: Vec<Slot> =
                filter.spec().slots.iter().map(|slot| Slot::try_new(slot).unwrap()).collect();
            let mut rows: BTreeMap<(i64, Option<i64>), i64> = BTreeMap::new();
            let (mut bound, mut emitted) = (None, BTreeMap::new());
            for (delta, next, moves) in epochs {
                let mut text = String::new();
                for (id, at, weight) in delta {
                    let known = rows.entry((id, at)).or_insert(0);
                    let weight = weight.max(-*known);
                    *known += weight;
                    text += &format!("{weight:+} {id} | {}\n", shown(at));
                }
                let rows_in = ZBatch::parse(&schema(&["id", "at"]), &text).unwrap();
                let next = if moves { next } else { bound };
                let mut text = String::new();
                if next != bound {
                    text.extend(bound.map(|bound| format!("- {}\n", shown(bound))));
                    text.extend(next.map(|next| format!("+ {}\n", shown(next))));
                    bound = next;
                }
                let moves = ZBatch::parse(&schema(&["bound"]), &text).unwrap();
                let mut out: Vec<ZBatch> = Vec::new();
                let cx = StepContext { epoch: 1, shard: 0, shards: 1 };
                let inputs = [rows_in.consolidate().unwrap(), moves];
                filter.step(&inputs, &mut state, &mut out, &cx).unwrap();
                for piece in out {
                    for (line, weight) in piece.to_string().lines().zip(piece.weights().iter()) {
                        let row = line.split_once(' ').unwrap().1.to_owned();
                        *emitted.entry(row).or_insert(0) += weight;
                    }
                }
                emitted.retain(|_, weight| *weight != 0);
                let expected = rows.iter().filter(|((_, at), weight)| {
                    let values = at.zip(bound.flatten());
                    **weight != 0 && values.is_some_and(|(at, b)| is_in(comparison, at, b))
                });
                let expected: BTreeMap<String, i64> = expected
                    .map(|((id, at), weight)| (format!("{id} | {}", shown(*at)), *weight))
                    .collect();
                prop_assert_eq!(&emitted, &expected);
            }
        }
    }
}
