//! Multisets of values by number of group, each in order.
//!
//! The group is that of a [`crate::GroupTable`] next to it, so that no key is stored or compared
//! here. A delta is sorted once by group and row. The rows of a small group are in a segment of its own
//! ([`segments`]); those of large groups in one list of packed blocks in the order of group and row, a
//! B+ tree of two levels ([`blocks`]), so that a group of a million rows is many blocks of which a
//! small delta touches few. Joins, MIN and MAX, DISTINCT aggregates and top-k share it.
//!
//! A row is words in the order of its values where all columns are of fixed width, stored as offsets
//! in as many bits or bytes as they need; else the bytes of the arrow row format, in blocks alone.

mod block;
mod blocks;
mod codec;
mod found;
mod image;
#[cfg(test)]
mod model_tests;
mod packed;
mod places;
mod range;
mod rows;
mod segments;
mod sorted;
mod stretches;
#[cfg(test)]
mod stretches_tests;
mod tiers;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Error, Result, ZBatch};
use std::sync::Arc;

use crate::change_log::ChangeLog;
use codec::{ByteCodec, WordCodec};
use found::Found;
pub use places::{Moves, Places};
use rows::{ByteRows, Rows, WordRows};
pub use sorted::order_by_group;
use sorted::sort;
pub use stretches::{Changes, Extent, StretchOf, Stretches};
use tiers::Tiers;

/// A column of the values, and its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MultisetColumn {
    /// Type of the values.
    pub data_type: DataType,
    /// How they are ordered.
    pub options: SortOptions,
}

/// Declares multisets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MultisetSpec {
    /// The columns, the first ordering first. Rows that are equal in all are one row.
    pub columns: Vec<MultisetColumn>,
}

/// Rows whose weight has changed its sign: that begin to be there or cease to be.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Crossings {
    /// A row of the delta that shows the row.
    pub rows: Vec<u32>,
    /// +1 when its weight has risen above zero, −1 when it has fallen back.
    pub weights: Vec<i64>,
}

/// Some rows of some groups.
#[derive(Debug, Clone)]
pub struct GroupRows {
    /// Where the rows of each group end.
    pub ends: Vec<u32>,
    /// The rows, column by column.
    pub columns: Vec<ArrayRef>,
    /// Their weights.
    pub weights: Vec<i64>,
}

/// One shard's multisets.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, AsArray, Int64Array};
/// use arrow::compute::SortOptions;
/// use arrow::datatypes::{DataType, Int64Type};
/// use deltaic_state::{MultisetColumn, MultisetSpec, Multisets};
///
/// let column = MultisetColumn { data_type: DataType::Int64, options: SortOptions::default() };
/// let mut values = Multisets::try_new(&MultisetSpec { columns: vec![column] })?;
/// let delta: ArrayRef = Arc::new(Int64Array::from(vec![30, 10, 20]));
/// values.apply(&[7, 7, 8], &[delta.clone()], &[1, 1, 1])?;
/// values.apply(&[7, 7, 8], &[delta], &[0, -1, 0])?;
/// let first = values.first(&[7, 8], 1)?;
/// assert_eq!(first.columns[0].as_primitive::<Int64Type>().values(), &[30, 20]);
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
#[derive(Debug)]
pub struct Multisets {
    spec: MultisetSpec,
    store: Store,
    /// Deltas since the last write; kept from the first write on.
    log: Option<ChangeLog>,
}

#[derive(Debug)]
enum Store {
    One(WordCodec, Tiers<WordRows<1>>),
    Two(WordCodec, Tiers<WordRows<2>>),
    Three(WordCodec, Tiers<WordRows<3>>),
    Four(WordCodec, Tiers<WordRows<4>>),
    Bytes(ByteCodec, Tiers<ByteRows>),
}

