//! AUTO CDC FROM SNAPSHOT: files with a version, and a table as of each update.

use std::collections::BTreeMap;

use deltaic_pipeline::{FlowStatus, PipelineOptions, RunOptions};
use proptest::prelude::*;

use crate::project::{TestProject, flow, no_op};

/// Key to values.
type Content = BTreeMap<i64, (Option<i64>, Option<i64>)>;

fn project(clauses: &str) -> TestProject {
    let sql = format!(
        "CREATE STREAMING TABLE dim;
         CREATE FLOW f AS AUTO CDC INTO dim
         FROM SNAPSHOT read_files('landing', format => 'csv', header => true,
           schema => 'id BIGINT, a BIGINT, b BIGINT', versionPattern => 'v(\\d+)\\.csv')
         KEYS (id) {clauses};"
    );
    let project = TestProject::new(&sql);
    std::fs::create_dir(project.root().join("landing")).unwrap();
    project
}

fn text(value: Option<i64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn land(project: &TestProject, version: usize, content: &Content) {
    let mut csv = "id,a,b\n".to_owned();
    for (id, (a, b)) in content {
        csv += &format!("{id},{},{}\n", text(*a), text(*b));
    }
    project.write(&format!("landing/v{version}.csv"), &csv);
}

/// Type 2 by its definition: (id, a, b, start, end), where `a` alone may be tracked.
fn versions(snapshots: &[Content], only_a: bool) -> Vec<String> {
    type Open = (usize, (Option<i64>, Option<i64>));
    let (mut open, mut rows): (BTreeMap<i64, Open>, Vec<String>) = Default::default();
    let row = |id: i64, (start, (a, b)): &Open, end: Option<usize>| {
        let null = |value: Option<i64>| value.map_or("∅".to_owned(), |v| v.to_string());
        let end = null(end.map(|end| i64::try_from(end).unwrap()));
        format!("{id}|{}|{}|{start}|{end}", null(*a), null(*b))
    };
    for (version, content) in snapshots.iter().enumerate() {
        for id in open.keys().copied().collect::<Vec<_>>() {
            if !content.contains_key(&id) {
                rows.push(row(id, &open.remove(&id).unwrap(), Some(version)));
            }
        }
        for (id, now) in content {
            match open.get_mut(id) {
                Some((_, before)) if before.0 == now.0 && (only_a || before.1 == now.1) => {
                    *before = *now;
                }
                Some(before) => {
                    rows.push(row(*id, before, Some(version)));
                    *before = (version, *now);
                }
                None => {
                    open.insert(*id, (version, *now));
                }
            }
        }
    }
    rows.extend(open.iter().map(|(id, open)| row(*id, open, None)));
    rows.sort();
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 16))]

    #[test]
    fn versions_follow_the_snapshots(
        snapshots in prop::collection::vec(
            prop::collection::btree_map(
                0..5_i64,
                (prop::option::of(0..2_i64), prop::option::of(0..2_i64)),
                0..5,
            ),
            1..6,
        ),
        together in prop::collection::vec(any::<bool>(), 6),
        kind in 0..3_usize,
    ) {
        let clauses = ["STORED AS SCD TYPE 2", "STORED AS SCD TYPE 2 TRACK HISTORY ON (a)", ""];
        let project = project(clauses[kind]);
        let mut feed: BTreeMap<String, i64> = BTreeMap::new();
        for (version, content) in snapshots.iter().enumerate() {
            land(&project, version, content);
            if together[version] && version + 1 < snapshots.len() {
                continue;
            }
            project.run();
            let known = &snapshots[..=version];
            let expected = match kind {
                2 => {
                    let null = |value: Option<i64>| value.map_or("∅".to_owned(), |v| v.to_string());
                    content.iter().map(|(id, (a, b))| format!("{id}|{}|{}", null(*a), null(*b))).collect()
                }
                kind => versions(known, kind == 1),
            };
            let rows = project.rows("SELECT * FROM dim");
            prop_assert_eq!(&rows, &expected);
            prop_assert!(no_op(&project.run()));
        }
        // The change feed adds up to the table.
        for change in project.rows("SELECT * FROM table_changes('dim', 0)") {
            let (row, what) = change.rsplit_once("|").unwrap().0.rsplit_once("|").unwrap().0.rsplit_once("|").unwrap();
            *feed.entry(row.to_owned()).or_insert(0) += if what == "insert" { 1 } else { -1 };
        }
        feed.retain(|_, weight| *weight != 0);
        let rows = project.rows("SELECT * FROM dim");
        prop_assert_eq!(feed.into_keys().collect::<Vec<_>>(), rows);
    }
}

