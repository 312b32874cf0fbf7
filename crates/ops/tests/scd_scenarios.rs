//! Scenarios of AUTO CDC after those of Apache Spark's AutoCDC suites, one test each: a target is
//! what the set of its events says, whatever their order, their batches and their repetitions.
#![expect(clippy::unwrap_used, reason = "a test that fails")]

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StructArray};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use deltaic_batch::{Error, ErrorClass, Result, ZBatch};
use deltaic_ops::{END_AT, Operator, START_AT, ScdMerge, ScdSpec, ScdType, StepContext};
use deltaic_state::Slot;

/// Events of the named text columns, of which the first `keys` are the key; then the sequence and
/// the kind (0 upsert, 1 delete, 2 truncate). Type 2 tracks all other columns.
fn spec(scd_type: ScdType, keys: usize, names: &[&str]) -> ScdSpec {
    let width = names.len();
    let mut fields: Vec<Field> =
        names.iter().map(|&name| Field::new(name, DataType::Utf8, true)).collect();
    fields.push(Field::new("seq", DataType::Int64, true));
    fields.push(Field::new("kind", DataType::Int8, true));
    ScdSpec {
        input: Arc::new(Schema::new(fields)),
        keys: (0..keys).collect(),
        sequence: width,
        kind: width + 1,
        columns: (0..width).collect(),
        tracked: if scd_type == ScdType::Type2 { (keys..width).collect() } else { vec![] },
        ignore_null: vec![],
        scd_type,
        truncates: false,
        retention: None,
    }
}

fn type_1() -> ScdSpec {
    spec(ScdType::Type1, 1, &["id", "v"])
}

fn type_2() -> ScdSpec {
    spec(ScdType::Type2, 1, &["id", "v"])
}

/// Two columns beside the key.
fn wide(scd_type: ScdType) -> ScdSpec {
    spec(scd_type, 1, &["id", "v", "w"])
}

/// Type 2 with other tracked columns than all: `v` is 1, `w` is 2.
fn tracking(tracked: &[usize]) -> ScdSpec {
    ScdSpec { tracked: tracked.to_vec(), ..wide(ScdType::Type2) }
}

/// IGNORE NULL UPDATES on some columns: `v` is 1, `w` is 2.
fn ignoring(scd_type: ScdType, ignore_null: &[usize]) -> ScdSpec {
    ScdSpec { ignore_null: ignore_null.to_vec(), ..wide(scd_type) }
}

fn truncating() -> ScdSpec {
    ScdSpec { truncates: true, ..type_1() }
}

/// The same with sequences of another type.
fn sequenced_by(sequence: DataType, spec: ScdSpec) -> ScdSpec {
    let mut fields: Vec<FieldRef> = spec.input.fields().to_vec();
    fields[spec.sequence] = Arc::new(Field::new("seq", sequence, true));
    ScdSpec { input: Arc::new(Schema::new(fields)), ..spec }
}

/// The same with sequences of two numbers.
fn sequenced_by_struct(spec: ScdSpec) -> ScdSpec {
    let parts = ["at", "part"].map(|name| Field::new(name, DataType::Int64, true));
    sequenced_by(DataType::Struct(parts.to_vec().into()), spec)
}

/// A merge with its state, and the target that its changes add up to.
struct Target {
    merge: ScdMerge,
    state: Vec<Slot>,
    rows: ZBatch,
    epoch: u64,
}

/// Images of the state, and the target that belongs to them.
type Checkpoint = (Vec<Vec<u8>>, ZBatch);

impl Target {
    fn new(spec: &ScdSpec) -> Self {
        let merge = ScdMerge::try_new(spec.clone()).unwrap();
        let state = merge.spec().slots.iter().map(|slot| Slot::try_new(slot).unwrap()).collect();
        let rows = ZBatch::empty(merge.spec().output.clone());
        Self { merge, state, rows, epoch: 0 }
    }

