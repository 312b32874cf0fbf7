//! What flows do, run by run.

use deltaic_pipeline::{FlowStatus, RunOptions};

use crate::project::{TestProject, flow, no_op};

pub(crate) const MEDALLION: &str = "
CREATE OR REFRESH STREAMING TABLE customers_raw AS
SELECT * FROM STREAM read_files('landing/customers', format => 'json',
  schema => 'id INT, name STRING, tier STRING, op STRING, seq BIGINT');

CREATE OR REFRESH STREAMING TABLE customers (
  CONSTRAINT has_tier EXPECT (tier IS NOT NULL) ON VIOLATION DROP ROW
);
CREATE FLOW customers_flow AS AUTO CDC INTO customers FROM STREAM(customers_raw)
KEYS (id) APPLY AS DELETE WHEN op = 'd' SEQUENCE BY seq
COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2;

CREATE OR REFRESH STREAMING TABLE orders AS
SELECT id, customer, CAST(amount AS DECIMAL(10,2)) AS amount
FROM STREAM read_files('landing/orders', format => 'csv', header => true,
  schema => 'id INT, customer INT, amount DECIMAL(10,2)');

CREATE OR REFRESH MATERIALIZED VIEW revenue AS
SELECT c.tier, count(*) AS orders, sum(o.amount) AS total
FROM orders o LEFT JOIN customers c ON o.customer = c.id AND c.__END_AT IS NULL
GROUP BY c.tier;
";

pub(crate) fn land_first(project: &TestProject) {
    project.write(
        "landing/customers/1.jsonl",
        "{\"id\":1,\"name\":\"ann\",\"tier\":\"gold\",\"op\":\"c\",\"seq\":1}\n\
         {\"id\":2,\"name\":\"bo\",\"tier\":\"silver\",\"op\":\"c\",\"seq\":2}\n\
         {\"id\":3,\"name\":\"cy\",\"op\":\"c\",\"seq\":3}\n",
    );
    project.write("landing/orders/1.csv", "id,customer,amount\n1,1,10.50\n2,2,3.25\n3,9,1.00\n");
}

pub(crate) fn land_second(project: &TestProject) {
    project.write(
        "landing/customers/2.jsonl",
        "{\"id\":1,\"name\":\"ann\",\"tier\":\"silver\",\"op\":\"u\",\"seq\":5}\n\
         {\"id\":2,\"name\":\"bo\",\"tier\":\"silver\",\"op\":\"d\",\"seq\":6}\n",
    );
    project.write("landing/orders/2.csv", "id,customer,amount\n4,1,2.00\n");
}

const REVENUE: &str = "SELECT * FROM revenue";

#[test]
fn medallion_run_by_run() {
    let project = TestProject::new(MEDALLION);
    land_first(&project);
    let first = project.run();
    assert_eq!(first.update, Some(1));
    assert_eq!(project.rows(REVENUE), ["gold|1|10.50", "silver|1|3.25", "∅|1|1.00"]);
    let customers = flow(&first, "customers");
    assert_eq!((customers.expectations[0].passed, customers.expectations[0].failed), (2, 1));

    land_second(&project);
    let second = project.run();
    assert_eq!(project.rows(REVENUE), ["silver|2|12.50", "∅|2|4.25"]);
    assert_eq!(
        project.rows("SELECT id, tier, __START_AT, __END_AT FROM customers"),
        ["1|gold|1|5", "1|silver|5|∅", "2|silver|2|6"]
    );
    let revenue = flow(&second, "revenue");
    assert!(revenue.version.is_some());
    assert_eq!((revenue.rows_inserted, revenue.rows_deleted), (2, 3));
}

#[test]
fn a_run_without_news_writes_nothing() {
    let project = TestProject::new(MEDALLION).parallel();
    land_first(&project);
    project.run();
    let before = project.listing();
    let again = project.run();
    assert!(no_op(&again), "{again:?}");
    assert_eq!(again.update, None);
    assert_eq!(project.listing(), before);
}

