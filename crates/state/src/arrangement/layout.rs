//! What an arrangement's spec means for its rows: their keys, and their order within a key.

use std::cmp::Ordering;

use arrow::array::{ArrayRef, new_null_array};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::row::{RowConverter, Rows, SortField};
use deltaic_batch::{Error, Result, equal_pairs, hash_columns, hash_is_exact, null_hash};

use super::ArrangementSpec;

/// The spec, checked and prepared.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) schema: SchemaRef,
    key: Vec<usize>,
    /// Columns that are not of the key: what tells the rows of a key apart.
    rest: Vec<usize>,
    /// Columns of the order.
    sorted: Vec<usize>,
    /// Encodes them; without it rows of a key are ordered by hash.
    sorter: Option<RowConverter>,
    /// Bytes of each sort key, where all have the same number.
    stride: Option<usize>,
    /// Equal key hashes mean equal keys (but for the hash of NULL).
    hash_is_exact: bool,
    null_hash: u64,
    /// Keeps these bits of every hash alone, so that tests can make different rows share one.
    #[cfg(test)]
    hash_mask: u64,
}

impl Layout {
    pub(super) fn try_new(spec: &ArrangementSpec) -> Result<Self> {
        let width = spec.schema.fields().len();
        let mut columns = spec.key.iter().chain(spec.order.iter().map(|o| &o.column));
        if let Some(column) = columns.find(|&&c| c >= width) {
            let what = format!("column {column} of an arrangement of {width} columns");
            return Err(Error::internal("ARRANGEMENT_SPEC", what));
        }
        let data_type = |c: usize| spec.schema.field(c).data_type().clone();
        let rest: Vec<usize> = (0..width).filter(|c| !spec.key.contains(c)).collect();
        let mut sorted = Vec::new();
        let mut fields = Vec::new();
        for order in spec.order.iter().filter(|o| rest.contains(&o.column)) {
            if !sorted.contains(&order.column) {
                let options =
                    SortOptions { descending: order.descending, nulls_first: order.nulls_first };
                sorted.push(order.column);
                fields.push(SortField::new_with_options(data_type(order.column), options));
            }
        }
        let sorter = if sorted.is_empty() { None } else { Some(RowConverter::new(fields)?) };
        let is_fixed = |&c: &usize| spec.schema.field(c).data_type().primitive_width().is_some();
        let stride = match &sorter {
            Some(sorter) if sorted.iter().all(is_fixed) => {
                let null = |&c: &usize| new_null_array(&data_type(c), 1);
                let nulls: Vec<ArrayRef> = sorted.iter().map(null).collect();
                Some(sorter.convert_columns(&nulls)?.row(0).data().len())
            }
            _ => None,
        };
        let key_types: Vec<DataType> = spec.key.iter().map(|&c| data_type(c)).collect();
        let hash_is_exact = hash_is_exact(&key_types);
        let (schema, key) = (spec.schema.clone(), spec.key.clone());
        Ok(Self {
            schema,
            key,
            rest,
            sorted,
            sorter,
            stride,
            hash_is_exact,
            null_hash: null_hash(),
            #[cfg(test)]
            hash_mask: u64::MAX,
        })
    }

    #[cfg(test)]
    pub(super) fn mask_hashes(&mut self, mask: u64) {
        self.hash_mask = mask;
        self.hash_is_exact &= mask == u64::MAX || self.key.is_empty();
    }

    /// Hashes of keys or whole rows.
    pub(super) fn hashes(&self, columns: &[ArrayRef], num_rows: usize) -> Result<Vec<u64>> {
        let hashes = hash_columns(columns, num_rows)?;
        #[cfg(test)]
        let hashes = hashes.into_iter().map(|hash| hash & self.hash_mask).collect();
        Ok(hashes)
    }

    /// The key columns of whole rows.
    pub(super) fn key_of(&self, columns: &[ArrayRef]) -> Vec<ArrayRef> {
        self.key.iter().map(|&c| columns[c].clone()).collect()
    }

    /// The columns of whole rows that are not of the key.
    pub(super) fn rest_of(&self, columns: &[ArrayRef]) -> Vec<ArrayRef> {
        self.rest.iter().map(|&c| columns[c].clone()).collect()
    }

    pub(super) fn key_columns(&self) -> &[usize] {
        &self.key
    }

    pub(super) fn rest_columns(&self) -> &[usize] {
        &self.rest
    }

    /// `columns` as whole rows of the spec's very types; fails unless they are whole rows.
    pub(super) fn conform_rows(&self, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        conform(self.schema.fields().iter().map(|f| f.data_type()).collect(), columns)
    }

    /// `columns` as key columns of the spec's very types; fails unless they are key columns.
    pub(super) fn conform_key(&self, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        conform(self.key.iter().map(|&c| self.schema.field(c).data_type()).collect(), columns)
    }

    pub(super) fn key_hashes(&self, columns: &[ArrayRef], num_rows: usize) -> Result<Vec<u64>> {
        self.hashes(&self.key_of(columns), num_rows)
    }

    /// The sort keys of whole rows.
    pub(super) fn sort_keys(&self, columns: &[ArrayRef], num_rows: usize) -> Result<SortKeys> {
        Ok(match &self.sorter {
            None => SortKeys::Hashes(self.hashes(columns, num_rows)?),
            Some(sorter) => {
                let sorted: Vec<ArrayRef> =
                    self.sorted.iter().map(|&c| columns[c].clone()).collect();
                SortKeys::of_rows(sorter.convert_columns(&sorted)?, self.stride)
            }
        })
    }

