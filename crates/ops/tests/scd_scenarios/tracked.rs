//! Type 2: tracked columns, sequences of other types, and IGNORE NULL UPDATES.

use arrow::datatypes::{DataType, TimeUnit};
use deltaic_ops::{ScdSpec, ScdType};

use crate::harness::{
    Target, ignoring, scenario, sequenced_by, sequenced_by_struct, tracking, truncating, type_1,
    type_2, wide,
};

// Type 2: tracked columns.

#[test]
fn by_default_a_change_in_any_column_opens_a_version() {
    scenario(
        &wide(ScdType::Type2),
        &["1 | a | x | 10 | 0", "1 | a | y | 20 | 0", "1 | b | y | 30 | 0"],
        "1 | a | x | 10 | 20; 1 | a | y | 20 | 30; 1 | b | y | 30 | NULL",
    );
}

#[test]
fn a_change_in_an_unselected_column_opens_no_version() {
    scenario(
        &ScdSpec { columns: vec![0, 1], ..tracking(&[1]) },
        &["1 | a | x | 10 | 0", "1 | a | y | 20 | 0"],
        "1 | a | 10 | NULL",
    );
}

#[test]
fn an_untracked_change_updates_the_version() {
    Target::new(&tracking(&[1]))
        .batch("1 | a | x | 10 | 0")
        .changes("1 | a | y | 20 | 0", "- 1 | a | x | 10 | NULL; + 1 | a | y | 10 | NULL")
        .ignores("1 | a | z | 15 | 0");
}

#[test]
fn a_tracked_change_opens_a_version_whatever_else_changes() {
    scenario(
        &tracking(&[1]),
        &["1 | a | x | 10 | 0", "1 | b | y | 20 | 0", "1 | b | z | 30 | 0"],
        "1 | a | x | 10 | 20; 1 | b | z | 20 | NULL",
    );
}

#[test]
fn a_closed_run_has_the_last_untracked_values() {
    scenario(
        &tracking(&[1]),
        &["1 | a | x | 10 | 0", "1 | a | y | 20 | 0", "1 | NULL | NULL | 30 | 1"],
        "1 | a | y | 10 | 30",
    );
}

#[test]
fn untracked_values_do_not_cross_a_delete() {
    scenario(
        &tracking(&[1]),
        &["1 | a | x | 10 | 0", "1 | NULL | NULL | 20 | 1", "1 | a | y | 30 | 0"],
        "1 | a | x | 10 | 20; 1 | a | y | 30 | NULL",
    );
}

#[test]
fn hidden_events_come_back_when_a_run_is_cut() {
    scenario(
        &tracking(&[1]),
        &["1 | a | x | 10 | 0; 1 | a | y | 20 | 0; 1 | a | z | 30 | 0", "1 | b | q | 25 | 0"],
        "1 | a | y | 10 | 25; 1 | b | q | 25 | 30; 1 | a | z | 30 | NULL",
    );
}

#[test]
fn the_parts_of_a_cut_version_keep_their_own_untracked_values() {
    scenario(
        &tracking(&[1]),
        &["1 | a | x | 10 | 0; 1 | a | y | 30 | 0; 1 | b | z | 40 | 0", "1 | c | q | 20 | 0"],
        "1 | a | x | 10 | 20; 1 | c | q | 20 | 30; 1 | a | y | 30 | 40; 1 | b | z | 40 | NULL",
    );
}

#[test]
fn an_empty_tracked_set_is_one_version_per_life() {
    scenario(
        &tracking(&[]),
        &[
            "1 | a | x | 10 | 0; 1 | b | y | 20 | 0",
            "1 | NULL | NULL | 30 | 1",
            "1 | c | z | 40 | 0",
        ],
        "1 | b | y | 10 | 30; 1 | c | z | 40 | NULL",
    );
}

#[test]
fn with_an_empty_tracked_set_a_tie_does_not_lose_the_delete() {
    scenario(
        &tracking(&[]),
        &[
            "1 | a | x | 10 | 0; 1 | NULL | NULL | 20 | 1",
            "1 | b | y | 20 | 0",
            "1 | c | z | 30 | 0",
        ],
        "1 | a | x | 10 | 20; 1 | c | z | 30 | NULL",
    );
}

