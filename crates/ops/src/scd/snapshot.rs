//! [`snapshot_difference`]: what a snapshot says against the rows that hold.
//!
//! A snapshot is the whole content of a source at one time. Beside the rows of a dimension that hold
//! (type 1: all of them; type 2: the open versions) it tells which keys are new, which rows are
//! others now, and which keys are gone. As events (upserts of the first two, deletes of the last)
//! these go into an [`ScdMerge`](crate::ScdMerge).

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::concat;
use deltaic_batch::{Error, Result, canonicalize};

use crate::scd::codes::Codes;

/// How many keys an error shows.
const SAMPLES_MAX: usize = 3;

/// Row numbers, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotDifference {
    /// Rows of the snapshot that are new or have other values than those that hold.
    pub come: Vec<u32>,
    /// Rows that hold no longer.
    pub gone: Vec<u32>,
    /// Those of `gone` whose key the snapshot lacks.
    pub missing: Vec<u32>,
}

/// Compares a snapshot with the rows that hold; both have the same columns, of which `keys` identify
/// a row. O((n + m) · width) for n and m rows.
///
/// NULL equals NULL, NaN equals NaN, and −0.0 equals 0.0. A data error where a key is NULL
/// (`AUTOCDC_MICROBATCH_VALIDATION`) or is in the snapshot twice (`SNAPSHOT_DUPLICATE_KEYS`), unless
/// the rows are equal; no row that holds may have the key of another one.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{Int64Array, RecordBatch, StringArray};
/// # use deltaic_ops::snapshot_difference;
/// let rows = |id: Vec<i64>, name: Vec<&str>| {
///     RecordBatch::try_from_iter([
///         ("id", Arc::new(Int64Array::from(id)) as _),
///         ("name", Arc::new(StringArray::from(name)) as _),
///     ])
/// };
/// let held = rows(vec![1, 2, 3], vec!["a", "b", "c"])?;
/// let snapshot = rows(vec![4, 2, 1], vec!["d", "b", "x"])?;
/// let found = snapshot_difference(&[0], &held, &snapshot)?;
/// assert_eq!(found.come, [0, 2]); // 4 is new, 1 is another row now
/// assert_eq!(found.gone, [0, 2]);
/// assert_eq!(found.missing, [2]); // 3 is gone
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
pub fn snapshot_difference(
    keys: &[usize],
    held: &RecordBatch,
    snapshot: &RecordBatch,
) -> Result<SnapshotDifference> {
    let (count, total) = (number(held.num_rows())?, held.num_rows() + snapshot.num_rows());
    let total = number(total)?;
    refuse_null_keys(keys, snapshot)?;
    let columns: Vec<ArrayRef> = (held.columns().iter().zip(snapshot.columns()))
        .map(|(a, b)| Ok(canonicalize(&concat(&[a.as_ref(), b.as_ref()])?)))
        .collect::<Result<_>>()?;
    let by_key = Codes::of(&columns, keys)?;
    let by_row = Codes::try_new(&columns)?;
    let mut rows: HashMap<&[u8], u32> = HashMap::with_capacity(held.num_rows());
    for row in 0..count {
        rows.insert(by_key.bytes(row), row);
    }
    let mut out = SnapshotDifference::default();
    let mut seen: HashMap<&[u8], u32> = HashMap::with_capacity(snapshot.num_rows());
    let mut stays = vec![false; held.num_rows()];
    let mut replaced = vec![false; held.num_rows()];
    let mut twice: Vec<u32> = Vec::new();
    for row in count..total {
        let key = by_key.bytes(row);
        match seen.get(key) {
            None => {}
            Some(&other) if by_row.eq(row, other) => continue,
            Some(_) => {
                twice.push(row - count);
                continue;
            }
        }
        seen.insert(key, row);
        match rows.get(key) {
            Some(&same) if by_row.eq(row, same) => stays[same as usize] = true,
            Some(&other) => {
                replaced[other as usize] = true;
                out.come.push(row - count);
            }
            None => out.come.push(row - count),
        }
    }
    if !twice.is_empty() {
        return Err(duplicates(keys, snapshot, &twice));
    }
    out.gone = (0..count).filter(|&row| !stays[row as usize]).collect();
    out.missing = out.gone.iter().copied().filter(|&row| !replaced[row as usize]).collect();
    Ok(out)
}

fn number(rows: usize) -> Result<u32> {
    u32::try_from(rows)
        .map_err(|_| Error::internal("SCD_STEP_ROWS", "more than 2^32 rows meet in a snapshot"))
}

