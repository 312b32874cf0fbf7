//! Top-k: the rows in the first places of each group, by an order.
//!
//! **Meaning**: the rows of each group (or of all rows) stand in the order of the sort columns, ties
//! in the order of the other columns, ascending, NULL first; a row of weight `w` takes `w` places.
//! The output has the rows in the places from `offset` to `offset + limit`: `ORDER BY … LIMIT …
//! OFFSET …`, `row_number() OVER (PARTITION BY … ORDER BY …) <= k`. If asked for, their place is a
//! last column.
//!
//! **Incremental form**: the places of the touched groups before and after the delta, compared row
//! by row. O(rows of the delta · log) + O(offset + limit) per touched group.
//!
//! **State**: slot 0, a group table with the number of rows per group; slot 1, the rows of each
//! group in order. A group is dropped with its last row.
//!
//! **Nulls**: NULL is a group of its own; the sort columns say where it stands.
//!
//! **Negative counts**: a row of negative weight takes no place.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::{GroupTable, Moves, Places, Slot, SortKey};

use crate::ordered::OrderedRows;
use crate::{Algebra, InputSpec, Operator, OperatorSpec, Output, StepContext, input};

/// Most rows of one output piece.
const PIECE_ROWS_MAX: usize = 1 << 14;

/// Declares a top-k.
#[derive(Debug, Clone)]
pub struct TopKSpec {
    /// Schema of the input.
    pub input: SchemaRef,
    /// Columns of the group; none for one group of all rows.
    pub partition: Vec<usize>,
    /// The order within a group.
    pub order: Vec<SortKey>,
    /// Places that are passed over.
    pub offset: u64,
    /// The number of places after them.
    pub limit: u64,
    /// A 64-bit integer column for the place of a row in its group, from 1.
    pub number: Option<Field>,
}

/// The top-k operator.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::datatypes::{DataType, Field, Schema};
/// # use deltaic_batch::ZBatch;
/// # use deltaic_ops::{Operator, StepContext, TopK, TopKSpec};
/// # use deltaic_state::{Slot, SortKey};
/// let schema = Arc::new(Schema::new(vec![
///     Field::new("region", DataType::Utf8, true),
///     Field::new("amount", DataType::Int64, true),
/// ]));
/// let largest = SortKey { column: 1, descending: true, nulls_first: false };
/// let top = TopK::try_new(TopKSpec {
///     input: schema.clone(),
///     partition: vec![0],
///     order: vec![largest],
///     offset: 0,
///     limit: 1,
///     number: None,
/// })?;
/// let mut state: Vec<Slot> =
///     top.spec().slots.iter().map(Slot::try_new).collect::<Result<_, _>>()?;
///
/// let mut step = |epoch, delta: &str| -> Result<String, deltaic_batch::Error> {
///     let mut out: Vec<ZBatch> = Vec::new();
///     let delta = ZBatch::parse(&schema, delta)?;
///     top.step(&[delta], &mut state, &mut out, &StepContext { epoch, shard: 0, shards: 1 })?;
///     Ok(out.iter().map(ToString::to_string).collect())
/// };
/// assert_eq!(step(0, "+ EU | 3\n+ EU | 4")?, "+ EU | 4\n");
/// assert_eq!(step(1, "- EU | 4")?, "- EU | 4\n+ EU | 3\n");
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
#[derive(Debug)]
pub struct TopK {
    rows: OrderedRows,
    places: Places,
    spec: OperatorSpec,
}

impl TopK {
    /// Checks `spec`; a user error (`UNSUPPORTED_TYPE`) if a column has no order.
    pub fn try_new(spec: TopKSpec) -> Result<Self> {
        let rows = OrderedRows::try_new(&spec.input, &spec.partition, &spec.order)?;
        let slots = rows.slots()?;
        let is_integer =
            |number: &Field| matches!(number.data_type(), DataType::Int64 | DataType::UInt64);
        if !spec.number.as_ref().is_none_or(is_integer) {
            return Err(misused("the number of a row is not a 64-bit integer"));
        }
        let exchange = rows.exchange();
        let fields = spec.input.fields().iter().cloned();
        let number = spec.number.iter().map(|number| Arc::new(number.clone()));
        let operator = OperatorSpec {
            name: "TopK",
            detail: spec.to_string(),
            inputs: vec![InputSpec { schema: spec.input.clone(), exchange }],
            output: Arc::new(Schema::new(fields.chain(number).collect::<Vec<_>>())),
            slots,
            algebra: Algebra::NonLinear,
            output_is_set: spec.number.is_some(),
        };
        let numbered = spec.number.is_some();
        let places = Places { offset: spec.offset, limit: spec.limit, numbered };
        Ok(Self { rows, places, spec: operator })
    }

