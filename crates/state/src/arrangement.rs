//! Arrangement: a multiset of rows by key.
//!
//! Rows lie in a **base** (distinct keys sorted by a 64-bit hash under a directory, the rows of a
//! key contiguous and in order, weights changed in place) and an **overlay** (a hash table from key
//! to the rows of recent epochs, in order too). A distinct row is in one of them only. The overlay
//! is folded into the base when it passes a quarter of it, which costs O(1) per row, amortised;
//! so does the removal of rows whose weight is back at 0.
//!
//! What was stored is opened by key: its rows are read when their key is first asked for, into the
//! overlay or, when they are many, into the base (see [`stored`]).
//!
//! Every lookup has two phases: integers are matched by hash, block by block; then the candidates'
//! columns are compared in typed loops. Two keys or rows of equal hash are told apart, always.

mod base;
mod keys;
mod layout;
mod live_set;
#[cfg(test)]
mod model_tests;
mod overlay;
mod probe;
mod run;
mod sorted_rows;
mod stored;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Result, ZBatch};

pub(crate) use base::weight_overflow;
use base::{Base, NONE};
use layout::Layout;
use overlay::Overlay;
use run::{ROWS_MAX, Run};
use stored::{ImageWriter, RowCodec, StoredRows};

use crate::Image;
use crate::change_log::ChangeLog;

/// Rows of weight 0 in the base, and rows in the overlay, below which nothing is folded.
const FOLD_ROWS_MIN: usize = 1024;
/// The overlay may have this part of the base's rows, and so many of the base's may be of weight 0.
const FOLD_SHARE: usize = 4;

/// Rows that are turned into bytes at once.
const PIECE_ROWS: usize = 16_384;

/// One column of the order that rows of a key are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortKey {
    /// Column of the arranged rows.
    pub column: usize,
    /// Greatest first.
    pub descending: bool,
    /// NULL before all values.
    pub nulls_first: bool,
}

/// Declares an arrangement.
#[derive(Debug, Clone)]
pub struct ArrangementSpec {
    /// Schema of the arranged rows.
    pub schema: SchemaRef,
    /// Key columns (may be empty: one key, which is probed by one row).
    pub key: Vec<usize>,
    /// Order of the rows of a key; ties stay in no certain order, and a row among many is found by
    /// looking through them. Without any order, rows are ordered by their hash.
    pub order: Vec<SortKey>,
}

/// Names one arranged row until the next change of the arrangement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowRef(pub u32);

impl RowRef {
    /// Set in the number of an overlay row.
    const OVERLAY: u32 = 1 << 31;

    fn overlay(row: u32) -> Self {
        Self(row | Self::OVERLAY)
    }

    /// The overlay row, unless this is one of the base.
    fn as_overlay(self) -> Option<u32> {
        (self.0 & Self::OVERLAY != 0).then_some(self.0 & !Self::OVERLAY)
    }
}

/// Result of a probe, column by column: for match `i`, probe row, arranged row, its weight.
/// Matches of one probe row are adjacent, in the arrangement's order.
#[derive(Debug, Clone, Default)]
pub struct Matches {
    /// Row number in the probing batch.
    pub probe: Vec<u32>,
    /// The arranged row.
    pub rows: Vec<RowRef>,
    /// Its weight, never zero.
    pub weights: Vec<i64>,
}

/// One shard's multiset of rows by key.
///
/// Weights may be negative (a retraction may come before its insertion); a row of weight 0 is not
/// there. Floats must be canonical.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, AsArray, Int64Array};
/// use arrow::datatypes::{DataType, Field, Schema};
/// use deltaic_batch::ZBatch;
/// use deltaic_state::{Arrangement, ArrangementSpec, SortKey};
///
/// let schema = Arc::new(Schema::new(vec![
///     Field::new("city", DataType::Int64, true),
///     Field::new("name", DataType::Utf8, true),
/// ]));
/// let by_name = SortKey { column: 1, descending: false, nulls_first: false };
/// let spec = ArrangementSpec { schema: schema.clone(), key: vec![0], order: vec![by_name] };
/// let mut people = Arrangement::try_new(&spec)?;
/// people.apply(&ZBatch::parse(&schema, "+ 1 | cy\n+ 1 | ann\n+ 2 | bo")?)?;
/// people.apply(&ZBatch::parse(&schema, "- 2 | bo")?)?;
///
/// let cities: ArrayRef = Arc::new(Int64Array::from(vec![2, 1]));
/// let matches = people.probe(&[cities], false)?;
/// assert_eq!(matches.probe, [1, 1]);
/// let names = people.gather(&matches.rows, &[1])?;
/// assert_eq!(names[0].as_string::<i32>().value(0), "ann");
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
#[derive(Debug)]
pub struct Arrangement {
    layout: Layout,
    base: Base,
    overlay: Overlay,
    /// Rows that are not in memory.
    stored: Option<StoredRows>,
    codec: RowCodec,
    /// Deltas since the last write; kept from the first write on.
    log: Option<ChangeLog>,
}

