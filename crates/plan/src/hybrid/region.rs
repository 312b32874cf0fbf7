//! A part of a logical plan with holes for its inputs, and how to run it.

use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchemaRef, DataFusionError};
use datafusion::datasource::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::datasource::{TableType, provider_as_source};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, SortExpr, TableScan, TableSource,
};
use datafusion::physical_expr::{LexOrdering, create_physical_sort_exprs};
use datafusion::physical_plan::ExecutionPlan;
use deltaic_batch::{Error, Result, RowEncoder, ZBatch};

use crate::errors;
use crate::session::batch;

/// Order in which a region reads an input, where its result depends on it.
#[derive(Debug, Clone)]
pub(crate) enum Order {
    /// The result does not depend on it.
    Any,
    /// By the whole row.
    Canonical,
    /// By these expressions over the input's columns.
    By(Vec<SortExpr>),
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
            tables.push(self.table(input, rows)?);
        }
        let plan = fill(self.template.clone(), &tables)?;
        let batches = batch::run(&self.state, &plan)?;
        let pieces = (batches.iter())
            .map(|b| Ok(ZBatch::inserts(batch::relabel(b, &self.output)?)))
            .collect::<Result<Vec<_>>>()?;
        ZBatch::concat(&self.output, &pieces)?.consolidate()
    }

    fn table(&self, input: &RegionInput, rows: &ZBatch) -> Result<Arc<Integrated>> {
        let schema = Arc::new(input.schema.as_arrow().clone());
        let copies = batch::relabel(&expand(rows)?, &schema)?;
        let unordered = |batch| Integrated { schema: schema.clone(), batch, order: None };
        Ok(Arc::new(match &input.order {
            Order::Any => unordered(copies),
            Order::Canonical => unordered(canonical_order(&copies)?),
            Order::By(keys) => self.sorted(input, unordered(copies), keys)?,
        }))
    }

    /// Sorts by `keys`, and lets DataFusion know, so that it does not sort again.
    fn sorted(
        &self,
        input: &RegionInput,
        table: Integrated,
        keys: &[SortExpr],
    ) -> Result<Integrated> {
        let schema = table.schema.clone();
        let hole = Hole::scan(0, &input.schema);
        let sort = || LogicalPlanBuilder::from(hole).sort(keys.to_vec())?.build();
        let plan = fill(sort().map_err(errors::execution)?, &[Arc::new(table)])?;
        let batches = batch::run(&self.state, &plan)?;
        let batch = arrow::compute::concat_batches(&schema, &batches)?;
        let order = create_physical_sort_exprs(
            keys,
            &input.schema,
            self.state.execution_props(),
            &Default::default(),
        )
        .map_err(errors::execution)?;
        Ok(Integrated { schema, batch, order: LexOrdering::new(order) })
    }
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
    Ok(take_record_batch(rows.rows(), &UInt32Array::from(copies))?)
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
    Ok(take_record_batch(rows, &UInt32Array::from(order))?)
}

/// Puts tables into the holes of a plan.
fn fill(plan: LogicalPlan, tables: &[Arc<Integrated>]) -> Result<LogicalPlan> {
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
        LogicalPlan::TableScan(TableScan {
            table_name: format!("input_{index}").into(),
            source,
            projection: None,
            projected_schema: schema.clone(),
            filters: Vec::<Expr>::new(),
            fetch: None,
            statistics_requests: Default::default(),
        })
    }
}

impl TableSource for Hole {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Rows of an input, in memory.
#[derive(Debug)]
struct Integrated {
    schema: SchemaRef,
    batch: RecordBatch,
    order: Option<LexOrdering>,
}

#[async_trait::async_trait]
impl TableProvider for Integrated {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
        let partitions = [vec![self.batch.clone()]];
        let mut source =
            MemorySourceConfig::try_new(&partitions, self.schema.clone(), projection.cloned())?;
        if let Some(order) = &self.order {
            source = source.try_with_sort_information(vec![order.clone()])?;
        }
        Ok(DataSourceExec::from_data_source(source))
    }
}