    /// Applies events and returns what changes.
    fn try_step(&mut self, text: &str) -> Result<ZBatch> {
        let events = events(&self.merge.spec().inputs[0].schema, text);
        let mut out: Vec<ZBatch> = Vec::new();
        let cx = StepContext { epoch: self.epoch, shard: 0, shards: 1 };
        self.epoch += 1;
        self.merge.step(&[events], &mut self.state, &mut out, &cx)?;
        let schema = &self.merge.spec().output;
        let change = ZBatch::concat(schema, &out)?;
        assert_eq!(change.consolidate()?.num_rows(), change.num_rows(), "{text}: not net");
        let both = ZBatch::concat(schema, &[self.rows.clone(), change.clone()])?;
        self.rows = both.consolidate()?;
        Ok(change)
    }

    fn batch(&mut self, text: &str) -> &mut Self {
        self.try_step(text).unwrap();
        self
    }

    /// As `batch`, where exactly `change` becomes of it.
    fn changes(&mut self, text: &str, change: &str) -> &mut Self {
        let found = self.try_step(text).unwrap();
        assert_eq!(sorted(shown(&found)), sorted(lines(change)), "change by {text}");
        self
    }

    fn ignores(&mut self, text: &str) -> &mut Self {
        self.changes(text, "")
    }

    fn is(&mut self, rows: &str) -> &mut Self {
        assert_eq!(sorted(shown(&self.rows)), sorted(lines(rows)));
        self
    }

    /// The error of events that are refused as a whole, by the check beforehand too.
    fn refuses(&mut self, text: &str) -> Error {
        let checked = events(&self.merge.spec().inputs[0].schema, text);
        let checked = self.merge.validate(&checked).unwrap_err();
        let error = self.try_step(text).unwrap_err();
        assert_eq!(checked.to_string(), error.to_string());
        assert!(self.state.iter().all(Slot::is_empty), "something of it was applied");
        error
    }

    fn checkpoint(&mut self) -> Checkpoint {
        let images = self.state.iter_mut().map(|slot| slot.write_full().unwrap()).collect();
        (images, self.rows.clone())
    }

    fn recover(&mut self, (images, rows): &Checkpoint) -> &mut Self {
        let slots = self.merge.spec().slots.iter().zip(images);
        self.state = slots.map(|(slot, image)| Slot::restore(slot, image, &[]).unwrap()).collect();
        self.rows = rows.clone();
        self
    }

    /// Number of events in state.
    fn kept(&mut self) -> usize {
        let pieces = self.state[0].rows().unwrap().scan(1024).unwrap();
        pieces.iter().map(ZBatch::num_rows).sum()
    }
}

/// Rows in text form, separated by `;`. One without a weight is an insert.
fn lines(text: &str) -> Vec<String> {
    let rows = text.split(';').map(str::trim).filter(|row| !row.is_empty());
    let weighted = |row: &str| {
        if row.starts_with(['+', '-']) { row.to_owned() } else { format!("+ {row}") }
    };
    rows.map(weighted).collect()
}

fn shown(batch: &ZBatch) -> Vec<String> {
    batch.to_string().lines().map(str::to_owned).collect()
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_unstable();
    lines
}

/// Reads events. The fields of a struct are written as columns of their own.
fn events(schema: &SchemaRef, text: &str) -> ZBatch {
    let parts = |field: &FieldRef| match field.data_type() {
        DataType::Struct(parts) => parts.to_vec(),
        _ => vec![field.clone()],
    };
    let flat: Vec<FieldRef> = schema.fields().iter().flat_map(parts).collect();
    let flat = ZBatch::parse(&Arc::new(Schema::new(flat)), &lines(text).join("\n")).unwrap();
    let (rows, weights) = flat.into_parts();
    let mut flat = rows.columns().iter().cloned();
    let column = |field: &FieldRef| -> ArrayRef {
        match field.data_type() {
            DataType::Struct(parts) => {
                let columns = flat.by_ref().take(parts.len()).collect();
                Arc::new(StructArray::new(parts.clone(), columns, None))
            }
            _ => flat.next().unwrap(),
        }
    };
    let columns: Vec<ArrayRef> = schema.fields().iter().map(column).collect();
    ZBatch::try_new(RecordBatch::try_new(schema.clone(), columns).unwrap(), weights).unwrap()
}

