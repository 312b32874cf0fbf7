//! Columnar incremental view maintenance: SQL views over Arrow change batches, and whole pipelines.
//!
//! A view is a query whose result is kept up to date from changes. A change is a [`ZBatch`]: rows
//! with a weight each, +1 for an insert, −1 for a delete, both for an update.
//!
//! ```
//! # #[cfg(feature = "sql")] {
//! use deltaic::prelude::*;
//!
//! let orders = schema("region STRING, amount INT")?;
//! let mut view = View::sql(
//!     "SELECT region, sum(amount) AS total FROM orders GROUP BY region",
//!     [("orders", orders.clone())],
//! )?;
//! view.apply([("orders", ZBatch::parse(&orders, "+ north | 5\n+ north | 2\n+ south | 1")?)])?;
//! let change = view.apply([("orders", ZBatch::parse(&orders, "- north | 2")?)])?;
//! assert_eq!(change.to_string(), "- north | 7\n+ north | 5\n");
//! assert_eq!(view.snapshot()?.num_rows(), 2);
//! # }
//! # Ok::<(), deltaic::Error>(())
//! ```
//!
//! Three layers, each usable without those above it:
//!
//! | layer | feature | entry |
//! |---|---|---|
//! | kernel: batches, operators, circuits, state | always | [`exec::CircuitBuilder`] |
//! | SQL views | `sql` | `View` |
//! | pipelines of tables on disk | `pipeline` | `Pipeline` |

pub use deltaic_batch::{Error, ErrorClass, Location, Result, ZBatch};

#[cfg(feature = "sql")]
mod view;

#[cfg(feature = "sql")]
pub use view::{View, schema};

/// Z-set batches: rows with weights, consolidation, hashing, and the text form.
///
/// ```
/// use std::sync::Arc;
/// use arrow::datatypes::{DataType, Field, Schema};
/// use deltaic::batch::ZBatch;
///
/// let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
/// let batch = ZBatch::parse(&schema, "+ 1\n+ 1\n- 2")?.consolidate()?;
/// assert_eq!(batch.num_rows(), 2);
/// # Ok::<(), deltaic::Error>(())
/// ```
pub mod batch {
    pub use deltaic_batch::*;
}

/// The operators.
///
/// ```
/// use std::sync::Arc;
/// use arrow::datatypes::{DataType, Field, Schema};
/// use deltaic::ops::{ColumnRef, Filter, Operator};
///
/// let schema = Arc::new(Schema::new(vec![Field::new("open", DataType::Boolean, true)]));
/// let filter = Filter::try_new(schema, Arc::new(ColumnRef(0)), "open".into())?;
/// assert_eq!(filter.spec().name, "Filter");
/// # Ok::<(), deltaic::Error>(())
/// ```
pub mod ops {
    pub use deltaic_ops::*;
}

/// Circuits of operators and their driver.
///
/// ```
/// use std::sync::Arc;
/// use arrow::datatypes::{DataType, Field, Schema};
/// use deltaic::batch::ZBatch;
/// use deltaic::exec::{CircuitBuilder, CircuitOptions};
/// use deltaic::ops::Distinct;
///
/// let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
/// let mut builder = CircuitBuilder::new();
/// let ids = builder.source("ids", schema.clone())?;
/// let each_once = builder.add(Arc::new(Distinct::try_new(schema.clone())?), &[ids])?;
/// builder.output("each_once", each_once)?;
/// let mut circuit = builder.build(CircuitOptions::default())?;
/// let out = circuit.step(vec![("ids".into(), ZBatch::parse(&schema, "+3 7")?)])?;
/// assert_eq!(out["each_once"].to_string(), "+ 7\n");
/// # Ok::<(), deltaic::Error>(())
/// ```
pub mod exec {
    pub use deltaic_exec::*;
}

