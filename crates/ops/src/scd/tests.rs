//! Worked examples of every rule.

use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, StringArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields, Schema};
use arrow::record_batch::RecordBatch;
use deltaic_batch::{Error, ErrorClass, ZBatch};
use deltaic_state::Slot;

use crate::{Operator, ScdMerge, ScdSpec, ScdType, StepContext};

/// Source columns id, name, city; then sequence and kind.
fn spec(scd_type: ScdType) -> ScdSpec {
    let input = Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("name", DataType::Utf8, true),
        Field::new("city", DataType::Utf8, true),
        Field::new("__sequence", DataType::Int64, true),
        Field::new("__kind", DataType::Int8, true),
    ]);
    ScdSpec {
        input: Arc::new(input),
        keys: vec![0],
        sequence: 3,
        kind: 4,
        columns: vec![0, 1, 2],
        tracked: if scd_type == ScdType::Type2 { vec![1, 2] } else { vec![] },
        ignore_null: vec![],
        scd_type,
        truncates: false,
        retention: None,
    }
}

/// A merge, its state, and the target so far.
struct Run {
    merge: ScdMerge,
    state: Vec<Slot>,
    target: ZBatch,
    epoch: u64,
}

impl Run {
    fn new(spec: ScdSpec) -> Self {
        let merge = ScdMerge::try_new(spec).unwrap();
        let state = merge.spec().slots.iter().map(|slot| Slot::try_new(slot).unwrap()).collect();
        let target = ZBatch::empty(merge.spec().output.clone());
        Self { merge, state, target, epoch: 0 }
    }

    fn try_step(&mut self, delta: &ZBatch) -> Result<ZBatch, Error> {
        let mut out: Vec<ZBatch> = Vec::new();
        let cx = StepContext { epoch: self.epoch, shard: 0, shards: 1 };
        self.epoch += 1;
        let delta = std::slice::from_ref(delta);
        self.merge.step(delta, &mut self.state, &mut out, &cx)?;
        let schema = self.merge.spec().output.clone();
        let delta = ZBatch::concat(&schema, &out).unwrap();
        let rows = delta.num_rows();
        let delta = delta.consolidate().unwrap();
        assert_eq!(delta.num_rows(), rows, "the output is net");
        let both = ZBatch::concat(&schema, &[self.target.clone(), delta.clone()]).unwrap();
        self.target = both.consolidate().unwrap();
        Ok(delta)
    }

    /// Applies events, one per line: id, name, city, sequence, kind. Returns the delta as text.
    fn step(&mut self, events: &str) -> String {
        let schema = self.merge.spec().inputs[0].schema.clone();
        let delta = ZBatch::parse(&schema, events).unwrap();
        lines(&self.try_step(&delta).unwrap())
    }

    fn target(&self) -> String {
        lines(&self.target)
    }
}

/// Lines in order, without blanks around them.
fn lines(batch: &ZBatch) -> String {
    let text = batch.to_string();
    let mut lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.sort_unstable();
    lines.join("\n")
}

#[test]
fn type_1_keeps_the_event_with_the_greatest_sequence() {
    let mut run = Run::new(spec(ScdType::Type1));
    assert_eq!(run.step("+ 1 | ann | x | 1 | 0"), "+ 1 | ann | x");
    assert_eq!(run.step("+ 1 | anna | x | 3 | 0"), "+ 1 | anna | x\n- 1 | ann | x");
    assert_eq!(run.step("+ 1 | late | x | 2 | 0"), "");
    assert_eq!(run.step("+ 1 | anna | x | 3 | 0"), "", "delivered again");
    assert_eq!(run.step("+ 1 | anna | x | 4 | 0"), "", "a newer event with equal values");
    assert_eq!(run.step("+ 1 | NULL | NULL | 5 | 1"), "- 1 | anna | x");
    assert_eq!(run.step("+ 1 | late | x | 4 | 0"), "", "the delete is remembered");
}

#[test]
fn type_1_prefers_the_upsert_at_equal_sequence() {
    for events in [
        ["+ 1 | a | x | 5 | 0", "+ 1 | NULL | NULL | 5 | 1"],
        ["+ 1 | NULL | NULL | 5 | 1", "+ 1 | a | x | 5 | 0"],
    ] {
        let mut run = Run::new(spec(ScdType::Type1));
        events.iter().for_each(|event| drop(run.step(event)));
        assert_eq!(run.target(), "+ 1 | a | x");
    }
}

