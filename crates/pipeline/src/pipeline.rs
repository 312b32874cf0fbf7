//! [`Pipeline`]: a project opened for running and querying.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use deltaic_batch::Result;
use deltaic_plan::{Session, SessionOptions};
use deltaic_sql::DatasetKind;
use deltaic_table::{CommitSummary, Storage};

use crate::catalog::{FileCatalog, ProgressIndex};
use crate::fault::Steps;
use crate::lock::RunLock;
use crate::marker::Marker;
use crate::query::Reader;
use crate::report::{
    DatasetSummary, DryRun, Errors, PipelineOptions, Progress, QueryResult, RunOptions,
    UpdateReport,
};
use crate::update::{Context, Selection, inactive};
use crate::{DatasetNode, Graph, InputSource, Project, resolve};

/// A project: its datasets are refreshed by [`Pipeline::run`] and read by [`Pipeline::query`].
///
/// ```
/// use deltaic_pipeline::{Pipeline, PipelineOptions, RunOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// std::fs::create_dir_all(folder.path().join("transformations"))?;
/// std::fs::create_dir_all(folder.path().join("landing"))?;
/// std::fs::write(folder.path().join("pipeline.yml"), "name: shop\n")?;
/// std::fs::write(folder.path().join("landing/1.jsonl"), "{\"item\": \"pen\", \"price\": 2}\n")?;
/// std::fs::write(
///     folder.path().join("transformations/shop.sql"),
///     "CREATE STREAMING TABLE sales AS
///        SELECT * FROM STREAM read_files('landing', format => 'json');
///      CREATE MATERIALIZED VIEW revenue AS
///        SELECT item, sum(price) AS total FROM sales GROUP BY item;",
/// )?;
///
/// let pipeline = Pipeline::open(folder.path(), PipelineOptions::default())?;
/// let report = pipeline.run(&RunOptions::default(), &())?;
/// assert!(report.succeeded());
/// assert_eq!(pipeline.query("SELECT * FROM revenue")?.num_rows(), 1);
///
/// // Nothing new has landed: nothing is done, nothing is written.
/// assert_eq!(pipeline.run(&RunOptions::default(), &())?.update, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Pipeline {
    project: Project,
    options: PipelineOptions,
    storage: Storage,
    steps: Steps,
    session: OnceLock<Session>,
    graph: OnceLock<Graph>,
}

impl Pipeline {
    /// Loads the project of `folder` or of the nearest parent folder that has one. The SQL is
    /// looked at when it is first needed.
    pub fn open(folder: impl AsRef<Path>, options: PipelineOptions) -> Result<Self> {
        let project = Project::load(folder.as_ref())?;
        let storage = Storage::local(&project.storage)?;
        Ok(Self {
            project,
            options,
            storage,
            steps: Steps::default(),
            session: OnceLock::new(),
            graph: OnceLock::new(),
        })
    }

    /// The loaded project.
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Lets the n-th durable write from now on fail, and all after it. For crash tests.
    #[doc(hidden)]
    pub fn fail_after(&self, writes: i64) {
        self.steps.fail_after(writes);
    }

