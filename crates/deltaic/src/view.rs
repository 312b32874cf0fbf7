//! [`View`]: one SQL query, kept up to date from changes.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_exec::{Circuit, CircuitOptions};
use deltaic_plan::{Session, SessionOptions, Source, SourceTable, Sources, ViewPlan};
use deltaic_state::{Arrangement, ArrangementSpec};

/// Name of the output of a view's circuit.
const OUTPUT: &str = "view";
/// Rows per piece of a snapshot.
const PIECE_ROWS: usize = 1 << 20;

/// A SQL view over tables that the program keeps; the view keeps its own state and content.
///
/// ```
/// use deltaic::prelude::*;
///
/// let people = schema("name STRING, age INT")?;
/// let mut adults = View::sql("SELECT name FROM people WHERE age >= 18", [("people", people.clone())])?;
/// let change = adults.apply([("people", ZBatch::parse(&people, "+ ann | 30\n+ bo | 7")?)])?;
/// assert_eq!(change.to_string(), "+ ann\n");
/// # Ok::<(), deltaic::Error>(())
/// ```
#[derive(Debug)]
pub struct View {
    plan: ViewPlan,
    circuit: Circuit,
    /// The sum of all changes of the view.
    content: Arrangement,
    /// Tables of the view that the query does not read.
    unread: Vec<String>,
    /// The time that `now()` stands for, in microseconds since 1970.
    clock_us: i64,
    /// Why the view stopped: its state is no longer that of its inputs.
    failed: Option<Error>,
}

impl View {
    /// Plans a query over the given tables and starts it with empty tables. A query without GROUP
    /// BY such as `SELECT count(*) …` has its one row from the start.
    ///
    /// ```
    /// use deltaic::prelude::*;
    ///
    /// let error = View::sql("SELECT nam FROM people", [("people", schema("name STRING")?)]).unwrap_err();
    /// assert_eq!(error.code(), "UNRESOLVED_COLUMN");
    /// assert_eq!(error.get_hint(), Some("did you mean 'name'?"));
    /// # Ok::<(), deltaic::Error>(())
    /// ```
    pub fn sql<N: Into<String>>(
        sql: &str,
        tables: impl IntoIterator<Item = (N, SchemaRef)>,
    ) -> Result<Self> {
        let sources: Sources = tables
            .into_iter()
            .map(|(name, schema)| {
                let table = SourceTable { schema, append_only: false, rows: None };
                (name.into().to_lowercase(), Source::Table(table))
            })
            .collect();
        let plan = session()?.plan_view(sql, &sources)?;
        let circuit = plan.circuit(CircuitOptions::default())?;
        let spec = ArrangementSpec { schema: plan.schema(), key: Vec::new(), order: Vec::new() };
        let content = Arrangement::try_new(&spec)?;
        let read = plan.sources();
        let unread = sources.into_keys().filter(|name| !read.contains(name)).collect();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let clock_us = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        let clock = plan.clock_change(None, clock_us)?;
        let mut view = Self { plan, circuit, content, unread, clock_us, failed: None };
        view.step(clock.into_iter().collect())?;
        Ok(view)
    }

