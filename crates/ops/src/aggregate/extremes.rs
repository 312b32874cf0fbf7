//! MIN and MAX: the values of each group in order, and a look at the first.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int8Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Result, ZBatch};
use deltaic_state::{Arrangement, ArrangementSpec, SlotSpec, SortKey};

use super::accumulate::masked_weights;
use super::plan::Extreme;
use super::spec::AggregateSpec;

/// State of one extreme: the group's key columns and the value.
///
/// Without key columns a constant takes their place, so that a probe has a length.
pub(super) fn slot(spec: &AggregateSpec, extreme: &Extreme) -> SlotSpec {
    let mut fields: Vec<Field> = spec.keys.iter().map(|&k| spec.input.field(k).clone()).collect();
    if fields.is_empty() {
        fields.push(Field::new("all", DataType::Int8, false));
    }
    let value = fields.len();
    fields.push(spec.input.field(extreme.input).clone());
    // Names may repeat in a query, but positions are what counts here.
    let fields = fields.into_iter().enumerate().map(|(i, f)| f.with_name(format!("c{i}")));
    let order = SortKey { column: value, descending: extreme.descending, nulls_first: false };
    SlotSpec::Rows(ArrangementSpec {
        schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
        key: (0..value).collect(),
        order: vec![order],
    })
}

/// The columns that stand for a group's key in the arrangement.
pub(super) fn key_or_constant(key: &[ArrayRef], num_rows: usize) -> Vec<ArrayRef> {
    if key.is_empty() {
        return vec![Arc::new(Int8Array::from(vec![0; num_rows]))];
    }
    key.to_vec()
}

/// The part of a delta that an extreme's arrangement takes.
pub(super) fn values_delta(
    slot: &SlotSpec,
    extreme: &Extreme,
    key: &[ArrayRef],
    delta: &ZBatch,
) -> Result<ZBatch> {
    let rows = delta.rows();
    let weights = masked_weights(rows, Some(extreme.input), extreme.filter, delta.weights())?;
    let mut columns = key_or_constant(key, delta.num_rows());
    columns.push(rows.column(extreme.input).clone());
    let options = RecordBatchOptions::new().with_row_count(Some(delta.num_rows()));
    let rows = RecordBatch::try_new_with_options(schema(slot)?, columns, &options)?;
    ZBatch::try_new(rows, weights.into_owned())?.consolidate()
}

fn schema(slot: &SlotSpec) -> Result<SchemaRef> {
    match slot {
        SlotSpec::Rows(spec) => Ok(spec.schema.clone()),
        SlotSpec::Groups(_) => Err(super::accumulate::wrong_type()),
    }
}

/// The first value of each group in the arrangement's order; NULL where there is none.
pub(super) fn first_values(
    values: &Arrangement,
    key: &[ArrayRef],
    groups: usize,
) -> Result<ArrayRef> {
    let key = key_or_constant(key, groups);
    let matches = values.probe_first(&key, true, 1)?;
    let column = key.len();
    let mut columns = values.gather(&matches.rows, &[column])?;
    let Some(found) = columns.pop() else {
        return Err(super::accumulate::wrong_type());
    };
    if matches.probe.len() == groups {
        return Ok(found);
    }
    let mut indices: Vec<Option<u32>> = vec![None; groups];
    for (position, &group) in (0_u32..).zip(&matches.probe) {
        indices[group as usize] = Some(position);
    }
    Ok(arrow::compute::take(&found, &UInt32Array::from(indices), None)?)
}
