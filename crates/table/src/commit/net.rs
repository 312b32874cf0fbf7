//! The net effect of all deltas of one commit: rows that come and go again cancel before anything
//! is written.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use arrow::array::{RecordBatch, UInt32Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result, hash128_rows};

/// What is left to insert and to delete.
#[derive(Debug)]
pub(super) struct Net {
    /// Every row as often as it is inserted.
    pub(super) inserts: Vec<RecordBatch>,
    /// Hashes of `inserts`, when they were needed.
    pub(super) insert_hashes: Option<Vec<u128>>,
    /// Every deleted row once.
    pub(super) deletes: RecordBatch,
    /// How many copies of each are deleted.
    pub(super) delete_counts: Vec<u64>,
}

/// One deleted row.
#[derive(Debug)]
struct Delete {
    batch: usize,
    row: u32,
    count: u64,
}

/// Hashes are uniform already.
#[derive(Debug, Default)]
pub(super) struct Uniform(u64);

impl Hasher for Uniform {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(word);
        }
    }
}

type Deletes = HashMap<u128, Delete, BuildHasherDefault<Uniform>>;

impl Net {
    /// Nets deltas that are all in `schema`.
    pub(super) fn of(
        schema: &SchemaRef,
        deltas: &[(RecordBatch, ScalarBuffer<i64>)],
    ) -> Result<Self> {
        if deltas.iter().all(|(_, weights)| weights.iter().all(|&w| w >= 0)) {
            return Self::only_inserts(schema, deltas);
        }
        let hashes: Vec<Vec<u128>> =
            deltas.iter().map(|(rows, _)| hash128_rows(rows)).collect::<Result<_>>()?;
        let mut deletes = gather_deletes(deltas, &hashes)?;
        let (mut inserts, mut insert_hashes) = (Vec::new(), Vec::new());
        for ((rows, weights), hashes) in deltas.iter().zip(&hashes) {
            let kept = cancel(weights, hashes, &mut deletes)?;
            insert_hashes.extend(kept.iter().map(|&row| hashes[row as usize]));
            inserts.push(select(rows, kept)?);
        }
        inserts.retain(|rows| rows.num_rows() > 0);
        let mut left: Vec<Delete> = deletes.into_values().filter(|d| d.count > 0).collect();
        left.sort_unstable_by_key(|d| (d.batch, d.row));
        let mut rows = Vec::new();
        for group in left.chunk_by(|a, b| a.batch == b.batch) {
            let indices = UInt32Array::from_iter_values(group.iter().map(|d| d.row));
            rows.push(take_record_batch(&deltas[group[0].batch].0, &indices)?);
        }
        Ok(Self {
            inserts,
            insert_hashes: Some(insert_hashes),
            deletes: concat_batches(schema, &rows)?,
            delete_counts: left.iter().map(|d| d.count).collect(),
        })
    }

    fn only_inserts(
        schema: &SchemaRef,
        deltas: &[(RecordBatch, ScalarBuffer<i64>)],
    ) -> Result<Self> {
        let mut inserts = Vec::new();
        for (rows, weights) in deltas {
            if weights.iter().all(|&w| w == 1) {
                inserts.push(rows.clone());
            } else {
                inserts.push(select(rows, cancel(weights, &[], &mut Deletes::default())?)?);
            }
        }
        inserts.retain(|rows| rows.num_rows() > 0);
        Ok(Self {
            inserts,
            insert_hashes: None,
            deletes: RecordBatch::new_empty(schema.clone()),
            delete_counts: Vec::new(),
        })
    }

    /// Rows that are inserted and deleted.
    pub(super) fn counts(&self) -> (u64, u64) {
        let inserted = self.inserts.iter().map(|rows| rows.num_rows() as u64).sum();
        (inserted, self.delete_counts.iter().sum())
    }

