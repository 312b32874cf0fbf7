//! Consolidation: each distinct row once, with the sum of its weights.

use arrow::array::{ArrayRef, UInt32Array};
use arrow::datatypes::DataType;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::{Error, Result, RowEncoder, ZBatch, equal_pairs, hash_columns};

impl ZBatch {
    /// The same Z-set with each distinct row once, in order of first occurrence, and no zero
    /// weights. `NULL` equals `NULL`; floats must be canonical ([`ZBatch::canonical`]).
    ///
    /// Fails when a sum of weights exceeds 64 bits.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// # use deltaic_batch::ZBatch;
    /// let schema = Arc::new(Schema::new(vec![Field::new("name", DataType::Utf8, true)]));
    /// let batch = ZBatch::parse(&schema, "+ ann\n+ bo\n+ ann\n- bo")?;
    /// assert_eq!(batch.consolidate()?.to_string(), "+2 ann\n");
    /// # Ok::<(), deltaic_batch::Error>(())
    /// ```
    pub fn consolidate(&self) -> Result<Self> {
        if self.num_rows() < 2 {
            return if self.weights().contains(&0) {
                Ok(Self::empty(self.schema()))
            } else {
                Ok(self.clone())
            };
        }
        let hashes = hash_columns(self.rows().columns(), self.num_rows())?;
        let grouping = Grouping::by_hash(&hashes)?;
        if grouping.repeats.is_empty() && !self.weights().contains(&0) {
            return Ok(self.clone());
        }
        if grouping.is_exact(self)? {
            return self.sum(&grouping);
        }
        self.sum(&Grouping::by_row(self, &hashes)?)
    }

    /// One row per group with the sum of its weights.
    fn sum(&self, grouping: &Grouping) -> Result<Self> {
        let mut sums = self.weights().to_vec();
        for &(row, first) in &grouping.repeats {
            let weight = std::mem::take(&mut sums[row as usize]);
            let sum = &mut sums[first as usize];
            *sum = sum.checked_add(weight).ok_or_else(weight_overflow)?;
        }
        let kept = (0..).zip(&sums).filter(|(_, w)| **w != 0);
        let (kept, weights): (Vec<u32>, Vec<i64>) = kept.map(|(i, &w): (u32, _)| (i, w)).unzip();
        let (rows, _) = self.take(&UInt32Array::from(kept))?.into_parts();
        Self::try_new(rows, weights)
    }
}

fn weight_overflow() -> Error {
    Error::data("WEIGHT_OVERFLOW", "the sum of a row's weights exceeds 64 bits")
}

/// Rows that repeat an earlier one, each with the first of its group.
struct Grouping {
    repeats: Vec<(u32, u32)>,
}

impl Grouping {
    /// Groups rows of equal hash. Equal rows share a group; [`Self::is_exact`] tells whether
    /// unequal ones do too.
    fn by_hash(hashes: &[u64]) -> Result<Self> {
        Self::group(hashes, |_, _| true)
    }

    /// Groups equal rows, whatever their hashes.
    fn by_row(batch: &ZBatch, hashes: &[u64]) -> Result<Self> {
        let mut encoder = RowEncoder::try_new(&types(batch.rows().columns()))?;
        let rows = encoder.encode(batch.rows().columns())?;
        Self::group(hashes, |a, b| rows.row(a as usize) == rows.row(b as usize))
    }

    fn group(hashes: &[u64], equal: impl Fn(u32, u32) -> bool) -> Result<Self> {
        let count = u32::try_from(hashes.len())
            .map_err(|_| Error::internal("BATCH_LENGTH", "a batch of more than 2^32 rows"))?;
        let mut firsts: HashTable<u32> = HashTable::with_capacity(hashes.len());
        let mut repeats = Vec::new();
        for (row, &hash) in (0..count).zip(hashes) {
            let same = |&first: &u32| hashes[first as usize] == hash && equal(first, row);
            match firsts.entry(hash, same, |&first| hashes[first as usize]) {
                Entry::Occupied(first) => repeats.push((row, *first.get())),
                Entry::Vacant(place) => {
                    place.insert(row);
                }
            }
        }
        Ok(Self { repeats })
    }