#[test]
fn incremental_and_full_refresh_agree() {
    let sql = |policy: &str| {
        MEDALLION.replace(
            "MATERIALIZED VIEW revenue AS",
            &format!("MATERIALIZED VIEW revenue REFRESH POLICY {policy} AS"),
        )
    };
    let mut results = Vec::new();
    for policy in ["INCREMENTAL", "FULL"] {
        let project = TestProject::new(&sql(policy));
        land_first(&project);
        project.run();
        land_second(&project);
        let report = project.run();
        let technique = flow(&report, "revenue").technique.clone();
        assert_eq!(technique == "COMPLETE_RECOMPUTE", policy == "FULL", "{technique}");
        let changes = "SELECT tier, orders, total, _change_type FROM table_changes('revenue', 2)";
        results.push((project.rows(REVENUE), project.rows(changes)));
    }
    assert_eq!(results[0], results[1]);
}

#[test]
fn damaged_state_is_rebuilt_with_a_warning() {
    let project = TestProject::new(MEDALLION);
    land_first(&project);
    project.run();
    for dataset in ["revenue", "customers"] {
        for entry in std::fs::read_dir(project.storage().join("state").join(dataset)).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0xff;
            std::fs::write(&path, bytes).unwrap();
        }
    }
    land_second(&project);
    let report = project.run();
    for dataset in ["revenue", "customers"] {
        let warnings = &flow(&report, dataset).warnings;
        assert!(warnings.iter().any(|w| w.contains("damaged")), "{dataset}: {warnings:?}");
    }
    assert_eq!(project.rows(REVENUE), ["silver|2|12.50", "∅|2|4.25"]);
    assert_eq!(
        project.rows("SELECT id, tier, __START_AT, __END_AT FROM customers"),
        ["1|gold|1|5", "1|silver|5|∅", "2|silver|2|6"]
    );
}

#[test]
fn an_edited_view_takes_effect_and_its_feed_adds_up() {
    let project = TestProject::new(MEDALLION);
    land_first(&project);
    project.run();
    project.sql(&MEDALLION.replace("sum(o.amount) AS total", "max(o.amount) AS total"));
    let report = project.run();
    assert!(flow(&report, "revenue").reason.as_deref().unwrap().contains("FINGERPRINT"));
    assert!(no_op(&project.run()));
    project.sql(&MEDALLION.replace("sum(o.amount) AS total", "'x' AS total"));
    project.run();
    assert_eq!(project.rows(REVENUE), ["gold|1|x", "silver|1|x", "∅|1|x"]);
}

#[test]
fn several_flows_into_one_table_and_once() {
    let project = TestProject::new(
        "CREATE STREAMING TABLE t;
         CREATE FLOW a AS INSERT INTO t BY NAME
           SELECT x, 'a' AS f FROM STREAM read_files('landing/a', format => 'json', schema => 'x INT');
         CREATE FLOW b AS INSERT INTO t BY NAME
           SELECT 'b' AS f, x FROM STREAM read_files('landing/b', format => 'json', schema => 'x INT');
         CREATE FLOW c AS INSERT INTO ONCE t BY NAME
           SELECT x, 'c' AS f FROM read_files('landing/c', format => 'json', schema => 'x INT');",
    );
    for f in ["a", "b", "c"] {
        project.write(&format!("landing/{f}/1.json"), "{\"x\":1}");
    }
    project.run();
    assert_eq!(project.rows("SELECT f, x FROM t"), ["a|1", "b|1", "c|1"]);
    for f in ["a", "c"] {
        project.write(&format!("landing/{f}/2.json"), "{\"x\":2}");
    }
    project.run();
    assert_eq!(project.rows("SELECT f, x FROM t"), ["a|1", "a|2", "b|1", "c|1"]);
}

