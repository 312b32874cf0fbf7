//! Definitions that change between runs, and stored rows that are no longer there.

use deltaic_pipeline::RunOptions;

use crate::project::{TestProject, flow, no_op};

const SOURCE: &str = "CREATE STREAMING TABLE s AS SELECT * FROM STREAM
    read_files('landing', format => 'json', schema => 'id INT, v INT');";

fn with_source(rest: &str) -> TestProject {
    let project = TestProject::new("");
    project.sql(&format!("{SOURCE} {rest}"));
    project.write("landing/1.jsonl", "{\"id\":1,\"v\":5}\n{\"id\":2}\n");
    project
}

/// Downstream of a view whose columns come, go and change their types: always its query.
#[test]
fn a_view_follows_the_columns_of_the_view_that_it_reads() {
    let project = with_source("");
    let downstream = "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n, sum(a) AS total FROM t;
         CREATE MATERIALIZED VIEW k AS SELECT * FROM t;";
    for (query, rows) in [
        ("SELECT id AS a, v FROM s", ["1|5", "2|∅"]),
        ("SELECT id AS a, v, 1 AS x FROM s", ["1|5|1", "2|∅|1"]),
        ("SELECT id AS a, CAST(v AS STRING) AS v FROM s", ["1|5", "2|∅"]),
        ("SELECT id AS a FROM s", ["1", "2"]),
        ("SELECT 'x' AS b, id AS a FROM s", ["x|1", "x|2"]),
        ("SELECT id AS a, CAST(v AS BIGINT) AS v FROM s", ["1|5", "2|∅"]),
    ] {
        project.sql(&format!("{SOURCE} CREATE MATERIALIZED VIEW t AS {query}; {downstream}"));
        project.run();
        assert_eq!(project.rows("SELECT * FROM k"), rows, "{query}");
        assert_eq!(project.rows("SELECT * FROM n"), ["2|3"], "{query}");
    }
    project.write("landing/2.jsonl", "{\"id\":3,\"v\":7}\n");
    project.run();
    assert_eq!(project.rows("SELECT * FROM k"), ["1|5", "2|∅", "3|7"]);
    assert_eq!(project.rows("SELECT * FROM n"), ["3|6"]);
}

#[test]
fn a_column_of_constants_may_become_one_with_nulls() {
    let project = with_source("CREATE MATERIALIZED VIEW t AS SELECT id, 1 AS a FROM s;");
    project.run();
    project.sql(&format!(
        "{SOURCE} CREATE MATERIALIZED VIEW t AS SELECT id, CAST(v AS BIGINT) AS a FROM s;"
    ));
    project.run();
    assert_eq!(project.rows("SELECT * FROM t"), ["1|5", "2|∅"]);
}

#[test]
fn declared_columns_of_a_view_are_those_of_its_table() {
    let view = |columns: &str| {
        format!(
            "{SOURCE} CREATE MATERIALIZED VIEW t {columns} AS SELECT id, v FROM s WHERE id = 1;"
        )
    };
    let project = with_source("");
    for (columns, described) in [
        ("", ["id|INT|∅", "v|INT|∅"]),
        ("(id BIGINT NOT NULL, v INT)", ["id|BIGINT|∅", "v|INT|∅"]),
        ("(id INT, v BIGINT)", ["id|INT|∅", "v|BIGINT|∅"]),
    ] {
        project.sql(&view(columns));
        project.run();
        assert_eq!(project.rows("DESCRIBE t"), described, "{columns}");
        assert_eq!(project.rows("SELECT * FROM t"), ["1|5"], "{columns}");
    }
}

#[test]
fn not_null_can_be_dropped_from_a_streaming_table() {
    let table = |null: &str| {
        format!(
            "CREATE STREAMING TABLE s (id INT, v INT {null}) AS SELECT * FROM STREAM
             read_files('landing', format => 'json', schema => 'id INT, v INT');"
        )
    };
    let project = TestProject::new(&table("NOT NULL"));
    project.write("landing/1.jsonl", "{\"id\":1,\"v\":5}\n");
    project.run();
    project.write("landing/2.jsonl", "{\"id\":2}\n");
    let failed = project.try_run(&RunOptions::default()).unwrap();
    assert_eq!(flow(&failed, "s").error().map(|e| e.code()), Some("NOT_NULL_VIOLATION"));
    project.sql(&table(""));
    project.run();
    assert_eq!(project.rows("SELECT * FROM s"), ["1|5", "2|∅"]);
}

