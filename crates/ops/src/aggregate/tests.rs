//! Worked examples, and a `BTreeMap` of rows as the definition.

use std::collections::{BTreeMap, BTreeSet};

use arrow::datatypes::SchemaRef;
use proptest::prelude::*;

use super::*;

mod extremes;

/// An aggregate with its state, stepped by text.
struct Fixture {
    aggregate: Aggregate,
    state: Vec<Slot>,
    input: SchemaRef,
    epoch: u64,
}

fn schema(fields: &[(&str, DataType)]) -> SchemaRef {
    let fields = fields.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn call(function: AggregateFunction, input: usize, output: DataType) -> AggregateCall {
    let input = (function != AggregateFunction::CountStar).then_some(input);
    let output = Field::new("result", output, true);
    AggregateCall { function, distinct: false, input, filter: None, output }
}

fn distinct(call: AggregateCall) -> AggregateCall {
    AggregateCall { distinct: true, ..call }
}

fn filtered(call: AggregateCall, filter: usize) -> AggregateCall {
    AggregateCall { filter: Some(filter), ..call }
}

impl Fixture {
    fn new(input: &SchemaRef, keys: &[usize], calls: Vec<AggregateCall>) -> Self {
        let spec = AggregateSpec { input: input.clone(), keys: keys.to_vec(), calls };
        let aggregate = Aggregate::try_new(spec).unwrap();
        let slots = aggregate.spec().slots.iter();
        let state = slots.map(|slot| Slot::try_new(slot).unwrap()).collect();
        Self { aggregate, state, input: input.clone(), epoch: 0 }
    }

    fn try_step(&mut self, delta: &str) -> Result<String> {
        let delta = ZBatch::parse(&self.input, delta).unwrap().consolidate().unwrap();
        let mut out: Vec<ZBatch> = Vec::new();
        let cx = StepContext { epoch: self.epoch, shard: 0, shards: 1 };
        self.epoch += 1;
        self.aggregate.step(&[delta], &mut self.state, &mut out, &cx)?;
        Ok(out.iter().map(ToString::to_string).collect())
    }

    fn step(&mut self, delta: &str) -> String {
        self.try_step(delta).unwrap()
    }

    fn is_empty(&self) -> bool {
        self.state.iter().all(Slot::is_empty)
    }

    /// Writes the state and reads it back.
    fn restart(&mut self) {
        for (slot, spec) in self.state.iter_mut().zip(&self.aggregate.spec().slots) {
            let full = slot.write_full().unwrap();
            *slot = Slot::restore(spec, &full, &[]).unwrap();
        }
    }
}

fn sales() -> SchemaRef {
    schema(&[("region", DataType::Utf8), ("amount", DataType::Int64)])
}

fn sum_and_count() -> Vec<AggregateCall> {
    vec![
        call(AggregateFunction::Sum, 1, DataType::Int64),
        call(AggregateFunction::CountStar, 0, DataType::Int64),
    ]
}

#[test]
fn a_group_comes_changes_and_goes() {
    let mut f = Fixture::new(&sales(), &[0], sum_and_count());
    assert_eq!(f.step("+ EU | 3\n+2 US | 4"), "+ EU | 3 | 1\n+ US | 8 | 2\n");
    assert_eq!(f.step("+ EU | -1"), "- EU | 3 | 1\n+ EU | 2 | 2\n");
    assert_eq!(f.step("- EU | 3\n- EU | -1"), "- EU | 2 | 2\n");
    assert_eq!(f.step("-2 US | 4"), "- US | 8 | 2\n");
    assert!(f.is_empty());
}

#[test]
fn a_row_that_does_not_change_is_not_emitted() {
    let sum = vec![call(AggregateFunction::Sum, 1, DataType::Int64)];
    let mut f = Fixture::new(&sales(), &[0], sum);
    f.step("+ EU | 3\n+ US | 1");
    assert_eq!(f.step("+ EU | 5\n+ EU | -5\n- US | 1\n+ US | 2"), "- US | 1\n+ US | 2\n");
}

#[test]
fn null_is_a_group_and_nulls_add_nothing() {
    let mut f = Fixture::new(&sales(), &[0], sum_and_count());
    assert_eq!(f.step("+ NULL | 3\n+ EU | NULL"), "+ NULL | 3 | 1\n+ EU | NULL | 1\n");
    assert_eq!(f.step("+ EU | 0"), "- EU | NULL | 1\n+ EU | 0 | 2\n");
}

#[test]
fn without_keys_there_is_always_one_row() {
    let mut f = Fixture::new(&sales(), &[], sum_and_count());
    assert_eq!(f.step(""), "+ NULL | 0\n");
    assert_eq!(f.step(""), "");
    assert_eq!(f.step("+ EU | 3"), "- NULL | 0\n+ 3 | 1\n");
    assert_eq!(f.step("- EU | 3"), "- 3 | 1\n+ NULL | 0\n");
    assert!(f.is_empty());
    let mut f = Fixture::new(&sales(), &[], sum_and_count());
    assert_eq!(f.step("+ EU | 3"), "+ 3 | 1\n");
}

#[test]
fn the_row_without_keys_is_in_one_shard() {
    let f = Fixture::new(&sales(), &[], sum_and_count());
    assert_eq!(f.aggregate.spec().inputs[0].exchange, Exchange::Single);
    let mut state = f.state;
    let mut out: Vec<ZBatch> = Vec::new();
    let cx = StepContext { epoch: 0, shard: 1, shards: 2 };
    f.aggregate.step(&[ZBatch::empty(sales())], &mut state, &mut out, &cx).unwrap();
    assert!(out.is_empty());
}

#[test]
fn groups_without_calls_are_the_distinct_keys() {
    let mut f = Fixture::new(&sales(), &[0], vec![]);
    assert_eq!(f.step("+ EU | 1\n+ EU | 2"), "+ EU\n");
    assert_eq!(f.step("- EU | 1"), "");
    assert_eq!(f.step("- EU | 2\n+ US | 1"), "- EU\n+ US\n");
}

#[test]
fn a_retraction_before_its_row_is_awaited() {
    let mut f = Fixture::new(&sales(), &[0], sum_and_count());
    // One row in, another out: a count of zero that is not nothing.
    assert_eq!(f.step("+ EU | 1\n- EU | 2"), "");
    assert_eq!(f.step("- US | 5"), "");
    assert_eq!(f.step("+ EU | 2\n+ US | 5\n+ US | 6"), "+ EU | 1 | 1\n+ US | 6 | 1\n");
}

#[test]
fn a_sum_must_fit_when_it_is_finished() {
    let mut f = Fixture::new(&sales(), &[0], sum_and_count());
    let max = i64::MAX;
    let delta = format!("+ EU | {max}\n+ EU | 1\n+ EU | -1");
    assert_eq!(f.step(&delta), format!("+ EU | {max} | 3\n"));
    let error = f.try_step("+ EU | 7").unwrap_err();
    assert_eq!(error.code(), "ARITHMETIC_OVERFLOW");
    assert!(error.to_string().contains("(EU)"), "{error}");
    assert_eq!(error.get_object(), Some("result"));
}

#[test]
fn unsigned_sums() {
    let schema = schema(&[("k", DataType::Int8), ("x", DataType::UInt64)]);
    let sum = vec![call(AggregateFunction::Sum, 1, DataType::UInt64)];
    let mut f = Fixture::new(&schema, &[0], sum);
    let max = u64::MAX;
    assert_eq!(f.step(&format!("+ 1 | {max}")), format!("+ 1 | {max}\n"));
    assert_eq!(f.try_step("+ 1 | 1").unwrap_err().code(), "ARITHMETIC_OVERFLOW");
}

#[test]
fn decimals_are_exact() {
    let decimal = |precision, scale| DataType::Decimal128(precision, scale);
    let schema = schema(&[("k", DataType::Int8), ("x", decimal(38, 2))]);
    let calls = vec![
        call(AggregateFunction::Sum, 1, decimal(38, 2)),
        call(AggregateFunction::Avg, 1, decimal(38, 6)),
    ];
    let mut f = Fixture::new(&schema, &[0], calls);
    assert_eq!(f.step("+ 1 | 0.01\n+ 1 | 0.01\n+ 1 | 0.03"), "+ 1 | 0.05 | 0.016666\n");
    let great = "9".repeat(36);
    assert_eq!(f.try_step(&format!("+ 1 | {great}")).unwrap_err().code(), "ARITHMETIC_OVERFLOW");
}

#[test]
fn an_average_is_right_although_its_sum_has_too_many_digits() {
    let schema = schema(&[("k", DataType::Int32), ("x", DataType::Decimal128(38, 37))]);
    let avg = vec![call(AggregateFunction::Avg, 1, DataType::Decimal128(38, 37))];
    let mut f = Fixture::new(&schema, &[0], avg);
    let zeros = |n| "0".repeat(n);
    assert_eq!(f.step("+2 1 | 9.9"), format!("+ 1 | 9.9{}\n", zeros(36)));
    let expected = format!("- 1 | 9.9{}\n+ 1 | 6.7{}\n", zeros(36), zeros(36));
    assert_eq!(f.step("+ 1 | 0.3"), expected);
}

#[test]
fn float_sums_do_not_drift() {
    let schema = schema(&[("k", DataType::Int8), ("x", DataType::Float64)]);
    let calls = vec![
        call(AggregateFunction::Sum, 1, DataType::Float64),
        call(AggregateFunction::Avg, 1, DataType::Float64),
    ];
    let mut f = Fixture::new(&schema, &[0], calls);
    assert_eq!(f.step("+ 1 | 0.1\n+ 1 | 1e20"), "+ 1 | 1e20 | 5e19\n");
    assert_eq!(f.step("- 1 | 1e20").lines().last(), Some("+ 1 | 0.1 | 0.1"));
    assert_eq!(f.step("+ 1 | Infinity").lines().last(), Some("+ 1 | inf | inf"));
    assert_eq!(f.step("+ 1 | -Infinity").lines().last(), Some("+ 1 | NaN | NaN"));
    assert_eq!(f.step("- 1 | Infinity\n- 1 | -Infinity").lines().last(), Some("+ 1 | 0.1 | 0.1"));
    f.step("- 1 | 0.1");
    assert!(f.is_empty());
}

#[test]
fn a_value_counts_once_however_often_it_occurs() {
    let calls = vec![
        distinct(call(AggregateFunction::Count, 1, DataType::Int64)),
        distinct(call(AggregateFunction::Sum, 1, DataType::Int64)),
        distinct(call(AggregateFunction::Avg, 1, DataType::Float64)),
    ];
    let mut f = Fixture::new(&sales(), &[0], calls);
    assert_eq!(f.aggregate.spec().slots.len(), 2);
    assert_eq!(
        f.step("+3 EU | 2\n+ EU | 3\n+ EU | NULL\n+ US | 2"),
        "+ EU | 2 | 5 | 2.5\n+ US | 1 | 2 | 2.0\n"
    );
    assert_eq!(f.step("-2 EU | 2"), "");
    assert_eq!(f.step("- EU | 2"), "- EU | 2 | 5 | 2.5\n+ EU | 1 | 3 | 3.0\n");
    assert_eq!(
        f.step("- EU | 3\n- EU | NULL\n- US | 2"),
        "- EU | 1 | 3 | 3.0\n- US | 1 | 2 | 2.0\n"
    );
    assert!(f.is_empty());
}

#[test]
fn only_rows_that_the_filter_lets_through_count() {
    let schema = schema(&[("x", DataType::Int64), ("keep", DataType::Boolean)]);
    let calls = vec![
        filtered(call(AggregateFunction::CountStar, 0, DataType::Int64), 1),
        filtered(call(AggregateFunction::Sum, 0, DataType::Int64), 1),
        call(AggregateFunction::CountStar, 0, DataType::Int64),
    ];
    let mut f = Fixture::new(&schema, &[], calls);
    assert_eq!(f.step("+ 1 | true\n+ 2 | false\n+ 4 | NULL"), "+ 1 | 1 | 3\n");
}

#[test]
fn all_and_any() {
    let schema = schema(&[("k", DataType::Int8), ("b", DataType::Boolean)]);
    let calls = vec![
        call(AggregateFunction::BoolAnd, 1, DataType::Boolean),
        call(AggregateFunction::BoolOr, 1, DataType::Boolean),
    ];
    let mut f = Fixture::new(&schema, &[0], calls);
    assert_eq!(f.step("+ 1 | true\n+ 2 | NULL"), "+ 1 | true | true\n+ 2 | NULL | NULL\n");
    assert_eq!(f.step("+ 1 | false"), "- 1 | true | true\n+ 1 | false | true\n");
    assert_eq!(f.step("- 1 | true"), "- 1 | false | true\n+ 1 | false | false\n");
}

#[test]
fn what_has_no_incremental_form_is_refused() {
    let schema = schema(&[
        ("k", DataType::Utf8),
        ("x", DataType::Int64),
        ("wide", DataType::Decimal256(50, 0)),
        ("d", DataType::Decimal128(10, 2)),
    ]);
    let refused = [
        call(AggregateFunction::Sum, 0, DataType::Int64),
        call(AggregateFunction::Sum, 1, DataType::Int32),
        call(AggregateFunction::Sum, 2, DataType::Decimal256(60, 0)),
        call(AggregateFunction::Sum, 3, DataType::Decimal128(20, 3)),
        call(AggregateFunction::Avg, 3, DataType::Decimal128(20, 1)),
        call(AggregateFunction::Min, 0, DataType::Int64),
        call(AggregateFunction::BoolAnd, 1, DataType::Boolean),
        call(AggregateFunction::CountStar, 0, DataType::Int32),
        filtered(call(AggregateFunction::CountStar, 0, DataType::Int64), 1),
    ];
    for call in refused {
        let spec = AggregateSpec { input: schema.clone(), keys: vec![0], calls: vec![call] };
        let error = Aggregate::try_new(spec.clone()).map(drop).unwrap_err();
        assert_eq!(error.code(), "UNSUPPORTED_AGGREGATE", "{spec}");
        assert_eq!(error.get_object(), Some("result"));
    }
}

#[test]
fn many_groups_come_out_in_bounded_pieces() {
    let groups = 3 * PIECE_GROUPS_MAX + 1;
    let schema = schema(&[("k", DataType::Int64), ("x", DataType::Int64)]);
    let mut f = Fixture::new(&schema, &[0], sum_and_count());
    let load: String = (0..groups).map(|k| format!("+ {k} | 1\n")).collect();
    assert_eq!(f.step(&load).lines().count(), groups);
    let more: String = (0..groups).step_by(2).map(|k| format!("+ {k} | 2\n")).collect();
    let delta = ZBatch::parse(&schema, &more).unwrap();
    let mut out: Vec<ZBatch> = Vec::new();
    let cx = StepContext { epoch: 1, shard: 0, shards: 1 };
    f.aggregate.step(&[delta], &mut f.state, &mut out, &cx).unwrap();
    assert!(out.len() >= 2);
    assert!(out.iter().all(|piece| piece.num_rows() <= 2 * PIECE_GROUPS_MAX));
    let all = ZBatch::concat(&f.aggregate.spec().output, &out).unwrap();
    assert_eq!(all.num_rows(), groups.div_ceil(2) * 2);
    let lines = all.to_string();
    assert!(lines.lines().all(|line| match line.split_at(1) {
        ("-", row) => row.ends_with("| 1 | 1"),
        (_, row) => row.ends_with("| 3 | 2"),
    }));
}

#[test]
fn explain_names_keys_and_calls() {
    let calls = vec![
        distinct(call(AggregateFunction::Sum, 1, DataType::Int64)),
        call(AggregateFunction::CountStar, 0, DataType::Int64),
    ];
    let f = Fixture::new(&sales(), &[0], calls);
    assert_eq!(f.aggregate.spec().detail, "by region: SUM(DISTINCT amount), COUNT(*)");
}

/// key, integer, eighths, cents, boolean, filter
type Row = (Option<u8>, Option<i64>, Option<i32>, Option<i64>, Option<bool>, Option<bool>);

fn input() -> SchemaRef {
    schema(&[
        ("k", DataType::Utf8),
        ("i", DataType::Int64),
        ("f", DataType::Float64),
        ("d", DataType::Decimal128(12, 2)),
        ("b", DataType::Boolean),
        ("keep", DataType::Boolean),
    ])
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |value| value.to_string())
}