#[test]
fn type_1_truncates_at_or_below_a_sequence_whenever_it_arrives() {
    let mut run = Run::new(ScdSpec { truncates: true, ..spec(ScdType::Type1) });
    run.step("+ 1 | a | x | 10 | 0\n+ 2 | b | x | 50 | 0\n+ 3 | c | x | 60 | 0");
    let delta = run.step("+ NULL | NULL | NULL | 50 | 2");
    assert_eq!(delta, "- 1 | a | x\n- 2 | b | x");
    assert_eq!(run.step("+ 1 | late | x | 40 | 0"), "");
    assert_eq!(run.step("+ NULL | NULL | NULL | 20 | 2"), "", "an older truncate");
    assert_eq!(run.step("+ 2 | new | x | 70 | 0"), "+ 2 | new | x");
    let delta = run.step("+ NULL | NULL | NULL | 65 | 2\n+ 4 | d | x | 65 | 0");
    assert_eq!(delta, "- 3 | c | x");
    assert_eq!(run.target(), "+ 2 | new | x");
}

#[test]
fn ignored_nulls_keep_the_latest_value_of_the_life() {
    let mut run = Run::new(ScdSpec { ignore_null: vec![1, 2], ..spec(ScdType::Type1) });
    run.step("+ 1 | NULL | B | 20 | 0");
    run.step("+ 1 | n10 | A | 10 | 0");
    assert_eq!(run.target(), "+ 1 | n10 | B");
    run.step("+ 1 | n15 | NULL | 15 | 0");
    assert_eq!(run.target(), "+ 1 | n15 | B");
    run.step("+ 1 | NULL | NULL | 12 | 1");
    assert_eq!(run.target(), "+ 1 | n15 | B", "a late delete before both values");
    run.step("+ 1 | NULL | NULL | 17 | 1");
    assert_eq!(run.target(), "+ 1 | NULL | B", "the name was of the earlier life");
    run.step("+ 1 | NULL | NULL | 30 | 1\n+ 1 | NULL | Z | 40 | 0");
    assert_eq!(run.target(), "+ 1 | NULL | Z");
}

#[test]
fn ignored_nulls_flow_forward_through_versions() {
    let mut run = Run::new(ScdSpec { ignore_null: vec![1, 2], ..spec(ScdType::Type2) });
    run.step("+ 1 | a | x | 10 | 0\n+ 1 | NULL | y | 20 | 0\n+ 1 | NULL | NULL | 30 | 0");
    assert_eq!(run.target(), "+ 1 | a | x | 10 | 20\n+ 1 | a | y | 20 | NULL");
    let delta = run.step("+ 1 | b | NULL | 15 | 0");
    assert_eq!(
        delta,
        "+ 1 | a | x | 10 | 15\n+ 1 | b | x | 15 | 20\n+ 1 | b | y | 20 | NULL\n\
         - 1 | a | x | 10 | 20\n- 1 | a | y | 20 | NULL"
    );
}

#[test]
fn type_2_splits_a_version_at_a_late_event() {
    let mut run = Run::new(spec(ScdType::Type2));
    run.step("+ 1 | a | x | 10 | 0\n+ 1 | c | x | 30 | 0");
    assert_eq!(run.target(), "+ 1 | a | x | 10 | 30\n+ 1 | c | x | 30 | NULL");
    let delta = run.step("+ 1 | b | x | 20 | 0");
    assert_eq!(delta, "+ 1 | a | x | 10 | 20\n+ 1 | b | x | 20 | 30\n- 1 | a | x | 10 | 30");
}

#[test]
fn type_2_keeps_hidden_repeats() {
    let mut run = Run::new(spec(ScdType::Type2));
    run.step("+ 1 | a | x | 10 | 0\n+ 1 | a | x | 20 | 0");
    assert_eq!(run.step("+ 1 | a | x | 30 | 0"), "");
    assert_eq!(run.target(), "+ 1 | a | x | 10 | NULL");
    run.step("+ 1 | b | x | 15 | 0");
    assert_eq!(
        run.target(),
        "+ 1 | a | x | 10 | 15\n+ 1 | a | x | 20 | NULL\n+ 1 | b | x | 15 | 20"
    );
}

#[test]
fn type_2_deletes_leave_gaps_and_are_remembered() {
    let mut run = Run::new(spec(ScdType::Type2));
    assert_eq!(run.step("+ 1 | NULL | NULL | 20 | 1"), "", "nothing to close");
    assert_eq!(run.step("+ 1 | a | x | 10 | 0"), "+ 1 | a | x | 10 | 20");
    assert_eq!(run.step("+ 1 | b | x | 20 | 0"), "", "at equal sequence the delete wins");
    assert_eq!(run.step("+ 1 | a | x | 30 | 0"), "+ 1 | a | x | 30 | NULL");
}

