//! Row index: which positions of a data file hold a given row.
//!
//! Beside each data file lies a list of (128-bit row hash, position), sorted, cut into pages that
//! carry a checksum each, with a directory of the pages and a filter of the hashes: a file that
//! does not have a row is all but never looked into for it, and one that has costs one positioned
//! read. The index is no part of the Delta protocol and holds nothing that the data file does not:
//! where it is missing or damaged it is made again.

mod filter;
mod format;
mod pages;
mod search;

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use deltaic_batch::{Result, hash128_rows};
use roaring::RoaringTreemap;

use super::reader::{FileReader, decode_path};
use crate::Storage;
use crate::delta::actions::Add;
use crate::delta::snapshot::Snapshot;
use crate::store::NewObject;

pub(crate) use format::encode;
pub(crate) use pages::DAMAGED;
pub(crate) use search::RowIndex;

/// Path of the index of a data file, below the table's folder.
pub(crate) fn path_of(encoded_path: &str) -> Result<String> {
    Ok(format!("_deltaic/index/{}.idx", decode_path(encoded_path)?))
}

/// Opens the index of a data file, making it again when needed.
pub(crate) fn open_or_build(root: &Storage, snapshot: &Snapshot, add: &Add) -> Result<RowIndex> {
    let path = path_of(&add.path)?;
    if let Some(object) = root.open(&path)?
        && let Some(index) = RowIndex::open(object)
    {
        return Ok(index);
    }
    build(root, snapshot, add)
}

/// Makes the index of a data file from its rows and opens it.
pub(crate) fn build(root: &Storage, snapshot: &Snapshot, add: &Add) -> Result<RowIndex> {
    let bytes = index_file(root, snapshot, add)?;
    let path = path_of(&add.path)?;
    let object = NewObject { path, bytes: vec![bytes.clone().into()], durable: false };
    root.put_all(vec![object])?;
    RowIndex::open(Arc::new(format::InMemory(bytes.into()))).ok_or_else(|| {
        deltaic_batch::Error::internal("ROW_INDEX_ENCODE", "an index cannot be read back")
            .object(&add.path)
    })
}

/// Reads a data file and encodes its index. Of columns that are younger than the file nothing is
/// hashed.
fn index_file(root: &Storage, snapshot: &Snapshot, add: &Add) -> Result<Vec<u8>> {
    let schema = snapshot.file_schema();
    let probe = FileReader::open(root, &add.path, &schema, RoaringTreemap::new())?;
    let fields = schema.fields().iter().filter(|f| probe.present.contains(f.name()));
    let schema = Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()));
    let mut hashes = Vec::new();
    for rows in FileReader::open(root, &add.path, &schema, RoaringTreemap::new())? {
        hashes.append(&mut hash128_rows(&rows?)?);
    }
    encode(&probe.present, hashes)
}

/// Hashes of all rows, in order.
pub(crate) fn hash_all(batches: &[RecordBatch]) -> Result<Vec<u128>> {
    let mut hashes = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
    for batch in batches {
        hashes.append(&mut hash128_rows(batch)?);
    }
    Ok(hashes)
}

#[cfg(test)]
mod tests {
    use super::format::InMemory;
    use super::*;

    fn open(hashes: &[u128]) -> RowIndex {
        let bytes = encode(&["a".into(), "b".into()], hashes.to_vec()).unwrap();
        RowIndex::open(Arc::new(InMemory(bytes.into()))).unwrap()
    }

    fn check(hashes: &[u128], wanted: &[u128]) {
        for at_once in [1, wanted.len()] {
            let mut index = open(hashes);
            assert_eq!((index.num_rows(), index.columns().len()), (hashes.len() as u64, 2));
            let mut candidates = Vec::new();
            for wanted in wanted.chunks(at_once) {
                candidates.extend(index.candidates(wanted.iter().map(|&hash| (hash, ()))).unwrap());
            }
            for &hash in wanted {
                let mut found = Vec::new();
                if !candidates.contains(&(hash, ())) {
                    assert!(!hashes.contains(&hash), "{hash:x}");
                    continue;
                }
                index.find(hash, &mut found).unwrap();
                let expected: Vec<u32> =
                    (0..).zip(hashes).filter(|(_, h)| **h == hash).map(|(i, _)| i).collect();
                assert_eq!(found, expected, "{hash:x}");
            }
        }
    }

    /// A pseudo-random sequence of hashes.
    fn uniform(count: usize) -> Vec<u128> {
        let mut state = 1_u128;
        let next = |_| {
            state = state.wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645).wrapping_add(7);
            state ^ (state << 64)
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn every_hash_is_found_and_no_other() {
        for count in [0, 1, 2, 203, 204, 205, 5_000, 50_000] {
            let hashes = uniform(count);
            let mut wanted: Vec<u128> = hashes.iter().copied().step_by(count / 50 + 1).collect();
            wanted.extend(wanted.clone().iter().map(|h| h ^ 1));
            wanted.extend([0, u128::MAX]);
            check(&hashes, &wanted);
        }
    }

    #[test]
    fn copies_of_a_row_span_pages() {
        let mut hashes = uniform(3_000);
        let copied = hashes[17];
        hashes.extend(std::iter::repeat_n(copied, 2_000));
        hashes.extend(std::iter::repeat_n(0, 500));
        hashes.extend(std::iter::repeat_n(u128::MAX, 500));
        let wanted = [copied, copied + 1, copied - 1, 0, 1, u128::MAX, hashes[5]];
        check(&hashes, &wanted);
    }

    #[test]
    fn a_search_reads_few_pages() {
        let hashes = uniform(200_000);
        let mut index = open(&hashes);
        let hash = |&hash| [(hash, ())].into_iter();
        for wanted in hashes.iter().step_by(2_000) {
            assert_eq!(index.candidates(hash(wanted)).unwrap().len(), 1);
            index.find(*wanted, &mut Vec::new()).unwrap();
        }
        assert!(index.pages_read() <= 200, "{} pages for 100 searches", index.pages_read());
        let others: Vec<u128> = hashes.iter().map(|hash| hash.rotate_left(32)).collect();
        let passed = index.candidates(others.iter().map(|&hash| (hash, ()))).unwrap();
        assert!(passed.len() < others.len() / 50, "{} of {}", passed.len(), others.len());
    }
}
