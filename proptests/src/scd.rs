//! Laws of the SCD merge: the target is a function of the set of events alone.

use std::sync::Arc;

use arrow::array::{ArrayRef, StructArray};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use deltaic_batch::ZBatch;
use deltaic_exec::{Circuit, CircuitBuilder, CircuitOptions};
use deltaic_ops::{KIND_DELETE, KIND_TRUNCATE, KIND_UPSERT, ScdMerge, ScdSpec, ScdType};
use deltaic_testkit::{
    Bag, Epoch, Event, EventKind, Law, Row, ScdRules, Subject, Tape, Value, check_laws,
    column_values, replay, to_delta,
};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::strategy::Strategy;

use crate::runner::check;
use crate::{LawTest, Settings};

/// Source columns: two keys, three values.
const KEYS: usize = 2;
const VALUES: usize = 3;

/// Bytes for the flow, bytes per event and batch, and a seed.
type Drawn = (Vec<u8>, Vec<Vec<Vec<u8>>>, u64);

pub(crate) fn laws() -> Vec<LawTest> {
    vec![
        LawTest { name: "scd", run: |settings| merge(settings, false, false) },
        LawTest {
            name: "scd, one key with many versions",
            run: |settings| merge(settings, true, false),
        },
        LawTest { name: "scd with a retention", run: |settings| merge(settings, false, true) },
        LawTest {
            name: "scd with a retention, one key with many versions",
            run: |settings| merge(settings, true, true),
        },
    ]
}

/// A flow that is drawn at random.
#[derive(Debug)]
struct Flow {
    type_2: bool,
    truncates: bool,
    /// The sequence is a struct of a number and a text.
    composite: bool,
    /// Target columns, as positions in the source.
    columns: Vec<usize>,
    tracked: Vec<bool>,
    ignore_null: Vec<bool>,
    /// How late an event may be; all others are dropped.
    retention: Option<u64>,
}

impl Flow {
    fn draw(tape: &mut Tape<'_>, is_retained: bool) -> Self {
        let type_2 = tape.choose(2) == 0;
        let mut mask = |per_256| (0..VALUES).map(|_| tape.chance(per_256)).collect::<Vec<bool>>();
        let ignore_null = mask(60);
        let tracked = mask(128);
        let columns = tape.pick(&[vec![0, 1, 2, 3, 4], vec![3, 1, 2, 0], vec![1, 0, 4, 2, 3]]);
        Self {
            type_2,
            truncates: !type_2 && tape.chance(128),
            composite: tape.chance(80) && !is_retained,
            tracked: if tape.chance(100) { vec![true; VALUES] } else { tracked },
            ignore_null: if tape.chance(128) { ignore_null } else { vec![false; VALUES] },
            columns,
            retention: is_retained.then(|| tape.pick(&[0, 1, 2, 5, 40])),
        }
    }

    /// The events that are not too late for the batch that they come in. Truncates never are.
    fn accepted(&self, batches: &[Vec<SourceEvent>]) -> Vec<SourceEvent> {
        let Some(retention) = self.retention else { return batches.concat() };
        let number = |event: &SourceEvent| match event.sequence.first() {
            Some(Value::Int(number)) => *number,
            _ => 0,
        };
        let mut out: Vec<SourceEvent> = Vec::new();
        for batch in batches {
            let changes = out.iter().filter(|event| event.kind != EventKind::Truncate);
            let watermark = changes.map(number).max().map(|number| number - i128::from(retention));
            let is_late = |event: &&SourceEvent| {
                event.kind != EventKind::Truncate && watermark.is_some_and(|w| number(event) < w)
            };
            out.extend(batch.iter().filter(|event| !is_late(event)).cloned());
        }
        out
    }

    /// Target columns that are no keys, in the target's order.
    fn values(&self) -> Vec<usize> {
        self.columns.iter().copied().filter(|&column| column >= KEYS).collect()
    }

