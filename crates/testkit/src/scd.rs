//! [`replay`]: an SCD target by its definition: sort by sequence, one pass per key.

use std::collections::BTreeMap;

use crate::{Bag, Row, Value, add_row};

/// What an event does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// Removes its key.
    Delete,
    /// Sets the values of its key.
    Upsert,
    /// Removes everything at or below its sequence.
    Truncate,
}

/// A change event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// Key columns.
    pub key: Row,
    /// Sequence: one value, or the fields of a struct.
    pub sequence: Row,
    /// What it does.
    pub kind: EventKind,
    /// The other target columns.
    pub values: Row,
}

/// The rules of a target.
#[derive(Debug, Clone)]
pub struct ScdRules {
    /// Versions with start and end.
    pub type_2: bool,
    /// For each value column: a change in it opens a new version.
    pub tracked: Vec<bool>,
    /// For each value column: NULL keeps the older value.
    pub ignore_null: Vec<bool>,
}

/// A version of a key.
#[derive(Debug, Clone)]
struct Version {
    values: Row,
    start: Row,
    end: Option<Row>,
}

/// Rows of the target: key, values and, for type 2, start and end as `show` makes a value of a
/// sequence (`None` is an open end).
pub fn replay(rules: &ScdRules, events: &[Event], show: &dyn Fn(Option<&Row>) -> Value) -> Bag {
    let of_kind = |kind| events.iter().filter(move |event| event.kind == kind);
    let truncated = of_kind(EventKind::Truncate).map(|event| &event.sequence).max();
    let mut keys: BTreeMap<&Row, Vec<&Event>> = BTreeMap::new();
    for event in events.iter().filter(|event| event.kind != EventKind::Truncate) {
        if truncated.is_none_or(|bound| &event.sequence > bound) {
            keys.entry(&event.key).or_default().push(event);
        }
    }
    let mut target = Bag::new();
    for (key, events) in keys {
        for version in replay_key(rules, &events) {
            let mut row = key.clone();
            row.extend(version.values);
            if rules.type_2 {
                row.push(show(Some(&version.start)));
                row.push(show(version.end.as_ref()));
            }
            add_row(&mut target, row, 1);
        }
    }
    target
}

fn replay_key(rules: &ScdRules, events: &[&Event]) -> Vec<Version> {
    let mut by_sequence: BTreeMap<&Row, Vec<&Event>> = BTreeMap::new();
    for event in events {
        by_sequence.entry(&event.sequence).or_default().push(event);
    }
    let mut done = Vec::new();
    let mut open: Option<Version> = None;
    for (sequence, events) in by_sequence {
        let deletes = events.iter().any(|event| event.kind == EventKind::Delete);
        if deletes && let Some(mut version) = open.take() {
            version.end = Some(sequence.clone());
            done.push(version);
        }
        let upserts: Vec<&Row> = events
            .iter()
            .filter(|event| event.kind == EventKind::Upsert)
            .map(|event| &event.values)
            .collect();
        // At one sequence, a delete beats upserts in type 2, and upserts beat a delete in type 1.
        if upserts.is_empty() || (deletes && rules.type_2) {
            continue;
        }
        let values = filled(rules, one_of(rules, &upserts), open.as_ref());
        let same = |before: &Version| {
            (0..values.len()).all(|c| !rules.tracked[c] || before.values[c] == values[c])
        };
        match open.take() {
            Some(before) if !rules.type_2 || same(&before) => {
                open = Some(Version { values, ..before });
            }
            before => {
                done.extend(before.map(|b| Version { end: Some(sequence.clone()), ..b }));
                open = Some(Version { values, start: sequence.clone(), end: None });
            }
        }
    }
    if !rules.type_2 {
        done.clear();
    }
    done.extend(open);
    done
}

/// Of upserts with one sequence: the greatest by the columns that are always set; each other column
/// on its own.
fn one_of(rules: &ScdRules, upserts: &[&Row]) -> Row {
    let plain = |row: &Row| -> Row {
        row.iter().zip(&rules.ignore_null).filter(|(_, i)| !**i).map(|(v, _)| v.clone()).collect()
    };
    let Some(best) = upserts.iter().max_by_key(|row| plain(row)) else { return Row::new() };
    let column = |c: usize| {
        if rules.ignore_null[c] {
            upserts.iter().map(|row| row[c].clone()).max().unwrap_or(Value::Null)
        } else {
            best[c].clone()
        }
    };
    (0..best.len()).map(column).collect()
}

fn filled(rules: &ScdRules, mut values: Row, open: Option<&Version>) -> Row {
    if let Some(open) = open {
        for (c, value) in values.iter_mut().enumerate() {
            if rules.ignore_null[c] && value.is_null() {
                *value = open.values[c].clone();
            }
        }
    }
    values
}