fn key_text(key: Option<u8>) -> String {
    text(key.map(|k| if k == 0 { "a".to_owned() } else { "long key ".repeat(k.into()) }))
}

fn cents(value: i64) -> String {
    let (sign, value) = (if value < 0 { "-" } else { "" }, value.abs());
    format!("{sign}{}.{:02}", value / 100, value % 100)
}

fn row_text(row: &Row) -> String {
    let (k, i, f, d, b, keep) = *row;
    let float = f.map(|f| f64::from(f) / 8.0);
    let cells = [key_text(k), text(i), text(float), text(d.map(cents)), text(b), text(keep)];
    cells.join(" | ")
}

fn calls() -> Vec<AggregateCall> {
    use AggregateFunction as F;
    vec![
        call(F::CountStar, 0, DataType::Int64),
        call(F::Count, 1, DataType::Int64),
        call(F::Sum, 1, DataType::Int64),
        call(F::Avg, 1, DataType::Float64),
        call(F::Sum, 2, DataType::Float64),
        call(F::Avg, 2, DataType::Float64),
        call(F::Sum, 3, DataType::Decimal128(22, 2)),
        call(F::Avg, 3, DataType::Decimal128(16, 6)),
        call(F::BoolAnd, 4, DataType::Boolean),
        call(F::BoolOr, 4, DataType::Boolean),
        distinct(call(F::Count, 2, DataType::Int64)),
        distinct(filtered(call(F::Sum, 1, DataType::Int64), 5)),
        filtered(call(F::Sum, 3, DataType::Decimal128(22, 2)), 5),
    ]
}