#[test]
fn a_view_whose_files_are_lost_is_computed_again() {
    let project = with_source(
        "CREATE MATERIALIZED VIEW t AS SELECT v, count(*) AS n FROM s GROUP BY v;
         CREATE MATERIALIZED VIEW k AS SELECT sum(n) AS n FROM t;",
    );
    project.run();
    for entry in std::fs::read_dir(project.storage().join("tables/t")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "parquet") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let full = RunOptions { full_refresh_all: true, ..RunOptions::default() };
    let report = project.try_run(&full).unwrap();
    assert!(report.succeeded(), "{report:?}");
    assert!(flow(&report, "t").warnings.iter().any(|w| w.contains("damaged")), "{report:?}");
    assert_eq!(project.rows("SELECT * FROM t"), ["5|1", "∅|1"]);
    assert_eq!(project.rows("SELECT * FROM k"), ["2"]);
}

#[test]
fn a_renamed_flow_is_told_about_before_it_reads_everything_again() {
    let flow = |name: &str| {
        format!(
            "CREATE STREAMING TABLE t; CREATE FLOW {name} AS INSERT INTO t BY NAME SELECT * FROM \
             STREAM read_files('landing', format => 'json', schema => 'id INT');"
        )
    };
    let project = TestProject::new(&flow("a"));
    project.write("landing/1.jsonl", "{\"id\":1}\n");
    project.run();
    assert!(project.open().dry_run().unwrap().warnings.is_empty());
    project.sql(&flow("b"));
    let warnings = project.open().dry_run().unwrap().warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("rows come twice"), "{warnings:?}");
    assert_eq!(project.run().warnings, warnings);
    assert!(project.run().warnings.is_empty());
}

/// Each file is read once by a flow, whatever path names it; new SQL files are no edit.
#[test]
fn another_path_to_the_same_files_reads_only_what_is_new() {
    let table = |path: &str| {
        format!(
            "CREATE STREAMING TABLE t AS SELECT * FROM STREAM
             read_files('{path}', format => 'json', schema => 'id INT');"
        )
    };
    let project = TestProject::new(&table("landing"));
    project.write("landing/1.jsonl", "{\"id\":1}\n");
    project.run();
    project.sql(&table("landing/*.jsonl"));
    assert!(no_op(&project.run()));
    project.write("landing/2.jsonl", "{\"id\":2}\n");
    project.run();
    project.write("landing/3.jsonl", "{\"id\":3}\n");
    project.write("transformations/a.sql", "CREATE MATERIALIZED VIEW a AS SELECT id FROM t;");
    let report = project.run();
    assert!(flow(&report, "t").warnings.is_empty(), "{report:?}");
    assert_eq!(project.rows("SELECT * FROM t"), ["1", "2", "3"]);
}

/// State that is gone cannot be rebuilt from a source that the flow no longer reads.
#[test]
fn events_of_a_former_source_are_not_forgotten() {
    let target = |folder: &str| {
        format!(
            "CREATE STREAMING TABLE c;
             CREATE FLOW f AS AUTO CDC INTO c FROM (SELECT * FROM STREAM
               read_files('{folder}', format => 'json', schema => 'id INT, v INT, s INT'))
             KEYS (id) SEQUENCE BY s STORED AS SCD TYPE 2;"
        )
    };
    let project = TestProject::new(&target("old"));
    project.write("old/1.jsonl", "{\"id\":1,\"v\":5,\"s\":1}\n");
    project.run();
    std::fs::remove_dir_all(project.storage().join("state")).unwrap();
    project.sql(&target("new"));
    project.write("new/1.jsonl", "{\"id\":1,\"v\":6,\"s\":2}\n");
    let report = project.try_run(&RunOptions::default()).unwrap();
    assert!(flow(&report, "c").error().is_some(), "{report:?}");
    assert_eq!(project.rows("SELECT * FROM c"), ["1|5|1|1|∅"]);
}