    fn rules(&self) -> ScdRules {
        let of = |mask: &[bool]| self.values().iter().map(|&column| mask[column - KEYS]).collect();
        ScdRules {
            type_2: self.type_2,
            tracked: of(&self.tracked),
            ignore_null: of(&self.ignore_null),
        }
    }

    fn spec(&self) -> ScdSpec {
        let chosen =
            |mask: &[bool]| self.values().into_iter().filter(|&c| mask[c - KEYS]).collect();
        ScdSpec {
            input: self.schema(),
            keys: vec![0, 1],
            sequence: KEYS + VALUES,
            kind: KEYS + VALUES + 1,
            columns: self.columns.clone(),
            tracked: if self.type_2 { chosen(&self.tracked) } else { vec![] },
            ignore_null: chosen(&self.ignore_null),
            scd_type: if self.type_2 { ScdType::Type2 } else { ScdType::Type1 },
            truncates: self.truncates,
            retention: self.retention,
        }
    }

    fn schema(&self) -> SchemaRef {
        let mut fields = source_fields();
        let sequence =
            if self.composite { DataType::Struct(sequence_fields()) } else { DataType::Int64 };
        fields.push(Field::new("__sequence", sequence, true));
        fields.push(Field::new("__kind", DataType::Int8, true));
        Arc::new(Schema::new(fields))
    }

    fn circuit(&self, options: CircuitOptions) -> deltaic_batch::Result<Circuit> {
        let mut builder = CircuitBuilder::new();
        let events = builder.source("events", self.schema())?;
        let target = builder.add(Arc::new(ScdMerge::try_new(self.spec())?), &[events])?;
        builder.output("target", target)?;
        builder.build(options)
    }

    /// A column of sequences.
    fn sequences(&self, sequences: &[&Row]) -> Result<ArrayRef, String> {
        let column = |at: usize, name: &str, data_type: DataType| {
            let rows: Vec<(Row, i64)> =
                sequences.iter().map(|row| (vec![row[at].clone()], 1)).collect();
            let schema = Arc::new(Schema::new(vec![Field::new(name, data_type, true)]));
            Ok::<ArrayRef, String>(to_delta(&schema, &rows)?.rows().column(0).clone())
        };
        let number = column(0, "number", DataType::Int64)?;
        if !self.composite {
            return Ok(number);
        }
        let columns = vec![number, column(1, "text", DataType::Utf8)?];
        let array = StructArray::try_new(sequence_fields(), columns, None);
        Ok(Arc::new(array.map_err(|e| e.to_string())?))
    }

    fn delta(&self, events: &[SourceEvent]) -> Result<ZBatch, String> {
        let mut fields = source_fields();
        fields.push(Field::new("__kind", DataType::Int8, true));
        let rows: Vec<(Row, i64)> = events
            .iter()
            .map(|event| {
                let kind = match event.kind {
                    EventKind::Upsert => KIND_UPSERT,
                    EventKind::Delete => KIND_DELETE,
                    EventKind::Truncate => KIND_TRUNCATE,
                };
                let mut row = event.row.clone();
                row.push(Value::Int(i128::from(kind)));
                (row, 1)
            })
            .collect();
        let plain = to_delta(&Arc::new(Schema::new(fields)), &rows)?;
        let mut columns = plain.rows().columns().to_vec();
        let sequences: Vec<&Row> = events.iter().map(|event| &event.sequence).collect();
        columns.insert(KEYS + VALUES, self.sequences(&sequences)?);
        let batch = RecordBatch::try_new(self.schema(), columns).map_err(|e| e.to_string())?;
        Ok(ZBatch::inserts(batch))
    }

