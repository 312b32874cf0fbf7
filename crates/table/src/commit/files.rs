//! Writes the files of a commit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Error, Result};
use uuid::Uuid;

use crate::Storage;
use crate::delta::actions::{Add, Cdc};
use crate::delta::schema::CHANGE_TYPE;
use crate::files::{parquet_bytes, row_index, rows_per_file, stats_json};
use crate::store::NewObject;

/// Property that says when row indexes are made.
const ROW_INDEX: &str = "deltaic.rowIndex";

/// Encodes files and holds them until all can be written at once. A commit that makes several data
/// files writes each when it is ready.
#[derive(Debug)]
pub(super) struct FileWriter<'a> {
    pub(super) root: &'a Storage,
    pub(super) schema: SchemaRef,
    pub(super) properties: &'a BTreeMap<String, String>,
    pub(super) now_ms: i64,
    pub(super) objects: Vec<NewObject>,
}

/// Rows of one data file, with their hashes if they are known.
#[derive(Debug)]
struct Part<'a> {
    rows: Vec<RecordBatch>,
    hashes: Option<&'a [u128]>,
}

impl FileWriter<'_> {
    /// Makes data files of inserted rows.
    pub(super) fn data(
        &mut self,
        rows: &[RecordBatch],
        hashes: Option<&[u128]>,
    ) -> Result<Vec<Add>> {
        let parts = cut(rows, hashes);
        if let [part] = parts.as_slice() {
            let (add, mut objects) = self.data_file(part)?;
            self.objects.append(&mut objects);
            return Ok(vec![add]);
        }
        in_parallel(&parts, |part| {
            let (add, objects) = self.data_file(part)?;
            self.root.put_all(objects)?;
            Ok(add)
        })
    }

    fn data_file(&self, part: &Part<'_>) -> Result<(Add, Vec<NewObject>)> {
        let path = format!("part-00000-{}.c000.parquet", Uuid::now_v7());
        let bytes = parquet_bytes(&self.schema, &part.rows, self.properties)?;
        let add = Add {
            path: path.clone(),
            partition_values: BTreeMap::new(),
            size: bytes.len() as u64,
            modification_time: self.now_ms,
            data_change: true,
            stats: Some(stats_json(&part.rows)),
            deletion_vector: None,
        };
        let index = self.row_index(part, &path)?;
        let mut objects = vec![NewObject { path, bytes: vec![bytes.into()], durable: true }];
        objects.extend(index);
        Ok((add, objects))
    }

    fn row_index(&self, part: &Part<'_>, data_path: &str) -> Result<Option<NewObject>> {
        let hashes = match (part.hashes, self.properties.get(ROW_INDEX).map(String::as_str)) {
            (_, Some("lazy")) => return Ok(None),
            (Some(hashes), _) => hashes.to_vec(),
            (None, _) => row_index::hash_all(&part.rows)?,
        };
        let columns: Vec<String> =
            self.schema.fields().iter().map(|field| field.name().clone()).collect();
        let bytes = row_index::encode(&columns, hashes)?.into();
        Ok(Some(NewObject {
            path: row_index::path_of(data_path)?,
            bytes: vec![bytes],
            durable: false,
        }))
    }

    /// Makes change data files of deleted and inserted rows.
    pub(super) fn changes(
        &mut self,
        deleted: &[RecordBatch],
        inserted: &[RecordBatch],
    ) -> Result<Vec<Cdc>> {
        let mut fields = self.schema.fields().to_vec();
        fields.push(Arc::new(Field::new(CHANGE_TYPE, DataType::Utf8, true)));
        let schema = Arc::new(Schema::new(fields));
        let mut rows = Vec::new();
        for (batches, change) in [(deleted, "delete"), (inserted, "insert")] {
            for batch in batches {
                let types = StringArray::from(vec![change; batch.num_rows()]);
                let mut columns = batch.columns().to_vec();
                columns.push(Arc::new(types) as ArrayRef);
                rows.push(RecordBatch::try_new(schema.clone(), columns)?);
            }
        }
        let mut files = Vec::new();
        for part in cut(&rows, None) {
            let path = format!("_change_data/cdc-00000-{}.c000.parquet", Uuid::now_v7());
            let bytes = parquet_bytes(&schema, &part.rows, self.properties)?;
            files.push(Cdc {
                path: path.clone(),
                partition_values: BTreeMap::new(),
                size: bytes.len() as u64,
                data_change: false,
            });
            self.objects.push(NewObject { path, bytes: vec![bytes.into()], durable: true });
        }
        Ok(files)
    }

    /// Writes what is held.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.root.put_all(std::mem::take(&mut self.objects))
    }
}

/// Cuts rows into parts of the size of a file.
fn cut<'a>(rows: &[RecordBatch], hashes: Option<&'a [u128]>) -> Vec<Part<'a>> {
    let rows_max = rows_per_file(rows);
    let mut parts: Vec<(usize, Vec<RecordBatch>)> = Vec::new();
    for batch in rows {
        let mut offset = 0;
        while offset < batch.num_rows() {
            if parts.last().is_none_or(|(size, _)| *size == rows_max) {
                parts.push((0, Vec::new()));
            }
            if let Some((size, part)) = parts.last_mut() {
                let taken = (rows_max - *size).min(batch.num_rows() - offset);
                part.push(batch.slice(offset, taken));
                *size += taken;
                offset += taken;
            }
        }
    }
    let mut rest = hashes;
    let with_hashes = |(size, rows): (usize, Vec<RecordBatch>)| {
        let split = rest.and_then(|all| all.split_at_checked(size));
        rest = split.map(|(_, tail)| tail);
        Part { rows, hashes: split.map(|(head, _)| head) }
    };
    parts.into_iter().map(with_hashes).collect()
}

/// Results of `work` for all items, in order, by as many threads as there are processors.
fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let next = AtomicUsize::new(0);
    let run = || {
        let mut done = Vec::new();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push(work(item)?);
        }
        Ok(done)
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let mut all = Vec::new();
        for handle in handles {
            let stopped = |_| Err(Error::internal("WRITER_STOPPED", "a writing thread stopped"));
            all.append(&mut handle.join().unwrap_or_else(stopped)?);
        }
        Ok(all)
    })
}