    /// Whole rows from the columns of groups and multisets.
    fn emit(&self, groups: &GroupTable, moves: &Moves, out: &mut dyn Output) -> Result<()> {
        let count = moves.weights.len();
        for start in (0..count).step_by(PIECE_ROWS_MAX) {
            let length = PIECE_ROWS_MAX.min(count - start);
            let values: Vec<ArrayRef> =
                moves.columns.iter().map(|values| values.slice(start, length)).collect();
            let of = &moves.groups[start..start + length];
            let mut columns = self.rows.columns(groups, of, &values)?;
            if self.places.numbered {
                let numbers = moves.numbers[start..start + length].to_vec();
                let numbers: ArrayRef = Arc::new(UInt64Array::from(numbers));
                let wanted = self.spec.output.fields().last().map(|field| field.data_type());
                columns.push(cast(&numbers, wanted.unwrap_or(&DataType::UInt64))?);
            }
            let options = RecordBatchOptions::new().with_row_count(Some(length));
            let output = self.spec.output.clone();
            let rows = RecordBatch::try_new_with_options(output, columns, &options)?;
            let weights = moves.weights[start..start + length].to_vec();
            out.push(ZBatch::try_new(rows, weights)?)?;
        }
        Ok(())
    }
}

fn misused(what: &str) -> Error {
    Error::internal("TOP_K", what)
}

impl Operator for TopK {
    fn spec(&self) -> &OperatorSpec {
        &self.spec
    }

    fn needs_consolidated(&self) -> bool {
        false
    }

    fn step(
        &self,
        inputs: &[ZBatch],
        state: &mut [Slot],
        out: &mut dyn Output,
        _cx: &StepContext,
    ) -> Result<()> {
        let delta = input(inputs, 0)?;
        if delta.is_empty() {
            return Ok(());
        }
        let [groups, multisets] = state else {
            return Err(Error::internal("SLOT_COUNT", "a top-k has two slots"));
        };
        let (groups, multisets) = (groups.groups()?, multisets.multisets()?);
        let pick = |columns: &[usize]| -> Vec<ArrayRef> {
            columns.iter().map(|&column| delta.rows().column(column).clone()).collect()
        };
        let group_of_row = groups.upsert(&pick(&self.rows.partition), delta.num_rows())?;
        let touched = groups.sort_touched(0).to_vec();
        OrderedRows::count(groups, &group_of_row, delta.weights())?;
        let values = pick(&self.rows.values);
        let moves = multisets.apply_to_places(
            &group_of_row,
            &values,
            delta.weights(),
            &touched,
            self.places,
        )?;
        self.emit(groups, &moves, out)?;
        groups.settle_if(|group| multisets.is_group_empty(group))
    }
}

