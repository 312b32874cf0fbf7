//! Rows that a table diverts into its quarantine, by rule or because they cannot be merged.

use deltaic_pipeline::RunOptions;

use super::crashes::stop_at_each_write;
use super::project::{TestProject, flow, no_op};

const SQL: &str = "
    CREATE STREAMING TABLE t (
      CONSTRAINT positive EXPECT (x > 0) ON VIOLATION QUARANTINE,
      CONSTRAINT named EXPECT (name IS NOT NULL) ON VIOLATION QUARANTINE,
      CONSTRAINT small EXPECT (x < 100) ON VIOLATION DROP ROW)
    AS SELECT * FROM STREAM read_files('landing', format => 'json', schema => 'x INT, name STRING');
    SET deltaic.cdc.invalidRows = quarantine;
    CREATE STREAMING TABLE d (CONSTRAINT known EXPECT (op <> 'X') ON VIOLATION QUARANTINE);
    CREATE FLOW f AS AUTO CDC INTO d
    FROM STREAM read_files('events', format => 'json', schema => 'id INT, v STRING, op STRING, n INT')
    KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY n COLUMNS * EXCEPT (op, n) STORED AS SCD TYPE 1;
    CREATE MATERIALIZED VIEW diverted AS
      SELECT rule, count(*) AS rows FROM (SELECT explode(rules) AS rule FROM t__quarantine) GROUP BY rule;
    CREATE STREAMING TABLE again AS SELECT row FROM STREAM d__quarantine;";
const TABLES: [&str; 5] = [
    "SELECT x, name FROM t",
    "SELECT row, array_join(rules, '+'), flow, update_id FROM t__quarantine",
    "SELECT id, v FROM d",
    "SELECT row, array_join(rules, '+'), update_id FROM d__quarantine",
    "SELECT row FROM again",
];

fn tables(project: &TestProject) -> Vec<Vec<String>> {
    TABLES.iter().map(|sql| project.rows(sql)).collect()
}

fn land_first(project: &TestProject) {
    project.write(
        "landing/1.json",
        "{\"x\":1,\"name\":\"a\"}\n{\"x\":-1}\n{\"x\":200,\"name\":\"b\"}",
    );
    project.write(
        "events/1.json",
        "{\"id\":1,\"v\":\"a\",\"op\":\"U\",\"n\":1}\n{\"v\":\"b\",\"op\":\"U\",\"n\":1}\n\
         {\"id\":2,\"v\":\"c\",\"op\":\"X\",\"n\":1}",
    );
}

fn land_second(project: &TestProject) {
    project
        .write("landing/2.json", "{\"x\":0,\"name\":\"c\"}\n{\"x\":300}\n{\"x\":2,\"name\":\"d\"}");
    project.write(
        "events/2.json",
        "{\"id\":1,\"op\":\"D\",\"n\":2}\n{\"id\":3,\"v\":\"e \\\"f\\\"\\n\",\"op\":\"U\"}",
    );
}

#[test]
fn rows_go_aside_with_the_rules_that_divert_them() {
    let project = TestProject::new(SQL);
    land_first(&project);
    let report = project.run();
    let warnings = &flow(&report, "d").warnings;
    assert!(warnings[0].contains("1 events without key or sequence went into d__quarantine"));
    assert_eq!(flow(&report, "t").expectations[0].failed, 1);
    land_second(&project);
    project.run();
    let found = tables(&project);
    assert_eq!(found[0], ["1|a", "2|d"]);
    assert_eq!(
        found[1],
        [
            r#"{"x":-1,"name":null}|positive+named|t|1"#,
            r#"{"x":0,"name":"c"}|positive|t|2"#,
            r#"{"x":300,"name":null}|named|t|2"#,
        ]
    );
    assert!(found[2].is_empty(), "{:?}", found[2]);
    assert_eq!(
        found[3],
        [
            r#"{"id":2,"v":"c","op":"X","n":1}|known|1"#,
            r#"{"id":3,"v":"e \"f\"\n","op":"U","n":null}|sequence is NULL|2"#,
            r#"{"id":null,"v":"b","op":"U","n":1}|key id is NULL|1"#,
        ]
    );
    assert_eq!(found[4].len(), 3);
    assert_eq!(project.rows("SELECT * FROM diverted"), ["named|2", "positive|2"]);
    let source = "SELECT DISTINCT source FROM t__quarantine";
    let files = project.rows(source);
    assert!(files.len() == 2 && files[0].ends_with("landing/1.json"), "{files:?}");
    assert!(no_op(&project.run()));
    // A full refresh diverts anew, and what hangs on the quarantine must be read anew, too.
    let reset = |names: &[&str]| {
        let full_refresh = names.iter().map(|name| (*name).to_string()).collect();
        project.try_run(&RunOptions { full_refresh, ..RunOptions::default() })
    };
    assert_eq!(reset(&["d"]).unwrap_err().0[0].code(), "RESET_WOULD_DOUBLE_ROWS");
    reset(&["d", "again", "t"]).unwrap();
    let without_update = |mut tables: Vec<Vec<String>>| {
        let rows = tables.iter_mut().skip(1).step_by(2).flatten();
        rows.for_each(|row| row.truncate(row.len() - 1));
        tables.iter_mut().for_each(|rows| rows.sort());
        tables
    };
    assert_eq!(without_update(tables(&project)), without_update(found));
}