#[test]
fn with_the_sequence_selected_each_event_is_a_version() {
    scenario(
        &ScdSpec { columns: vec![0, 1, 2], tracked: vec![1, 2], ..type_2() },
        &["1 | a | 10 | 0", "1 | a | 20 | 0", "1 | NULL | 30 | 1"],
        "1 | a | 10 | 10 | 20; 1 | a | 20 | 20 | 30",
    );
}

#[test]
fn null_equals_null_among_tracked_columns() {
    scenario(
        &wide(ScdType::Type2),
        &["1 | NULL | x | 10 | 0", "1 | NULL | x | 20 | 0"],
        "1 | NULL | x | 10 | NULL",
    );
}

#[test]
fn null_differs_from_a_value_among_tracked_columns() {
    scenario(
        &type_2(),
        &["1 | NULL | 10 | 0", "1 | a | 20 | 0", "1 | NULL | 30 | 0"],
        "1 | NULL | 10 | 20; 1 | a | 20 | 30; 1 | NULL | 30 | NULL",
    );
}

// Sequences of other types.

#[test]
fn a_sequence_may_have_any_type_with_an_order() {
    let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
    let cases = [
        (DataType::Int8, ["-128", "0", "127"]),
        (DataType::Int64, ["-9223372036854775808", "-1", "9223372036854775807"]),
        (DataType::UInt64, ["0", "9223372036854775807", "18446744073709551615"]),
        (DataType::Float64, ["-1.5", "2.5", "10.5"]),
        (DataType::Decimal128(10, 2), ["-0.50", "9.00", "10.00"]),
        (DataType::Date32, ["1969-12-31", "2024-02-29", "2024-03-01"]),
        (timestamp, ["1969-12-31T23:59:59", "2024-01-01T00:00:00", "2024-01-01T00:00:01"]),
        (DataType::Utf8, ["10", "9", "a"]),
    ];
    for (sequence, [first, second, third]) in cases {
        let a = format!("1 | a | {first} | 0");
        let b = format!("1 | b | {second} | 0");
        let delete = format!("1 | NULL | {third} | 1");
        let rows = format!("1 | a | {first} | {second}; 1 | b | {second} | {third}");
        scenario(&sequenced_by(sequence.clone(), type_2()), &[&b, &a, &delete], &rows);
        scenario(&sequenced_by(sequence, type_1()), &[&b, &a], "1 | b");
    }
}

#[test]
fn a_struct_sequence_is_compared_field_by_field() {
    scenario(
        &sequenced_by_struct(type_2()),
        &["1 | a | 1 | 9 | 0", "1 | b | 2 | 1 | 0", "1 | NULL | 2 | 3 | 1"],
        "1 | a | {at: 1, part: 9} | {at: 2, part: 1}; 1 | b | {at: 2, part: 1} | {at: 2, part: 3}",
    );
    scenario(
        &sequenced_by_struct(type_1()),
        &["1 | b | 5 | 2 | 0", "1 | a | 5 | 1 | 0", "1 | NULL | 4 | 9 | 1"],
        "1 | b",
    );
}

#[test]
fn null_is_the_least_field_of_a_struct_sequence() {
    scenario(
        &sequenced_by_struct(type_2()),
        &["1 | b | 1 | -5 | 0", "1 | a | 1 | NULL | 0", "1 | NULL | 2 | NULL | 1"],
        "1 | a | {at: 1, part: } | {at: 1, part: -5}; 1 | b | {at: 1, part: -5} | {at: 2, part: }",
    );
}

#[test]
fn struct_sequences_tie_when_all_fields_are_equal() {
    for part in ["2", "NULL"] {
        let upsert = format!("1 | a | 1 | {part} | 0");
        let delete = format!("1 | NULL | 1 | {part} | 1");
        scenario(&sequenced_by_struct(type_1()), &[&upsert, &delete], "1 | a");
        scenario(&sequenced_by_struct(type_2()), &[&upsert, &delete], "");
    }
}

