//! Type 2: late events.

use crate::harness::{Target, scenario, type_2};

// Type 2: late events.

#[test]
fn a_late_event_before_all_others() {
    Target::new(&type_2()).batch("1 | b | 20 | 0").changes("1 | a | 10 | 0", "+ 1 | a | 10 | 20");
}

#[test]
fn a_late_event_inside_a_version_that_an_update_closed() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0; 1 | c | 30 | 0", "1 | b | 20 | 0"],
        "1 | a | 10 | 20; 1 | b | 20 | 30; 1 | c | 30 | NULL",
    );
}

#[test]
fn a_late_event_inside_a_version_that_a_delete_closed() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0; 1 | NULL | 30 | 1", "1 | b | 20 | 0"],
        "1 | a | 10 | 20; 1 | b | 20 | 30",
    );
}

#[test]
fn a_late_event_inside_an_unchanged_run() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0; 1 | a | 20 | 0; 1 | a | 30 | 0", "1 | b | 25 | 0"],
        "1 | a | 10 | 25; 1 | b | 25 | 30; 1 | a | 30 | NULL",
    );
}

#[test]
fn a_late_event_before_the_versions_of_a_deleted_key() {
    scenario(
        &type_2(),
        &["1 | b | 20 | 0; 1 | NULL | 30 | 1", "1 | a | 10 | 0"],
        "1 | a | 10 | 20; 1 | b | 20 | 30",
    );
}

#[test]
fn two_late_events_between_a_version_and_its_delete() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0; 1 | NULL | 40 | 1", "1 | b | 20 | 0; 1 | c | 30 | 0"],
        "1 | a | 10 | 20; 1 | b | 20 | 30; 1 | c | 30 | 40",
    );
}

#[test]
fn a_cascade_of_late_events_cuts_a_version_again_and_again() {
    scenario(
        &type_2(),
        &[
            "1 | a | 10 | 0; 1 | NULL | 60 | 1",
            "1 | b | 20 | 0; 1 | c | 30 | 0; 1 | NULL | 40 | 1; 1 | d | 50 | 0",
        ],
        "1 | a | 10 | 20; 1 | b | 20 | 30; 1 | c | 30 | 40; 1 | d | 50 | 60",
    );
}

#[test]
fn a_late_event_cuts_no_version_of_another_key() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0; 1 | NULL | 30 | 1; 2 | a | 10 | 0; 2 | NULL | 30 | 1", "1 | b | 20 | 0"],
        "1 | a | 10 | 20; 1 | b | 20 | 30; 2 | a | 10 | 30",
    );
}

#[test]
fn a_late_repeat_inside_its_version_shows_when_the_version_is_cut() {
    Target::new(&type_2())
        .batch("1 | a | 10 | 0; 1 | b | 30 | 0")
        .ignores("1 | a | 20 | 0")
        .batch("1 | c | 15 | 0")
        .is("1 | a | 10 | 15; 1 | c | 15 | 20; 1 | a | 20 | 30; 1 | b | 30 | NULL");
}

#[test]
fn a_late_repeat_before_the_first_version_moves_its_start_back() {
    Target::new(&type_2())
        .batch("1 | a | 20 | 0; 1 | b | 30 | 0")
        .changes("1 | a | 10 | 0", "- 1 | a | 20 | 30; + 1 | a | 10 | 30");
}

#[test]
fn a_late_event_with_the_next_value_moves_the_limit_back() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0; 1 | b | 30 | 0", "1 | b | 20 | 0"],
        "1 | a | 10 | 20; 1 | b | 20 | NULL",
    );
}

#[test]
fn a_late_delete_shortens_an_open_version() {
    Target::new(&type_2())
        .batch("1 | a | 10 | 0; 1 | a | 30 | 0")
        .is("1 | a | 10 | NULL")
        .batch("1 | NULL | 20 | 1")
        .is("1 | a | 10 | 20; 1 | a | 30 | NULL");
}

#[test]
fn a_late_delete_shortens_a_closed_version() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0; 1 | b | 30 | 0", "1 | NULL | 20 | 1"],
        "1 | a | 10 | 20; 1 | b | 30 | NULL",
    );
}

#[test]
fn a_late_delete_before_a_recorded_delete() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0; 1 | NULL | 30 | 1", "1 | NULL | 20 | 1"],
        "1 | a | 10 | 20",
    );
}

#[test]
fn the_end_of_a_shortened_version_is_remembered_as_a_delete() {
    Target::new(&type_2())
        .batch("1 | a | 10 | 0; 1 | NULL | 40 | 1")
        .batch("1 | NULL | 20 | 1")
        .changes("1 | b | 30 | 0", "+ 1 | b | 30 | 40");
}

#[test]
fn an_event_in_the_gap_that_a_late_delete_left_ends_at_the_next_version() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0; 1 | c | 40 | 0", "1 | NULL | 20 | 1", "1 | b | 30 | 0"],
        "1 | a | 10 | 20; 1 | b | 30 | 40; 1 | c | 40 | NULL",
    );
}

#[test]
fn a_delete_after_the_delete_that_closed_a_version_changes_nothing() {
    Target::new(&type_2())
        .batch("1 | a | 10 | 0; 1 | NULL | 20 | 1")
        .ignores("1 | NULL | 25 | 1")
        .changes("1 | b | 22 | 0", "+ 1 | b | 22 | 25");
}

#[test]
fn a_delete_that_was_used_closes_a_later_arrival_too() {
    Target::new(&type_2())
        .ignores("1 | NULL | 20 | 1")
        .changes("1 | a | 10 | 0", "+ 1 | a | 10 | 20")
        .changes("1 | b | 15 | 0", "- 1 | a | 10 | 20; + 1 | a | 10 | 15; + 1 | b | 15 | 20");
}

#[test]
fn equal_values_of_two_keys_stay_apart() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0; 2 | a | 20 | 0", "1 | a | 30 | 0"],
        "1 | a | 10 | NULL; 2 | a | 20 | NULL",
    );
}
