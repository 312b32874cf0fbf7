//! Type 2: versions open, close and repeat; equal sequences.

use deltaic_ops::ScdType;

use crate::harness::{Target, check, scenario, spec, type_2, wide};

// Type 2: versions open, close and repeat.

#[test]
fn a_new_key_opens_a_version() {
    scenario(&type_2(), &["1 | a | 10 | 0"], "1 | a | 10 | NULL");
}

#[test]
fn two_updates_in_one_batch() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0", "1 | b | 20 | 0; 1 | c | 30 | 0"],
        "1 | a | 10 | 20; 1 | b | 20 | 30; 1 | c | 30 | NULL",
    );
}

#[test]
fn insert_and_delete_in_one_batch() {
    scenario(&type_2(), &["1 | a | 10 | 0; 1 | NULL | 20 | 1"], "1 | a | 10 | 20");
}

#[test]
fn insert_update_delete_and_insert_again_in_one_batch() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0; 1 | b | 20 | 0; 1 | NULL | 30 | 1; 1 | c | 40 | 0"],
        "1 | a | 10 | 20; 1 | b | 20 | 30; 1 | c | 40 | NULL",
    );
}

#[test]
fn a_value_repeated_in_one_batch_is_one_version() {
    scenario(&type_2(), &["1 | a | 10 | 0; 1 | a | 20 | 0"], "1 | a | 10 | NULL");
}

#[test]
fn a_value_repeated_over_batches_is_one_version() {
    Target::new(&type_2())
        .batch("1 | a | 10 | 0")
        .ignores("1 | a | 20 | 0")
        .ignores("1 | a | 30 | 0")
        .batch("1 | b | 40 | 0")
        .is("1 | a | 10 | 40; 1 | b | 40 | NULL");
}

#[test]
fn a_delete_of_an_unknown_key_leaves_no_row() {
    scenario(&type_2(), &["1 | NULL | 20 | 1", "2 | NULL | 10 | 1"], "");
}

#[test]
fn an_unknown_delete_closes_a_version_that_arrives_later() {
    Target::new(&type_2())
        .ignores("1 | NULL | 20 | 1")
        .changes("1 | c | 30 | 0", "+ 1 | c | 30 | NULL")
        .changes("1 | a | 10 | 0", "+ 1 | a | 10 | 20");
}

#[test]
fn an_update_closes_one_version_and_opens_the_next() {
    Target::new(&type_2())
        .batch("1 | a | 10 | 0")
        .changes("1 | b | 20 | 0", "- 1 | a | 10 | NULL; + 1 | a | 10 | 20; + 1 | b | 20 | NULL");
}

#[test]
fn a_delete_closes_the_open_version() {
    Target::new(&type_2())
        .batch("1 | a | 10 | 0")
        .changes("1 | NULL | 20 | 1", "- 1 | a | 10 | NULL; + 1 | a | 10 | 20");
}

#[test]
fn settled_history_stays_untouched() {
    Target::new(&type_2())
        .batch("1 | a | 10 | 0; 1 | b | 20 | 0; 1 | NULL | 30 | 1")
        .changes("1 | c | 40 | 0", "+ 1 | c | 40 | NULL");
}

#[test]
fn an_equal_value_after_a_delete_is_another_version() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0", "1 | NULL | 20 | 1", "1 | a | 30 | 0"],
        "1 | a | 10 | 20; 1 | a | 30 | NULL",
    );
}

#[test]
fn a_chain_of_repeats_ends_at_the_delete() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0", "1 | a | 20 | 0; 1 | a | 30 | 0", "1 | NULL | 40 | 1"],
        "1 | a | 10 | 40",
    );
}

#[test]
fn many_keys_in_a_few_batches() {
    let mut batches: [Vec<String>; 3] = Default::default();
    let mut rows = Vec::new();
    for id in 0..200 {
        let (start, is_updated, is_deleted) = (10 + id, id % 3 == 0, id % 2 == 0);
        let end = if is_deleted { "500" } else { "NULL" };
        batches[0].push(format!("{id} | a | {start} | 0"));
        if is_updated {
            batches[1].push(format!("{id} | b | 400 | 0"));
            rows.push(format!("{id} | a | {start} | 400; {id} | b | 400 | {end}"));
        } else {
            rows.push(format!("{id} | a | {start} | {end}"));
        }
        if is_deleted {
            batches[2].push(format!("{id} | NULL | 500 | 1"));
        }
    }
    let [first, second, third] = batches.map(|events| events.join(";"));
    let rows = rows.join(";");
    check(&type_2(), &[&first, &second, &third], &rows);
    check(&type_2(), &[&third, &second, &first], &rows);
}

#[test]
fn keys_of_every_fate_in_one_batch() {
    scenario(
        &type_2(),
        &[
            "1 | a | 10 | 0; 2 | b | 10 | 0; 2 | NULL | 20 | 1",
            "1 | c | 20 | 0; 1 | NULL | 30 | 1; 2 | d | 30 | 0; 3 | e | 5 | 0; 4 | NULL | 5 | 1",
        ],
        "1 | a | 10 | 20; 1 | c | 20 | 30; 2 | b | 10 | 20; 2 | d | 30 | NULL; 3 | e | 5 | NULL",
    );
}

#[test]
fn versions_of_a_composite_key() {
    scenario(
        &spec(ScdType::Type2, 2, &["k1", "k2", "v"]),
        &[
            "p | 1 | a | 10 | 0; p | 2 | a | 10 | 0; q | 1 | a | 10 | 0",
            "p | 1 | b | 20 | 0; p | 2 | NULL | 20 | 1",
        ],
        "p | 1 | a | 10 | 20; p | 1 | b | 20 | NULL; p | 2 | a | 10 | 20; q | 1 | a | 10 | NULL",
    );
}