    fn now_us(&self) -> i64 {
        self.options.now_us.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
        })
    }

    fn new_session(&self, now_us: i64) -> Result<Session> {
        let settings = &self.project.configuration;
        let zone = ["deltaic.timeZone", "spark.sql.session.timeZone"]
            .iter()
            .find_map(|key| settings.get(*key));
        let time_zone = zone.map_or_else(|| "UTC".to_string(), Clone::clone);
        Session::try_new(SessionOptions { time_zone, now_us: Some(now_us) })
    }

    fn session(&self) -> Result<&Session> {
        if let Some(session) = self.session.get() {
            return Ok(session);
        }
        let session = self.new_session(self.now_us())?;
        Ok(self.session.get_or_init(|| session))
    }

    /// The resolved graph; fails with all errors of the project's SQL. It is resolved once; runs
    /// resolve their own, since new files may bring new columns.
    pub fn graph(&self) -> Result<&Graph, Errors> {
        if let Some(graph) = self.graph.get() {
            return Ok(graph);
        }
        let marker = Marker::load(&self.storage)?;
        let progress = ProgressIndex::load(&self.storage, &marker);
        let session = self.session()?;
        let files = FileCatalog::new(&self.project.root, session, &progress, &|_| false);
        let graph = self.resolve(session, &files)?;
        Ok(self.graph.get_or_init(|| graph))
    }

    /// Resolves and validates everything; touches no data.
    pub fn dry_run(&self) -> Result<DryRun, Errors> {
        let graph = self.graph()?;
        let marker = Marker::load(&self.storage)?;
        let mut warnings = graph.warnings.clone();
        warnings.extend(crate::update::renamed_flows(&self.storage, graph, &marker)?);
        Ok(DryRun {
            datasets: graph.datasets.iter().map(|d| summary(graph, d)).collect(),
            warnings,
            uncovered: self.project.uncovered.clone(),
            inactive: inactive(graph, &marker),
        })
    }

    /// Refreshes datasets. Fails when the project is invalid or another run is going on; flows
    /// that fail are in the report.
    pub fn run(
        &self,
        options: &RunOptions,
        progress: &dyn Progress,
    ) -> Result<UpdateReport, Errors> {
        let parallel = self.options.threads != Some(1);
        loop {
            let done = self.with_context(options, progress, |cx, selection| {
                let _lock = RunLock::take(&self.project.storage)?;
                if Marker::load(&self.storage)? != *cx.marker {
                    // Another run ended between our look at the marker and the lock.
                    return Ok(None);
                }
                crate::update::run(cx, selection, options, parallel).map(Some)
            })?;
            if let Some(report) = done {
                return Ok(report);
            }
        }
    }

    fn resolve(&self, session: &Session, files: &FileCatalog<'_>) -> Result<Graph, Errors> {
        let graph = resolve(&self.project, session, files)?;
        let unsupported = crate::supported::unsupported(&graph);
        if unsupported.is_empty() { Ok(graph) } else { Err(Errors(unsupported)) }
    }

    fn with_context<T>(
        &self,
        options: &RunOptions,
        listener: &dyn Progress,
        act: impl FnOnce(&Context<'_>, &Selection) -> Result<T>,
    ) -> Result<T, Errors> {
        let now_us = self.now_us();
        let session = self.new_session(now_us)?;
        let marker = Marker::load(&self.storage)?;
        let progress_index = ProgressIndex::load(&self.storage, &marker);
        let reset = |key: &str| {
            options.full_refresh_all
                || options.full_refresh.iter().any(|name| name.eq_ignore_ascii_case(key))
        };
        let files = FileCatalog::new(&self.project.root, &session, &progress_index, &reset);
        let graph = self.resolve(&session, &files)?;
        let selection = Selection::new(&graph, options)?;
        let cores = || std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let cx = Context {
            project: &self.project,
            session: &session,
            storage: &self.storage,
            graph: &graph,
            files: &files,
            progress_index: &progress_index,
            marker: &marker,
            steps: &self.steps,
            listener,
            update: marker.update + 1,
            now_us,
            shards: self.options.threads.unwrap_or_else(cores).max(1),
            stored: graph.datasets.iter().map(|_| OnceLock::new()).collect(),
        };
        Ok(act(&cx, &selection)?)
    }

    fn read<T>(&self, act: impl FnOnce(&Reader<'_>) -> Result<T, Errors>) -> Result<T, Errors> {
        let marker = Marker::load(&self.storage)?;
        let session = self.session()?;
        let progress = ProgressIndex::default();
        let files = FileCatalog::new(&self.project.root, session, &progress, &|_| false);
        act(&Reader {
            project: &self.project,
            session,
            storage: &self.storage,
            marker: &marker,
            files: &files,
            graph: &|| self.graph(),
        })
    }

    /// Runs a query over the datasets as the newest update left them: `SELECT …`, `DESCRIBE t`,
    /// `SHOW TABLES`; `event_log()` and `table_changes('t', from[, to])` are tables too.
    pub fn query(&self, sql: &str) -> Result<QueryResult, Errors> {
        self.read(|reader| reader.query(sql))
    }

    /// Plan, techniques, state, and the decision that a run would take, for some materialized views
    /// by their names, or all.
    pub fn explain(&self, views: &[String]) -> Result<Vec<(String, String)>, Errors> {
        let only = RunOptions { refresh: views.to_vec(), ..RunOptions::default() };
        self.with_context(&only, &(), |cx, selection| {
            let mut out = Vec::new();
            for &d in &selection.refresh {
                let node = &cx.graph.datasets[d];
                if node.kind == DatasetKind::MaterializedView {
                    out.push((node.name.clone(), crate::update::explain(cx, d)?));
                } else if !views.is_empty() {
                    return Err(deltaic_batch::Error::user(
                        "EXPLAIN",
                        "only materialized views have an incremental plan to explain",
                    )
                    .object(&node.name));
                }
            }
            Ok(out)
        })
    }

    /// Versions of a dataset, newest first.
    pub fn history(&self, dataset: &str) -> Result<Vec<CommitSummary>, Errors> {
        self.read(|reader| Ok(reader.stored(dataset)?.history()?))
    }

    /// The event log, of one update or all, oldest first.
    pub fn events(&self, update: Option<u64>) -> Result<QueryResult, Errors> {
        let condition = update.map_or_else(String::new, |n| format!(" WHERE update_id = {n}"));
        if Marker::load(&self.storage)?.event_log.is_none() {
            return Ok(QueryResult { schema: crate::events::schema(), batches: Vec::new() });
        }
        self.query(&format!("SELECT * FROM event_log{condition}"))
    }
}

fn summary(graph: &Graph, node: &DatasetNode) -> DatasetSummary {
    let kind = match node.kind {
        DatasetKind::StreamingTable => "streaming table",
        DatasetKind::MaterializedView => "materialized view",
        DatasetKind::TemporaryView => "temporary view",
        DatasetKind::View => "view",
    };
    let flows = node.flows.iter().map(|&f| &graph.flows[f]);
    let mut reads: Vec<String> = flows
        .clone()
        .flat_map(|f| &f.inputs)
        .map(|input| match &input.source {
            InputSource::Dataset(d) | InputSource::Changes { dataset: d, .. } => {
                graph.datasets[*d].name.clone()
            }
            InputSource::Files(call) => call.path.clone(),
            InputSource::External(path) | InputSource::ExternalChanges { path, .. } => path.clone(),
        })
        .collect();
    reads.extend(node.quarantine_of.map(|origin| graph.datasets[origin].name.clone()));
    reads.sort();
    reads.dedup();
    DatasetSummary {
        name: node.name.clone(),
        kind,
        schema: node.schema.clone(),
        flows: flows.map(|f| f.name.clone()).collect(),
        reads,
    }
}