    /// The target by definition.
    fn target(&self, events: &[SourceEvent]) -> Result<Bag, String> {
        let values = self.values();
        let events: Vec<Event> = events
            .iter()
            .map(|event| Event {
                key: event.row[..KEYS].to_vec(),
                sequence: event.sequence[..if self.composite { 2 } else { 1 }].to_vec(),
                kind: event.kind,
                values: values.iter().map(|&column| event.row[column].clone()).collect(),
            })
            .collect();
        let show = |sequence: Option<&Row>| -> Value {
            let Some(sequence) = sequence else { return Value::Null };
            let shown = self.sequences(&[sequence]).and_then(|column| column_values(&column));
            shown.ok().and_then(|values| values.into_iter().next()).unwrap_or(Value::Null)
        };
        let by_key = replay(&self.rules(), &events, &show);
        // From key, values, versions to the target's order.
        let place = |&column: &usize| {
            values.iter().position(|&v| v == column).map_or(column, |at| KEYS + at)
        };
        Ok(by_key
            .into_iter()
            .map(|(row, n)| {
                let mut out: Row = self.columns.iter().map(|c| row[place(c)].clone()).collect();
                out.extend_from_slice(&row[KEYS + values.len()..]);
                (out, n)
            })
            .collect())
    }
}

fn source_fields() -> Vec<Field> {
    vec![
        Field::new("k1", DataType::Int64, true),
        Field::new("k2", DataType::Utf8, true),
        Field::new("v1", DataType::Int64, true),
        Field::new("v2", DataType::Utf8, true),
        Field::new("v3", DataType::Float64, true),
    ]
}

fn sequence_fields() -> Fields {
    vec![Field::new("number", DataType::Int64, true), Field::new("text", DataType::Utf8, true)]
        .into()
}

/// An event as the source has it.
#[derive(Debug, Clone)]
struct SourceEvent {
    row: Row,
    sequence: Row,
    kind: EventKind,
}

fn draw_event(tape: &mut Tape<'_>, truncates: bool, hot: bool) -> SourceEvent {
    let kind = match tape.choose(16) {
        0..=11 => EventKind::Upsert,
        12 if truncates => EventKind::Truncate,
        _ => EventKind::Delete,
    };
    let keys = if hot { 1 } else { 3 };
    let (k1, k2) = (tape.choose(keys), tape.choose(keys.min(2)));
    let number = tape.choose(if hot { 150 } else { 9 });
    let text = tape.pick(&[Value::text("a"), Value::Null, Value::text("b")]);
    let few = if hot { 2 } else { 4 };
    let v1 = [1, 2, 3].get(tape.choose(few)).map_or(Value::Null, |&v| Value::Int(v));
    let v2 = ["a", "", "b"].get(tape.choose(few)).map_or(Value::Null, |v| Value::text(v));
    let v3 = [0.0, f64::NAN, -0.0].get(tape.choose(few)).map_or(Value::Null, |&v| Value::Float(v));
    let int = |v: usize| Value::Int(i128::try_from(v).unwrap_or(0));
    let mut row = vec![int(k1), Value::text(["x", ""][k2]), v1, v2, v3];
    if kind == EventKind::Truncate && tape.chance(128) {
        row = vec![Value::Null; KEYS + VALUES];
    }
    SourceEvent { row, sequence: vec![int(number), text], kind }
}

fn draw_batches(flow: &Flow, data: &[Vec<Vec<u8>>], hot: bool) -> Vec<Vec<SourceEvent>> {
    let mut seen: Vec<SourceEvent> = Vec::new();
    let mut batches = Vec::new();
    for batch in data {
        let mut events = Vec::new();
        for bytes in batch {
            let mut tape = Tape::new(bytes);
            let again = tape.chance(30) && !seen.is_empty();
            let event = if again {
                let at = tape.choose(256) * seen.len() / 256;
                seen[at].clone()
            } else {
                draw_event(&mut tape, flow.truncates, hot)
            };
            seen.push(event.clone());
            events.push(event);
        }
        batches.push(events);
    }
    batches
}

fn drawn(hot: bool) -> impl Strategy<Value = Drawn> {
    let events = if hot { 0..50 } else { 0..9 };
    (vec(any::<u8>(), 0..24), vec(vec(vec(any::<u8>(), 0..12), events), 1..7), any::<u64>())
}