impl Arrangement {
    /// Empty.
    pub fn try_new(spec: &ArrangementSpec) -> Result<Self> {
        let layout = Layout::try_new(spec)?;
        let base = empty_base(&layout)?;
        let overlay = Overlay::new(&layout);
        let codec = RowCodec::try_new(spec)?;
        Ok(Self { layout, base, overlay, stored: None, codec, log: None })
    }

    /// Adds a delta (schema of the spec).
    pub fn apply(&mut self, delta: &ZBatch) -> Result<()> {
        let columns = self.layout.conform_rows(delta.rows().columns())?;
        if delta.is_empty() {
            return Ok(());
        }
        if let Some(log) = &mut self.log {
            log.push(delta)?;
        }
        let run = Run::try_new(&self.layout, columns, delta.weights().to_vec())?;
        self.read_stored(&run.hashes)?;
        let rows = (0..).zip(&run.weights).filter(|(_, w)| **w != 0).map(|(row, _)| row).collect();
        let rows = self.add_to_base(&run, rows)?;
        let rows = self.add_to_overlay(&run, rows)?;
        self.append(&run, &rows)?;
        if self.base.live.len() + self.overlay.live_rows() == 0 {
            // Rows of weight 0 are not worth keeping for the next ones.
            self.base = empty_base(&self.layout)?;
            self.overlay = Overlay::new(&self.layout);
        } else if self.base.dead_rows() > self.fold_rows() {
            self.fold(None)?;
        }
        Ok(())
    }

    /// Brings the stored rows of some keys into memory.
    fn read_stored(&mut self, hashes: &[u64]) -> Result<()> {
        let Some(stored) = &mut self.stored else { return Ok(()) };
        let rows = stored.read(hashes)?;
        if stored.is_read() {
            self.stored = None;
        }
        if rows.len() == 0 {
            return Ok(());
        }
        let columns = rows.columns(&self.codec)?;
        let sort = self.layout.sort_keys(&columns, rows.len())?;
        let run = Run { columns, weights: rows.weights, hashes: rows.hashes, sort };
        if self.base.len() + self.overlay.len() == 0 {
            run::check_row_count(run.len())?;
            self.base = Base::try_new(&self.layout, run.sorted(&self.layout)?)?;
            return Ok(());
        }
        self.append(&run, &(0..run::row_number(run.len())).collect::<Vec<_>>())
    }

    /// Adds to rows that the base has; returns the others.
    fn add_to_base(&mut self, run: &Run, rows: Vec<u32>) -> Result<Vec<u32>> {
        if self.base.len() == 0 {
            return Ok(rows);
        }
        let found =
            self.base.find_rows(&self.layout, &run.columns, &run.hashes, &run.sort, &rows)?;
        let mut others = Vec::new();
        for (row, at) in rows.into_iter().zip(found) {
            if at == NONE {
                others.push(row);
            } else {
                self.base.add(at, run.weights[row as usize])?;
            }
        }
        Ok(others)
    }

    /// Adds to rows that the overlay has; returns the others.
    fn add_to_overlay(&mut self, run: &Run, rows: Vec<u32>) -> Result<Vec<u32>> {
        if self.overlay.len() == 0 || rows.is_empty() {
            return Ok(rows);
        }
        let found =
            self.overlay.find_rows(&self.layout, &run.columns, &run.hashes, &run.sort, &rows)?;
        let mut others = Vec::new();
        for (row, at) in rows.into_iter().zip(found) {
            if at == NONE {
                others.push(row);
            } else {
                self.overlay.add(at, run.weights[row as usize])?;
            }
        }
        Ok(others)
    }

