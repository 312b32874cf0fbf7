//! Row index: which positions of a data file hold a given row.
//!
//! Beside each data file lies a list of (128-bit row hash, position), sorted, cut into pages that
//! carry a checksum each. Hashes are uniform, so the page of a hash is guessed from its value and
//! found in two or three positioned reads; nothing is loaded as a whole for a small delete. The
//! index is no part of the Delta protocol and holds nothing that the data file does not: where it
//! is missing or damaged it is made again.

mod format;
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
pub(crate) use search::{DAMAGED, RowIndex};

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
    let object = NewObject { path, bytes: bytes.clone().into(), durable: false };
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
