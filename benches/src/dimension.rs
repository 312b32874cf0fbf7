//! A wide dimension, and the change events that are merged into it as type 2.
//!
//! The load is one event per key, for half as many keys as the other workloads have orders. Each
//! batch of changes has 10 % new keys, 5 % deletes and 5 % events older than the batch before.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int8Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{
    DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType,
};
use deltaic_batch::{Result, ZBatch};
use deltaic_exec::{Circuit, CircuitBuilder, CircuitOptions};
use deltaic_ops::{KIND_DELETE, KIND_UPSERT, ScdMerge, ScdSpec, ScdType};

use crate::orders::{share, strings, to_i64};
use crate::random::Stream;
use crate::schedule::{Input, Inputs, Scenario, View};

const SEGMENT: [&str; 5] = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"];
const TIER: [&str; 4] = ["bronze", "silver", "gold", "platinum"];
const CHANNEL: [&str; 6] = ["web", "store", "partner", "phone", "app", "email"];
/// Batches of changes: label, share of the keys, how many of them.
const SIZES: [(&str, f64, usize); 3] = [("0.1", 0.001, 7), ("1", 0.01, 5), ("10", 0.1, 3)];
/// Sequence 0 as a timestamp: 2024-01-01.
const START: i64 = 1_704_067_200_000_000;
const SECOND: i64 = 1_000_000;

/// id, name, city, country, segment, tier, channel, credit, score, balance, sequence, delete;
/// words as codes.
type Event = [i64; 12];
const SCORE: usize = 8;
const CREDIT: usize = 7;
const BALANCE: usize = 9;
const SEQUENCE: usize = 10;
const DELETE: usize = 11;

/// The merge of these events into a dimension of type 2.
#[derive(Debug, Clone, Copy)]
pub struct Scd2;

fn schema() -> SchemaRef {
    let int = |name: &str| Field::new(name, DataType::Int64, false);
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    Arc::new(Schema::new(vec![
        int("id"),
        text("name"),
        text("city"),
        text("country"),
        text("segment"),
        text("tier"),
        text("channel"),
        int("credit"),
        int("score"),
        int("balance"),
        Field::new("seq", DataType::Timestamp(TimeUnit::Microsecond, None), false),
        Field::new("kind", DataType::Int8, false),
    ]))
}

impl Scenario for Scd2 {
    fn name(&self) -> &'static str {
        "scd2"
    }

    fn circuit(&self, shards: usize) -> Result<Circuit> {
        let merge = ScdMerge::try_new(ScdSpec {
            input: schema(),
            keys: vec![0],
            sequence: SEQUENCE,
            kind: DELETE,
            columns: (0..10).collect(),
            tracked: (1..10).collect(),
            ignore_null: Vec::new(),
            scd_type: ScdType::Type2,
            truncates: false,
            retention: None,
        })?;
        let mut builder = CircuitBuilder::new();
        let events = builder.source("events", schema())?;
        let view = builder.add(Arc::new(merge), &[events])?;
        builder.output("view", view)?;
        builder.build(CircuitOptions { shards, checks: false })
    }

    fn inputs(&self, rows: usize) -> Inputs {
        Box::new(Events::new(rows / 2).map(|(label, events)| {
            let events = ZBatch::inserts(batch(&events)?);
            Ok(Input { label, deltas: vec![("events".to_owned(), events)] })
        }))
    }

    fn apply(&self, view: &mut View, delta: &ZBatch) {
        let columns = delta.rows().columns();
        let int = |c: usize, i: usize| columns[c].as_primitive::<Int64Type>().value(i);
        let time = |c: usize, i: usize| -> i64 {
            let times = columns[c].as_primitive::<TimestampMicrosecondType>();
            if times.is_null(i) { i64::MAX } else { (times.value(i) - START) / SECOND }
        };
        for (i, &weight) in delta.weights().iter().enumerate() {
            let values = [time(10, i), time(11, i), int(BALANCE, i), int(CREDIT, i)];
            view.add(int(0, i), &values, weight);
        }
    }

    /// Sorts the events of each key; the versions lie between.
    fn naive(&self, rows: usize) -> Result<View> {
        let mut events: BTreeMap<(i64, i64), Event> = BTreeMap::new();
        for event in Events::new(rows / 2).flat_map(|(_, events)| events) {
            let place = events.entry((event[0], event[SEQUENCE])).or_insert(event);
            // At one sequence a delete wins, and of two upserts the greater row.
            if event[DELETE] > place[DELETE] || (event[DELETE] == place[DELETE] && event > *place) {
                *place = event;
            }
        }
        let mut view = View::default();
        let mut next = events.iter().skip(1);
        for (&(key, start), event) in &events {
            let end =
                next.next().filter(|((k, _), _)| *k == key).map_or(i64::MAX, |((_, s), _)| *s);
            if event[DELETE] == 0 {
                view.add(key, &[start, end, event[BALANCE], event[CREDIT]], 1);
            }
        }
        Ok(view)
    }

    fn known(&self) -> View {
        View { rows: 6_648_357, checksum: 143_075_052_465_462_122 }
    }

    fn can_undo(&self) -> bool {
        false
    }
}

/// The load and the batches of changes.
struct Events {
    keys: usize,
    stream: u64,
    now: i64,
    next_key: i64,
    is_loaded: bool,
    size: usize,
    done_of_size: usize,
}