/// The results of [`calls`] over a group's rows, by their definitions.
fn expected(rows: &[Row]) -> Vec<String> {
    let ints: Vec<i64> = rows.iter().filter_map(|row| row.1).collect();
    let eighths: Vec<i32> = rows.iter().filter_map(|row| row.2).collect();
    let decimals: Vec<i64> = rows.iter().filter_map(|row| row.3).collect();
    let bools: Vec<bool> = rows.iter().filter_map(|row| row.4).collect();
    let kept = || rows.iter().filter(|row| row.5 == Some(true));
    let kept_ints: BTreeSet<i64> = kept().filter_map(|row| row.1).collect();
    let kept_decimals: Vec<i64> = kept().filter_map(|row| row.3).collect();
    let some = |any: bool, value: String| if any { value } else { "NULL".to_owned() };
    let int_sum: i64 = ints.iter().sum();
    let float_sum = eighths.iter().map(|&e| i64::from(e)).sum::<i64>() as f64 / 8.0;
    let decimal_sum: i64 = decimals.iter().sum();
    let millionths = decimal_sum * 10_000 / i64::try_from(decimals.len().max(1)).unwrap();
    let sign = if millionths < 0 { "-" } else { "" };
    let decimal_avg =
        format!("{sign}{}.{:06}", millionths.abs() / 1_000_000, millionths.abs() % 1_000_000);
    vec![
        rows.len().to_string(),
        ints.len().to_string(),
        some(!ints.is_empty(), int_sum.to_string()),
        some(!ints.is_empty(), (int_sum as f64 / ints.len() as f64).to_string()),
        some(!eighths.is_empty(), float_sum.to_string()),
        some(!eighths.is_empty(), (float_sum / eighths.len() as f64).to_string()),
        some(!decimals.is_empty(), cents(decimal_sum)),
        some(!decimals.is_empty(), decimal_avg),
        some(!bools.is_empty(), bools.iter().all(|&b| b).to_string()),
        some(!bools.is_empty(), bools.iter().any(|&b| b).to_string()),
        eighths.iter().collect::<BTreeSet<_>>().len().to_string(),
        some(!kept_ints.is_empty(), kept_ints.iter().sum::<i64>().to_string()),
        some(!kept_decimals.is_empty(), cents(kept_decimals.iter().sum())),
    ]
}

