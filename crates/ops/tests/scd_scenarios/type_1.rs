//! Type 1: one row per key.

use deltaic_ops::{ScdSpec, ScdType};

use crate::harness::{Target, ignoring, scenario, spec, truncating, type_1, wide};

// Type 1: one batch is reduced to what decides.

#[test]
fn of_one_batch_the_greatest_sequence_decides() {
    scenario(&type_1(), &["1 | b | 20 | 0; 1 | c | 30 | 0; 1 | a | 10 | 0"], "1 | c");
}

#[test]
fn of_equal_upserts_in_one_batch_the_greater_row_is_left() {
    scenario(&type_1(), &["1 | b | 10 | 0; 1 | a | 10 | 0; 1 | NULL | 10 | 0"], "1 | b");
}

#[test]
fn keys_of_one_batch_are_reduced_on_their_own() {
    scenario(
        &type_1(),
        &["1 | a | 10 | 0; 2 | b | 5 | 0; 1 | c | 5 | 0; 2 | d | 10 | 0"],
        "1 | a; 2 | d",
    );
}

#[test]
fn the_deciding_event_brings_all_its_columns() {
    scenario(&wide(ScdType::Type1), &["1 | a | x | 10 | 0; 1 | b | NULL | 20 | 0"], "1 | b | NULL");
}

#[test]
fn a_composite_key_is_one_key() {
    scenario(
        &spec(ScdType::Type1, 2, &["k1", "k2", "v"]),
        &[
            "p | 1 | a | 10 | 0; p | 2 | b | 10 | 0; q | 1 | c | 10 | 0",
            "p | 1 | NULL | 20 | 1",
            "q | 1 | d | 20 | 0",
        ],
        "p | 2 | b; q | 1 | d",
    );
}

// Type 1: across batches.

#[test]
fn upsert_delete_and_upsert_again() {
    scenario(&type_1(), &["1 | a | 10 | 0", "1 | NULL | 20 | 1", "1 | c | 30 | 0"], "1 | c");
}

#[test]
fn an_upsert_with_a_higher_sequence_replaces_the_row() {
    Target::new(&type_1()).batch("1 | a | 10 | 0").changes("1 | b | 20 | 0", "- 1 | a; + 1 | b");
}

#[test]
fn a_late_upsert_is_ignored() {
    Target::new(&type_1()).batch("1 | b | 20 | 0").ignores("1 | a | 10 | 0").is("1 | b");
}

#[test]
fn a_newer_delete_removes_the_row() {
    Target::new(&type_1())
        .batch("1 | a | 10 | 0; 2 | b | 10 | 0")
        .changes("1 | NULL | 20 | 1", "- 1 | a");
}

#[test]
fn a_stale_upsert_behind_a_tombstone_is_ignored() {
    scenario(&type_1(), &["1 | a | 10 | 0", "1 | NULL | 30 | 1", "1 | b | 20 | 0"], "");
}

#[test]
fn a_newer_delete_moves_the_tombstone_up() {
    Target::new(&type_1())
        .batch("1 | NULL | 20 | 1")
        .batch("1 | NULL | 40 | 1")
        .ignores("1 | a | 30 | 0")
        .changes("1 | b | 50 | 0", "+ 1 | b");
}

#[test]
fn an_older_delete_leaves_the_tombstone_where_it_is() {
    Target::new(&type_1())
        .batch("1 | NULL | 40 | 1")
        .batch("1 | NULL | 20 | 1")
        .ignores("1 | a | 30 | 0")
        .changes("1 | b | 41 | 0", "+ 1 | b");
}

#[test]
fn a_delete_of_an_unknown_key_is_remembered() {
    Target::new(&type_1()).ignores("1 | NULL | 20 | 1").ignores("1 | a | 10 | 0").is("");
}

#[test]
fn a_late_delete_is_ignored_and_hides_what_is_older() {
    Target::new(&type_1())
        .batch("1 | b | 20 | 0")
        .ignores("1 | NULL | 10 | 1")
        .ignores("1 | a | 5 | 0")
        .is("1 | b");
}