impl Events {
    fn new(keys: usize) -> Self {
        let next_key = to_i64(keys);
        let (stream, now) = (6000, 2_000_000);
        Self { keys, stream, now, next_key, is_loaded: false, size: 0, done_of_size: 0 }
    }

    fn load(&mut self) -> Vec<Event> {
        self.is_loaded = true;
        let keys = to_i64(self.keys);
        let scattered = |i| if keys % 611_953 == 0 { i } else { (i * 611_953 + 3) % keys };
        let ids: Vec<i64> = (0..keys).map(scattered).collect();
        let times = Stream(5010).below(self.keys, 1_000_000);
        events(5000, &ids, &times, |_| false)
    }

    fn changes(&mut self, share_of_keys: f64) -> Vec<Event> {
        self.stream += 20;
        let st = self.stream;
        let changes = share(self.keys, share_of_keys);
        let fresh = changes / 10;
        let mut ids = Stream(st).below(changes - fresh, self.next_key);
        ids.sort_unstable();
        ids.dedup();
        let first_fresh = self.next_key;
        self.next_key += to_i64(fresh);
        ids.extend(first_fresh..self.next_key);
        ids = Stream(st + 1).order(ids.len()).into_iter().map(|i| ids[i]).collect();
        self.now += 1_000_000;
        let mut times = Stream(st + 2).below(ids.len(), 900_000);
        times.iter_mut().for_each(|t| *t += self.now);
        let is_late = |i: &usize| Stream(st + 3).unit(*i) < 0.05;
        let late: Vec<usize> = (0..ids.len()).filter(is_late).collect();
        let late_times = Stream(st + 4).below(late.len(), self.now - 1_000_000);
        for (i, time) in late.into_iter().zip(late_times) {
            times[i] = 1_000_000 + time;
        }
        let is_delete = |i| Stream(st + 15).unit(i) < 0.05 && ids[i] < first_fresh;
        events(st + 5, &ids, &times, is_delete)
    }
}

impl Iterator for Events {
    type Item = (&'static str, Vec<Event>);

    fn next(&mut self) -> Option<Self::Item> {
        if !self.is_loaded {
            return Some(("load", self.load()));
        }
        let &(label, share_of_keys, repetitions) = SIZES.get(self.size)?;
        let events = self.changes(share_of_keys);
        self.done_of_size += 1;
        if self.done_of_size == repetitions {
            (self.size, self.done_of_size) = (self.size + 1, 0);
        }
        Some((label, events))
    }
}

fn events(
    stream: u64,
    ids: &[i64],
    times: &[i64],
    is_delete: impl Fn(usize) -> bool,
) -> Vec<Event> {
    let bounds = [1 << 40, 2000, 200, 5, 4, 6, 1_000_000, 1000, 1 << 33];
    let columns: Vec<Vec<i64>> = (stream..)
        .zip(bounds)
        .map(|(stream, bound)| Stream(stream).below(ids.len(), bound))
        .collect();
    let event = |(i, &id): (usize, &i64)| {
        let mut event = [0; 12];
        event[0] = id;
        for (cell, column) in event[1..].iter_mut().zip(&columns) {
            *cell = column[i];
        }
        event[SEQUENCE] = times[i];
        event[DELETE] = i64::from(is_delete(i));
        event
    };
    ids.iter().enumerate().map(event).collect()
}

fn batch(events: &[Event]) -> Result<RecordBatch> {
    let int =
        |c: usize| -> ArrayRef { Arc::new(events.iter().map(|e| e[c]).collect::<Int64Array>()) };
    let cities: Vec<String> = (0..2000).map(|i| format!("City-{i:04}")).collect();
    let countries: Vec<String> = (0..200).map(|i| format!("Country {i:03}")).collect();
    let names = events.iter().map(|e| Some(format!("Name-{:013}", e[1]))).collect::<StringArray>();
    let times = events.iter().map(|e| START + e[SEQUENCE] * SECOND).collect::<Vec<i64>>();
    let kind = |e: &Event| if e[DELETE] == 1 { KIND_DELETE } else { KIND_UPSERT };
    let columns: Vec<ArrayRef> = vec![
        int(0),
        Arc::new(names),
        strings(events, 2, &cities),
        strings(events, 3, &countries),
        strings(events, 4, &SEGMENT),
        strings(events, 5, &TIER),
        strings(events, 6, &CHANNEL),
        int(CREDIT),
        int(SCORE),
        int(BALANCE),
        Arc::new(TimestampMicrosecondArray::from(times)),
        Arc::new(events.iter().map(kind).collect::<Int8Array>()),
    ];
    Ok(RecordBatch::try_new(schema(), columns)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_are_those_of_the_peers_generator() {
        let mut digest = 0_i64;
        let mut batches = 0;
        for (_, events) in Events::new(10_000) {
            batches += 1;
            for (i, event) in events.iter().enumerate() {
                for (c, cell) in event.iter().enumerate() {
                    let place = to_i64(i * 7 + c * 1_000_003 + 1);
                    digest = digest.wrapping_mul(31).wrapping_add(cell.wrapping_mul(place));
                }
            }
        }
        assert_eq!((batches, digest), (16, -7_682_635_150_718_372_623));
    }
}
