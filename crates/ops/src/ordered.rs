//! Rows of partitions in an order: what top-k and windows keep.
//!
//! State is a group table with the number of rows per partition, and multisets of all other columns:
//! the sort columns first, then the rest of the row, ascending, NULL first, which breaks ties.

use arrow::array::ArrayRef;
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result};
use deltaic_state::{
    AccumulatorColumn, AccumulatorType, GroupSpec, GroupTable, MultisetColumn, MultisetSpec, Slot,
    SlotSpec, SortKey,
};

use crate::Exchange;
use crate::multiplicity::add_weights;

/// How the rows of an input are kept.
#[derive(Debug)]
pub(crate) struct OrderedRows {
    input: SchemaRef,
    /// Columns of the partition.
    pub(crate) partition: Vec<usize>,
    /// The columns of the multisets, in their order.
    pub(crate) values: Vec<usize>,
    /// How many of them are sort columns.
    pub(crate) sorted_by: usize,
    /// Their types and options.
    pub(crate) multisets: MultisetSpec,
}

impl OrderedRows {
    pub(crate) fn try_new(
        input: &SchemaRef,
        partition: &[usize],
        order: &[SortKey],
    ) -> Result<Self> {
        let (mut values, mut columns) = (Vec::new(), Vec::new());
        let ties = (0..input.fields().len()).map(|column| SortKey {
            column,
            descending: false,
            nulls_first: true,
        });
        let mut sorted_by = 0;
        for (at, key) in order.iter().copied().chain(ties).enumerate() {
            if values.contains(&key.column) || partition.contains(&key.column) {
                continue;
            }
            let field = input.fields().get(key.column);
            let field = field.ok_or_else(|| misused("a sort column is not of the input"))?;
            let options = SortOptions { descending: key.descending, nulls_first: key.nulls_first };
            values.push(key.column);
            columns.push(MultisetColumn { data_type: field.data_type().clone(), options });
            sorted_by += usize::from(at < order.len());
        }
        let (input, partition) = (input.clone(), partition.to_vec());
        Ok(Self { input, partition, values, sorted_by, multisets: MultisetSpec { columns } })
    }

    /// The two slots; fails if a column cannot be a key or in order.
    pub(crate) fn slots(&self) -> Result<Vec<SlotSpec>> {
        let key = |&column: &usize| self.input.field(column).data_type().clone();
        let groups = GroupSpec {
            key: self.partition.iter().map(key).collect(),
            accumulators: vec![AccumulatorType::I64],
        };
        let slots = vec![SlotSpec::Groups(groups), SlotSpec::Multisets(self.multisets.clone())];
        slots.iter().try_for_each(|slot| Slot::try_new(slot).map(drop))?;
        Ok(slots)
    }

    /// All rows of a partition meet in one shard.
    pub(crate) fn exchange(&self) -> Exchange {
        match self.partition.as_slice() {
            [] => Exchange::Single,
            partition => Exchange::ByKey(partition.to_vec()),
        }
    }

    /// Adds the weights of rows to the numbers of rows of their partitions.
    pub(crate) fn count(groups: &mut GroupTable, of: &[u32], weights: &[i64]) -> Result<()> {
        let [AccumulatorColumn::I64(counts)] = groups.accumulators_mut() else {
            return Err(Error::internal("SLOT_KIND", "ordered rows have one counter"));
        };
        add_weights(counts, of, weights)
    }

    /// The columns of whole rows, from the partition and the values of each.
    pub(crate) fn columns(
        &self,
        groups: &GroupTable,
        of: &[u32],
        values: &[ArrayRef],
    ) -> Result<Vec<ArrayRef>> {
        let key = groups.keys(of)?;
        let mut columns: Vec<Option<ArrayRef>> = vec![None; self.input.fields().len()];
        for (&column, values) in self.partition.iter().zip(key) {
            columns[column] = Some(values);
        }
        for (&column, values) in self.values.iter().zip(values) {
            columns[column] = Some(values.clone());
        }
        let columns = columns.into_iter().collect::<Option<Vec<ArrayRef>>>();
        columns.ok_or_else(|| misused("a column is missing"))
    }
}

fn misused(what: &str) -> Error {
    Error::internal("ORDERED_ROWS", what)
}