    /// Adds rows that are neither in the base nor in the overlay.
    fn append(&mut self, run: &Run, rows: &[u32]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        if self.overlay.len() + rows.len() <= self.fold_rows() {
            return self.overlay.insert(&self.layout, run, rows);
        }
        let mut new = run.sorted_part(&self.layout, rows)?;
        if new.may_repeat_rows() {
            let batch = self.batch(new.columns, &new.weights)?;
            let (rows, weights) = batch.consolidate()?.into_parts();
            let run = Run::try_new(&self.layout, rows.columns().to_vec(), weights.to_vec())?;
            new = run.sorted(&self.layout)?;
        }
        self.fold(Some(new))
    }

    fn fold_rows(&self) -> usize {
        (self.base.len() / FOLD_SHARE).max(FOLD_ROWS_MIN)
    }

    /// Makes one base of base, overlay and `new`, without rows of weight 0.
    fn fold(&mut self, new: Option<Run>) -> Result<()> {
        let layout = &self.layout;
        let overlay = std::mem::replace(&mut self.overlay, Overlay::new(layout));
        let recent = if overlay.live_rows() == 0 { None } else { Some(overlay.to_run(layout)?) };
        drop(overlay);
        let recent = match (recent, new) {
            (Some(recent), Some(new)) => Some(Run::merge(layout, &recent, &new)?),
            (recent, new) => recent.or(new),
        };
        if recent.is_none() && self.base.dead_rows() == 0 {
            return Ok(());
        }
        let empty = empty_base(layout)?;
        let live = self.base.live.len();
        let base = std::mem::replace(&mut self.base, empty);
        let run = match recent {
            Some(recent) if live == 0 => recent,
            Some(recent) => Run::merge(layout, &base.into_run(), &recent)?,
            None => {
                let live = base.live_rows().collect();
                base.into_run().take(layout, live)?
            }
        };
        self.base = Base::try_new(layout, run)?;
        Ok(())
    }

    /// All arranged rows whose key equals that of each probe row. `key` has the key columns of the
    /// probing batch, in the spec's order and types. NULL keys match only if `null_equals_null`.
    pub fn probe(&mut self, key: &[ArrayRef], null_equals_null: bool) -> Result<Matches> {
        let key = self.layout.conform_key(key)?;
        let count = key.first().map_or(1, |column| column.len());
        let hashes = self.layout.hashes(&key, count)?;
        self.read_stored(&hashes)?;
        self.matches(&key, &hashes, null_equals_null)
    }

    /// The given columns of the given rows.
    pub fn gather(&self, rows: &[RowRef], columns: &[usize]) -> Result<Vec<ArrayRef>> {
        if rows.iter().all(|row| row.as_overlay().is_none()) {
            let rows = UInt32Array::from_iter_values(rows.iter().map(|row| row.0));
            let take = |&c: &usize| Ok(arrow::compute::take(&self.base.columns[c], &rows, None)?);
            return columns.iter().map(take).collect();
        }
        let place = |row: &RowRef| match row.as_overlay() {
            None => (0, row.0 as usize),
            Some(row) => {
                let (chunk, at) = self.overlay.locate(row);
                (chunk + 1, at)
            }
        };
        let order: Vec<(usize, usize)> = rows.iter().map(place).collect();
        let column = |&c: &usize| {
            let chunks = self.overlay.chunks().iter().map(|chunk| chunk[c].as_ref());
            let arrays: Vec<&dyn Array> =
                std::iter::once(self.base.columns[c].as_ref()).chain(chunks).collect();
            Ok(arrow::compute::interleave(&arrays, &order)?)
        };
        columns.iter().map(column).collect()
    }

