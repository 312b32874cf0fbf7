//! Runs of whole projects: the sample project, second runs, what a change costs.

use std::process::Command;

use serde_json::Value;

use crate::project::{Project, answer};

const TABLES: &str = "
CREATE OR REFRESH STREAMING TABLE orders AS
SELECT * FROM STREAM read_files('landing/orders', format => 'json',
  schema => 'id BIGINT, customer STRING, amount BIGINT');
CREATE OR REFRESH MATERIALIZED VIEW totals AS
SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer;
";

fn totals() -> Project {
    let project = Project::new(TABLES);
    let rows: String = (0..2_000)
        .map(|i| format!("{{\"id\":{i},\"customer\":\"c{}\",\"amount\":{}}}\n", i % 97, i))
        .collect();
    project.write("landing/orders/1.jsonl", &rows);
    project
}

#[test]
fn a_second_run_does_nothing_and_writes_nothing() {
    let project = totals();
    assert_eq!(project.call(&["run"]).code, 0);
    let before = project.storage();
    let second = project.call(&["run"]);
    assert_eq!(second.code, 0, "{}", second.stderr);
    let said = format!("{}{}", second.stdout, second.stderr);
    assert!(said.matches("NO_OP").count() >= 2, "every flow says NO_OP: {said}");
    assert!(project.storage() == before, "a run without changes must leave no trace");
}

#[test]
fn a_small_change_is_refreshed_incrementally_and_equals_the_recompute() {
    let project = totals();
    assert_eq!(project.call(&["run"]).code, 0);
    project.write("landing/orders/2.jsonl", "{\"id\":9000,\"customer\":\"c5\",\"amount\":7}\n");
    assert_eq!(project.call(&["run"]).code, 0);
    let events = project.rows(
        "SELECT details FROM event_log() WHERE event_type = 'planning_information' AND dataset = 'totals' ORDER BY timestamp DESC LIMIT 1",
    );
    let details = events[0]["details"].to_string();
    assert!(details.contains("GROUP_AGGREGATE"), "{details}");
    let changes = project.rows("SELECT * FROM table_changes('totals', 2)");
    assert_eq!(changes.len(), 2, "one group changed: its old and its new row: {changes:?}");
    let incremental = project.rows("SELECT * FROM totals ORDER BY customer");
    assert_eq!(project.call(&["run", "--full-refresh", "totals"]).code, 0);
    assert_eq!(project.rows("SELECT * FROM totals ORDER BY customer"), incremental);
}

#[test]
fn the_sample_project_runs() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let target = folder.path().join("shop");
    let binary = env!("CARGO_BIN_EXE_deltaic");
    let made = answer(Command::new(binary).arg("init").arg(&target));
    assert_eq!(made.code, 0, "{}", made.stderr);
    let ran = answer(Command::new(binary).arg("run").arg("--project").arg(&target));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let gold = answer(
        Command::new(binary)
            .args(["query", "--format", "json", "SELECT * FROM daily_revenue", "--project"])
            .arg(&target),
    );
    let rows: Vec<Value> = serde_json::from_str(&gold.stdout).expect("rows");
    assert!(!rows.is_empty());
    let again = answer(Command::new(binary).arg("init").arg(&target));
    assert_eq!(again.code, 2, "init must not write over a project: {}", again.stderr);
}