#[test]
fn a_failed_flow_skips_what_depends_on_it_and_nothing_else() {
    let project = TestProject::new(
        "CREATE STREAMING TABLE bad (CONSTRAINT positive EXPECT (x > 0) ON VIOLATION FAIL UPDATE)
           AS SELECT * FROM STREAM read_files('landing/bad', format => 'json', schema => 'x INT');
         CREATE MATERIALIZED VIEW after_bad AS SELECT count(*) AS n FROM bad;
         CREATE STREAMING TABLE good
           AS SELECT * FROM STREAM read_files('landing/good', format => 'json', schema => 'x INT');",
    );
    project.write("landing/bad/1.json", "{\"x\":1}\n{\"x\":-1}\n");
    project.write("landing/good/1.json", "{\"x\":1}\n");
    let report = project.try_run(&RunOptions::default()).unwrap();
    assert_eq!(report.exit_code(), 1);
    let error = flow(&report, "bad").error().unwrap();
    assert_eq!(error.code(), "EXPECTATION_FAILED");
    assert!(error.message().contains("x: -1"), "{error}");
    assert_eq!(flow(&report, "bad").expectations[0].failed, 1);
    assert!(matches!(flow(&report, "after_bad").status, FlowStatus::Skipped { .. }));
    assert_eq!(project.rows("SELECT * FROM good"), ["1"]);

    project.write("landing/bad/1.json", "{\"x\":1}\n{\"x\":2}\n");
    project.run();
    assert_eq!(project.rows("SELECT * FROM after_bad"), ["2"]);
}

#[test]
fn expectations_of_a_view_count_the_whole_view() {
    let project = TestProject::new(
        "CREATE STREAMING TABLE raw
           AS SELECT * FROM STREAM read_files('landing', format => 'json', schema => 'k INT, x INT, s INT');
         CREATE STREAMING TABLE rows_of;
         CREATE FLOW f AS AUTO CDC INTO rows_of FROM STREAM(raw) KEYS (k) SEQUENCE BY s;
         CREATE MATERIALIZED VIEW v (
           CONSTRAINT positive EXPECT (x > 0) ON VIOLATION DROP ROW,
           CONSTRAINT small EXPECT (x < 10)
         ) AS SELECT k, x FROM rows_of;",
    );
    project.write("landing/1.json", "{\"k\":1,\"x\":5,\"s\":1}\n{\"k\":2,\"x\":-1,\"s\":1}\n");
    let counts = |report: &deltaic_pipeline::UpdateReport| {
        let counts = flow(report, "v").expectations.iter();
        counts.map(|c| (c.passed, c.failed)).collect::<Vec<_>>()
    };
    assert_eq!(counts(&project.run()), [(1, 1), (2, 0)]);
    project.write("landing/2.json", "{\"k\":2,\"x\":30,\"s\":2}\n");
    assert_eq!(counts(&project.run()), [(2, 0), (1, 1)]);
    assert_eq!(project.rows("SELECT * FROM v"), ["1|5", "2|30"]);
    project.write("landing/3.json", "{\"k\":1,\"x\":-9,\"s\":3}\n");
    assert_eq!(counts(&project.run()), [(1, 1), (1, 1)]);
    assert_eq!(project.rows("SELECT * FROM v"), ["2|30"]);
}

#[test]
fn schemas_are_inferred_and_grow() {
    let project = TestProject::new(
        "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('landing', format => 'csv', header => true);",
    );
    project.write("landing/0.csv", "id,amt,d\n");
    project.write("landing/1.csv", "");
    project.run();
    project.write("landing/2.csv", "id,amt,d\n1,2.5,2024-01-31\n");
    project.run();
    let types = "SELECT * FROM t";
    assert_eq!(project.rows(types), ["1|2.5|2024-01-31"]);
    assert_eq!(project.rows("DESCRIBE t"), ["amt|DOUBLE|∅", "d|DATE|∅", "id|BIGINT|∅"]);
    project.write("landing/3.csv", "id,amt,d,more\n2,3.5,2024-02-01,x\n");
    project.run();
    assert_eq!(project.rows(types), ["1|2.5|2024-01-31|∅", "2|3.5|2024-02-01|x"]);
    assert!(no_op(&project.run()));
}