fn merge(settings: Settings, hot: bool, is_retained: bool) -> Result<(), String> {
    let flow = |bytes: &[u8]| Flow::draw(&mut Tape::new(bytes), is_retained);
    check(
        settings,
        &drawn(hot),
        |(plan, data, _)| {
            let flow = flow(plan);
            let mut text = format!("{flow:?}\n");
            for (i, batch) in draw_batches(&flow, data, hot).iter().enumerate() {
                for event in batch {
                    text.push_str(&format!("batch {i} {event:?}\n"));
                }
            }
            text
        },
        |(plan, data, seed)| {
            let flow = flow(plan);
            let batches = draw_batches(&flow, data, hot);
            check_flow(&flow, &batches, *seed)
        },
    )
}

fn check_flow(flow: &Flow, batches: &[Vec<SourceEvent>], seed: u64) -> Result<(), String> {
    let epoch = |events: &[SourceEvent]| Ok(vec![("events".to_owned(), flow.delta(events)?)]);
    let epochs: Result<Vec<Epoch>, String> = batches.iter().map(|batch| epoch(batch)).collect();
    let epochs = epochs?;
    let subject = Subject {
        make: &|options| flow.circuit(options),
        output: "target",
        oracle: &|prefix| flow.target(&flow.accepted(&batches[..prefix.len()])),
    };
    let mut laws = vec![Law::Correct, Law::Canonical, Law::Restart, Law::Idle, Law::Shards];
    // With a retention it matters which events come together.
    if flow.retention.is_none() {
        laws.push(Law::Chunking);
    }
    check_laws(&subject, &laws, &epochs, seed)?;
    check_net(flow, &epochs)?;
    if flow.retention.is_some() { Ok(()) } else { check_order(flow, batches, seed) }
}

/// The operator itself emits net differences: consolidation finds nothing to cancel.
fn check_net(flow: &Flow, epochs: &[Epoch]) -> Result<(), String> {
    let options = CircuitOptions { shards: 2, checks: true };
    let mut circuit = flow.circuit(options).map_err(|e| e.to_string())?;
    let mut rows = 0;
    for (i, epoch) in epochs.iter().enumerate() {
        let outputs = circuit.step(epoch.clone()).map_err(|e| e.to_string())?;
        rows += outputs.values().map(ZBatch::num_rows).sum::<usize>();
        let emitted = circuit.metrics().last().map_or(0, |node| node.rows_out);
        if usize::try_from(emitted).ok() != Some(rows) {
            return Err(format!("law Net: step {i}: {emitted} rows emitted, {rows} of them net"));
        }
    }
    Ok(())
}

/// The same events in another order and other batches give the same target.
fn check_order(flow: &Flow, batches: &[Vec<SourceEvent>], seed: u64) -> Result<(), String> {
    let mut events = batches.concat();
    let expected = flow.target(&events)?;
    let mut state = seed | 1;
    let mut random = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap_or(0) % below.max(1)
    };
    for i in (1..events.len()).rev() {
        events.swap(i, random(i + 1));
    }
    let options = CircuitOptions { shards: 2, checks: true };
    let mut circuit = flow.circuit(options).map_err(|e| e.to_string())?;
    let mut target = Bag::new();
    while !events.is_empty() {
        let batch: Vec<SourceEvent> = events.drain(..=random(events.len())).collect();
        let inputs = vec![("events".to_owned(), flow.delta(&batch)?)];
        let outputs = circuit.step(inputs).map_err(|e| e.to_string())?;
        for delta in outputs.values() {
            deltaic_testkit::add_bag(&mut target, &deltaic_testkit::to_bag(delta)?);
        }
    }
    if target == expected {
        return Ok(());
    }
    Err(format!("law Order: another order gives\n{target:?}\nnot\n{expected:?}"))
}