    /// Everything, consolidated, in pieces of at most `rows_max` rows.
    pub fn scan(&self, rows_max: usize) -> Result<Vec<ZBatch>> {
        let rows_max = rows_max.max(1);
        let mut pieces = Vec::new();
        if self.base.dead_rows() == 0 {
            for start in (0..self.base.len()).step_by(rows_max) {
                let length = rows_max.min(self.base.len() - start);
                let columns = self.base.columns.iter().map(|c| c.slice(start, length)).collect();
                pieces.push(self.batch(columns, &self.base.weights[start..start + length])?);
            }
        } else {
            for rows in self.base.live_rows().collect::<Vec<_>>().chunks(rows_max) {
                let columns = run::take_owned(&self.base.columns, rows.to_vec())?;
                let weights: Vec<i64> =
                    rows.iter().map(|&row| self.base.weights[row as usize]).collect();
                pieces.push(self.batch(columns, &weights)?);
            }
        }
        if self.overlay.live_rows() > 0 {
            let run = self.overlay.to_run(&self.layout)?;
            let all = self.batch(run.columns, &run.weights)?;
            let starts = (0..all.num_rows()).step_by(rows_max);
            pieces.extend(starts.map(|at| all.slice(at, rows_max.min(all.num_rows() - at))));
        }
        if let Some(stored) = &self.stored {
            stored.scan(&self.codec, rows_max, |columns, weights| {
                pieces.push(self.batch(columns, weights)?);
                Ok(())
            })?;
        }
        Ok(pieces)
    }

    fn batch(&self, columns: Vec<ArrayRef>, weights: &[i64]) -> Result<ZBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(weights.len()));
        let schema = self.layout.schema.clone();
        let rows = RecordBatch::try_new_with_options(schema, columns, &options)?;
        ZBatch::try_new(rows, weights.to_vec())
    }

    /// True without rows; false where stored ones cannot be read.
    pub fn is_empty(&self) -> bool {
        let stored =
            || self.stored.as_ref().is_none_or(|stored| stored.is_empty().unwrap_or(false));
        self.base.live.len() + self.overlay.live_rows() == 0 && stored()
    }

    /// Bytes held in memory.
    pub fn memory_bytes(&self) -> usize {
        let log = self.log.as_ref().map_or(0, ChangeLog::memory_bytes);
        let stored = self.stored.as_ref().map_or(0, StoredRows::memory_bytes);
        self.base.memory_bytes() + self.overlay.memory_bytes() + stored + log
    }

    /// See [`crate::Slot::write_full`].
    pub fn write_full(&mut self) -> Result<Image> {
        self.fold(None)?;
        let mut writer = ImageWriter::default();
        for rows in self.base.pieces(PIECE_ROWS) {
            let (start, length) = (rows.start as usize, rows.len());
            let columns: Vec<ArrayRef> =
                self.base.columns.iter().map(|c| c.slice(start, length)).collect();
            let hashes = self.base.hashes(&rows);
            writer.add(
                &self.codec,
                &columns,
                &hashes,
                &self.base.weights[start..start + length],
            )?;
        }
        let mut image = writer.finish(&self.codec)?;
        if let Some(stored) = &self.stored {
            image = stored.write_with(&self.codec, image)?;
        }
        self.log = Some(ChangeLog::default());
        Ok(image)
    }

    /// See [`crate::Slot::write_changes`]. Before any other write these are all rows: the changes
    /// since the empty state.
    pub fn write_changes(&mut self) -> Result<Image> {
        let schema = self.layout.schema.clone();
        let changes = match &mut self.log {
            Some(log) => log.take(&schema)?,
            None => ZBatch::concat(&schema, &self.scan(ROWS_MAX)?)?,
        };
        self.log = Some(ChangeLog::default());
        stored::write_delta(&self.layout, &self.codec, &changes)
    }

    /// See [`crate::Slot::restore`].
    pub fn restore(spec: &ArrangementSpec, full: &Image, changes: &[Image]) -> Result<Self> {
        let mut arrangement = Self::try_new(spec)?;
        arrangement.open(full, changes)?;
        Ok(arrangement)
    }

    /// Fills an empty arrangement.
    fn open(&mut self, full: &Image, changes: &[Image]) -> Result<()> {
        let images = std::iter::once(full).chain(changes);
        self.stored = StoredRows::open(&self.codec, images)?;
        self.log = Some(ChangeLog::default());
        Ok(())
    }

    /// See [`crate::merge_changes`].
    pub(crate) fn is_image(image: &Image) -> Result<bool> {
        stored::is_image(image)
    }

    /// See [`crate::merge_changes`].
    pub(crate) fn merge_changes(changes: &[Image]) -> Result<Image> {
        stored::merge_changes(changes)
    }
}

fn empty_base(layout: &Layout) -> Result<Base> {
    let columns = RecordBatch::new_empty(layout.schema.clone()).columns().to_vec();
    Base::try_new(layout, Run::try_new(layout, columns, Vec::new())?)
}