fn refuse_null_keys(keys: &[usize], snapshot: &RecordBatch) -> Result<()> {
    for &key in keys {
        let count = snapshot.column(key).logical_null_count();
        if count > 0 {
            let name = snapshot.schema_ref().field(key).name().clone();
            let message = format!("{count} rows of the snapshot have a NULL key {name}");
            return Err(Error::data("AUTOCDC_MICROBATCH_VALIDATION", message)
                .hint("correct the source, or leave such rows out in the flow's source query"));
        }
    }
    Ok(())
}

fn duplicates(keys: &[usize], snapshot: &RecordBatch, twice: &[u32]) -> Error {
    let shown = |row: u32| -> String {
        let value = |&key: &usize| {
            let column = snapshot.column(key);
            let text = arrow::util::display::array_value_to_string(column, row as usize);
            format!("{} = {}", snapshot.schema_ref().field(key).name(), text.unwrap_or_default())
        };
        keys.iter().map(value).collect::<Vec<_>>().join(", ")
    };
    let samples: Vec<String> = twice.iter().take(SAMPLES_MAX).map(|&row| shown(row)).collect();
    let message = format!(
        "the snapshot has {} more rows of keys that it has already, with other values: {}",
        twice.len(),
        samples.join("; ")
    );
    Error::data("SNAPSHOT_DUPLICATE_KEYS", message)
        .hint("correct the source, or name in KEYS what identifies a row")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int64Array};
    use proptest::prelude::*;

    use super::*;

    type Pairs = Vec<(i64, Option<f64>)>;

    fn batch(rows: &Pairs) -> RecordBatch {
        let (keys, values): (Vec<i64>, Vec<Option<f64>>) = rows.iter().copied().unzip();
        RecordBatch::try_from_iter([
            ("id", Arc::new(Int64Array::from(keys)) as ArrayRef),
            ("x", Arc::new(Float64Array::from(values)) as ArrayRef),
        ])
        .unwrap()
    }

    fn value() -> impl Strategy<Value = Option<f64>> {
        prop::sample::select(vec![None, Some(0.0), Some(-0.0), Some(1.5), Some(f64::NAN)])
    }

    /// Same row, as SQL compares in a dimension.
    fn same(a: Option<f64>, b: Option<f64>) -> bool {
        match (a, b) {
            (Some(a), Some(b)) => a == b || (a.is_nan() && b.is_nan()),
            (a, b) => a.is_none() && b.is_none(),
        }
    }

    proptest! {
        #[test]
        fn keys_come_change_and_go(
            held in prop::collection::btree_map(0..6_i64, value(), 0..6),
            snapshot in prop::collection::vec((0..6_i64, value()), 0..7),
        ) {
            let held: Pairs = held.into_iter().collect();
            let found = snapshot_difference(&[0], &batch(&held), &batch(&snapshot));
            let mut expected: BTreeMap<i64, Option<f64>> = BTreeMap::new();
            let clash = snapshot.iter().any(|(id, x)| {
                let before = *expected.entry(*id).or_insert(*x);
                !same(before, *x)
            });
            if clash {
                prop_assert_eq!(found.unwrap_err().code(), "SNAPSHOT_DUPLICATE_KEYS");
                return Ok(());
            }
            let found = found.unwrap();
            // Held rows without those that are gone, and what came, are the snapshot.
            let mut after: BTreeMap<i64, Option<f64>> = held.iter().copied().collect();
            for &row in &found.gone {
                prop_assert!(after.remove(&held[row as usize].0).is_some());
            }
            for &row in &found.come {
                let (id, x) = snapshot[row as usize];
                prop_assert!(after.insert(id, x).is_none());
            }
            prop_assert_eq!(after.len(), expected.len());
            for (id, x) in &after {
                prop_assert!(same(*x, expected[id]));
            }
            // Nothing that stays is touched.
            for &row in &found.gone {
                let (id, x) = held[row as usize];
                prop_assert!(expected.get(&id).is_none_or(|now| !same(*now, x)));
                prop_assert_eq!(found.missing.contains(&row), !expected.contains_key(&id));
            }
        }
    }

    #[test]
    fn null_keys_are_refused() {
        let keys: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let rows = RecordBatch::try_from_iter([("id", keys)]).unwrap();
        let error = snapshot_difference(&[0], &rows.slice(0, 0), &rows).unwrap_err();
        assert_eq!(error.code(), "AUTOCDC_MICROBATCH_VALIDATION");
    }
}
