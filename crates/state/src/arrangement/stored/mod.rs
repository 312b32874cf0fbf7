//! What of an arrangement is stored and not in memory: a full image and the changes after it, each a
//! run sorted by key hash. Rows are read by key, when a key is first asked for; then they are in
//! memory, and the stored ones of that key no longer count. So opening costs the directories alone,
//! and a step costs what it touches.

mod block;
mod codec;
mod cursor;
mod merge;
mod run;
mod writer;

use arrow::array::ArrayRef;
use deltaic_batch::{Result, ZBatch};
use hashbrown::HashTable;

pub(super) use codec::{EncodedRows, RowCodec};
use merge::Merge;
use run::StoredRun;
use writer::RunWriter;

use super::layout::Layout;
use crate::Image;
use crate::frame::corrupt;

/// Stored rows, and which of them have been read.
#[derive(Debug)]
pub(super) struct StoredRows {
    runs: Vec<StoredRun>,
    /// Hashes of the keys that have been read.
    read: HashTable<u64>,
    /// Rows of the runs that have not.
    unread: u64,
}

impl StoredRows {
    /// Opens images; `None` without rows.
    pub(super) fn open<'a>(
        codec: &RowCodec,
        images: impl IntoIterator<Item = &'a Image>,
    ) -> Result<Option<Self>> {
        let images = images.into_iter().filter(|image| !image.is_empty());
        let runs = images.map(|image| StoredRun::open(image, codec.types()));
        let runs: Vec<StoredRun> = runs.collect::<Result<_>>()?;
        let unread = runs.iter().map(StoredRun::rows).sum();
        Ok((unread > 0).then(|| Self { runs, read: HashTable::new(), unread }))
    }

    /// True when all rows have been read.
    pub(super) fn is_read(&self) -> bool {
        self.unread == 0
    }

    /// The rows of those of some hashes that have not been read; from now on they have.
    pub(super) fn read(&mut self, hashes: &[u64]) -> Result<EncodedRows> {
        let mut wanted = Vec::new();
        for &hash in hashes {
            if self.read.find(hash, |&read| read == hash).is_none() {
                self.read.insert_unique(hash, hash, |&read| read);
                wanted.push(hash);
            }
        }
        wanted.sort_unstable();
        let mut rows = EncodedRows::default();
        if wanted.is_empty() {
            return Ok(rows);
        }
        for run in &self.runs {
            let fetched = run.fetch(&wanted, &mut rows)?;
            let left = self.unread.checked_sub(fetched);
            self.unread = left.ok_or_else(|| corrupt("it has more rows than it says"))?;
        }
        rows.consolidated()
    }

    /// True when what has not been read sums up to nothing.
    pub(super) fn is_empty(&self) -> Result<bool> {
        Ok(self.is_read() || self.rest()?.next()?.is_none())
    }

    /// What has not been read, consolidated, in pieces of at most `rows_max` rows.
    pub(super) fn scan(
        &self,
        codec: &RowCodec,
        rows_max: usize,
        mut piece: impl FnMut(Vec<ArrayRef>, &[i64]) -> Result<()>,
    ) -> Result<()> {
        let mut rest = self.rest()?;
        loop {
            let rows = rest.next_rows(rows_max)?;
            if rows.len() == 0 {
                return Ok(());
            }
            piece(rows.columns(codec)?, &rows.weights)?;
        }
    }

    /// One image of what has not been read and the rows of another image.
    pub(super) fn write_with(&self, codec: &RowCodec, other: Image) -> Result<Image> {
        let other = match other.is_empty() {
            true => None,
            false => Some(StoredRun::open(&other, codec.types())?),
        };
        let unread = self.runs.iter().map(|run| (run, Some(&self.read)));
        let other = other.iter().map(|run| (run, None));
        Merge::new(unread.chain(other))?.write(codec.types())
    }

    fn rest(&self) -> Result<Merge<'_>> {
        Merge::new(self.runs.iter().map(|run| (run, Some(&self.read))))
    }

    /// Bytes held in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let runs: usize = self.runs.iter().map(StoredRun::memory_bytes).sum();
        runs + self.read.allocation_size()
    }
}

/// Rows as an image. They come in pieces whose key hashes ascend from one to the next.
#[derive(Debug, Default)]
pub(super) struct ImageWriter(RunWriter);

impl ImageWriter {
    pub(super) fn add(
        &mut self,
        codec: &RowCodec,
        columns: &[ArrayRef],
        hashes: &[u64],
        weights: &[i64],
    ) -> Result<()> {
        let encoded = codec.encode(columns)?;
        let row = |row: usize| encoded.as_ref().map_or(&[][..], |rows| rows.row(row).data());
        let key = |at: usize| (hashes[at], row(at));
        let count = hashes.len();
        if (1..count).all(|at| key(at - 1) < key(at)) {
            return (0..count).try_for_each(|at| self.0.push(hashes[at], row(at), weights[at]));
        }
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_unstable_by(|&a, &b| key(a).cmp(&key(b)));
        order.into_iter().try_for_each(|at| self.0.push(hashes[at], row(at), weights[at]))
    }

    pub(super) fn finish(self, codec: &RowCodec) -> Result<Image> {
        self.0.finish(codec.types())
    }
}

/// True of the images of arrangements.
pub(super) fn is_image(image: &Image) -> Result<bool> {
    Ok(!image.is_empty() && StoredRun::is_one(image)?)
}

/// Changes of an arrangement, given one after the other, as one.
pub(super) fn merge_changes(changes: &[Image]) -> Result<Image> {
    let changes: Vec<&Image> = changes.iter().filter(|image| !image.is_empty()).collect();
    let Some(first) = changes.first() else { return Ok(Image::from(Vec::<u8>::new())) };
    let types = StoredRun::types_of(first)?;
    let runs = changes.iter().map(|image| StoredRun::open(image, types));
    let runs: Vec<StoredRun> = runs.collect::<Result<_>>()?;
    Merge::new(runs.iter().map(|run| (run, None)))?.write(types)
}

/// A consolidated delta as an image.
pub(super) fn write_delta(layout: &Layout, codec: &RowCodec, delta: &ZBatch) -> Result<Image> {
    let columns = delta.rows().columns();
    let hashes = layout.key_hashes(columns, delta.num_rows())?;
    let mut writer = ImageWriter::default();
    writer.add(codec, columns, &hashes, delta.weights())?;
    writer.finish(codec)
}