#[test]
fn a_file_that_changed_after_it_was_read_is_reported_and_not_read_again() {
    let project = TestProject::new(
        "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('landing', format => 'json', schema => 'x INT');",
    );
    project.write("landing/1.json", "{\"x\":1}\n");
    project.run();
    project.write("landing/1.json", "{\"x\":1}\n{\"x\":2}\n");
    let report = project.run();
    assert!(flow(&report, "t").warnings[0].contains("landing/1.json"));
    assert_eq!(project.rows("SELECT * FROM t"), ["1"]);
}

#[test]
fn full_refresh_reads_from_the_beginning() {
    let project = TestProject::new(MEDALLION);
    land_first(&project);
    project.run();
    land_second(&project);
    project.run();
    let before = (project.rows(REVENUE), project.rows("SELECT * FROM customers"));
    let all = RunOptions { full_refresh_all: true, ..RunOptions::default() };
    let report = project.try_run(&all).unwrap();
    assert!(report.succeeded(), "{report:?}");
    assert_eq!((project.rows(REVENUE), project.rows("SELECT * FROM customers")), before);
    assert!(no_op(&project.run()));

    let raw = RunOptions { full_refresh: vec!["customers_raw".into()], ..RunOptions::default() };
    let errors = project.try_run(&raw).unwrap_err();
    assert_eq!(errors.0[0].code(), "RESET_WOULD_DOUBLE_ROWS");
    assert!(errors.to_string().contains("customers"));
}

#[test]
fn refresh_takes_only_what_is_named() {
    let project = TestProject::new(MEDALLION);
    land_first(&project);
    let one = RunOptions { refresh: vec!["Orders".into()], ..RunOptions::default() };
    let report = project.try_run(&one).unwrap();
    assert_eq!(report.flows.len(), 1);
    assert_eq!(project.rows("SELECT count(*) FROM orders"), ["3"]);
    let typo = RunOptions { refresh: vec!["ordres".into()], ..RunOptions::default() };
    let errors = project.try_run(&typo).unwrap_err();
    assert!(errors.to_string().contains("did you mean orders"), "{errors}");
}

#[test]
fn the_event_log_tells_what_was_done() {
    let project = TestProject::new(MEDALLION);
    land_first(&project);
    project.run();
    let types = project.rows("SELECT DISTINCT event_type FROM event_log()");
    assert_eq!(
        types,
        ["create_update", "flow_progress", "planning_information", "update_progress"]
    );
    let failed = project.rows(
        "SELECT details FROM event_log WHERE event_type = 'flow_progress' AND flow = 'customers_flow'",
    );
    assert!(failed[0].contains("\"failed_records\":1"), "{failed:?}");
    let pipeline = project.open();
    assert_eq!(
        pipeline.events(Some(1)).unwrap().num_rows(),
        pipeline.events(None).unwrap().num_rows()
    );
    assert!(pipeline.history("revenue").unwrap().len() >= 2);
    assert!(pipeline.explain(&["revenue".to_owned()]).unwrap()[0].1.contains("NO_OP"));
}

#[test]
fn tables_can_be_listed_and_views_queried() {
    let project = TestProject::new(&format!(
        "{MEDALLION} CREATE TEMPORARY VIEW gold AS SELECT * FROM revenue WHERE tier = 'gold';"
    ));
    land_first(&project);
    project.run();
    assert_eq!(project.rows("SELECT tier FROM gold"), ["gold"]);
    assert_eq!(project.rows("SHOW TABLES").len(), 4);
    let errors = project.open().query("SELECT * FROM revenu").unwrap_err();
    assert!(errors.to_string().contains("did you mean revenue"), "{errors}");
}