/// The batches give `rows` in several orders; so do their events one by one, and all at once.
fn scenario(spec: &ScdSpec, batches: &[&str], rows: &str) {
    let all = batches.join(";");
    check(spec, &[all.as_str()], rows);
    let events: Vec<&str> = batches.iter().flat_map(|batch| batch.split(';')).collect();
    for pieces in [batches, events.as_slice()] {
        for turn in 0..pieces.len() {
            let mut order = pieces.to_vec();
            order.rotate_left(turn);
            check(spec, &order, rows);
            order.reverse();
            check(spec, &order, rows);
        }
    }
}

/// The batches in this order give `rows`, and change nothing when they are delivered again.
fn check(spec: &ScdSpec, batches: &[&str], rows: &str) {
    let mut target = Target::new(spec);
    for batch in batches {
        target.batch(batch);
    }
    assert_eq!(sorted(shown(&target.rows)), sorted(lines(rows)), "after {batches:?}");
    target.ignores(&batches.join(";"));
}

/// Numbers without a pattern, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }

    /// Up to 80 events of five keys in order, a fifth of them deletes; so many events in a row share
    /// a sequence.
    fn history(&mut self, events_per_sequence: usize) -> Vec<String> {
        let count = 40 + self.below(41);
        let event = |at: usize| {
            let (id, seq) = (self.below(5), at / events_per_sequence);
            if self.below(5) == 0 {
                return format!("{id} | NULL | NULL | {seq} | 1");
            }
            let v = ["NULL", "a", "b"][self.below(3)];
            let w = ["NULL", "x", "y"][self.below(3)];
            format!("{id} | {v} | {w} | {seq} | 0")
        };
        (0..count).map(event).collect()
    }

    /// The events and copies of every seventh or so, in eight batches without order.
    fn shuffled(&mut self, events: &[String]) -> Vec<String> {
        let mut all = events.to_vec();
        all.extend(events.iter().filter(|_| self.below(100) < 15).cloned());
        self.shuffle(&mut all);
        all.chunks(all.len().div_ceil(8)).map(|batch| batch.join(";")).collect()
    }
}

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

// Histories without a pattern.

/// Shuffled with duplicates in eight batches, and one by one in order: the same target.
fn converges(spec: &ScdSpec) {
    for seed in 0..10 {
        let mut random = Random(seed);
        let events = random.history(2);
        let mut in_order = Target::new(spec);
        for event in &events {
            in_order.batch(event);
        }
        let mut shuffled = Target::new(spec);
        for batch in random.shuffled(&events) {
            shuffled.batch(&batch);
        }
        assert!(!in_order.rows.is_empty(), "seed {seed}");
        assert_eq!(sorted(shown(&shuffled.rows)), sorted(shown(&in_order.rows)), "seed {seed}");
    }
}

#[test]
fn out_of_order_events_converge_in_type_1() {
    converges(&wide(ScdType::Type1));
    converges(&ignoring(ScdType::Type1, &[1, 2]));
}

#[test]
fn out_of_order_events_converge_in_type_2() {
    converges(&wide(ScdType::Type2));
    converges(&tracking(&[1]));
    converges(&ignoring(ScdType::Type2, &[1, 2]));
}

#[test]
fn type_1_rows_equal_the_open_versions_of_type_2() {
    let pairs = [
        (wide(ScdType::Type1), wide(ScdType::Type2)),
        (wide(ScdType::Type1), tracking(&[2])),
        (wide(ScdType::Type1), tracking(&[])),
        (ignoring(ScdType::Type1, &[1, 2]), ignoring(ScdType::Type2, &[1, 2])),
    ];
    for ((one, two), seed) in pairs.iter().flat_map(|pair| (0..10).map(move |seed| (pair, seed))) {
        let (mut one, mut two) = (Target::new(one), Target::new(two));
        let mut random = Random(seed);
        let events = random.history(1);
        for batch in random.shuffled(&events) {
            one.batch(&batch);
            two.batch(&batch);
        }
        let all = shown(&two.rows);
        let open = all.iter().filter_map(|row| row.strip_suffix(" | NULL"));
        let open = open.map(|row| row.rsplit_once(" | ").unwrap().0.to_owned()).collect();
        assert_eq!(sorted(shown(&one.rows)), sorted(open), "seed {seed}");
    }
}
