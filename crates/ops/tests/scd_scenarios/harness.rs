//! A merge with its state, and scenarios in every order of their batches.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StructArray};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_ops::{Operator, ScdMerge, ScdSpec, ScdType, StepContext};
use deltaic_state::{Image, Slot};

/// Events of the named text columns, of which the first `keys` are the key; then the sequence and
/// the kind (0 upsert, 1 delete, 2 truncate). Type 2 tracks all other columns.
pub(crate) fn spec(scd_type: ScdType, keys: usize, names: &[&str]) -> ScdSpec {
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

pub(crate) fn type_1() -> ScdSpec {
    spec(ScdType::Type1, 1, &["id", "v"])
}

pub(crate) fn type_2() -> ScdSpec {
    spec(ScdType::Type2, 1, &["id", "v"])
}

/// Two columns beside the key.
pub(crate) fn wide(scd_type: ScdType) -> ScdSpec {
    spec(scd_type, 1, &["id", "v", "w"])
}

/// Type 2 with other tracked columns than all: `v` is 1, `w` is 2.
pub(crate) fn tracking(tracked: &[usize]) -> ScdSpec {
    ScdSpec { tracked: tracked.to_vec(), ..wide(ScdType::Type2) }
}

/// IGNORE NULL UPDATES on some columns: `v` is 1, `w` is 2.
pub(crate) fn ignoring(scd_type: ScdType, ignore_null: &[usize]) -> ScdSpec {
    ScdSpec { ignore_null: ignore_null.to_vec(), ..wide(scd_type) }
}

pub(crate) fn truncating() -> ScdSpec {
    ScdSpec { truncates: true, ..type_1() }
}

/// The same with sequences of another type.
pub(crate) fn sequenced_by(sequence: DataType, spec: ScdSpec) -> ScdSpec {
    let mut fields: Vec<FieldRef> = spec.input.fields().to_vec();
    fields[spec.sequence] = Arc::new(Field::new("seq", sequence, true));
    ScdSpec { input: Arc::new(Schema::new(fields)), ..spec }
}

/// The same with sequences of two numbers.
pub(crate) fn sequenced_by_struct(spec: ScdSpec) -> ScdSpec {
    let parts = ["at", "part"].map(|name| Field::new(name, DataType::Int64, true));
    sequenced_by(DataType::Struct(parts.to_vec().into()), spec)
}

/// A merge with its state, and the target that its changes add up to.
pub(crate) struct Target {
    pub(crate) merge: ScdMerge,
    pub(crate) state: Vec<Slot>,
    pub(crate) rows: ZBatch,
    epoch: u64,
}

/// Images of the state, and the target that belongs to them.
pub(crate) type Checkpoint = (Vec<Image>, ZBatch);

impl Target {
    pub(crate) fn new(spec: &ScdSpec) -> Self {
        let merge = ScdMerge::try_new(spec.clone()).unwrap();
        let state = merge.spec().slots.iter().map(|slot| Slot::try_new(slot).unwrap()).collect();
        let rows = ZBatch::empty(merge.spec().output.clone());
        Self { merge, state, rows, epoch: 0 }
    }

    /// Applies events and returns what changes.
    pub(crate) fn try_step(&mut self, text: &str) -> Result<ZBatch> {
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

    pub(crate) fn batch(&mut self, text: &str) -> &mut Self {
        self.try_step(text).unwrap();
        self
    }

    /// As `batch`, where exactly `change` becomes of it.
    pub(crate) fn changes(&mut self, text: &str, change: &str) -> &mut Self {
        let found = self.try_step(text).unwrap();
        assert_eq!(sorted(shown(&found)), sorted(lines(change)), "change by {text}");
        self
    }

    pub(crate) fn ignores(&mut self, text: &str) -> &mut Self {
        self.changes(text, "")
    }

    pub(crate) fn is(&mut self, rows: &str) -> &mut Self {
        assert_eq!(sorted(shown(&self.rows)), sorted(lines(rows)));
        self
    }

    /// The error of events that are refused as a whole, by the check beforehand too.
    pub(crate) fn refuses(&mut self, text: &str) -> Error {
        let checked = events(&self.merge.spec().inputs[0].schema, text);
        let checked = self.merge.validate(&checked).unwrap_err();
        let error = self.try_step(text).unwrap_err();
        assert_eq!(checked.to_string(), error.to_string());
        assert!(self.state.iter().all(Slot::is_empty), "something of it was applied");
        error
    }

    pub(crate) fn checkpoint(&mut self) -> Checkpoint {
        let images = self.state.iter_mut().map(|slot| slot.write_full().unwrap()).collect();
        (images, self.rows.clone())
    }

    pub(crate) fn recover(&mut self, (images, rows): &Checkpoint) -> &mut Self {
        let slots = self.merge.spec().slots.iter().zip(images);
        self.state = slots.map(|(slot, image)| Slot::restore(slot, image, &[]).unwrap()).collect();
        self.rows = rows.clone();
        self
    }

    /// Number of events in state.
    pub(crate) fn kept(&mut self) -> usize {
        let pieces = self.state[0].rows().unwrap().scan(1024).unwrap();
        pieces.iter().map(ZBatch::num_rows).sum()
    }
}

/// Rows in text form, separated by `;`. One without a weight is an insert.
pub(crate) fn lines(text: &str) -> Vec<String> {
    let rows = text.split(';').map(str::trim).filter(|row| !row.is_empty());
    let weighted = |row: &str| {
        if row.starts_with(['+', '-']) { row.to_owned() } else { format!("+ {row}") }
    };
    rows.map(weighted).collect()
}

pub(crate) fn shown(batch: &ZBatch) -> Vec<String> {
    batch.to_string().lines().map(str::to_owned).collect()
}

pub(crate) fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_unstable();
    lines
}

/// Reads events. The fields of a struct are written as columns of their own.
pub(crate) fn events(schema: &SchemaRef, text: &str) -> ZBatch {
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
pub(crate) fn scenario(spec: &ScdSpec, batches: &[&str], rows: &str) {
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
pub(crate) fn check(spec: &ScdSpec, batches: &[&str], rows: &str) {
    let mut target = Target::new(spec);
    for batch in batches {
        target.batch(batch);
    }
    assert_eq!(sorted(shown(&target.rows)), sorted(lines(rows)), "after {batches:?}");
    target.ignores(&batches.join(";"));
}

/// Numbers without a pattern, the same in each run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }

    /// Up to 80 events of five keys in order, a fifth of them deletes; so many events in a row share
    /// a sequence.
    pub(crate) fn history(&mut self, events_per_sequence: usize) -> Vec<String> {
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
    pub(crate) fn shuffled(&mut self, events: &[String]) -> Vec<String> {
        let mut all = events.to_vec();
        all.extend(events.iter().filter(|_| self.below(100) < 15).cloned());
        self.shuffle(&mut all);
        all.chunks(all.len().div_ceil(8)).map(|batch| batch.join(";")).collect()
    }
}