    /// Deleted rows, each as often as it is deleted.
    pub(super) fn delete_copies(&self) -> Result<RecordBatch> {
        if self.delete_counts.iter().all(|&count| count == 1) {
            return Ok(self.deletes.clone());
        }
        let mut rows = Vec::new();
        for (row, &count) in (0_u32..).zip(&self.delete_counts) {
            push_copies(&mut rows, row, count)?;
        }
        select(&self.deletes, rows)
    }
}

fn gather_deletes(
    deltas: &[(RecordBatch, ScalarBuffer<i64>)],
    hashes: &[Vec<u128>],
) -> Result<Deletes> {
    let mut deletes = Deletes::default();
    for (batch, ((_, weights), hashes)) in deltas.iter().zip(hashes).enumerate() {
        for (row, (&weight, &hash)) in (0_u32..).zip(weights.iter().zip(hashes)) {
            if weight < 0 {
                let delete = deletes.entry(hash).or_insert(Delete { batch, row, count: 0 });
                let count = delete.count.checked_add(weight.unsigned_abs());
                delete.count = count.ok_or_else(weight_overflow)?;
            }
        }
    }
    Ok(deletes)
}

/// Rows (repeated by weight) whose insertion is not cancelled.
fn cancel(weights: &[i64], hashes: &[u128], deletes: &mut Deletes) -> Result<Vec<u32>> {
    let mut kept = Vec::with_capacity(weights.len());
    for (i, &weight) in weights.iter().enumerate() {
        if weight <= 0 {
            continue;
        }
        let mut copies = weight.unsigned_abs();
        if !deletes.is_empty()
            && let Some(delete) = deletes.get_mut(&hashes[i])
        {
            let cancelled = delete.count.min(copies);
            delete.count -= cancelled;
            copies -= cancelled;
        }
        let row = u32::try_from(i).map_err(|_| weight_overflow())?;
        push_copies(&mut kept, row, copies)?;
    }
    Ok(kept)
}

fn push_copies(rows: &mut Vec<u32>, row: u32, copies: u64) -> Result<()> {
    let copies = u32::try_from(copies).map_err(|_| weight_overflow())?;
    rows.extend(std::iter::repeat_n(row, copies as usize));
    Ok(())
}

fn select(rows: &RecordBatch, kept: Vec<u32>) -> Result<RecordBatch> {
    let all = kept.len() == rows.num_rows() && kept.iter().zip(0_u32..).all(|(&k, i)| k == i);
    if all {
        return Ok(rows.clone());
    }
    Ok(take_record_batch(rows, &UInt32Array::from(kept))?)
}

fn weight_overflow() -> Error {
    Error::data("WEIGHT_OVERFLOW", "more copies of one row than a table can take in one commit")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Float64Array};
    use arrow::datatypes::Float64Type;

    use super::*;

    #[test]
    fn what_comes_and_goes_cancels() {
        let delta = |values: &[f64], weights: &[i64]| {
            let column: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
            (RecordBatch::try_from_iter([("x", column)]).unwrap(), weights.to_vec().into())
        };
        let deltas =
            [delta(&[0.0, 5.0, 6.0, f64::NAN], &[-3, 2, 0, 1]), delta(&[-0.0, 7.0], &[1, -1])];
        let net = Net::of(&deltas[0].0.schema(), &deltas).unwrap();
        let values = |rows: &RecordBatch| {
            rows.column(0)
                .as_primitive::<Float64Type>()
                .values()
                .iter()
                .map(f64::to_string)
                .collect()
        };
        let inserts: Vec<Vec<String>> = net.inserts.iter().map(values).collect();
        assert_eq!(inserts, [["5", "5", "NaN"]]);
        assert_eq!(net.insert_hashes.as_ref().unwrap().len(), 3);
        assert_eq!(values(&net.deletes), ["0", "7"]);
        assert_eq!(net.delete_counts, [2, 1]);
        assert_eq!(values(&net.delete_copies().unwrap()), ["0", "0", "7"]);
        assert_eq!(net.counts(), (3, 3));
    }
}
