//! What is refused, and what leaves everything as it is.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use deltaic_batch::ErrorClass;
use deltaic_ops::{END_AT, START_AT, ScdMerge, ScdSpec, ScdType};
use deltaic_state::Slot;

use crate::harness::{
    Target, scenario, sequenced_by, spec, tracking, truncating, type_1, type_2, wide,
};

// The checks at the door.

#[test]
fn a_null_sequence_is_refused() {
    for spec in [type_1(), type_2()] {
        let error = Target::new(&spec).refuses("1 | a | 10 | 0; 2 | b | NULL | 0");
        assert_eq!(error.code(), "AUTOCDC_MICROBATCH_VALIDATION");
        assert_eq!(error.class(), ErrorClass::Data);
        assert!(error.message().contains("NULL_SEQUENCE"), "{error}");
    }
}

#[test]
fn a_null_key_is_refused() {
    for spec in [type_1(), type_2()] {
        let error = Target::new(&spec).refuses("1 | a | 10 | 0; NULL | NULL | 20 | 1");
        assert_eq!(error.code(), "AUTOCDC_MICROBATCH_VALIDATION");
        assert!(error.message().contains("NULL_KEY: key column 'id'"), "{error}");
    }
}

#[test]
fn a_null_in_one_column_of_a_composite_key_is_refused() {
    for scd_type in [ScdType::Type1, ScdType::Type2] {
        let spec = spec(scd_type, 2, &["k1", "k2", "v"]);
        let error = Target::new(&spec).refuses("p | 1 | a | 10 | 0; p | NULL | b | 10 | 0");
        assert!(error.message().contains("key column 'k2' is NULL in 1 event(s)"), "{error}");
        assert!(!error.message().contains("'k1'"), "{error}");
    }
}

#[test]
fn a_null_sequence_is_told_before_a_null_key() {
    let error = Target::new(&type_1()).refuses("NULL | a | 10 | 0; 1 | b | NULL | 0");
    let sequence = error.message().find("NULL_SEQUENCE").unwrap();
    let key = error.message().find("NULL_KEY").unwrap();
    assert!(sequence < key, "{error}");
}

#[test]
fn a_sequence_without_an_order_is_refused() {
    let entry = ["key", "value"].map(|name| Field::new(name, DataType::Utf8, name == "value"));
    let entry = Field::new("entries", DataType::Struct(entry.to_vec().into()), false);
    let map = DataType::Map(Arc::new(entry), false);
    let nested = DataType::Struct(vec![Field::new("map", map.clone(), true)].into());
    for sequence in [map, nested] {
        for spec in [type_1(), type_2()] {
            let error = ScdMerge::try_new(sequenced_by(sequence.clone(), spec)).unwrap_err();
            assert_eq!(error.code(), "SCD_SEQUENCE_TYPE");
            assert!(error.message().contains("AUTOCDC_NON_ORDERABLE_SEQUENCE"), "{error}");
        }
    }
}

#[test]
fn the_names_of_the_limits_are_reserved_in_type_2() {
    for name in [START_AT, END_AT] {
        let error = ScdMerge::try_new(spec(ScdType::Type2, 1, &["id", name])).unwrap_err();
        assert_eq!(error.code(), "SCD_RESERVED_COLUMN");
        scenario(&spec(ScdType::Type1, 1, &["id", name]), &["1 | a | 10 | 0"], "1 | a");
    }
}

#[test]
fn a_rule_about_a_column_that_is_not_selected_is_refused() {
    let wide_1 = || wide(ScdType::Type1);
    let refused = |spec: ScdSpec| ScdMerge::try_new(spec).unwrap_err().code();
    let key = ScdSpec { columns: vec![1, 2], ..wide_1() };
    assert_eq!(refused(key), "SCD_COLUMN_NOT_SELECTED");
    let tracked = ScdSpec { columns: vec![0, 1], ..tracking(&[2]) };
    assert_eq!(refused(tracked), "SCD_COLUMN_NOT_SELECTED");
    let ignored = ScdSpec { columns: vec![0, 1], ignore_null: vec![2], ..wide_1() };
    assert_eq!(refused(ignored), "SCD_COLUMN_NOT_SELECTED");
}

// Columns of the target.

#[test]
fn the_target_has_the_selected_columns_and_the_limits() {
    let spec = ScdSpec { columns: vec![2, 0], ..tracking(&[2]) };
    let schema = spec.target_schema().unwrap();
    let field = |field: &FieldRef| format!("{} {}", field.name(), field.data_type());
    let fields: Vec<String> = schema.fields().iter().map(field).collect();
    assert_eq!(fields, ["w Utf8", "id Utf8", "__START_AT Int64", "__END_AT Int64"]);
    scenario(&spec, &["1 | a | x | 10 | 0"], "x | 1 | 10 | NULL");
}

#[test]
fn column_names_may_have_dots() {
    let names = ["the.key", "a.b"];
    scenario(&spec(ScdType::Type1, 1, &names), &["1 | a | 10 | 0", "1 | b | 20 | 0"], "1 | b");
    scenario(
        &spec(ScdType::Type2, 1, &names),
        &["1 | a | 10 | 0", "1 | b | 20 | 0"],
        "1 | a | 10 | 20; 1 | b | 20 | NULL",
    );
}

// Batches without events.

#[test]
fn an_empty_batch_without_history_does_nothing() {
    for spec in [type_1(), type_2(), truncating()] {
        let mut target = Target::new(&spec);
        target.ignores("").is("");
        assert!(target.state.iter().all(Slot::is_empty));
    }
}

#[test]
fn an_empty_batch_leaves_history_as_it_is() {
    let mut one = Target::new(&type_1());
    one.batch("1 | a | 10 | 0; 2 | NULL | 20 | 1").ignores("").is("1 | a");
    one.ignores("2 | b | 15 | 0");
    let mut two = Target::new(&type_2());
    two.batch("1 | a | 10 | 0; 1 | a | 20 | 0; 1 | NULL | 30 | 1").ignores("");
    two.is("1 | a | 10 | 30").batch("1 | b | 15 | 0");
    two.is("1 | a | 10 | 15; 1 | b | 15 | 20; 1 | a | 20 | 30");
}