impl std::fmt::Display for TopKSpec {
    /// `2 by amount DESC per region`, as explain shows it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |column: usize| self.input.field(column).name().as_str();
        write!(f, "{}", self.limit)?;
        if self.offset > 0 {
            write!(f, " after {}", self.offset)?;
        }
        for (i, key) in self.order.iter().enumerate() {
            let direction = if key.descending { " DESC" } else { "" };
            let nulls = match (key.descending, key.nulls_first) {
                (true, false) => " NULLS LAST",
                (false, true) => " NULLS FIRST",
                _ => "",
            };
            let start = if i == 0 { " by " } else { ", " };
            write!(f, "{start}{}{direction}{nulls}", name(key.column))?;
        }
        if !self.partition.is_empty() {
            let per: Vec<&str> = self.partition.iter().map(|&column| name(column)).collect();
            write!(f, " per {}", per.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Group, amount, name.
    type Row = (i64, Option<i64>, &'static str);

    fn schema() -> SchemaRef {
        let field = |name, data_type| Field::new(name, data_type, true);
        Arc::new(Schema::new(vec![
            field("name", DataType::Utf8),
            field("group", DataType::Int64),
            field("amount", DataType::Int64),
        ]))
    }

    fn top(offset: u64, limit: u64, numbered: bool, grouped: bool) -> TopK {
        let order = vec![SortKey { column: 2, descending: true, nulls_first: false }];
        let number = numbered.then(|| Field::new("number", DataType::UInt64, false));
        let partition = if grouped { vec![1] } else { Vec::new() };
        let input = schema();
        TopK::try_new(TopKSpec { input, partition, order, offset, limit, number }).unwrap()
    }

    fn start(top: &TopK) -> Vec<Slot> {
        top.spec().slots.iter().map(|slot| Slot::try_new(slot).unwrap()).collect()
    }

    fn step(top: &TopK, state: &mut [Slot], delta: &ZBatch) -> String {
        let mut out: Vec<ZBatch> = Vec::new();
        let cx = StepContext { epoch: 1, shard: 0, shards: 1 };
        top.step(std::slice::from_ref(delta), state, &mut out, &cx).unwrap();
        out.iter().map(ToString::to_string).collect()
    }

    fn parse(text: &str) -> ZBatch {
        ZBatch::parse(&schema(), text).unwrap()
    }

    #[test]
    fn the_next_row_takes_the_place_of_one_that_goes() {
        let top = top(0, 2, false, true);
        let mut state = start(&top);
        let first = "+ a | 1 | 10\n+ b | 1 | 30\n+ c | 1 | 20\n+ d | 2 | 5";
        let out = "+ b | 1 | 30\n+ c | 1 | 20\n+ d | 2 | 5\n";
        assert_eq!(step(&top, &mut state, &parse(first)), out);
        assert_eq!(step(&top, &mut state, &parse("- a | 1 | 10")), "");
        assert_eq!(step(&top, &mut state, &parse("+ a | 1 | 25")), "+ a | 1 | 25\n- c | 1 | 20\n");
        assert_eq!(step(&top, &mut state, &parse("- b | 1 | 30")), "- b | 1 | 30\n+ c | 1 | 20\n");
        step(&top, &mut state, &parse("- a | 1 | 25\n- c | 1 | 20\n- d | 2 | 5"));
        assert!(state.iter().all(Slot::is_empty));
    }

    #[test]
    fn numbers_move_with_the_rows() {
        let top = top(1, 2, true, false);
        let mut state = start(&top);
        let out = step(&top, &mut state, &parse("+2 a | 1 | 10\n+ b | 1 | 30\n+ c | 1 | NULL"));
        assert_eq!(out, "+ a | 1 | 10 | 2\n+ a | 1 | 10 | 3\n");
        let out = step(&top, &mut state, &parse("- b | 1 | 30"));
        assert_eq!(out, "- a | 1 | 10 | 3\n+ c | 1 | NULL | 3\n");
    }

    #[test]
    fn rows_without_columns_have_places() {
        let input = Arc::new(Schema::empty());
        let (partition, order) = (Vec::new(), Vec::new());
        let spec =
            TopKSpec { input: input.clone(), partition, order, offset: 1, limit: 2, number: None };
        let top = TopK::try_new(spec).unwrap();
        let mut state = start(&top);
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let rows = RecordBatch::try_new_with_options(input, Vec::new(), &options).unwrap();
        let mut out: Vec<ZBatch> = Vec::new();
        let cx = StepContext { epoch: 1, shard: 0, shards: 1 };
        let delta = ZBatch::try_new(rows, vec![5]).unwrap();
        top.step(&[delta], &mut state, &mut out, &cx).unwrap();
        assert_eq!(out.iter().flat_map(|piece| piece.weights().to_vec()).sum::<i64>(), 2);
    }

    /// The definition, over rows in the order of the spec.
    fn expected(
        rows: &std::collections::BTreeMap<Row, i64>,
        (offset, limit, numbered, grouped): (u64, u64, bool, bool),
    ) -> std::collections::BTreeMap<String, i64> {
        let mut sorted: Vec<Row> = Vec::new();
        for (&row, &weight) in rows {
            (0..weight).for_each(|_| sorted.push(row));
        }
        let place = |row: &Row| {
            let group = if grouped { row.0 } else { 0 };
            // Ties: name, then group.
            (group, row.1.is_none(), std::cmp::Reverse(row.1), row.2, row.0)
        };
        sorted.sort_by_key(place);
        let (mut result, mut number, mut last) = (std::collections::BTreeMap::new(), 0, None);
        for row in sorted {
            let group = if grouped { row.0 } else { 0 };
            number = if last == Some(group) { number + 1 } else { 1 };
            last = Some(group);
            if number > offset && number <= offset + limit {
                let amount = row.1.map_or("NULL".to_owned(), |n| n.to_string());
                let mut text = format!("{} | {} | {amount}", row.2, row.0);
                if numbered {
                    text += &format!(" | {number}");
                }
                *result.entry(text).or_insert(0) += 1;
            }
        }
        result
    }

    proptest! {
        #[test]
        fn equals_the_definition(
            deltas in prop::collection::vec(
                prop::collection::vec((0..3_i64, prop::option::of(0..6_i64), 0..3_usize, -1..3_i64), 0..12),
                1..9,
            ),
            shape in (0..3_u64, 0..4_u64, any::<bool>(), any::<bool>()),
        ) {
            let top = top(shape.0, shape.1, shape.2, shape.3);
            let mut state = start(&top);
            let (mut all, mut emitted) =
                (std::collections::BTreeMap::new(), std::collections::BTreeMap::new());
            for delta in deltas {
                let mut text = String::new();
                for (group, amount, name, weight) in delta {
                    let row = (group, amount, ["ann", "bo", "cy"][name]);
                    let weight = weight.max(-all.get(&row).copied().unwrap_or(0));
                    let shown = amount.map_or("NULL".to_owned(), |n| n.to_string());
                    text += &format!("{weight:+} {} | {group} | {shown}\n", row.2);
                    *all.entry(row).or_insert(0) += weight;
                }
                for line in step(&top, &mut state, &parse(&text)).lines() {
                    let (weight, row) = line.split_once(' ').unwrap();
                    let weight = match weight {
                        "+" => 1,
                        "-" => -1,
                        number => number.parse::<i64>().unwrap(),
                    };
                    *emitted.entry(row.to_owned()).or_insert(0) += weight;
                }
                emitted.retain(|_, weight| *weight != 0);
                prop_assert_eq!(&emitted, &expected(&all, shape));
            }
        }
    }
}