fn content(rows: &[(i64, i64)]) -> Content {
    rows.iter().map(|(id, a)| (*id, (Some(*a), None))).collect()
}

#[test]
fn a_stop_between_two_snapshots_changes_nothing() {
    let (first, second) = (content(&[(1, 1), (2, 2)]), content(&[(2, 3), (3, 3)]));
    let mut steps = 0;
    loop {
        let project = project("STORED AS SCD TYPE 2");
        land(&project, 0, &first);
        project.run();
        land(&project, 1, &second);
        let options = PipelineOptions { threads: Some(1), now_us: None };
        let pipeline = deltaic_pipeline::Pipeline::open(project.root(), options).unwrap();
        pipeline.fail_after(steps);
        let stopped = match pipeline.run(&RunOptions::default(), &()) {
            Ok(report) => !report.succeeded(),
            Err(_) => true,
        };
        project.run();
        let rows = project.rows("SELECT * FROM dim");
        assert_eq!(rows, versions(&[first.clone(), second.clone()], false));
        if !stopped {
            break;
        }
        steps += 1;
    }
    assert!(steps > 3, "{steps} steps");
}

#[test]
fn a_key_that_is_there_twice_refuses_the_snapshot_until_a_later_one() {
    let project = project("STORED AS SCD TYPE 2");
    land(&project, 1, &content(&[(1, 1), (2, 2)]));
    project.run();
    project.write("landing/v2.csv", "id,a,b\n1,5,\n1,6,\n2,2,\n2,2,\n");
    let error = project.run_failing("dim");
    assert_eq!(error.code(), "SNAPSHOT_DUPLICATE_KEYS");
    assert!(error.message().contains("v2.csv") && error.message().contains("id = 1"), "{error}");
    assert_eq!(project.rows("SELECT id, a FROM dim").len(), 2);
    land(&project, 3, &content(&[(2, 2)]));
    let report = project.run();
    assert!(flow(&report, "dim").warnings[0].contains("v2.csv is passed over"));
    let rows = project.rows("SELECT id, a, __START_AT, __END_AT FROM dim");
    assert_eq!(rows, ["1|1|1|3", "2|2|1|∅"]);
}

#[test]
fn a_version_that_is_not_later_is_refused() {
    let project = project("");
    land(&project, 5, &content(&[(1, 1)]));
    project.run();
    land(&project, 4, &content(&[(1, 2)]));
    let error = project.run_failing("dim");
    assert_eq!(error.code(), "SNAPSHOT_VERSION_OLD");
    assert!(error.message().contains("v4.csv has version 4, but version 5"), "{error}");
    project.write("landing/late.csv", "id,a,b\n1,1,1\n");
    let error = project.try_run(&RunOptions::default()).unwrap_err().0.pop().unwrap();
    assert_eq!(error.code(), "SNAPSHOT_VERSION", "{error}");
    assert!(error.message().contains("late.csv"), "{error}");
}