// Type 2: delivered again, crashes, duplicates.

#[test]
fn an_update_a_repeat_and_deletes_delivered_again_are_ignored() {
    for again in ["1 | b | 30 | 0", "1 | a | 20 | 0", "1 | NULL | 40 | 1", "2 | NULL | 10 | 1"] {
        Target::new(&type_2())
            .batch("1 | a | 10 | 0; 1 | a | 20 | 0; 2 | NULL | 10 | 1")
            .batch("1 | b | 30 | 0")
            .batch("1 | NULL | 40 | 1")
            .ignores(again)
            .is("1 | a | 10 | 30; 1 | b | 30 | 40")
            .changes("2 | c | 5 | 0", "+ 2 | c | 5 | 10");
    }
}

#[test]
fn events_delivered_again_are_kept_once() {
    let batch = "1 | a | 10 | 0; 1 | a | 20 | 0; 1 | NULL | 30 | 1; 2 | NULL | 5 | 1";
    let mut target = Target::new(&type_2());
    target.batch(batch);
    assert_eq!(target.kept(), 4);
    target.ignores(batch).ignores(batch);
    assert_eq!(target.kept(), 4);
}

#[test]
fn duplicates_in_one_batch_count_once() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0; 1 | a | 10 | 0; 1 | NULL | 20 | 1; 1 | NULL | 20 | 1"],
        "1 | a | 10 | 20",
    );
}

#[test]
fn a_batch_lost_in_a_crash_is_applied_again() {
    let cases = [
        ("1 | c | 40 | 0", "1 | a | 10 | 30; 1 | b | 30 | 40; 1 | c | 40 | NULL"),
        ("1 | c | 15 | 0", "1 | a | 10 | 15; 1 | c | 15 | 20; 1 | a | 20 | 30; 1 | b | 30 | NULL"),
        ("1 | NULL | 15 | 1", "1 | a | 10 | 15; 1 | a | 20 | 30; 1 | b | 30 | NULL"),
    ];
    for (batch, rows) in cases {
        let mut target = Target::new(&type_2());
        target.batch("1 | a | 10 | 0; 1 | a | 20 | 0; 1 | b | 30 | 0");
        let checkpoint = target.checkpoint();
        target.batch(batch).is(rows);
        target.recover(&checkpoint).batch(batch).is(rows);
    }
}

// Type 2: equal sequences.

#[test]
fn equal_sequence_upsert_and_delete_in_one_batch() {
    scenario(&type_2(), &["1 | a | 10 | 0; 1 | NULL | 10 | 1"], "");
}

#[test]
fn an_upsert_at_the_sequence_of_a_closing_delete_loses() {
    Target::new(&type_2())
        .batch("1 | a | 10 | 0; 1 | NULL | 20 | 1")
        .ignores("1 | b | 20 | 0")
        .ignores("1 | b | 20 | 0; 1 | NULL | 20 | 1")
        .is("1 | a | 10 | 20");
}

#[test]
fn a_delete_at_the_sequence_of_the_open_version_removes_it() {
    Target::new(&type_2())
        .batch("1 | a | 10 | 0; 1 | b | 20 | 0")
        .changes("1 | NULL | 20 | 1", "- 1 | b | 20 | NULL");
}

#[test]
fn a_tie_of_many_events_leaves_the_delete() {
    scenario(
        &type_2(),
        &["1 | z | 5 | 0", "1 | a | 10 | 0; 1 | b | 10 | 0; 1 | NULL | 10 | 1; 1 | c | 10 | 0"],
        "1 | z | 5 | 10",
    );
}

#[test]
fn an_equal_sequence_with_another_value_leaves_the_greater_one() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0", "1 | c | 10 | 0", "1 | b | 10 | 0"],
        "1 | c | 10 | NULL",
    );
}

#[test]
fn at_equal_sequence_null_is_the_least_value() {
    scenario(
        &wide(ScdType::Type2),
        &["1 | a | NULL | 10 | 0", "1 | a | x | 10 | 0", "1 | NULL | z | 10 | 0"],
        "1 | a | x | 10 | NULL",
    );
}

#[test]
fn a_greater_value_at_the_first_event_of_a_run_cuts_it_off() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0; 1 | a | 20 | 0", "1 | b | 10 | 0"],
        "1 | b | 10 | 20; 1 | a | 20 | NULL",
    );
}

#[test]
fn a_greater_value_at_an_absorbed_event_opens_a_version() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0; 1 | a | 20 | 0", "1 | b | 20 | 0"],
        "1 | a | 10 | 20; 1 | b | 20 | NULL",
    );
}

#[test]
fn a_delete_at_an_absorbed_event_ends_the_version() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0; 1 | a | 20 | 0; 1 | a | 30 | 0", "1 | NULL | 20 | 1"],
        "1 | a | 10 | 20; 1 | a | 30 | NULL",
    );
}

#[test]
fn a_closed_version_opens_again_when_its_value_wins_at_its_end() {
    Target::new(&type_2())
        .batch("1 | c | 10 | 0; 1 | b | 20 | 0")
        .is("1 | c | 10 | 20; 1 | b | 20 | NULL")
        .batch("1 | c | 20 | 0")
        .is("1 | c | 10 | NULL");
}

#[test]
fn an_event_at_the_end_of_a_version_leaves_its_limits() {
    scenario(
        &type_2(),
        &["1 | a | 10 | 0; 1 | b | 30 | 0; 1 | d | 40 | 0", "1 | c | 30 | 0"],
        "1 | a | 10 | 30; 1 | c | 30 | 40; 1 | d | 40 | NULL",
    );
}