/// Keyed state for operators of your own: group tables and arrangements.
///
/// ```
/// use std::sync::Arc;
/// use arrow::datatypes::{DataType, Field, Schema};
/// use deltaic::batch::ZBatch;
/// use deltaic::state::{Arrangement, ArrangementSpec};
///
/// let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
/// let spec = ArrangementSpec { schema: schema.clone(), key: vec![0], order: vec![] };
/// let mut rows = Arrangement::try_new(&spec)?;
/// let delta = ZBatch::parse(&schema, "+2 7")?;
/// rows.apply(&delta)?;
/// assert_eq!(rows.probe(delta.rows().columns(), false)?.weights, [2]);
/// # Ok::<(), deltaic::Error>(())
/// ```
pub mod state {
    pub use deltaic_state::*;
}

/// Planning of SQL: sessions, view plans, refresh decisions.
///
/// ```
/// use deltaic::plan::{Session, SessionOptions};
///
/// let session = Session::try_new(SessionOptions::default())?;
/// assert_eq!(session.parse_schema("id INT, tags ARRAY<STRING>")?.fields().len(), 2);
/// # Ok::<(), deltaic::Error>(())
/// ```
#[cfg(feature = "sql")]
pub mod plan {
    pub use deltaic_plan::*;
}

/// Pipelines: projects of SQL files over tables on disk.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let write = |path: &str, text: &str| {
/// #     let path = folder.path().join(path);
/// #     std::fs::create_dir_all(path.parent().unwrap()).unwrap();
/// #     std::fs::write(path, text).unwrap();
/// # };
/// # write("pipeline.yml", "name: shop\n");
/// # write("landing/a.csv", "region,amount\nnorth,5\nnorth,2\n");
/// # write("transformations/shop.sql", "
/// # CREATE STREAMING TABLE orders AS
/// # SELECT * FROM STREAM read_files('landing', format => 'csv', header => true,
/// #   schema => 'region STRING, amount INT');
/// # CREATE MATERIALIZED VIEW totals AS SELECT region, sum(amount) AS total FROM orders GROUP BY region;");
/// use deltaic::pipeline::{Pipeline, PipelineOptions, RunOptions};
///
/// let pipeline = Pipeline::open(folder.path(), PipelineOptions::default())?;
/// let report = pipeline.run(&RunOptions::default(), &())?;
/// assert!(report.succeeded());
/// let totals = pipeline.query("SELECT * FROM totals")?;
/// assert_eq!(totals.batches.iter().map(|b| b.num_rows()).sum::<usize>(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "pipeline")]
pub mod pipeline {
    pub use deltaic_pipeline::*;
}

/// Tables on disk in the Delta Lake protocol.
///
/// ```
/// use deltaic::prelude::*;
/// use deltaic::table::{Storage, Table, TableOptions};
///
/// # let folder = tempfile::tempdir().unwrap();
/// let storage = Storage::local(folder.path())?;
/// let rows = schema("id BIGINT")?;
/// let table = Table::create(&storage, "ids", rows.clone(), &TableOptions::default())?;
/// let mut commit = table.begin();
/// commit.apply(&ZBatch::parse(&rows, "+ 1\n+ 2")?)?;
/// assert_eq!(commit.commit()?.num_rows()?, 2);
/// # Ok::<(), deltaic::Error>(())
/// ```
#[cfg(feature = "pipeline")]
pub mod table {
    pub use deltaic_table::*;
}

#[cfg(feature = "pipeline")]
pub use deltaic_pipeline::Pipeline;

/// What most programs need.
///
/// ```
/// use deltaic::prelude::*;
///
/// fn weights(batch: &ZBatch) -> i64 {
///     batch.weights().iter().sum()
/// }
/// # let _ = weights;
/// ```
pub mod prelude {
    pub use crate::batch::ZBatch;
    pub use crate::exec::{Circuit, CircuitBuilder, CircuitOptions};
    pub use crate::{Error, Result};
    #[cfg(feature = "sql")]
    pub use crate::{View, schema};
}
