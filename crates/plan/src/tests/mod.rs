//! Views against batch runs of the same query, explain texts, errors.

mod clock;
mod correlated;
mod distance;
mod errors;
mod explain;
mod picked;
mod random;
mod ranges;
mod recursion;
mod session;
mod views;

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Result, ZBatch};
use deltaic_exec::{Circuit, CircuitOptions};

use crate::{Session, SessionOptions, Source, SourceTable, Sources, ViewPlan};

pub(crate) fn session() -> Session {
    Session::try_new(SessionOptions::default()).unwrap()
}

pub(crate) fn sources(tables: &[(&str, &str)]) -> Sources {
    let session = session();
    (tables.iter())
        .map(|(name, ddl)| {
            let schema = session.parse_schema(ddl).unwrap();
            let table = SourceTable { schema, append_only: false, rows: None };
            ((*name).to_owned(), Source::Table(table))
        })
        .collect()
}

/// A view beside the tables that it reads, both integrated.
pub(crate) struct Checked {
    session: Session,
    sources: Sources,
    sql: String,
    pub(crate) plan: ViewPlan,
    circuit: Circuit,
    tables: BTreeMap<String, (SchemaRef, ZBatch)>,
    view: ZBatch,
}

impl Checked {
    pub(crate) fn new(tables: &[(&str, &str)], sql: &str) -> Self {
        let session = session();
        let sources = sources(tables);
        let plan = session.plan_view(sql, &sources).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let circuit = plan.circuit(CircuitOptions::default()).unwrap();
        let tables = (sources.iter())
            .map(|(name, source)| {
                let Source::Table(table) = source else { panic!("a table") };
                (name.clone(), (table.schema.clone(), ZBatch::empty(table.schema.clone())))
            })
            .collect();
        let view = ZBatch::empty(plan.schema());
        Self { session, sources, sql: sql.into(), plan, circuit, tables, view }
    }

    /// Applies deltas in text form and checks the view against a batch run. Returns the delta.
    pub(crate) fn step(&mut self, deltas: &[(&str, &str)]) -> Result<ZBatch> {
        let deltas = (deltas.iter())
            .map(|(name, text)| {
                let (schema, _) = &self.tables[*name];
                Ok(((*name).to_owned(), ZBatch::parse(schema, text)?))
            })
            .collect::<Result<Vec<_>>>()?;
        self.step_batches(deltas)
    }

    pub(crate) fn step_batches(&mut self, deltas: Vec<(String, ZBatch)>) -> Result<ZBatch> {
        for (name, delta) in &deltas {
            let (schema, rows) = &self.tables[name];
            let sum = ZBatch::concat(schema, &[rows.clone(), delta.clone()])?.consolidate()?;
            let schema = schema.clone();
            self.tables.insert(name.clone(), (schema, sum));
        }
        let read = self.plan.sources();
        let deltas = deltas.into_iter().filter(|(name, _)| read.contains(name)).collect();
        let delta = self.circuit.step(deltas)?["view"].clone();
        let schema = self.plan.schema();
        self.view = ZBatch::concat(&schema, &[self.view.clone(), delta.clone()])?.consolidate()?;
        let expected = self.batch()?;
        assert_eq!(sorted(&self.view), sorted(&expected), "{}\n{}", self.sql, self.plan.explain());
        Ok(delta)
    }

    fn batch(&self) -> Result<ZBatch> {
        let tables = (self.tables.iter())
            .map(|(name, (_, rows))| (name.clone(), vec![copies(rows)]))
            .collect();
        let (schema, batches) = self.session.run_batch(&self.sql, &self.sources, tables)?;
        assert_eq!(schema, self.plan.schema());
        let pieces: Vec<ZBatch> = batches.into_iter().map(ZBatch::inserts).collect();
        ZBatch::concat(&schema, &pieces)?.consolidate()
    }

    /// The view's rows in text form, sorted.
    pub(crate) fn rows(&self) -> Vec<String> {
        sorted(&self.view)
    }
}

fn sorted(rows: &ZBatch) -> Vec<String> {
    let mut lines: Vec<String> = rows.to_string().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn copies(rows: &ZBatch) -> RecordBatch {
    let indices: Vec<u32> = (rows.weights().iter().zip(0u32..))
        .flat_map(|(&weight, row)| std::iter::repeat_n(row, usize::try_from(weight).unwrap()))
        .collect();
    arrow::compute::take_record_batch(rows.rows(), &arrow::array::UInt32Array::from(indices))
        .unwrap()
}