#[test]
fn a_truncate_by_a_struct_sequence() {
    scenario(
        &sequenced_by_struct(truncating()),
        &["1 | a | 1 | 9 | 0; 2 | b | 2 | 1 | 0; 3 | c | 2 | 2 | 0", "NULL | NULL | 2 | 1 | 2"],
        "3 | c",
    );
}

// Type 2: IGNORE NULL UPDATES.

#[test]
fn values_flow_forward_through_ignored_nulls() {
    scenario(
        &ignoring(ScdType::Type2, &[1, 2]),
        &["1 | a | x | 10 | 0", "1 | NULL | y | 20 | 0", "1 | NULL | NULL | 30 | 0"],
        "1 | a | x | 10 | 20; 1 | a | y | 20 | NULL",
    );
}

#[test]
fn values_do_not_flow_backward() {
    scenario(
        &ignoring(ScdType::Type2, &[1, 2]),
        &["1 | NULL | x | 10 | 0", "1 | a | NULL | 20 | 0"],
        "1 | NULL | x | 10 | 20; 1 | a | x | 20 | NULL",
    );
}

#[test]
fn a_late_value_flows_on_to_the_next_value_of_its_column() {
    Target::new(&ignoring(ScdType::Type2, &[1, 2]))
        .batch("1 | a | x | 10 | 0; 1 | NULL | y | 30 | 0; 1 | c | NULL | 40 | 0")
        .is("1 | a | x | 10 | 30; 1 | a | y | 30 | 40; 1 | c | y | 40 | NULL")
        .batch("1 | b | NULL | 20 | 0")
        .is("1 | a | x | 10 | 20; 1 | b | x | 20 | 30; 1 | b | y | 30 | 40; 1 | c | y | 40 | NULL");
}

#[test]
fn a_delete_stops_the_flow_of_values() {
    scenario(
        &ignoring(ScdType::Type2, &[1, 2]),
        &["1 | a | x | 10 | 0", "1 | NULL | NULL | 20 | 1", "1 | NULL | y | 30 | 0"],
        "1 | a | x | 10 | 20; 1 | NULL | y | 30 | NULL",
    );
}

#[test]
fn a_late_delete_takes_back_values_that_flowed_across_it() {
    Target::new(&ignoring(ScdType::Type2, &[1, 2]))
        .batch("1 | a | x | 10 | 0; 1 | NULL | y | 30 | 0; 1 | b | NULL | 40 | 0")
        .is("1 | a | x | 10 | 30; 1 | a | y | 30 | 40; 1 | b | y | 40 | NULL")
        .batch("1 | NULL | NULL | 20 | 1")
        .is("1 | a | x | 10 | 20; 1 | NULL | y | 30 | 40; 1 | b | y | 40 | NULL");
}

#[test]
fn an_event_of_nothing_but_ignored_nulls_extends_the_version() {
    scenario(
        &ignoring(ScdType::Type2, &[1, 2]),
        &["1 | a | x | 10 | 0", "1 | NULL | NULL | 20 | 0", "1 | b | NULL | 30 | 0"],
        "1 | a | x | 10 | 30; 1 | b | x | 30 | NULL",
    );
}

#[test]
fn a_value_equal_to_the_one_that_flows_opens_no_version() {
    scenario(
        &ignoring(ScdType::Type2, &[1, 2]),
        &["1 | a | x | 10 | 0", "1 | NULL | x | 20 | 0", "1 | a | NULL | 30 | 0"],
        "1 | a | x | 10 | NULL",
    );
}

#[test]
fn a_null_in_a_tracked_column_that_is_not_ignored_opens_a_version() {
    scenario(
        &ignoring(ScdType::Type2, &[1]),
        &["1 | a | x | 10 | 0", "1 | NULL | NULL | 20 | 0"],
        "1 | a | x | 10 | 20; 1 | a | NULL | 20 | NULL",
    );
}

#[test]
fn an_untracked_ignored_column_shows_the_last_value_of_the_run() {
    scenario(
        &ScdSpec { ignore_null: vec![2], ..tracking(&[1]) },
        &["1 | a | x | 10 | 0; 1 | a | NULL | 20 | 0", "1 | b | NULL | 30 | 0; 1 | b | z | 40 | 0"],
        "1 | a | x | 10 | 30; 1 | b | z | 30 | NULL",
    );
}