    /// Moves the clock of the view to a time, in microseconds since 1970, and returns the change of
    /// the view, consolidated. The clock of a new view is that of the machine; it stands still in
    /// between.
    ///
    /// ```
    /// use deltaic::prelude::*;
    ///
    /// let t = schema("x STRING, at TIMESTAMP")?;
    /// let mut view = View::sql(
    ///     "SELECT x FROM t WHERE at > now() - INTERVAL 1 HOUR",
    ///     [("t", t.clone())],
    /// )?;
    /// let noon = 1_767_268_800_000_000;
    /// view.advance_clock(noon)?;
    /// let rows = "+ a | 2026-01-01T11:30:00Z\n+ b | 2026-01-01T11:59:00Z";
    /// assert_eq!(view.apply([("t", ZBatch::parse(&t, rows)?)])?.num_rows(), 2);
    /// assert_eq!(view.advance_clock(noon + 40 * 60_000_000)?.to_string(), "- a\n");
    /// # Ok::<(), deltaic::Error>(())
    /// ```
    pub fn advance_clock(&mut self, now_us: i64) -> Result<ZBatch> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let clock = self.plan.clock_change(Some(self.clock_us), now_us)?;
        if clock.is_none() && self.plan.asks_for_time() {
            let message = "a part of the query that has no incremental form asks for the time";
            return Err(Error::user("PLAN_NOT_DETERMINISTIC", message)
                .hint("make a new view; explain shows the part"));
        }
        self.clock_us = now_us;
        self.step(clock.into_iter().collect())
    }

    /// Applies one change per table and returns the change of the view, consolidated. Changes that
    /// belong together, such as both sides of a transfer, go into one call.
    ///
    /// After an error the view is unusable: some of its state may have seen the change.
    ///
    /// ```
    /// use deltaic::prelude::*;
    ///
    /// let t = schema("x INT")?;
    /// let mut view = View::sql("SELECT count(*) AS n FROM t", [("t", t.clone())])?;
    /// let change = view.apply([("t", ZBatch::parse(&t, "+ 1\n+ 2")?)])?;
    /// assert_eq!(change.to_string(), "- 0\n+ 2\n");
    /// # Ok::<(), deltaic::Error>(())
    /// ```
    pub fn apply<N: Into<String>>(
        &mut self,
        changes: impl IntoIterator<Item = (N, ZBatch)>,
    ) -> Result<ZBatch> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let mut known = Vec::new();
        for (name, change) in changes {
            let name = name.into().to_lowercase();
            if !self.unread.contains(&name) {
                known.push((name, change));
            }
        }
        let read = self.plan.sources();
        if let Some((name, _)) = known.iter().find(|(name, _)| !read.contains(name)) {
            return Err(Error::user(
                "TABLE_OR_VIEW_NOT_FOUND",
                format!("the view has no table '{name}'"),
            )
            .hint(format!("its tables are: {}", read.join(", "))));
        }
        self.step(known)
    }

    fn step(&mut self, changes: Vec<(String, ZBatch)>) -> Result<ZBatch> {
        let change = self.circuit.step(changes).and_then(|mut outputs| {
            let change = outputs.remove(OUTPUT);
            let change = change.unwrap_or_else(|| ZBatch::empty(self.plan.schema()));
            self.content.apply(&change)?;
            Ok(change)
        });
        self.failed = change.as_ref().err().cloned();
        change
    }

    /// The view's content: every row as often as it occurs, in no particular order.
    ///
    /// ```
    /// use deltaic::prelude::*;
    ///
    /// let t = schema("x INT")?;
    /// let mut view = View::sql("SELECT x % 2 AS odd FROM t", [("t", t.clone())])?;
    /// view.apply([("t", ZBatch::parse(&t, "+ 1\n+ 3\n+ 4")?)])?;
    /// assert_eq!(view.snapshot()?.num_rows(), 3);
    /// # Ok::<(), deltaic::Error>(())
    /// ```
    pub fn snapshot(&self) -> Result<RecordBatch> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let rows = ZBatch::concat(&self.plan.schema(), &self.content.scan(PIECE_ROWS)?)?;
        if rows.weights().iter().all(|&weight| weight == 1) {
            return Ok(rows.into_parts().0);
        }
        let mut copies = Vec::with_capacity(rows.num_rows());
        for (row, &weight) in (0u32..).zip(rows.weights().iter()) {
            let times = usize::try_from(weight).map_err(|_| {
                Error::data(
                    "NEGATIVE_MULTIPLICITY",
                    "more copies of a row were deleted than inserted",
                )
            })?;
            copies.extend(std::iter::repeat_n(row, times));
        }
        Ok(take_record_batch(rows.rows(), &UInt32Array::from(copies))?)
    }

    /// Schema of the view.
    ///
    /// ```
    /// use deltaic::prelude::*;
    ///
    /// let view = View::sql("SELECT X + 1 AS Next FROM t", [("t", schema("x INT")?)])?;
    /// assert_eq!(view.schema().field(0).name(), "Next");
    /// # Ok::<(), deltaic::Error>(())
    /// ```
    pub fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    /// The plan: one line per operator with its state, and the reason where a part is recomputed.
    ///
    /// ```
    /// use deltaic::prelude::*;
    ///
    /// let view = View::sql("SELECT DISTINCT x FROM t", [("t", schema("x INT")?)])?;
    /// assert!(view.explain().starts_with("Technique: GROUP_AGGREGATE\n"));
    /// # Ok::<(), deltaic::Error>(())
    /// ```
    pub fn explain(&self) -> String {
        self.plan.explain()
    }

    /// Bytes of state in memory, the view's content included.
    ///
    /// ```
    /// use deltaic::prelude::*;
    ///
    /// let t = schema("x INT")?;
    /// let mut view = View::sql("SELECT DISTINCT x FROM t", [("t", t.clone())])?;
    /// let before = view.state_bytes();
    /// view.apply([("t", ZBatch::parse(&t, "+ 1\n+ 2")?)])?;
    /// assert!(view.state_bytes() >= before);
    /// # Ok::<(), deltaic::Error>(())
    /// ```
    pub fn state_bytes(&self) -> usize {
        self.circuit.state_bytes() + self.content.memory_bytes()
    }
}

/// A schema from column definitions, with Spark's names of types.
///
/// ```
/// use deltaic::schema;
///
/// let orders = schema("id BIGINT NOT NULL, placed TIMESTAMP_NTZ, total DECIMAL(10,2)")?;
/// assert_eq!(orders.fields().len(), 3);
/// # Ok::<(), deltaic::Error>(())
/// ```
pub fn schema(ddl: &str) -> Result<SchemaRef> {
    session()?.parse_schema(ddl)
}

/// The session of all views of a process.
fn session() -> Result<&'static Session> {
    static SESSION: OnceLock<Result<Session>> = OnceLock::new();
    SESSION
        .get_or_init(|| Session::try_new(SessionOptions::default()))
        .as_ref()
        .map_err(Clone::clone)
}