#[test]
fn a_column_of_the_rows_may_be_the_version() {
    let project = TestProject::new(
        "CREATE STREAMING TABLE dim;
         CREATE FLOW f AS AUTO CDC INTO dim FROM SNAPSHOT read_files('landing', format => 'csv',
           header => true, schema => 'day DATE, id INT, a INT', versionColumn => 'day')
         KEYS (id) STORED AS SCD TYPE 2;",
    );
    project.write("landing/1.csv", "day,id,a\n2024-01-02,1,5\n2024-01-01,1,1\n2024-01-01,2,2\n");
    project.run();
    let rows = project.rows("SELECT * FROM dim");
    assert_eq!(
        rows,
        ["1|1|2024-01-01|2024-01-02", "1|5|2024-01-02|∅", "2|2|2024-01-01|2024-01-02"]
    );
    project.write("landing/2.csv", "day,id,a\n2024-01-02,1,6\n");
    let error = project.run_failing("dim");
    assert_eq!(error.code(), "SNAPSHOT_VERSION_OLD");
    assert!(error.message().contains("2024-01-02"), "{error}");
}

/// 2024-05-01 12:00 UTC.
const NOON: i64 = 1_714_564_800_000_000;

#[test]
fn a_table_is_a_snapshot_as_of_each_update() {
    let project = TestProject::new(
        "CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('landing', format => 'csv',
           header => true, schema => 'id INT, a INT');
         CREATE MATERIALIZED VIEW latest AS SELECT id, max(a) AS a FROM raw GROUP BY id HAVING max(a) < 9;
         CREATE STREAMING TABLE dim;
         CREATE FLOW f AS AUTO CDC INTO dim FROM SNAPSHOT latest KEYS (id) STORED AS SCD TYPE 2;
         CREATE MATERIALIZED VIEW open_rows REFRESH POLICY INCREMENTAL STRICT AS SELECT count(*) AS n FROM dim WHERE __END_AT IS NULL;",
    );
    project.write("landing/1.csv", "id,a\n1,1\n2,2\n");
    project.run_at(NOON);
    project.write("landing/2.csv", "id,a\n1,3\n2,9\n3,1\n");
    let report = project.run_at(NOON + 1_000_000);
    assert_eq!(flow(&report, "open_rows").technique, "GROUP_AGGREGATE");
    assert!(no_op(&project.run_at(NOON + 2_000_000)));
    let rows = project.rows("SELECT id, a, __START_AT, __END_AT FROM dim");
    let (first, second) = ("2024-05-01T12:00:00Z", "2024-05-01T12:00:01Z");
    assert_eq!(
        rows,
        [
            format!("1|1|{first}|{second}"),
            format!("1|3|{second}|∅"),
            format!("2|2|{first}|{second}"),
            format!("3|1|{second}|∅"),
        ]
    );
    assert_eq!(project.rows("SELECT n FROM open_rows"), ["2"]);
    // A clock that stands before the last snapshot.
    project.write("landing/3.csv", "id,a\n3,2\n");
    let options = PipelineOptions { threads: Some(1), now_us: Some(NOON) };
    let pipeline = deltaic_pipeline::Pipeline::open(project.root(), options).unwrap();
    let report = pipeline.run(&RunOptions::default(), &()).unwrap();
    let FlowStatus::Failed(error) = &flow(&report, "dim").status else { panic!("{report:?}") };
    assert_eq!(error.code(), "SNAPSHOT_VERSION_OLD");
}

#[test]
fn a_new_column_opens_versions_where_it_has_a_value() {
    let project = TestProject::new(
        "CREATE STREAMING TABLE dim;
         CREATE FLOW f AS AUTO CDC INTO dim FROM SNAPSHOT read_files('landing', format => 'json',
           versionPattern => 'v(\\d+)') KEYS (id) STORED AS SCD TYPE 2;",
    );
    project.write("landing/v1.json", "{\"id\": 1, \"a\": \"p\"}\n{\"id\": 2, \"a\": \"q\"}\n");
    project.run();
    project.write(
        "landing/v2.json",
        "{\"id\": 1, \"a\": \"p\", \"b\": \"n\"}\n{\"id\": 2, \"a\": \"q\", \"b\": null}\n",
    );
    project.run();
    let rows = project.rows("SELECT id, a, b, __START_AT, __END_AT FROM dim");
    assert_eq!(rows, ["1|p|n|2|∅", "1|p|∅|1|2", "2|q|∅|1|∅"]);
}