#[test]
fn a_delete_and_a_higher_upsert_in_one_batch() {
    scenario(&type_1(), &["1 | a | 10 | 0", "1 | NULL | 20 | 1; 1 | b | 30 | 0"], "1 | b");
}

#[test]
fn an_upsert_lifts_the_tombstone_and_older_events_stay_hidden() {
    scenario(&type_1(), &["1 | NULL | 10 | 1", "1 | b | 20 | 0", "1 | a | 15 | 0"], "1 | b");
}

#[test]
fn equal_sequence_upsert_and_delete_leave_the_row_in_type_1() {
    scenario(&type_1(), &["1 | a | 5 | 0", "1 | NULL | 10 | 1", "1 | b | 10 | 0"], "1 | b");
}

#[test]
fn other_rows_stay_untouched() {
    Target::new(&type_1())
        .batch("1 | a | 10 | 0; 2 | b | 10 | 0; 3 | c | 10 | 0; 4 | NULL | 10 | 1")
        .changes("2 | d | 20 | 0; 4 | e | 5 | 0", "- 2 | b; + 2 | d")
        .is("1 | a; 2 | d; 3 | c");
}

#[test]
fn events_of_every_fate_in_one_batch() {
    let seed = "1 | a | 10 | 0; 2 | b | 10 | 0; 3 | c | 10 | 0; 4 | NULL | 10 | 1";
    let mixed = "1 | new | 20 | 0; 2 | NULL | 20 | 1; 3 | stale | 5 | 0; 4 | stale | 5 | 0";
    let fresh = "5 | e | 1 | 0; 6 | NULL | 1 | 1";
    let mixed = format!("{mixed}; {fresh}");
    scenario(&type_1(), &[seed, &mixed], "1 | new; 3 | c; 5 | e");
}

#[test]
fn a_batch_delivered_again_is_ignored_in_type_1() {
    let mixed = "1 | b | 20 | 0; 2 | NULL | 20 | 1; 3 | c | 5 | 0; 4 | NULL | 5 | 1";
    let mut target = Target::new(&type_1());
    target.batch("1 | a | 10 | 0; 2 | b | 10 | 0").batch(mixed).is("1 | b; 3 | c");
    let kept = target.kept();
    target.ignores(mixed).ignores(mixed);
    assert_eq!(target.kept(), kept);
}

#[test]
fn out_of_order_over_six_batches() {
    scenario(
        &type_1(),
        &[
            "1 | a3 | 30 | 0; 2 | b1 | 10 | 0",
            "1 | a1 | 10 | 0; 3 | NULL | 20 | 1",
            "2 | NULL | 30 | 1; 1 | NULL | 20 | 1",
            "2 | b2 | 20 | 0; 3 | c1 | 10 | 0",
            "3 | c3 | 30 | 0; 2 | b4 | 40 | 0",
            "1 | NULL | 40 | 1; 1 | a5 | 50 | 0; 3 | NULL | 40 | 1",
        ],
        "1 | a5; 2 | b4",
    );
}

// Type 1: truncates.

#[test]
fn a_truncate_removes_rows_at_or_below_its_sequence() {
    scenario(
        &truncating(),
        &["1 | a | 10 | 0; 2 | b | 20 | 0; 3 | c | 21 | 0", "NULL | NULL | 20 | 2"],
        "3 | c",
    );
}

#[test]
fn a_truncate_of_an_empty_target_is_remembered() {
    Target::new(&truncating())
        .ignores("NULL | NULL | 20 | 2")
        .ignores("1 | a | 10 | 0; 2 | b | 20 | 0")
        .changes("1 | c | 21 | 0", "+ 1 | c");
}

#[test]
fn the_greatest_truncate_counts() {
    scenario(
        &truncating(),
        &["NULL | NULL | 50 | 2", "1 | a | 60 | 0; 2 | b | 30 | 0", "NULL | NULL | 20 | 2"],
        "1 | a",
    );
}

#[test]
fn a_truncate_in_the_batch_of_its_events() {
    scenario(
        &truncating(),
        &["1 | a | 10 | 0; NULL | NULL | 10 | 2; 1 | b | 11 | 0; 2 | c | 10 | 0"],
        "1 | b",
    );
}