fn any_row() -> impl Strategy<Value = Row> {
    (
        prop::option::of(0_u8..3),
        prop::option::weighted(0.8, -5_i64..5),
        prop::option::weighted(0.8, -20_i32..20),
        prop::option::weighted(0.8, -500_i64..500),
        prop::option::weighted(0.7, any::<bool>()),
        prop::option::weighted(0.8, any::<bool>()),
    )
}

/// Inserts rows and takes some of those that are there away; `picks` choose which.
fn any_history() -> impl Strategy<Value = Vec<(Vec<Row>, Vec<prop::sample::Index>)>> {
    let epoch = (
        prop::collection::vec(any_row(), 0..12),
        prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    );
    prop::collection::vec(epoch, 1..8)
}

/// Runs a history and compares the integrated output with `expected` at every epoch.
fn check_history(
    history: &[(Vec<Row>, Vec<prop::sample::Index>)],
    keys: &[usize],
    calls: Vec<AggregateCall>,
    expected: impl Fn(&[Row]) -> Vec<String>,
) {
    let mut f = Fixture::new(&input(), keys, calls);
    let (mut rows, mut emitted) = (Vec::<Row>::new(), BTreeMap::<String, i64>::new());
    let mut deltas = Vec::new();
    for (inserts, picks) in history {
        let mut delta: String =
            inserts.iter().map(|row| format!("+ {}\n", row_text(row))).collect();
        for pick in picks {
            if !rows.is_empty() {
                let row = rows.swap_remove(pick.index(rows.len()));
                delta += &format!("- {}\n", row_text(&row));
            }
        }
        rows.extend(inserts);
        integrate(&mut emitted, &f.step(&delta));
        let mut groups = BTreeMap::<Option<u8>, Vec<Row>>::new();
        for row in &rows {
            let key = row.0.filter(|_| !keys.is_empty());
            groups.entry(key).or_default().push(*row);
        }
        if keys.is_empty() {
            groups.entry(None).or_default();
        }
        let lines = groups.iter().map(|(key, rows)| {
            let key = (!keys.is_empty()).then(|| key_text(*key));
            let cells: Vec<String> = key.into_iter().chain(expected(rows)).collect();
            format!("+ {}\n", cells.join(" | "))
        });
        let table: String = lines.collect();
        let table = ZBatch::parse(&f.aggregate.spec().output, &table).unwrap().to_string();
        let mut expected_rows = BTreeMap::new();
        integrate(&mut expected_rows, &table);
        assert_eq!(emitted, expected_rows);
        f.restart();
        deltas.push(delta);
    }
    for delta in deltas.iter().rev() {
        let undo: String = delta
            .lines()
            .map(|line| match line.strip_prefix('+') {
                Some(row) => format!("-{row}\n"),
                None => format!("+{}\n", &line[1..]),
            })
            .collect();
        integrate(&mut emitted, &f.step(&undo));
    }
    assert!(f.is_empty());
    assert_eq!(emitted.len(), usize::from(keys.is_empty()));
}

fn integrate(rows: &mut BTreeMap<String, i64>, delta: &str) {
    for line in delta.lines() {
        let (sign, row) = line.split_once(' ').unwrap();
        let weight = if sign == "+" { 1 } else { -1 };
        assert!(sign == "+" || sign == "-", "{line}");
        *rows.entry(row.to_owned()).or_insert(0) += weight;
    }
    rows.retain(|_, weight| *weight != 0);
}

proptest! {
    #[test]
    fn equals_the_definition(history in any_history(), grouped in any::<bool>()) {
        let keys: &[usize] = if grouped { &[0] } else { &[] };
        check_history(&history, keys, calls(), expected);
    }
}