/// Evaluates an expression over the tiers, whatever their rows are.
macro_rules! with_tiers {
    ($store:expr, $tiers:ident => $result:expr) => {
        match $store {
            Store::One(_, $tiers) => $result,
            Store::Two(_, $tiers) => $result,
            Store::Three(_, $tiers) => $result,
            Store::Four(_, $tiers) => $result,
            Store::Bytes(_, $tiers) => $result,
        }
    };
}

impl Store {
    fn try_new(spec: &MultisetSpec, with_null: &[bool]) -> Result<Self> {
        let Some(codec) = WordCodec::try_new(spec, with_null) else {
            return Ok(Self::Bytes(ByteCodec::try_new(spec)?, Tiers::default()));
        };
        Ok(match codec.words() {
            0 | 1 => Self::One(codec, Tiers::default()),
            2 => Self::Two(codec, Tiers::default()),
            3 => Self::Three(codec, Tiers::default()),
            _ => Self::Four(codec, Tiers::default()),
        })
    }

    /// Adds a delta; `order` are its rows by group.
    fn apply(
        &mut self,
        (groups, order): (&[u32], Vec<u32>),
        values: &[ArrayRef],
        weights: &[i64],
        tell: impl FnMut(u32, i64, i64),
    ) -> Result<()> {
        let (count, groups) = (groups.len(), (groups, order));
        match self {
            Self::One(c, tiers) => add(tiers, groups, &c.encode(values, count)?, weights, tell),
            Self::Two(c, tiers) => add(tiers, groups, &c.encode(values, count)?, weights, tell),
            Self::Three(c, tiers) => add(tiers, groups, &c.encode(values, count)?, weights, tell),
            Self::Four(c, tiers) => add(tiers, groups, &c.encode(values, count)?, weights, tell),
            Self::Bytes(c, tiers) => add(tiers, groups, &c.encode(values)?, weights, tell),
        }
    }

    /// Applies a function to the tiers and decodes the rows it finds.
    fn find(&self, search: Search<'_>) -> Result<GroupRows> {
        match self {
            Self::One(codec, tiers) => decoded(search.run(tiers), |r, _| codec.decode(r)),
            Self::Two(codec, tiers) => decoded(search.run(tiers), |r, _| codec.decode(r)),
            Self::Three(codec, tiers) => decoded(search.run(tiers), |r, _| codec.decode(r)),
            Self::Four(codec, tiers) => decoded(search.run(tiers), |r, _| codec.decode(r)),
            Self::Bytes(codec, tiers) => decoded(search.run(tiers), |r, n| codec.decode(r, n)),
        }
    }

    /// The first and the last rows.
    fn ends(&self, groups: &[u32]) -> Result<(GroupRows, GroupRows)> {
        macro_rules! ends {
            ($tiers:expr, $decode:expr) => {{
                let (first, last) = $tiers.ends(groups);
                Ok((decoded(first, $decode)?, decoded(last, $decode)?))
            }};
        }
        match self {
            Self::One(codec, tiers) => ends!(tiers, |r, _| codec.decode(r)),
            Self::Two(codec, tiers) => ends!(tiers, |r, _| codec.decode(r)),
            Self::Three(codec, tiers) => ends!(tiers, |r, _| codec.decode(r)),
            Self::Four(codec, tiers) => ends!(tiers, |r, _| codec.decode(r)),
            Self::Bytes(codec, tiers) => ends!(tiers, |r, n| codec.decode(r, n)),
        }
    }

    /// All rows: groups, columns, weights.
    fn all(&self) -> Result<(Vec<u32>, Vec<ArrayRef>, Vec<i64>)> {
        macro_rules! all {
            ($tiers:expr, $decode:expr) => {{
                let all = $tiers.unpack();
                let columns = $decode(&all.rows, all.len())?;
                Ok((all.groups, columns, all.weights))
            }};
        }
        match self {
            Self::One(codec, tiers) => all!(tiers, |rows, _| codec.decode(rows)),
            Self::Two(codec, tiers) => all!(tiers, |rows, _| codec.decode(rows)),
            Self::Three(codec, tiers) => all!(tiers, |rows, _| codec.decode(rows)),
            Self::Four(codec, tiers) => all!(tiers, |rows, _| codec.decode(rows)),
            Self::Bytes(codec, tiers) => all!(tiers, |rows, n| codec.decode(rows, n)),
        }
    }
}

