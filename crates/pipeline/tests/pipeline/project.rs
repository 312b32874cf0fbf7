//! A project in a temporary folder, and what tests ask of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow::util::display::array_value_to_string;
use deltaic_pipeline::{
    Errors, FlowReport, FlowStatus, Pipeline, PipelineOptions, RunOptions, UpdateReport,
};
use tempfile::TempDir;

pub(crate) struct TestProject {
    folder: TempDir,
    threads: Option<usize>,
}

impl TestProject {
    /// With one SQL file.
    pub(crate) fn new(sql: &str) -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap(), threads: Some(1) };
        project.write("pipeline.yml", "name: test\n");
        project.sql(sql);
        project
    }

    pub(crate) fn parallel(mut self) -> Self {
        self.threads = Some(2);
        self
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn storage(&self) -> PathBuf {
        self.root().join("storage")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn sql(&self, text: &str) {
        self.write("transformations/pipeline.sql", text);
    }

    /// A new opening, as a new process would do it.
    pub(crate) fn open(&self) -> Pipeline {
        let options = PipelineOptions { threads: self.threads, now_us: None };
        Pipeline::open(self.root(), options).unwrap()
    }

    /// A run at a time, in microseconds since 1970, in which no flow fails.
    pub(crate) fn run_at(&self, now_us: i64) -> UpdateReport {
        let options = PipelineOptions { threads: self.threads, now_us: Some(now_us) };
        let pipeline = Pipeline::open(self.root(), options).unwrap();
        let report = pipeline.run(&RunOptions::default(), &()).unwrap();
        assert!(report.succeeded(), "{report:?}");
        report
    }

    pub(crate) fn try_run(&self, options: &RunOptions) -> Result<UpdateReport, Errors> {
        self.open().run(options, &())
    }

    /// A run in which no flow fails.
    pub(crate) fn run(&self) -> UpdateReport {
        let report = self.try_run(&RunOptions::default()).unwrap();
        assert!(report.succeeded(), "{report:?}");
        report
    }

    /// Why the flow into a dataset fails.
    pub(crate) fn run_failing(&self, dataset: &str) -> deltaic_batch::Error {
        let report = self.try_run(&RunOptions::default()).unwrap();
        match &flow(&report, dataset).status {
            FlowStatus::Failed(error) => error.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// Rows as texts, sorted; `∅` is NULL.
    pub(crate) fn rows(&self, sql: &str) -> Vec<String> {
        let result = self.open().query(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let mut rows = Vec::new();
        for batch in &result.batches {
            for row in 0..batch.num_rows() {
                let cells = batch.columns().iter().map(|c| {
                    if c.is_null(row) {
                        "∅".into()
                    } else {
                        array_value_to_string(c, row).unwrap()
                    }
                });
                rows.push(cells.collect::<Vec<String>>().join("|"));
            }
        }
        rows.sort();
        rows
    }

    /// Every file of the storage folder with its size and modification time.
    pub(crate) fn listing(&self) -> BTreeMap<PathBuf, (u64, std::time::SystemTime)> {
        let mut out = BTreeMap::new();
        let mut folders = vec![self.storage()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten() {
                let entry = entry.unwrap();
                let meta = entry.metadata().unwrap();
                if meta.is_dir() {
                    folders.push(entry.path());
                } else {
                    out.insert(entry.path(), (meta.len(), meta.modified().unwrap()));
                }
            }
        }
        out
    }
}

/// The report of the flow into a dataset.
pub(crate) fn flow<'r>(report: &'r UpdateReport, dataset: &str) -> &'r FlowReport {
    report.flows.iter().find(|f| f.dataset == dataset).unwrap()
}

pub(crate) fn no_op(report: &UpdateReport) -> bool {
    report.flows.iter().all(|f| matches!(f.status, FlowStatus::NoOp) && f.technique == "NO_OP")
}
