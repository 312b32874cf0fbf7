//! Wrong input: exit code 2, file and line, what to do, and nothing written.

use crate::project::Project;

const ORDERS: &str = "CREATE OR REFRESH STREAMING TABLE orders AS
SELECT * FROM STREAM read_files('landing/orders', format => 'csv', header => true,
  schema => 'id BIGINT, amount BIGINT');
";

/// A project that runs, with one row landed.
fn orders(more: &str) -> Project {
    let project = Project::new(&format!("{ORDERS}{more}"));
    project.write("landing/orders/1.csv", "id,amount\n1,10\n");
    project
}

/// Both commands refuse with exit code 2, say all of `wanted`, and write nothing.
fn refused(project: &Project, wanted: &[&str]) {
    for command in ["dry-run", "run"] {
        let answer = project.call(&[command]);
        assert_eq!(answer.code, 2, "{command}: {}{}", answer.stdout, answer.stderr);
        for text in wanted {
            assert!(answer.stderr.contains(text), "{command} must say {text:?}: {}", answer.stderr);
        }
        assert!(project.storage().is_empty(), "{command} wrote something");
    }
}

#[test]
fn an_unknown_table_is_named_with_its_neighbours() {
    let project = orders("CREATE MATERIALIZED VIEW v AS\nSELECT * FROM ordres;\n");
    refused(&project, &["TABLE_OR_VIEW_NOT_FOUND", "pipeline.sql:5", "ordres", "orders"]);
}

#[test]
fn an_unknown_column_is_named_with_its_neighbours() {
    let project = orders("CREATE MATERIALIZED VIEW v AS\nSELECT amuont FROM orders;\n");
    refused(&project, &["UNRESOLVED_COLUMN", "pipeline.sql:5", "amuont", "amount"]);
}

#[test]
fn a_cycle_names_its_members() {
    let project = orders(
        "CREATE MATERIALIZED VIEW a AS SELECT * FROM b;\nCREATE MATERIALIZED VIEW b AS SELECT * FROM a;\n",
    );
    refused(&project, &["pipeline.sql:", "PIPELINE_CIRCULAR_DEPENDENCY", "→"]);
}

#[test]
fn a_streaming_read_in_a_materialized_view() {
    let project = orders("CREATE MATERIALIZED VIEW v AS SELECT * FROM STREAM(orders);\n");
    refused(
        &project,
        &["INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_MATERIALIZED_VIEW", "pipeline.sql:4"],
    );
}

#[test]
fn a_batch_read_in_a_streaming_table() {
    let project = orders("CREATE STREAMING TABLE s AS SELECT * FROM orders;\n");
    refused(
        &project,
        &["INVALID_FLOW_QUERY_TYPE.BATCH_RELATION_FOR_STREAMING_TABLE", "pipeline.sql:4"],
    );
}

#[test]
fn a_missing_key_column() {
    let project = orders(
        "CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM STREAM(orders)\nKEYS (nr) SEQUENCE BY amount;\n",
    );
    refused(&project, &["AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA", "pipeline.sql:6", "nr"]);
}

#[test]
fn a_syntax_error_shows_the_line_and_the_place() {
    let project = orders("CREATE MATERIALIZED VIEW v AS\nSELECT id,, amount FROM orders;\n");
    refused(&project, &["PARSE_SYNTAX_ERROR", "pipeline.sql:5", "SELECT id,, amount", "^"]);
}

#[test]
fn a_dataset_without_a_flow() {
    let project = orders("CREATE STREAMING TABLE lonely;\n");
    refused(&project, &["PIPELINE_DATASET_WITHOUT_FLOW", "lonely"]);
}

#[test]
fn several_errors_are_reported_together() {
    let project = orders(
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM nowhere;\nCREATE MATERIALIZED VIEW w AS SELECT nothing FROM orders;\n",
    );
    refused(&project, &["nowhere", "nothing", "pipeline.sql:4", "pipeline.sql:5"]);
}

#[test]
fn a_malformed_csv_row_names_file_and_line_and_loses_nothing() {
    let project = orders("");
    assert_eq!(project.call(&["run"]).code, 0);
    project.write("landing/orders/2.csv", "id,amount\n2,20\n3,many\n");
    let answer = project.call(&["run"]);
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    for text in ["landing/orders/2.csv", "3", "amount", "many"] {
        assert!(answer.stderr.contains(text), "must say {text:?}: {}", answer.stderr);
    }
    assert_eq!(project.rows("SELECT * FROM orders").len(), 1);
    project.write("landing/orders/2.csv", "id,amount\n2,20\n3,30\n");
    assert_eq!(project.call(&["run"]).code, 0);
    assert_eq!(project.rows("SELECT * FROM orders").len(), 3);
}

#[test]
fn a_file_that_is_not_what_it_says() {
    let project = Project::new(
        "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('landing/t', format => 'parquet', schema => 'a INT');\n",
    );
    project.write("landing/t/a.parquet", "this is no Parquet");
    let answer = project.call(&["run"]);
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    assert!(answer.stderr.contains("landing/t/a.parquet"), "{}", answer.stderr);
}

#[test]
fn wrong_options_and_projects() {
    let project = orders("");
    assert_eq!(project.call(&["run", "--refresh", "ordres"]).code, 2);
    assert!(project.call(&["run", "--refresh", "ordres"]).stderr.contains("orders"));
    assert_eq!(project.call(&["run", "--no-such-option"]).code, 2);
    assert_ne!(project.call(&["query", "SELECT * FROM nowhere"]).code, 0);
    project.write("pipeline.yml", "name: test\nstorrage: x\n");
    let answer = project.call(&["run"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("storrage") && answer.stderr.contains('2'), "{}", answer.stderr);
    assert!(project.storage().is_empty());
}