    /// No sort keys.
    pub(super) fn empty_sort_keys(&self) -> SortKeys {
        match &self.sorter {
            None => SortKeys::Hashes(Vec::new()),
            Some(sorter) => SortKeys::of_rows(sorter.empty_rows(0, 0), self.stride),
        }
    }

    /// Canonical bytes of the keys of whole rows; `None` without key columns.
    pub(super) fn key_bytes(&self, columns: &[ArrayRef]) -> Result<Option<Rows>> {
        let key = self.key_of(columns);
        if key.is_empty() {
            return Ok(None);
        }
        let fields = key.iter().map(|c| SortField::new(c.data_type().clone())).collect();
        Ok(Some(RowConverter::new(fields)?.convert_columns(&key)?))
    }

    /// False when keys of this hash are surely equal, without a look at their columns.
    #[inline]
    pub(super) fn must_compare(&self, hash: u64) -> bool {
        !self.hash_is_exact || hash == self.null_hash
    }

    /// Which pairs of keys differ although their hashes are equal; all but certainly none.
    pub(super) fn different_keys(
        &self,
        left: &[ArrayRef],
        at_left: &[u32],
        right: &[ArrayRef],
        at_right: &[u32],
    ) -> Result<Vec<usize>> {
        if at_left.is_empty() {
            return Ok(Vec::new());
        }
        let equal = equal_pairs(left, at_left, right, at_right)?;
        Ok((0..equal.len()).filter(|&i| !equal[i]).collect())
    }
}

/// The columns, relabelled where a nested type differs in the names or nullability of its fields.
fn conform(types: Vec<&DataType>, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let alike = |(data_type, column): (&&DataType, &ArrayRef)| alike(data_type, column.data_type());
    if types.len() != columns.len() || !types.iter().zip(columns).all(alike) {
        let given: Vec<&DataType> = columns.iter().map(|c| c.data_type()).collect();
        let what = format!("an arrangement of {types:?} was given columns of {given:?}");
        return Err(Error::internal("ARRANGEMENT_TYPES", what));
    }
    let relabel = |(data_type, column): (&DataType, &ArrayRef)| {
        if data_type == column.data_type() {
            Ok(column.clone())
        } else {
            Ok(arrow::compute::cast(column, data_type)?)
        }
    };
    types.into_iter().zip(columns).map(relabel).collect()
}

/// True when the types differ in nothing but names and nullability of nested fields.
fn alike(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::List(a), DataType::List(b))
        | (DataType::LargeList(a), DataType::LargeList(b)) => alike(a.data_type(), b.data_type()),
        (DataType::FixedSizeList(a, m), DataType::FixedSizeList(b, n)) => {
            m == n && alike(a.data_type(), b.data_type())
        }
        (DataType::Map(a, _), DataType::Map(b, _)) => alike(a.data_type(), b.data_type()),
        (DataType::Struct(a), DataType::Struct(b)) => {
            let fields = || a.iter().zip(b);
            a.len() == b.len() && fields().all(|(a, b)| alike(a.data_type(), b.data_type()))
        }
        _ => a == b,
    }
}

/// What orders the rows of a key.
#[derive(Debug)]
pub(super) enum SortKeys {
    /// Hash of the whole row; different rows may share one.
    Hashes(Vec<u64>),
    /// Bytes of the order columns; different rows may have the same.
    Bytes(Rows),
    /// The same, where each has this number of bytes.
    Fixed(usize, Vec<u8>),
}

impl SortKeys {
    fn of_rows(rows: Rows, stride: Option<usize>) -> Self {
        let Some(stride) = stride else { return Self::Bytes(rows) };
        let mut bytes = Vec::with_capacity(rows.num_rows() * stride);
        rows.iter().for_each(|row| bytes.extend_from_slice(row.data()));
        Self::Fixed(stride, bytes)
    }

    /// How row `i` compares with row `j` of `other`, which is of the same layout.
    #[inline]
    pub(super) fn compare(&self, i: u32, other: &Self, j: u32) -> Ordering {
        let (i, j) = (i as usize, j as usize);
        match (self, other) {
            (Self::Hashes(left), Self::Hashes(right)) => left[i].cmp(&right[j]),
            (Self::Bytes(left), Self::Bytes(right)) => left.row(i).data().cmp(right.row(j).data()),
            (Self::Fixed(stride, left), Self::Fixed(_, right)) => {
                left[i * stride..(i + 1) * stride].cmp(&right[j * stride..(j + 1) * stride])
            }
            // One layout makes keys of one kind.
            _ => Ordering::Equal,
        }
    }

    /// Appends row `i` of `other`, which is of the same layout.
    pub(super) fn push(&mut self, other: &Self, i: u32) {
        match (self, other) {
            (Self::Hashes(keys), Self::Hashes(other)) => keys.push(other[i as usize]),
            (Self::Bytes(keys), Self::Bytes(other)) => keys.push(other.row(i as usize)),
            (Self::Fixed(stride, keys), Self::Fixed(_, other)) => {
                let at = i as usize * *stride;
                keys.extend_from_slice(&other[at..at + *stride]);
            }
            _ => {}
        }
    }

    /// Bytes held in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Hashes(keys) => keys.capacity() * 8,
            Self::Bytes(keys) => keys.size(),
            Self::Fixed(_, keys) => keys.capacity(),
        }
    }
}
