//! A part of a logical plan with holes for its inputs, and how to run it.

use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take_arrays;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchemaRef, DataFusionError};
use datafusion::datasource::provider_as_source;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, TableSource};
use deltaic_batch::{Error, Result, RowEncoder, ZBatch};

use crate::errors;
use crate::session::batch;
use crate::session::rows::{self, Rows};

/// Order in which a region reads an input, where its result depends on it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// The result does not depend on it.
    Any,
    /// By the whole row.
    Canonical,
}

/// One input of a region.
#[derive(Debug, Clone)]
pub(crate) struct RegionInput {
    pub(crate) schema: DFSchemaRef,
    pub(crate) order: Order,
}

/// A part of a query: a plan whose leaves are [`Hole`]s.
pub(crate) struct Region {
    pub(crate) state: Arc<SessionState>,
    pub(crate) template: LogicalPlan,
    pub(crate) inputs: Vec<RegionInput>,
    /// Schema of the result; every column may be NULL.
    pub(crate) output: SchemaRef,
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Region({})", self.template.display_indent())
    }
}

impl Region {
    /// The result over integrated inputs (no negative weight), consolidated.
    pub(crate) fn run(&self, inputs: &[ZBatch]) -> Result<ZBatch> {
        let mut tables = Vec::with_capacity(inputs.len());
        for (input, rows) in self.inputs.iter().zip(inputs) {
            tables.push(table(input, rows)?);
        }
        let plan = fill(self.template.clone(), &tables)?;
        let batches = batch::run(&self.state, plan)?;
        let pieces = (batches.iter())
            .map(|b| Ok(ZBatch::inserts(batch::relabel(b, &self.output)?)))
            .collect::<Result<Vec<_>>>()?;
        ZBatch::concat(&self.output, &pieces)?.consolidate()
    }
}

/// The rows of an input, each as often as its weight says.
fn table(input: &RegionInput, rows: &ZBatch) -> Result<Arc<Rows>> {
    let schema = Arc::new(input.schema.as_arrow().clone());
    let copies = batch::relabel(&expand(rows)?, &schema)?;
    let copies = match input.order {
        Order::Any => copies,
        Order::Canonical => canonical_order(&copies)?,
    };
    Ok(Arc::new(Rows { schema, batches: vec![copies], order: None, is_listed: false }))
}

/// Each row as often as its weight says.
fn expand(rows: &ZBatch) -> Result<RecordBatch> {
    if rows.weights().iter().all(|&w| w == 1) {
        return Ok(rows.rows().clone());
    }
    let mut copies = Vec::with_capacity(rows.num_rows());
    for (row, &weight) in (0u32..).zip(rows.weights().iter()) {
        let times = usize::try_from(weight).map_err(|_| {
            Error::data("NEGATIVE_MULTIPLICITY", "more copies of a row were deleted than inserted")
        })?;
        copies.extend(std::iter::repeat_n(row, times));
    }
    take(rows.rows(), copies)
}

/// Some rows of a batch, which may have no columns.
fn take(rows: &RecordBatch, indices: Vec<u32>) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(indices.len()));
    let columns = take_arrays(rows.columns(), &UInt32Array::from(indices), None)?;
    Ok(RecordBatch::try_new_with_options(rows.schema(), columns, &options)?)
}

/// Rows in the order of their encoded columns; as they are where a type has no order.
fn canonical_order(rows: &RecordBatch) -> Result<RecordBatch> {
    let types: Vec<_> = rows.schema().fields().iter().map(|f| f.data_type().clone()).collect();
    let Ok(mut encoder) = RowEncoder::try_new(&types) else {
        return Ok(rows.clone());
    };
    if types.is_empty() {
        return Ok(rows.clone());
    }
    let encoded = encoder.encode(rows.columns())?;
    let count = u32::try_from(rows.num_rows())
        .map_err(|_| Error::data("BATCH_TOO_LARGE", "a recomputed input exceeds 4 billion rows"))?;
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_unstable_by(|&a, &b| encoded.row(a as usize).cmp(&encoded.row(b as usize)));
    take(rows, order)
}

/// Puts tables into the holes of a plan.
fn fill(plan: LogicalPlan, tables: &[Arc<Rows>]) -> Result<LogicalPlan> {
    plan.transform_up(|node| {
        let LogicalPlan::TableScan(mut scan) = node else { return Ok(Transformed::no(node)) };
        let hole = scan.source.downcast_ref::<Hole>().map(|hole| hole.index);
        if let Some(index) = hole {
            let table = tables.get(index).ok_or_else(|| {
                DataFusionError::Internal(format!("input {index} of a region is missing"))
            })?;
            scan.source = provider_as_source(table.clone());
        }
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    })
    .map(|plan| plan.data)
    .map_err(errors::execution)
}

/// Stands for an input in a template.
pub(crate) struct Hole {
    index: usize,
    schema: SchemaRef,
}

impl Hole {
    /// A scan with exactly the columns and qualifiers of the plan that it stands for.
    pub(crate) fn scan(index: usize, schema: &DFSchemaRef) -> LogicalPlan {
        let source = Arc::new(Self { index, schema: Arc::new(schema.as_arrow().clone()) });
        rows::scan(&format!("input_{index}"), source, schema)
    }
}

impl TableSource for Hole {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
