//! The binary from outside: commands, forms of output, exit codes, error messages.

#![expect(clippy::panic, reason = "a test that cannot go on says why")]

mod project;

use std::path::Path;

use project::{Project, deltaic};
use serde_json::{Value, json};

/// Two files of orders, a table with an expectation, a view over it.
const ORDERS: &str = "\
CREATE OR REFRESH STREAMING TABLE orders (
  CONSTRAINT positive EXPECT (amount > 0) ON VIOLATION DROP ROW
) AS SELECT * FROM STREAM read_files('landing', format => 'json', schema => 'id BIGINT, city STRING, amount DECIMAL(10,2)');

CREATE OR REFRESH MATERIALIZED VIEW by_city AS
SELECT city, count(*) AS n, sum(amount) AS total FROM orders GROUP BY city;
";

fn orders() -> Project {
    let project = Project::new(ORDERS);
    project.land("1.jsonl", "{\"id\":1,\"city\":\"Rom\",\"amount\":\"2.50\"}\n{\"id\":2,\"city\":\"Oslo\",\"amount\":\"-1\"}\n");
    project
}

#[test]
fn a_run_a_query_and_a_run_without_news() {
    let project = orders();
    let run = project.run(&["run"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("positive: 1 of 2 rows violate it, dropped"), "{}", run.stdout);
    assert!(run.stdout.contains("2 refreshed, 0 had nothing to do"), "{}", run.stdout);
    let rows = project.json(&["query", "SELECT * FROM by_city", "--format", "json"]);
    assert_eq!(rows, json!([{"city": "Rom", "n": 1, "total": "2.50"}]));
    let again = project.run(&["run"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stdout.contains("Nothing to do: 2 flows are up to date"), "{}", again.stdout);

    project.land("2.jsonl", "{\"id\":3,\"city\":\"Rom\",\"amount\":\"1\"}\n");
    let report = project.json(&["run", "--format", "json"]);
    assert_eq!(report["succeeded"], true);
    assert_eq!(report["flows"].as_array().map(Vec::len), Some(2));
    let csv = project.run(&["query", "SELECT city, n, total FROM by_city", "--format", "csv"]);
    assert_eq!(csv.stdout, "city,n,total\nRom,2,3.50\n");
    let table = project.run(&["query", "SELECT city, total FROM by_city"]);
    assert_eq!(table.stdout, "city  total\n----  -----\nRom    3.50\n");
}

#[test]
fn describe_and_show_tables() {
    let project = orders();
    assert_eq!(project.run(&["run"]).code, 0);
    let columns = project.json(&["query", "DESCRIBE by_city", "--format", "json"]);
    let names: Vec<&Value> =
        columns.as_array().unwrap().iter().map(|c| &c["column_name"]).collect();
    assert_eq!(names, ["city", "n", "total"]);
    let tables = project.run(&["query", "SHOW TABLES", "--format", "csv"]);
    assert!(tables.stdout.contains("by_city") && tables.stdout.contains("orders"));
}

#[test]
fn history_changes_and_events() {
    let project = orders();
    assert_eq!(project.run(&["run"]).code, 0);
    let history = project.json(&["history", "by_city", "--format", "json"]);
    let newest = &history[0];
    assert_eq!(newest["inserted"], 1);
    let version = newest["version"].as_i64().unwrap();
    let sql = format!("SELECT city, _change_type FROM table_changes('by_city', {version})");
    let changes = project.json(&["query", &sql, "--format", "json"]);
    assert_eq!(changes, json!([{"city": "Rom", "_change_type": "insert"}]));
    let events = project.json(&["events", "--format", "json"]);
    assert!(!events.as_array().unwrap().is_empty());
}

#[test]
fn dry_run_lists_and_touches_nothing() {
    let project = orders();
    let run = project.run(&["dry-run"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("by_city (materialized view)"), "{}", run.stdout);
    assert!(run.stdout.contains("The project is valid: 2 tables and views"), "{}", run.stdout);
    assert!(!project.path("storage").exists());
    let found = project.json(&["dry-run", "--format", "json"]);
    assert_eq!(found["valid"], true);
}

#[test]
fn graphs() {
    let project = orders();
    let text = project.run(&["graph"]).stdout;
    assert_eq!(
        text,
        "orders   streaming table    <- STREAM 'landing'\nby_city  materialized view  <- orders\n"
    );
    let mermaid = project.run(&["graph", "--format", "mermaid"]).stdout;
    assert!(mermaid.starts_with("flowchart LR\n  f0[/\"landing\"/]\n"), "{mermaid}");
    assert!(mermaid.contains("f0 ==> d0\n") && mermaid.contains("d0 --> d1\n"), "{mermaid}");
    assert!(project.run(&["graph", "--format", "dot"]).stdout.contains("d0 -> d1;"));
}

#[test]
fn explain_names_the_technique() {
    let project = orders();
    assert_eq!(project.run(&["run"]).code, 0);
    let explain = project.run(&["explain", "by_city"]);
    assert_eq!(explain.code, 0, "{}", explain.stderr);
    assert!(explain.stdout.contains("GROUP_AGGREGATE"), "{}", explain.stdout);
}

/// Each mistake: what is written, and how the message begins.
#[test]
fn wrong_projects_exit_with_2_and_write_nothing() {
    let stream = "CREATE STREAMING TABLE s AS SELECT * FROM STREAM read_files('landing', format => 'json', schema => 'id INT');\n";
    for (sql, begins) in [
        (
            "CREATE MATERIALIZED VIEW v AS SELECT * FROM sss;",
            "error[TABLE_OR_VIEW_NOT_FOUND] transformations/all.sql:2:45: dataset 'v': ",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT * FROM v;",
            "error[PIPELINE_CIRCULAR_DEPENDENCY] transformations/all.sql:2:45: dataset 'v': ",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT * FROM STREAM s;",
            "error[INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_MATERIALIZED_VIEW] transformations/all.sql:2:45: ",
        ),
        (
            "CREATE STREAMING TABLE t AS SELECT * FROM s;",
            "error[INVALID_FLOW_QUERY_TYPE.BATCH_RELATION_FOR_STREAMING_TABLE] transformations/all.sql:2:43: ",
        ),
        (
            "CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM s KEYS (nope) SEQUENCE BY id;",
            "error[AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA] transformations/all.sql:2:60: dataset 't': ",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT id FROM s WHERE;",
            "error[PARSE_SYNTAX_ERROR] transformations/all.sql:2:53: ",
        ),
        ("CREATE TABLE v AS SELECT 1;", "error[PARSE_SYNTAX_ERROR] transformations/all.sql:2:8: "),
    ] {
        let project = Project::new(&format!("{stream}{sql}\n"));
        project.land("1.jsonl", "{\"id\":1}\n");
        for command in ["run", "dry-run"] {
            let run = project.run(&[command]);
            assert_eq!(run.code, 2, "{sql}: {}", run.stderr);
            assert!(run.stderr.starts_with(begins), "{sql}: {}", run.stderr);
            assert!(run.stderr.contains(&format!("\n 2 | {sql}\n")), "{}", run.stderr);
            assert_eq!(run.stdout, "");
        }
        assert!(!project.path("storage/s").exists());
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    assert_eq!(deltaic(Path::new("."), &["frobnicate"]).code, 2);
    assert_eq!(deltaic(Path::new("."), &["run", "--threads", "0"]).code, 2);
    let nowhere = tempfile::tempdir().unwrap();
    let run = deltaic(nowhere.path(), &["run"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.starts_with("error[PIPELINE_SPEC_FILE_NOT_FOUND]"), "{}", run.stderr);
    let project = orders();
    let unknown = project.run(&["query", "SELECT * FROM ordrs"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    let unknown = project.run(&["run", "--refresh", "ordrs"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    assert!(unknown.stderr.contains("orders"), "{}", unknown.stderr);
}

#[test]
fn errors_for_programs() {
    let project = Project::new("CREATE STREAMING TABLE t;");
    let run = project.run(&["run", "--format", "json"]);
    assert_eq!(run.code, 2);
    let told: Value = serde_json::from_str(&run.stdout).unwrap();
    let error = &told["errors"][0];
    assert_eq!(
        (&error["code"], &error["line"]),
        (&json!("PIPELINE_DATASET_WITHOUT_FLOW"), &json!(1))
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::process::{Command, Stdio};
    let project = orders();
    let mut child = Command::new(env!("CARGO_BIN_EXE_deltaic"))
        .args(["graph", "--project"])
        .arg(project.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}

#[test]
fn the_example_of_init_runs() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("shop");
    let init = deltaic(dir.path(), &["init", "shop"]);
    assert_eq!(init.code, 0, "{}", init.stderr);
    let run = deltaic(&target, &["run"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let rows = deltaic(&target, &["query", "SELECT * FROM daily_revenue", "--format", "json"]);
    let rows: Value = serde_json::from_str(&rows.stdout).unwrap();
    assert!(!rows.as_array().unwrap().is_empty());
}
