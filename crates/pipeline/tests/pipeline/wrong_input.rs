//! Wrong input: a clear error, nothing written.

use deltaic_pipeline::RunOptions;

use crate::project::{TestProject, flow};

#[test]
fn a_malformed_row_is_named_with_file_and_line() {
    let project = TestProject::new(
        "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('landing', format => 'csv',
           header => true, schema => 'id INT, v INT');",
    );
    project.write("landing/a.csv", "id,v\n1,2\n2,x\n");
    let report = project.try_run(&RunOptions::default()).unwrap();
    assert_eq!(report.exit_code(), 2);
    let error = flow(&report, "t").error().unwrap();
    assert_eq!(error.get_object(), Some("landing/a.csv:3"));
    assert_eq!(report.update, None);
    assert!(project.listing().keys().all(|p| p.ends_with(".lock")), "{:?}", project.listing());

    project.write("landing/a.csv", "id,v\n1,2\n2,3\n");
    project.run();
    assert_eq!(project.rows("SELECT * FROM t"), ["1|2", "2|3"]);
}

#[test]
fn wrong_sql_is_refused_before_anything_is_written() {
    for (sql, code) in [
        ("CREATE MATERIALIZED VIEW v AS SELECT * FROM nowhere;", "TABLE_OR_VIEW_NOT_FOUND"),
        (
            "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('landing', formt => 'json', schema => 'x INT');",
            "UNKNOWN_FILE_OPTION",
        ),
        (
            "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('landign', format => 'json', schema => 'x INT');",
            "PATH_NOT_FOUND",
        ),
        (
            "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('landing', format => 'json');",
            "CANNOT_INFER_SCHEMA",
        ),
    ] {
        let project = TestProject::new(sql);
        std::fs::create_dir_all(project.root().join("landing")).unwrap();
        let errors = project.try_run(&RunOptions::default()).unwrap_err();
        assert!(errors.0.iter().any(|e| e.code() == code), "{sql}: {errors}");
        assert!(errors.0[0].location().is_some(), "{errors}");
        assert!(project.listing().is_empty());
    }
}

#[test]
fn events_without_sequence_or_key_change_nothing() {
    let project = TestProject::new(
        "CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('landing', format => 'json',
           schema => 'id INT, v STRING, s BIGINT');
         CREATE STREAMING TABLE t;
         CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(raw) KEYS (id) SEQUENCE BY s
           COLUMNS * EXCEPT (s) STORED AS SCD TYPE 1;",
    );
    project.write("landing/1.json", "{\"id\":1,\"v\":\"a\",\"s\":1}\n");
    project.run();
    project.write("landing/2.json", "{\"id\":1,\"v\":\"b\",\"s\":2}\n{\"id\":2,\"v\":\"c\"}\n");
    let report = project.try_run(&RunOptions::default()).unwrap();
    let error = flow(&report, "t").error().unwrap();
    assert_eq!(error.code(), "AUTOCDC_MICROBATCH_VALIDATION");
    assert_eq!(project.rows("SELECT * FROM t"), ["1|a"]);
}

#[test]
fn a_changed_key_is_refused_until_a_full_refresh() {
    let sql = |keys: &str| {
        format!(
            "CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('landing', format => 'json',
               schema => 'id INT, v STRING, s BIGINT');
             CREATE STREAMING TABLE t;
             CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(raw) KEYS ({keys}) SEQUENCE BY s;"
        )
    };
    let project = TestProject::new(&sql("id"));
    project.write(
        "landing/1.json",
        "{\"id\":1,\"v\":\"a\",\"s\":1}\n{\"id\":1,\"v\":\"b\",\"s\":2}\n",
    );
    project.run();
    project.sql(&sql("v"));
    let report = project.try_run(&RunOptions::default()).unwrap();
    let error = flow(&report, "t").error().unwrap();
    assert!(error.message().contains("KEY_SCHEMA_DRIFT"), "{error}");
    let reset = RunOptions { full_refresh: vec!["t".into()], ..RunOptions::default() };
    assert!(project.try_run(&reset).unwrap().succeeded());
    assert_eq!(project.rows("SELECT id, v FROM t"), ["1|a", "1|b"]);
}
