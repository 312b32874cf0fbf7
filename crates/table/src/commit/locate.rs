//! Finds the positions that deleted rows have in the table's data files.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use deltaic_batch::{Error, Result, hash128_rows};
use roaring::RoaringTreemap;

use super::net::Net;
use crate::Table;
use crate::delta::actions::Add;
use crate::delta::deletion_vector;
use crate::files::row_index::{self, DAMAGED, RowIndex};

/// A file that loses rows.
#[derive(Debug)]
pub(super) struct Hit {
    pub(super) add: Arc<Add>,
    /// All positions that are deleted now, those of earlier versions included.
    pub(super) deleted: RoaringTreemap,
    /// Physical rows of the file.
    pub(super) num_rows: u64,
}

/// Hash and number of a deleted row, by the hash.
type Keys = Vec<(u128, usize)>;

/// Looks up every deleted row, in the newest files first; any copy that is still there will do.
pub(super) fn locate(table: &Table, net: &Net) -> Result<Vec<Hit>> {
    let mut left = Left { counts: net.delete_counts.clone(), sum: net.counts().1 };
    let mut files: Vec<&Arc<Add>> = table.snapshot.files.values().collect();
    files.sort_by_key(|add| std::cmp::Reverse(add.modification_time));
    let mut keys_by_columns: HashMap<Vec<String>, Keys> = HashMap::new();
    let mut hits = Vec::new();
    for add in files {
        if left.sum == 0 {
            break;
        }
        let index = row_index::open_or_build(&table.root, &table.snapshot, add)?;
        let keys = match keys_by_columns.get(index.columns()) {
            Some(keys) => keys,
            None => {
                let keys = keys(&net.deletes, index.columns())?;
                keys_by_columns.entry(index.columns().to_vec()).or_insert(keys)
            }
        };
        let before = left.clone();
        let hit = match search(table, add, index, keys, &mut left) {
            Err(e) if e.code() == DAMAGED => {
                left = before;
                let index = row_index::build(&table.root, &table.snapshot, add)?;
                search(table, add, index, keys, &mut left)?
            }
            hit => hit?,
        };
        hits.extend(hit);
    }
    match left.counts.iter().position(|&count| count > 0) {
        None => Ok(hits),
        Some(row) => Err(not_found(&net.deletes, row, &table.path)),
    }
}

/// How many copies are still to be found.
#[derive(Debug, Clone)]
struct Left {
    counts: Vec<u64>,
    sum: u64,
}

/// Takes what one file has.
fn search(
    table: &Table,
    add: &Arc<Add>,
    mut index: RowIndex,
    keys: &Keys,
    left: &mut Left,
) -> Result<Option<Hit>> {
    let wanted: Vec<_> = keys.iter().filter(|&&(_, row)| left.counts[row] > 0).copied().collect();
    let mut hidden = None;
    let mut found = Vec::new();
    for (hash, row) in index.candidates(wanted.into_iter())? {
        // A row is once among the keys, so it is still to be found.
        found.clear();
        index.find(hash, &mut found)?;
        if found.is_empty() {
            continue;
        }
        let deleted = match &mut hidden {
            Some(deleted) => deleted,
            None => hidden.insert(match &add.deletion_vector {
                Some(dv) => deletion_vector::read(&table.storage, &table.root, dv)?,
                None => RoaringTreemap::new(),
            }),
        };
        for &position in &found {
            if left.counts[row] > 0 && deleted.insert(u64::from(position)) {
                left.counts[row] -= 1;
                left.sum -= 1;
            }
        }
    }
    Ok(hidden.filter(|deleted| deleted.len() > add.num_deleted()).map(|deleted| Hit {
        add: add.clone(),
        deleted,
        num_rows: index.num_rows(),
    }))
}

/// Hashes of the deleted rows as a file with only some of the columns has them. A row with a value
/// in a column that the file lacks cannot be in it.
fn keys(deletes: &RecordBatch, columns: &[String]) -> Result<Keys> {
    let schema = deletes.schema();
    let positions: Vec<usize> =
        columns.iter().map(|name| schema.index_of(name)).collect::<Result<_, _>>()?;
    let hashes = hash128_rows(&deletes.project(&positions)?)?;
    let others: Vec<_> = (0..deletes.num_columns()).filter(|i| !positions.contains(i)).collect();
    let possible = |row: &usize| others.iter().all(|&i| deletes.column(i).is_null(*row));
    let rows = (0..deletes.num_rows()).filter(possible);
    let mut keys: Keys = rows.map(|row| (hashes[row], row)).collect();
    keys.sort_unstable();
    Ok(keys)
}

fn not_found(deletes: &RecordBatch, row: usize, path: &str) -> Error {
    let options = FormatOptions::default().with_null("NULL");
    let schema = deletes.schema();
    let values = deletes.columns().iter().zip(schema.fields()).map(|(column, field)| {
        let text = ArrayFormatter::try_new(column, &options)
            .map_or_else(|e| e.to_string(), |f| f.value(row).to_string());
        format!("{}={text}", field.name())
    });
    let row = values.collect::<Vec<_>>().join(", ");
    Error::internal("DELETE_NOT_FOUND", format!("a row to delete is not in the table: ({row})"))
        .object(path)
}