    /// True when each repeat equals the first row of its group, which is all but certain.
    fn is_exact(&self, batch: &ZBatch) -> Result<bool> {
        let columns = batch.rows().columns();
        if columns.is_empty() || self.repeats.is_empty() {
            return Ok(true);
        }
        let (repeats, firsts): (Vec<u32>, Vec<u32>) = self.repeats.iter().copied().unzip();
        Ok(equal_pairs(columns, &repeats, columns, &firsts)?.into_iter().all(|equal| equal))
    }
}

fn types(columns: &[ArrayRef]) -> Vec<DataType> {
    columns.iter().map(|c| c.data_type().clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, RecordBatch, RecordBatchOptions};
    use arrow::datatypes::{Field, Schema, SchemaRef};
    use std::sync::Arc;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("id", DataType::Int64, true),
            Field::new("name", DataType::Utf8, true),
        ]))
    }

    fn parse(text: &str) -> ZBatch {
        ZBatch::parse(&schema(), text).unwrap()
    }

    #[test]
    fn sums_weights_and_drops_zeros() {
        let batch = parse("+ 1 | ann\n+2 NULL | bo\n- 1 | ann\n-5 NULL | bo\n+ 2 | NULL");
        assert_eq!(batch.consolidate().unwrap().to_string(), "-3 NULL | bo\n+ 2 | NULL\n");
        assert!(parse("+ 1 | a\n- 1 | a").consolidate().unwrap().is_empty());
        assert!(parse("+0 1 | a").consolidate().unwrap().is_empty());
        assert_eq!(parse("+0 1 | a\n+ 2 | b").consolidate().unwrap().to_string(), "+ 2 | b\n");
    }

    #[test]
    fn slices_are_honoured() {
        let batch = parse("+ 9 | x\n+ 1 | a\n+ NULL | a\n+ 1 | a\n+ 9 | x");
        let consolidated = batch.slice(1, 3).consolidate().unwrap();
        assert_eq!(consolidated.to_string(), "+2 1 | a\n+ NULL | a\n");
    }

    #[test]
    fn rows_without_columns_are_all_equal() {
        let options = RecordBatchOptions::new().with_row_count(Some(3));
        let empty = Arc::new(Schema::empty());
        let rows = RecordBatch::try_new_with_options(empty, vec![], &options).unwrap();
        let batch = ZBatch::try_new(rows.clone(), vec![1, 2, -1]).unwrap();
        let consolidated = batch.consolidate().unwrap();
        assert_eq!(consolidated.to_string(), "+2\n");
        let twice = ZBatch::concat(&batch.schema(), &[batch.clone(), batch]).unwrap();
        assert_eq!(twice.consolidate().unwrap().weights().as_ref(), &[4]);
        assert!(ZBatch::try_new(rows, vec![1, 1, -2]).unwrap().consolidate().unwrap().is_empty());
    }

    #[test]
    fn an_overflowing_sum_is_an_error() {
        let batch = ZBatch::try_new(
            RecordBatch::try_from_iter([("k", Arc::new(Int64Array::from(vec![1, 1])) as _)])
                .unwrap(),
            vec![i64::MAX, 1],
        );
        assert_eq!(batch.unwrap().consolidate().unwrap_err().code(), "WEIGHT_OVERFLOW");
    }

    #[test]
    fn rows_of_equal_hash_are_told_apart() {
        let batch = parse("+ 1 | a\n+ 2 | a\n+ 1 | a");
        let collided = Grouping::by_hash(&[7, 7, 7]).unwrap();
        assert!(!collided.is_exact(&batch).unwrap());
        let exact = Grouping::by_row(&batch, &[7, 7, 7]).unwrap();
        assert_eq!(batch.sum(&exact).unwrap().to_string(), "+2 1 | a\n+ 2 | a\n");
    }

    #[test]
    fn a_shard_gets_its_rows_in_order() {
        let batch = parse("+ 1 | a\n- 2 | b\n+ 3 | c");
        let parts = batch.partition(&[2, 0, 2], 3).unwrap();
        let texts: Vec<String> = parts.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["- 2 | b\n", "", "+ 1 | a\n+ 3 | c\n"]);
        assert_eq!(batch.partition(&[3, 0, 0], 3).unwrap_err().code(), "SHARD_RANGE");
        assert_eq!(batch.partition(&[0], 3).unwrap_err().code(), "BATCH_LENGTH");
    }
}