#[test]
fn metadata_of_files_is_there_for_those_who_name_it() {
    let project = TestProject::new(
        "CREATE STREAMING TABLE t AS
           SELECT *, _metadata.file_name AS file FROM STREAM read_files('landing', format => 'json', schema => 'x INT');
         CREATE STREAMING TABLE keyed;
         CREATE FLOW f AS AUTO CDC INTO keyed FROM (
           SELECT *, _metadata.file_path AS path, x * 2 AS s
           FROM STREAM read_files('landing', format => 'json', schema => 'x INT'))
         KEYS (path) SEQUENCE BY s COLUMNS * EXCEPT (s);",
    );
    project.write("landing/1.json", "{\"x\":1}\n{\"x\":7}\n");
    project.run();
    assert_eq!(project.rows("SELECT * FROM t"), ["1|1.json", "7|1.json"]);
    assert_eq!(project.rows("SELECT * FROM keyed"), ["7|landing/1.json"]);
}

#[test]
fn a_column_of_nothing_but_null_stays_text() {
    let project = TestProject::new(
        "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('landing', format => 'json');
         CREATE STREAMING TABLE c AS SELECT * FROM STREAM read_files('csv', format => 'csv', header => true);",
    );
    project.write("landing/1.json", "{\"id\": 1, \"a\": null, \"s\": {\"x\": null}}\n");
    // Without a row nothing is settled.
    project.write("csv/1.csv", "id,a\n");
    project.run();
    project.write("landing/2.json", "{\"id\": 2, \"a\": 7, \"s\": {\"x\": 8}}\n");
    project.write("csv/2.csv", "id,a\n2,7\n");
    project.run();
    assert_eq!(project.rows("SELECT id, a || '!', s['x'] || '!' FROM t"), ["1|∅|∅", "2|7!|8!"]);
    assert_eq!(project.rows("SELECT id + a FROM c"), ["9"]);
}

#[test]
fn events_later_than_the_retention_are_dropped_and_told() {
    let sql = |retention: &str| {
        format!(
            "SET deltaic.cdc.tombstoneRetention = {retention};
             CREATE STREAMING TABLE dim;
             CREATE FLOW f AS AUTO CDC INTO dim FROM STREAM read_files('landing', format => 'csv',
               header => true, schema => 'id INT, v STRING, at TIMESTAMP') KEYS (id) SEQUENCE BY at
             COLUMNS * EXCEPT (at) STORED AS SCD TYPE 2;"
        )
    };
    let project = TestProject::new(&sql("'1 day'"));
    project.write("landing/1.csv", "id,v,at\n1,a,2024-05-01T00:00:00Z\n2,b,2024-05-03T00:00:00Z\n");
    project.run();
    project.write("landing/2.csv", "id,v,at\n1,x,2024-05-01T12:00:00Z\n1,c,2024-05-02T12:00:00Z\n");
    let report = project.run();
    let warnings = &flow(&report, "dim").warnings;
    assert!(warnings[0].contains("1 events came later than"), "{warnings:?}");
    assert_eq!(project.rows("SELECT v FROM dim WHERE id = 1"), ["a", "c"]);
    assert!(no_op(&project.run()));
    project.sql(&sql("7"));
    let error = project.run_failing("dim");
    assert_eq!(error.code(), "CONFIGURATION_VALUE", "{error}");
}

#[test]
fn settings_of_ours_that_mean_nothing_are_refused() {
    let code = |setting: &str| {
        let project = TestProject::new(&format!(
            "SET {setting};
             CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('landing',
               format => 'csv', schema => 'id INT');"
        ));
        project.write("landing/1.csv", "1\n");
        let errors = project.try_run(&RunOptions::default()).unwrap_err().0;
        (errors[0].code(), errors[0].get_hint().unwrap_or_default().to_owned())
    };
    let (unknown, hint) = code("deltaic.cdc.tombstoneRetenton = '1 day'");
    assert_eq!(unknown, "CONFIGURATION_KEY");
    assert!(hint.contains("deltaic.cdc.tombstoneRetention"), "{hint}");
    assert_eq!(code("deltaic.cdc.invalidRows = keep").0, "CONFIGURATION_VALUE");
}
