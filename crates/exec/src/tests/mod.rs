//! The driver against tiny operators made by hand.

mod contract;
mod restart;
mod splits;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Result, ZBatch};
use deltaic_ops::{
    Algebra, Evaluator, Exchange, InputSpec, Join, JoinKind, JoinSpec, Operator, OperatorSpec,
    Output, StepContext,
};
use deltaic_state::Slot;

/// Columns `k` and `v`.
fn pairs() -> SchemaRef {
    columns(&["k", "v"])
}

fn columns(names: &[&str]) -> SchemaRef {
    let field = |name: &&str| Field::new(*name, DataType::Int64, true);
    Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()))
}

fn batch(text: &str) -> ZBatch {
    ZBatch::parse(&pairs(), text).unwrap()
}

/// Rows `(k, v, weight)`.
fn rows(rows: &[(i64, i64, i64)]) -> ZBatch {
    let column = |f: fn(&(i64, i64, i64)) -> i64| -> ArrayRef {
        Arc::new(rows.iter().map(f).collect::<Int64Array>())
    };
    let columns = vec![column(|r| r.0), column(|r| r.1)];
    let weights: Vec<i64> = rows.iter().map(|r| r.2).collect();
    ZBatch::try_new(RecordBatch::try_new(pairs(), columns).unwrap(), weights).unwrap()
}

/// `v` is even.
#[derive(Debug)]
struct Even;

impl Evaluator for Even {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let v = batch.column(1).as_any().downcast_ref::<Int64Array>().unwrap();
        Ok(Arc::new(v.iter().map(|v| v.map(|v| v % 2 == 0)).collect::<BooleanArray>()))
    }
}

/// TRUE.
#[derive(Debug)]
struct True;

impl Evaluator for True {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        Ok(Arc::new(BooleanArray::from(vec![true; batch.num_rows()])))
    }
}

/// `left ⋈ right` on `k`.
fn join(kind: JoinKind, output: SchemaRef) -> Arc<Join> {
    Arc::new(
        Join::try_new(JoinSpec {
            left: pairs(),
            right: pairs(),
            kind,
            on: vec![(0, 0)],
            null_equals_null: false,
            residual: None,
            columns: kind.columns(&pairs(), &pairs()),
            output,
            detail: "k = k".into(),
        })
        .unwrap(),
    )
}

type Step = fn(&[ZBatch], &StepContext, &mut dyn Output) -> Result<()>;

/// A stateless operator over `(k, v)` whose step is a function.
#[derive(Debug)]
struct Stub {
    spec: OperatorSpec,
    step: Step,
}

impl Stub {
    fn new(exchange: Exchange, algebra: Algebra, output_is_set: bool, step: Step) -> Arc<Self> {
        let spec = OperatorSpec {
            name: "Stub",
            detail: String::new(),
            inputs: vec![InputSpec { schema: pairs(), exchange }],
            output: pairs(),
            slots: Vec::new(),
            algebra,
            output_is_set,
        };
        Arc::new(Self { spec, step })
    }
}

impl Operator for Stub {
    fn spec(&self) -> &OperatorSpec {
        &self.spec
    }

    fn step(
        &self,
        inputs: &[ZBatch],
        _state: &mut [Slot],
        out: &mut dyn Output,
        cx: &StepContext,
    ) -> Result<()> {
        (self.step)(inputs, cx, out)
    }
}