#[test]
fn a_tombstone_above_a_truncate_stands() {
    scenario(
        &truncating(),
        &["1 | NULL | 20 | 1", "NULL | NULL | 15 | 2", "1 | a | 18 | 0; 2 | b | 18 | 0"],
        "2 | b",
    );
}

#[test]
fn a_truncate_with_a_key_removes_rows_of_all_keys() {
    scenario(&truncating(), &["1 | a | 10 | 0; 2 | b | 10 | 0", "1 | NULL | 20 | 2"], "");
}

#[test]
fn a_truncate_ends_the_life_that_ignored_nulls_draw_on() {
    scenario(
        &ScdSpec { truncates: true, ..ignoring(ScdType::Type1, &[1, 2]) },
        &["1 | a | x | 10 | 0", "NULL | NULL | NULL | 15 | 2", "1 | NULL | y | 20 | 0"],
        "1 | NULL | y",
    );
}

// Type 1: IGNORE NULL UPDATES.

#[test]
fn an_ignored_null_keeps_the_older_value() {
    scenario(
        &ignoring(ScdType::Type1, &[1, 2]),
        &["1 | a | x | 10 | 0", "1 | NULL | y | 20 | 0"],
        "1 | a | y",
    );
}

#[test]
fn a_null_in_a_column_that_is_not_ignored_is_set() {
    scenario(
        &ignoring(ScdType::Type1, &[1]),
        &["1 | a | x | 10 | 0", "1 | NULL | NULL | 20 | 0"],
        "1 | a | NULL",
    );
}

#[test]
fn a_late_value_fills_a_column_that_was_never_set_later() {
    Target::new(&ignoring(ScdType::Type1, &[1, 2]))
        .batch("1 | NULL | z | 30 | 0")
        .is("1 | NULL | z")
        .changes("1 | a | x | 10 | 0", "- 1 | NULL | z; + 1 | a | z")
        .changes("1 | b | NULL | 20 | 0", "- 1 | a | z; + 1 | b | z")
        .ignores("1 | c | y | 15 | 0");
}

#[test]
fn an_update_of_nothing_but_ignored_nulls_changes_nothing() {
    Target::new(&ignoring(ScdType::Type1, &[1, 2]))
        .batch("1 | a | x | 10 | 0")
        .ignores("1 | NULL | NULL | 20 | 0")
        .changes("1 | NULL | NULL | 15 | 1", "- 1 | a | x; + 1 | NULL | NULL");
}

#[test]
fn an_insert_of_nothing_but_ignored_nulls_is_a_row() {
    scenario(&ignoring(ScdType::Type1, &[1, 2]), &["1 | NULL | NULL | 10 | 0"], "1 | NULL | NULL");
}

#[test]
fn a_delete_forgets_the_values_that_ignored_nulls_would_keep() {
    scenario(
        &ignoring(ScdType::Type1, &[1, 2]),
        &["1 | a | x | 10 | 0", "1 | NULL | NULL | 20 | 1", "1 | NULL | y | 30 | 0"],
        "1 | NULL | y",
    );
}

#[test]
fn a_value_from_before_the_last_delete_fills_nothing() {
    Target::new(&ignoring(ScdType::Type1, &[1, 2]))
        .batch("1 | NULL | NULL | 20 | 1; 1 | NULL | y | 30 | 0")
        .ignores("1 | a | x | 10 | 0")
        .changes("1 | b | x | 25 | 0", "- 1 | NULL | y; + 1 | b | y");
}

#[test]
fn upserts_of_one_sequence_fill_each_others_ignored_nulls() {
    scenario(
        &ignoring(ScdType::Type1, &[1, 2]),
        &["1 | a | NULL | 10 | 0", "1 | NULL | x | 10 | 0"],
        "1 | a | x",
    );
}

#[test]
fn a_delete_that_an_equal_upsert_beats_still_ends_the_life() {
    scenario(
        &ignoring(ScdType::Type1, &[1, 2]),
        &["1 | a | x | 5 | 0", "1 | NULL | NULL | 10 | 1", "1 | NULL | y | 10 | 0"],
        "1 | NULL | y",
    );
}
