//! Rows in memory that a plan reads, maybe in an order that physical planning knows of.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchemaRef, Result};
use datafusion::datasource::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::datasource::{TableType, source_as_provider};
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, TableSource};
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::ExecutionPlan;

/// The rows.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
    /// The order that planning may rely on.
    pub(crate) order: Option<LexOrdering>,
    /// They are in the order of an ORDER BY that a LIMIT above refers to.
    pub(crate) is_listed: bool,
}

#[async_trait::async_trait]
impl TableProvider for Rows {
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
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let partitions = std::slice::from_ref(&self.batches);
        let mut source =
            MemorySourceConfig::try_new(partitions, self.schema.clone(), projection.cloned())?;
        if let Some(order) = &self.order {
            source = source.try_with_sort_information(vec![order.clone()])?;
        }
        Ok(DataSourceExec::from_data_source(source))
    }
}

/// A scan with exactly the columns and qualifiers of the plan that it stands for.
pub(crate) fn scan(name: &str, source: Arc<dyn TableSource>, schema: &DFSchemaRef) -> LogicalPlan {
    LogicalPlan::TableScan(TableScan {
        table_name: name.into(),
        source,
        projection: None,
        projected_schema: schema.clone(),
        filters: Vec::new(),
        fetch: None,
        statistics_requests: Default::default(),
    })
}

/// True for a scan of rows that a LIMIT has left in their order.
pub(super) fn is_listed(scan: &TableScan) -> bool {
    let provider = source_as_provider(&scan.source);
    provider.is_ok_and(|p| p.downcast_ref::<Rows>().is_some_and(|rows| rows.is_listed))
}