#[test]
fn a_stop_at_any_write_diverts_once() {
    // The update that finishes may be another one.
    let tables = |project: &TestProject| -> Vec<Vec<String>> {
        TABLES.iter().map(|sql| project.rows(&sql.replace(", update_id", ""))).collect()
    };
    let steps = stop_at_each_write(SQL, [land_first, land_second], tables);
    assert!(steps > 15, "{steps} steps");
}

/// The rule goes after a stop, and comes back later: each row is in one place, once.
#[test]
fn a_rule_that_comes_and_goes_doubles_and_loses_nothing() {
    let with =
        "CREATE STREAMING TABLE t (CONSTRAINT odd EXPECT (x % 2 = 1) ON VIOLATION QUARANTINE)
        AS SELECT x FROM STREAM read_files('landing', format => 'csv', schema => 'x INT');";
    let without = with.replace(" (CONSTRAINT odd EXPECT (x % 2 = 1) ON VIOLATION QUARANTINE)", "");
    for steps in 0..12 {
        let project = TestProject::new(with);
        project.write("landing/1.csv", "1\n2\n");
        project.run();
        project.write("landing/2.csv", "3\n4\n");
        let pipeline = project.open();
        pipeline.fail_after(steps);
        drop(pipeline.run(&RunOptions::default(), &()));
        for (file, sql) in [("3", without.as_str()), ("4", with)] {
            project.sql(sql);
            project.write(&format!("landing/{file}.csv"), &format!("1{file}\n2{file}\n"));
            project.run();
        }
        let mut rows = project.rows("SELECT x FROM t");
        let diverted = project.rows("SELECT row FROM t__quarantine");
        rows.extend(diverted.iter().map(|row| row.replace("{\"x\":", "").replace('}', "")));
        rows.sort();
        assert_eq!(rows, ["1", "13", "14", "2", "23", "24", "3", "4"], "step {steps}");
    }
}

#[test]
fn names_and_kinds_that_do_not_fit_are_refused() {
    let code = |sql: &str| {
        let project = TestProject::new(sql);
        project.write("landing/1.csv", "1\n");
        let error = project.try_run(&RunOptions::default()).unwrap_err().0.remove(0);
        (error.code(), error.to_string())
    };
    let table = "CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (id > 0) ON VIOLATION QUARANTINE) AS
        SELECT * FROM STREAM read_files('landing', format => 'csv', schema => 'id INT');";
    let (taken, text) =
        code(&format!("{table} CREATE MATERIALIZED VIEW t__quarantine AS SELECT 1"));
    assert_eq!(taken, "PIPELINE_DUPLICATE_IDENTIFIERS.OUTPUT", "{text}");
    let itself = table.replace("SELECT *", "SELECT id").replace(
        "schema => 'id INT')",
        "schema => 'id INT') WHERE id NOT IN (SELECT update_id FROM t__quarantine)",
    );
    assert_eq!(code(&itself).0, "PIPELINE_CIRCULAR_DEPENDENCY");
    let view = "CREATE MATERIALIZED VIEW v
        (CONSTRAINT c EXPECT (id > 0) ON VIOLATION QUARANTINE) AS SELECT 1 AS id";
    let (refused, text) = code(view);
    assert_eq!(refused, "UNSUPPORTED_FEATURE");
    assert!(text.contains("v__violating"), "{text}");
}