/// Which rows to look up.
#[derive(Clone, Copy)]
enum Search<'a> {
    First(&'a [u32], i64),
    Last(&'a [u32]),
    All(&'a [u32]),
}

impl Search<'_> {
    fn run<R: Rows>(self, tiers: &Tiers<R>) -> Found<R> {
        match self {
            Self::First(groups, places) => tiers.first(groups, places),
            Self::Last(groups) => tiers.last(groups),
            Self::All(groups) => tiers.all(groups),
        }
    }
}

fn decoded<R>(
    found: Found<R>,
    decode: impl Fn(&R, usize) -> Result<Vec<ArrayRef>>,
) -> Result<GroupRows> {
    let columns = decode(&found.rows, found.weights.len())?;
    Ok(GroupRows { ends: found.ends, columns, weights: found.weights })
}

fn add<R: Rows>(
    tiers: &mut Tiers<R>,
    (groups, order): (&[u32], Vec<u32>),
    rows: &R,
    weights: &[i64],
    mut tell: impl FnMut(u32, i64, i64),
) -> Result<()> {
    tiers.make_room(rows);
    let is_first = tiers.len() == 0;
    sort(groups, order, rows, weights, |delta, sources| {
        if is_first {
            sources.iter().zip(&delta.weights).for_each(|(&row, &weight)| tell(row, 0, weight));
            tiers.append(delta);
            return Ok(());
        }
        tiers.apply(delta, |at, before, after| tell(sources[at], before, after))
    })
}

impl Multisets {
    /// Empty. Fails on a type that has no order.
    pub fn try_new(spec: &MultisetSpec) -> Result<Self> {
        ByteCodec::try_new(spec)?;
        let store = Store::try_new(spec, &vec![false; spec.columns.len()])?;
        Ok(Self { spec: spec.clone(), store, log: None })
    }

    /// Adds a delta: for each row its group, its values and its weight. Rows may repeat. Floats must
    /// be canonical.
    pub fn apply(&mut self, groups: &[u32], values: &[ArrayRef], weights: &[i64]) -> Result<()> {
        self.apply_in_order(groups, order_by_group(groups), values, weights)
    }

    /// As [`Self::apply`], for a caller that knows the order of the rows by group, which is that of
    /// [`order_by_group`].
    pub fn apply_in_order(
        &mut self,
        groups: &[u32],
        order: Vec<u32>,
        values: &[ArrayRef],
        weights: &[i64],
    ) -> Result<()> {
        // The encoders of bytes make room even for no row.
        if groups.is_empty() {
            return Ok(());
        }
        self.prepare(groups, values, weights)?;
        self.store.apply((groups, order), values, weights, |_, _, _| ())
    }

    /// As [`Self::apply`]; returns the rows that begin to be there or cease to be.
    pub fn apply_crossings(
        &mut self,
        groups: &[u32],
        values: &[ArrayRef],
        weights: &[i64],
    ) -> Result<Crossings> {
        let mut crossings = Crossings::default();
        if groups.is_empty() {
            return Ok(crossings);
        }
        self.prepare(groups, values, weights)?;
        let groups = (groups, order_by_group(groups));
        self.store.apply(groups, values, weights, |row, before, after| {
            if (before > 0) != (after > 0) {
                crossings.rows.push(row);
                crossings.weights.push(if after > 0 { 1 } else { -1 });
            }
        })?;
        Ok(crossings)
    }

    /// Checks and logs a delta, and makes room for its NULLs.
    fn prepare(&mut self, groups: &[u32], values: &[ArrayRef], weights: &[i64]) -> Result<()> {
        let types = self.spec.columns.iter().map(|column| &column.data_type);
        let lengths = values.iter().map(|v| v.len()).chain([weights.len()]);
        if !types.eq(values.iter().map(|v| v.data_type()))
            || lengths.into_iter().any(|length| length != groups.len())
        {
            let what = "a delta of multisets has other columns or rows than it should";
            return Err(Error::internal("MULTISET_TYPES", what));
        }
        if self.log.is_some() {
            let delta = self.batch(groups.to_vec(), values.to_vec(), weights.to_vec())?;
            if let Some(log) = &mut self.log {
                log.push(&delta)?;
            }
        }
        self.make_room_for_nulls(values)
    }

    /// Encodes all rows anew when a column meets its first NULL.
    fn make_room_for_nulls(&mut self, values: &[ArrayRef]) -> Result<()> {
        let has_null = |array: &ArrayRef| array.logical_null_count() > 0;
        let with_null = match &self.store {
            Store::One(codec, _)
            | Store::Two(codec, _)
            | Store::Three(codec, _)
            | Store::Four(codec, _) => codec.with_null(),
            Store::Bytes(_, _) => return Ok(()),
        };
        if !with_null.iter().zip(values).any(|(&with, array)| !with && has_null(array)) {
            return Ok(());
        }
        let wanted: Vec<bool> =
            with_null.iter().zip(values).map(|(&with, array)| with || has_null(array)).collect();
        let (groups, columns, weights) = self.store.all()?;
        self.store = Store::try_new(&self.spec, &wanted)?;
        let order = order_by_group(&groups);
        self.store.apply((&groups, order), &columns, &weights, |_, _, _| ())
    }

    /// The first rows of each group, as many as fill `places`: a row of weight 2 fills two. Rows of
    /// negative weight are passed over. The groups are in ascending order.
    pub fn first(&self, groups: &[u32], places: i64) -> Result<GroupRows> {
        self.store.find(Search::First(groups, places))
    }

    /// The last row of each group, as [`Self::first`] gives the first one.
    pub fn last(&self, groups: &[u32]) -> Result<GroupRows> {
        self.store.find(Search::Last(groups))
    }

    /// The first and the last row of each group, as [`Self::first`] and [`Self::last`] give them.
    pub fn ends(&self, groups: &[u32]) -> Result<(GroupRows, GroupRows)> {
        self.store.ends(groups)
    }

    /// All rows of each group, those of negative weight too. The groups are in ascending order.
    pub fn rows(&self, groups: &[u32]) -> Result<GroupRows> {
        self.store.find(Search::All(groups))
    }

    /// True when a group has no rows.
    pub fn is_group_empty(&self, group: u32) -> bool {
        with_tiers!(&self.store, tiers => tiers.is_empty(group))
    }

    /// Number of different rows in all groups.
    pub fn len(&self) -> usize {
        with_tiers!(&self.store, tiers => tiers.len())
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held in memory.
    pub fn memory_bytes(&self) -> usize {
        let log = self.log.as_ref().map_or(0, ChangeLog::memory_bytes);
        with_tiers!(&self.store, tiers => tiers.memory_bytes()) + log
    }

    /// Schema of the rows with their group in front.
    fn schema(&self) -> SchemaRef {
        let group = Field::new("group", DataType::UInt32, false);
        let values = self.spec.columns.iter().enumerate();
        let values =
            values.map(|(i, c)| Field::new(format!("value{i}"), c.data_type.clone(), true));
        Arc::new(Schema::new([group].into_iter().chain(values).collect::<Vec<_>>()))
    }

    fn batch(
        &self,
        groups: Vec<u32>,
        mut values: Vec<ArrayRef>,
        weights: Vec<i64>,
    ) -> Result<ZBatch> {
        values.insert(0, Arc::new(UInt32Array::from(groups)));
        ZBatch::try_new(RecordBatch::try_new(self.schema(), values)?, weights)
    }
}