#[test]
fn type_2_shows_the_last_values_of_untracked_columns() {
    let mut run = Run::new(ScdSpec { tracked: vec![1], ..spec(ScdType::Type2) });
    run.step("+ 1 | a | x | 10 | 0\n+ 1 | a | z | 30 | 0");
    assert_eq!(run.target(), "+ 1 | a | z | 10 | NULL");
    assert_eq!(run.step("+ 1 | a | y | 20 | 0"), "", "hidden behind the later value");
    run.step("+ 1 | b | z | 25 | 0");
    assert_eq!(
        run.target(),
        "+ 1 | a | y | 10 | 25\n+ 1 | a | z | 30 | NULL\n+ 1 | b | z | 25 | 30"
    );
}

#[test]
fn the_greater_row_wins_a_conflict_and_conflicts_are_told() {
    for events in [
        ["+ 1 | a | x | 10 | 0", "+ 1 | b | NULL | 10 | 0"],
        ["+ 1 | b | NULL | 10 | 0", "+ 1 | a | x | 10 | 0"],
    ] {
        for scd_type in [ScdType::Type1, ScdType::Type2] {
            let mut run = Run::new(spec(scd_type));
            run.step(events[0]);
            assert_eq!(run.merge.take_conflicts().count, 0);
            run.step(events[1]);
            assert!(run.target().starts_with("+ 1 | b | NULL"), "{}", run.target());
            let conflicts = run.merge.take_conflicts();
            assert_eq!(conflicts.count, 1);
            assert_eq!(conflicts.examples[0].key, "id=1");
            assert_eq!(conflicts.examples[0].sequence, "10");
            assert_eq!(run.merge.take_conflicts().count, 0, "they were taken");
        }
    }
}

#[test]
fn a_composite_sequence_is_compared_field_by_field() {
    let fields: Fields =
        vec![Field::new("at", DataType::Int64, true), Field::new("part", DataType::Utf8, true)]
            .into();
    let mut spec = spec(ScdType::Type2);
    let mut input: Vec<Field> = spec.input.fields().iter().map(|f| f.as_ref().clone()).collect();
    input[3] = Field::new("__sequence", DataType::Struct(fields.clone()), true);
    spec.input = Arc::new(Schema::new(input));
    let schema = spec.input.clone();
    let mut run = Run::new(spec);
    let sequence = StructArray::new(
        fields,
        vec![
            Arc::new(Int64Array::from(vec![1, 1, 0])),
            Arc::new(StringArray::from(vec![Some("b"), None, Some("z")])),
        ],
        None,
    );
    let rows = RecordBatch::try_new(
        schema,
        vec![
            Arc::new(Int64Array::from(vec![1, 1, 1])),
            Arc::new(StringArray::from(vec!["third", "second", "first"])),
            Arc::new(StringArray::from(vec!["x", "x", "x"])),
            Arc::new(sequence),
            Arc::new(arrow::array::Int8Array::from(vec![0, 0, 0])),
        ],
    )
    .unwrap();
    run.try_step(&ZBatch::inserts(rows)).unwrap();
    let names = run.target.rows().column(1).as_string::<i32>();
    let ends = run.target.rows().column(4);
    let open: Vec<&str> = (0..3)
        .filter(|&row| arrow::array::Array::is_null(ends, row))
        .map(|row| names.value(row))
        .collect();
    assert_eq!(open, ["third"]);
    assert_eq!(run.target.num_rows(), 3);
}

#[test]
fn null_keys_and_sequences_are_refused_before_anything_is_applied() {
    let mut run = Run::new(spec(ScdType::Type1));
    let schema = run.merge.spec().inputs[0].schema.clone();
    let events = "+ 1 | a | x | 1 | 0\n+ NULL | b | x | 2 | 0\n+ 3 | c | x | NULL | 0";
    let events = ZBatch::parse(&schema, events).unwrap();
    let checked = run.merge.validate(&events).unwrap_err();
    let error = run.try_step(&events).unwrap_err();
    assert_eq!(checked.to_string(), error.to_string());
    assert_eq!(error.class(), ErrorClass::Data);
    assert_eq!(error.code(), "AUTOCDC_MICROBATCH_VALIDATION");
    for part in ["NULL_SEQUENCE", "NULL_KEY", "'id' is NULL in 1 event(s)", "name: b"] {
        assert!(error.message().contains(part), "{part} in {error}");
    }
    assert!(run.state.iter().all(Slot::is_empty));
}

