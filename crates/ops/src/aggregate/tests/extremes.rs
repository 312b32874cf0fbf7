//! MIN and MAX.

use super::*;

#[test]
fn a_retracted_extremum_gives_way_to_the_next() {
    let calls = vec![
        call(AggregateFunction::Min, 1, DataType::Int64),
        call(AggregateFunction::Max, 1, DataType::Int64),
    ];
    let mut f = Fixture::new(&sales(), &[0], calls);
    assert_eq!(
        f.step("+ EU | 3\n+2 EU | 1\n+ EU | 7\n+ US | NULL"),
        "+ EU | 1 | 7\n+ US | NULL | NULL\n"
    );
    assert_eq!(f.step("- EU | 1\n+ EU | 5"), "");
    assert_eq!(f.step("- EU | 1\n- EU | 7"), "- EU | 1 | 7\n+ EU | 3 | 5\n");
    assert_eq!(f.step("- EU | 3\n- EU | 5\n- US | NULL"), "- EU | 3 | 5\n- US | NULL | NULL\n");
    assert!(f.is_empty());
}

#[test]
fn nan_is_the_greatest() {
    let schema = schema(&[("k", DataType::Int8), ("x", DataType::Float64)]);
    let calls = vec![
        call(AggregateFunction::Min, 1, DataType::Float64),
        call(AggregateFunction::Max, 1, DataType::Float64),
    ];
    let mut f = Fixture::new(&schema, &[], calls);
    assert_eq!(f.step("+ 1 | NaN\n+ 1 | Infinity\n+ 1 | -1.5"), "+ -1.5 | NaN\n");
    assert_eq!(f.step("- 1 | NaN\n- 1 | -1.5"), "- -1.5 | NaN\n+ inf | inf\n");
    assert_eq!(f.step("- 1 | Infinity"), "- inf | inf\n+ NULL | NULL\n");
}

#[test]
fn strings_dates_and_decimals_have_an_order() {
    let types = [
        (DataType::Utf8, ["a", "ab", "b"]),
        (DataType::LargeUtf8, ["a", "ab", "b"]),
        (DataType::Utf8View, ["a", "ab", "a string beyond twelve bytes"]),
        (DataType::Date32, ["1969-12-31", "1970-01-01", "2024-02-29"]),
        (DataType::Decimal128(38, 2), ["-1.00", "0.05", "10.00"]),
        (DataType::Boolean, ["false", "false", "true"]),
        (DataType::UInt64, ["0", "1", "18446744073709551615"]),
    ];
    for (data_type, values) in types {
        let schema = schema(&[("x", data_type.clone())]);
        let calls = vec![
            call(AggregateFunction::Min, 0, data_type.clone()),
            call(AggregateFunction::Max, 0, data_type.clone()),
        ];
        let mut f = Fixture::new(&schema, &[], calls);
        let delta: String = values.iter().map(|value| format!("+ {value}\n")).collect();
        let mut sorted = values;
        if data_type == DataType::Utf8View {
            sorted.sort_unstable();
        }
        assert_eq!(f.step(&delta), format!("+ {} | {}\n", sorted[0], sorted[2]), "{data_type}");
    }
}

fn extreme_calls() -> Vec<AggregateCall> {
    use AggregateFunction as F;
    vec![
        call(F::Min, 1, DataType::Int64),
        call(F::Max, 1, DataType::Int64),
        filtered(call(F::Min, 2, DataType::Float64), 5),
        call(F::Max, 3, DataType::Decimal128(12, 2)),
        call(F::Max, 0, DataType::Utf8),
        call(F::Min, 4, DataType::Boolean),
    ]
}

/// The results of [`extreme_calls`] over a group's rows, by their definitions.
fn expected_extremes(rows: &[Row]) -> Vec<String> {
    let kept = rows.iter().filter(|row| row.5 == Some(true));
    vec![
        text(rows.iter().filter_map(|row| row.1).min()),
        text(rows.iter().filter_map(|row| row.1).max()),
        text(kept.filter_map(|row| row.2).min().map(|f| f64::from(f) / 8.0)),
        text(rows.iter().filter_map(|row| row.3).max().map(cents)),
        text(rows.iter().filter(|row| row.0.is_some()).map(|row| key_text(row.0)).max()),
        text(rows.iter().filter_map(|row| row.4).min()),
    ]
}

proptest! {
    #[test]
    fn extremes_equal_the_definition(history in any_history(), grouped in any::<bool>()) {
        let keys: &[usize] = if grouped { &[0] } else { &[] };
        check_history(&history, keys, extreme_calls(), expected_extremes);
    }
}
