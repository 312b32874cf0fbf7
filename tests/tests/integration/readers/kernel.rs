//! Reading with delta_kernel. Its default executor deadlocks in places, hence the other one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use delta_kernel::Snapshot;
use delta_kernel::engine::arrow_data::EngineDataArrowExt;
use delta_kernel::table_changes::TableChanges;
use delta_kernel_default_engine::executor::tokio::TokioMultiThreadExecutor;
use delta_kernel_default_engine::storage::store_from_url;
use delta_kernel_default_engine::{DefaultEngine, DefaultEngineBuilder};

use super::rows::{Bag, gather};

/// A table's folder and an engine for it.
pub(super) struct Reader {
    location: String,
    engine: Arc<DefaultEngine<TokioMultiThreadExecutor>>,
}

impl Reader {
    pub(super) fn new(folder: &Path) -> Self {
        let location = folder.to_str().unwrap().to_string();
        let url = delta_kernel::try_parse_uri(&location).unwrap();
        let executor = TokioMultiThreadExecutor::new_owned_runtime(Some(2), Some(4)).unwrap();
        let engine = DefaultEngineBuilder::new(store_from_url(&url).unwrap())
            .with_task_executor(Arc::new(executor))
            .build();
        Self { location, engine: Arc::new(engine) }
    }

    /// Rows of a version, or of the newest.
    pub(super) fn rows(&self, version: Option<u64>) -> Bag {
        let mut builder = Snapshot::builder_for(&self.location);
        if let Some(version) = version {
            builder = builder.at_version(version);
        }
        let snapshot = builder.build(self.engine.as_ref()).unwrap();
        let scan = snapshot.scan_builder().build().unwrap();
        let mut bag = Bag::new();
        for data in scan.execute(self.engine.clone()).unwrap() {
            gather(&mut bag, &data.unwrap().try_into_record_batch().unwrap(), |_| 1);
        }
        bag
    }

    /// The change feed by version.
    pub(super) fn feed(&self, from: i64) -> Vec<(i64, Bag)> {
        let url = delta_kernel::try_parse_uri(&self.location).unwrap();
        let from = u64::try_from(from).unwrap();
        let changes = TableChanges::try_new(url, self.engine.as_ref(), from, None).unwrap();
        let scan = changes.into_scan_builder().build().unwrap();
        let mut feed: BTreeMap<i64, Bag> = BTreeMap::new();
        for data in scan.execute(self.engine.clone()).unwrap() {
            let rows = data.unwrap().try_into_record_batch().unwrap();
            add_changes(&mut feed, &rows);
        }
        feed.retain(|_, bag| !bag.is_empty());
        feed.into_iter().collect()
    }
}

fn add_changes(feed: &mut BTreeMap<i64, Bag>, rows: &RecordBatch) {
    let types = rows.column_by_name("_change_type").unwrap().as_string::<i32>().clone();
    let versions =
        rows.column_by_name("_commit_version").unwrap().as_primitive::<Int64Type>().clone();
    let data: Vec<usize> = (0..rows.num_columns())
        .filter(|&i| !rows.schema().field(i).name().starts_with("_c"))
        .collect();
    let data = rows.project(&data).unwrap();
    let sign = |i: usize| match types.value(i) {
        "insert" | "update_postimage" => 1,
        _ => -1,
    };
    let distinct: BTreeSet<i64> = versions.values().iter().copied().collect();
    for version in distinct {
        let weight = |i: usize| if versions.value(i) == version { sign(i) } else { 0 };
        gather(feed.entry(version).or_default(), &data, weight);
    }
}