#[test]
fn retracted_events_are_refused() {
    let mut run = Run::new(spec(ScdType::Type1));
    let schema = run.merge.spec().inputs[0].schema.clone();
    let error = run.try_step(&ZBatch::parse(&schema, "- 1 | a | x | 1 | 0").unwrap()).unwrap_err();
    assert_eq!(error.code(), "SCD_RETRACTED_EVENT");
    assert_eq!(run.step("+7 1 | a | x | 1 | 0"), "+ 1 | a | x", "copies are duplicates");
}

#[test]
fn a_late_event_reads_its_stretch_of_a_long_history() {
    let mut run = Run::new(spec(ScdType::Type2));
    let events: Vec<String> =
        (0..500).map(|i| format!("+ 1 | n{} | x | {} | 0", i / 3 % 2, i * 10)).collect();
    run.step(&events.join("\n"));
    let delta = run.step("+ 1 | late | x | 2005 | 0\n+ 1 | NULL | NULL | 4001 | 1");
    assert_eq!(
        delta,
        "+ 1 | late | x | 2005 | 2010\n+ 1 | n0 | x | 1980 | 2005\n+ 1 | n1 | x | 3990 | 4001\n\
         + 1 | n1 | x | 4010 | 4020\n- 1 | n0 | x | 1980 | 2010\n- 1 | n1 | x | 3990 | 4020"
    );
}

#[test]
fn wrong_specs_are_refused() {
    let refused = |spec: ScdSpec| ScdMerge::try_new(spec).unwrap_err().code();
    let type_2 = || spec(ScdType::Type2);
    assert_eq!(refused(ScdSpec { keys: vec![], ..type_2() }), "SCD_KEYS");
    assert_eq!(refused(ScdSpec { columns: vec![0, 1], ..type_2() }), "SCD_COLUMN_NOT_SELECTED");
    assert_eq!(refused(ScdSpec { truncates: true, ..type_2() }), "SCD_TRUNCATE_TYPE_2");
    assert_eq!(refused(ScdSpec { columns: vec![0, 9], ..type_2() }), "SCD_SPEC");
}

#[test]
fn a_retention_drops_what_is_late_and_keeps_what_holds() {
    let mut run = Run::new(ScdSpec { retention: Some(10), ..spec(ScdType::Type2) });
    run.step("+ 1 | a | x | 1 | 0\n+ 1 | b | x | 5 | 0\n+ 2 | c | x | 4 | 0\n+ 2 | c | x | 6 | 1");
    run.step("+ 3 | d | x | 30 | 0");
    assert_eq!(run.merge.take_late(), 0);
    // 20 is ten behind the greatest; 19 is too late, whatever its key.
    assert_eq!(run.step("+ 1 | late | x | 19 | 0\n+ 9 | late | x | 3 | 0"), "");
    assert_eq!(run.merge.take_late(), 2);
    let delta = run.step("+ 1 | e | x | 20 | 0\n+ 2 | f | x | 21 | 0");
    assert_eq!(
        delta,
        "+ 1 | b | x | 5 | 20\n+ 1 | e | x | 20 | NULL\n+ 2 | f | x | 21 | NULL\n- 1 | b | x | 5 | NULL"
    );
    let versions = "+ 1 | a | x | 1 | 5\n+ 1 | b | x | 5 | 20\n+ 1 | e | x | 20 | NULL\n\
        + 2 | c | x | 4 | 6\n+ 2 | f | x | 21 | NULL\n+ 3 | d | x | 30 | NULL";
    assert_eq!(run.target(), versions);
    // Only what holds now is left once the watermark has passed everything.
    run.step("+ 3 | d | x | 90 | 0");
    let [kept, horizon] = run.state.as_mut_slice() else { panic!("two slots") };
    let rows = |slot: &mut Slot| {
        slot.rows().unwrap().scan(100).unwrap().iter().map(ZBatch::num_rows).sum::<usize>()
    };
    assert_eq!((rows(kept), rows(horizon)), (4, 1));
    assert_eq!(run.target(), versions);
}

#[test]
fn a_retention_needs_numbers() {
    let mut text = spec(ScdType::Type1);
    text.sequence = 1;
    text.retention = Some(1);
    assert_eq!(ScdMerge::try_new(text).unwrap_err().code(), "SCD_RETENTION");
}
