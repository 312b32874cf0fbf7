//! Every mistake: code, place, dataset; hints where they matter.

use super::{BRONZE, error, errors, resolve_files};

/// A file that begins with [`BRONZE`]: what follows starts at line 2.
fn with_bronze(text: &str) -> Vec<String> {
    errors(&format!("{BRONZE}{text}"))
}

#[test]
fn names() {
    let e = error(&format!("{BRONZE}CREATE MATERIALIZED VIEW bronze AS\nSELECT * FROM\n  bronzee"));
    assert_eq!(e.code(), "TABLE_OR_VIEW_NOT_FOUND");
    assert_eq!(e.location().unwrap().to_string(), "a.sql:4:3");
    assert_eq!((e.get_object(), e.get_hint()), (Some("bronze"), Some("did you mean 'bronze'?")));
    assert_eq!(
        with_bronze("CREATE FLOW f AS INSERT INTO nope BY NAME SELECT * FROM STREAM b"),
        ["TABLE_OR_VIEW_NOT_FOUND 2:30 f"]
    );
    assert_eq!(
        with_bronze("CREATE MATERIALIZED VIEW m AS SELECT id,\n  idd FROM b"),
        ["UNRESOLVED_COLUMN 3:3 m"]
    );
    // Behind a placeholder on the same line.
    assert_eq!(
        with_bronze("CREATE STREAMING TABLE m AS SELECT x.nope FROM STREAM b x WHERE other > 1"),
        ["UNRESOLVED_COLUMN 2:65 m"]
    );
    assert_eq!(
        with_bronze("CREATE STREAMING TABLE m AS SELECT * FROM STREAM read_files('missing')"),
        ["PATH_NOT_FOUND 2:43 m"]
    );
}

#[test]
fn duplicates() {
    assert_eq!(
        with_bronze("CREATE MATERIALIZED VIEW default.B AS SELECT 1 AS x;"),
        ["PIPELINE_DUPLICATE_IDENTIFIERS.OUTPUT 2:26 default.B"]
    );
    let flow = "CREATE FLOW F AS INSERT INTO t BY NAME SELECT * FROM STREAM b;\n";
    assert_eq!(
        with_bronze(&format!("CREATE STREAMING TABLE t;\n{flow}{}", flow.to_lowercase())),
        ["PIPELINE_DUPLICATE_IDENTIFIERS.FLOW 4:13 f"]
    );
    assert_eq!(
        with_bronze("CREATE TEMPORARY VIEW a.b AS SELECT 1 AS x;"),
        ["INVALID_TEMP_OBJ_QUALIFIER 2:23 a.b"]
    );
    assert_eq!(
        with_bronze(
            "CREATE FLOW a.f AS INSERT INTO b BY NAME SELECT * FROM STREAM read_files('x')"
        ),
        ["MULTIPART_FLOW_NAME_NOT_SUPPORTED 2:13 a.f"]
    );
}

#[test]
fn cycles() {
    let text = "CREATE MATERIALIZED VIEW a AS SELECT * FROM b;
CREATE MATERIALIZED VIEW b AS SELECT * FROM c;
CREATE MATERIALIZED VIEW c AS SELECT * FROM a;
CREATE MATERIALIZED VIEW d AS SELECT * FROM a;
CREATE MATERIALIZED VIEW e AS SELECT * FROM e;";
    assert_eq!(
        errors(text),
        [
            "PIPELINE_CIRCULAR_DEPENDENCY 3:45 c",
            "PIPELINE_CIRCULAR_DEPENDENCY 5:45 e",
            "UPSTREAM_FAILED 4:26 d",
        ]
    );
    let all = resolve_files(&[("a.sql", text)]).unwrap_err();
    assert!(all[0].message().contains("a → b → c → a"), "{}", all[0]);
    assert_eq!(all[1].message(), "'e' reads itself");
}

#[test]
fn errors_of_all_files_are_told_and_what_follows_is_told_apart() {
    let all = resolve_files(&[
        ("a.sql", "CREATE MATERIALIZED VIEW x AS SELECT * FROM y;"),
        ("b.sql", "CREATE MATERIALIZED VIEW y AS SELECT * FROM nope;\nCREATE TABLE z"),
    ])
    .unwrap_err();
    let told: Vec<_> =
        all.iter().map(|e| format!("{} {}", e.code(), e.location().unwrap())).collect();
    assert_eq!(
        told,
        [
            "TABLE_OR_VIEW_NOT_FOUND b.sql:1:45",
            "PARSE_SYNTAX_ERROR b.sql:2:8",
            "UPSTREAM_FAILED a.sql:1:26"
        ]
    );
    assert!(all[2].message().contains("reads 'y'"));
}

#[test]
fn declared_schemas() {
    let declared = |columns: &str, query: &str| {
        with_bronze(&format!(
            "CREATE STREAMING TABLE t ({columns}) AS SELECT {query} FROM STREAM b"
        ))
    };
    let code = "USER_SPECIFIED_AND_INFERRED_SCHEMA_NOT_COMPATIBLE";
    assert_eq!(declared("id INT", "id"), [format!("{code} 2:27 t")]);
    assert_eq!(declared("id BIGINT", "id, v"), [format!("{code} 2:27 t")]);
    assert_eq!(declared("id BIGINT, z INT NOT NULL", "id"), [format!("{code} 2:38 t")]);
    assert_eq!(
        with_bronze("CREATE MATERIALIZED VIEW m (id BIGINT, z INT) AS SELECT id FROM b"),
        [format!("{code} 2:40 m")]
    );
    assert_eq!(
        with_bronze("CREATE MATERIALIZED VIEW m (id, z) AS SELECT id FROM b"),
        [format!("{code} 2:33 m")]
    );
    assert_eq!(declared("id BIGINT, ID INT", "id"), ["COLUMN_ALREADY_EXISTS 2:38 t"]);
    let unknown = declared("id BIGINTT", "id");
    assert_eq!(unknown.len(), 1);
    assert!(unknown[0].ends_with("2:27 t"), "{unknown:?}");
    assert_eq!(
        errors(
            "CREATE STREAMING TABLE t;
CREATE FLOW f AS INSERT INTO t BY NAME SELECT id FROM STREAM read_files('a');
CREATE FLOW g AS INSERT INTO t BY NAME SELECT 'x' AS id FROM STREAM read_files('b');"
        ),
        ["UNABLE_TO_INFER_PIPELINE_TABLE_SCHEMA 3:13 t"]
    );
}

#[test]
fn expectations() {
    let table = |constraint: &str| {
        with_bronze(&format!("CREATE STREAMING TABLE t ({constraint}) AS SELECT * FROM STREAM b"))
    };
    assert_eq!(table("CONSTRAINT c EXPECT (id > nope)"), ["UNRESOLVED_COLUMN 2:53 t"]);
    assert_eq!(
        table("CONSTRAINT c EXPECT (id + 1)"),
        ["DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN 2:48 t"]
    );
    assert_eq!(
        table("CONSTRAINT c EXPECT (id > 1), CONSTRAINT C EXPECT (id > 2)"),
        ["PIPELINE_DUPLICATE_EXPECTATION 2:68 t"]
    );
    assert_eq!(
        with_bronze("CREATE TEMPORARY VIEW w (CONSTRAINT c EXPECT (id > 1)) AS SELECT * FROM b"),
        ["UNSUPPORTED_FEATURE 2:37 w"]
    );
}

#[test]
fn a_view_that_must_be_incremental_is_checked_before_any_data_is_touched() {
    let policy = |policy: &str| {
        let sql = format!("CREATE MATERIALIZED VIEW m REFRESH POLICY {policy} AS ");
        with_bronze(&format!("{sql}SELECT median(id) AS m FROM b"))
    };
    assert_eq!(policy("INCREMENTAL STRICT"), ["REFRESH_POLICY_NOT_INCREMENTAL 2:26 m"]);
}

#[test]
fn flows_per_kind() {
    assert_eq!(errors("CREATE STREAMING TABLE t;"), ["PIPELINE_DATASET_WITHOUT_FLOW 1:24 t"]);
    assert_eq!(
        with_bronze(
            "CREATE MATERIALIZED VIEW m AS SELECT * FROM b;
CREATE FLOW f AS INSERT INTO m BY NAME SELECT * FROM STREAM b;"
        ),
        ["MATERIALIZED_VIEW_WITH_MULTIPLE_QUERIES 3:13 m"]
    );
    assert_eq!(
        with_bronze(
            "CREATE STREAMING TABLE t;
CREATE FLOW f AS AUTO CDC INTO t FROM STREAM b KEYS (id) SEQUENCE BY ts;
CREATE FLOW g AS INSERT INTO t BY NAME SELECT * FROM STREAM b;
CREATE FLOW h AS AUTO CDC INTO t FROM STREAM b KEYS (v) SEQUENCE BY ts;"
        ),
        ["AUTOCDC_MULTIPLE_FLOWS_TO_TARGET 4:13 t", "AUTOCDC_MULTIPLE_FLOWS_TO_TARGET 5:13 t"]
    );
    assert_eq!(
        with_bronze("CREATE SINK s FORMAT kafka OPTIONS (a = 'b');"),
        ["UNSUPPORTED_FEATURE 2:1 s"]
    );
    assert_eq!(errors("SET a = 'b'"), ["RUN_EMPTY_PIPELINE - -"]);
}

#[test]
fn streaming_or_not() {
    assert_eq!(
        with_bronze("CREATE STREAMING TABLE t AS SELECT * FROM b"),
        ["INVALID_FLOW_QUERY_TYPE.BATCH_RELATION_FOR_STREAMING_TABLE 2:43 t"]
    );
    assert_eq!(
        with_bronze("CREATE MATERIALIZED VIEW m AS SELECT * FROM STREAM b"),
        ["INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_MATERIALIZED_VIEW 2:45 m"]
    );
    assert_eq!(
        with_bronze("CREATE VIEW m AS SELECT * FROM STREAM b"),
        ["INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_PERSISTED_VIEW 2:32 m"]
    );
    assert_eq!(
        with_bronze(
            "CREATE FLOW f AS INSERT INTO ONCE b BY NAME SELECT * FROM STREAM read_files('x')"
        ),
        ["INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_ONCE_FLOW 2:59 b"]
    );
    assert_eq!(
        with_bronze(
            "CREATE TEMPORARY VIEW s AS SELECT * FROM STREAM b;
CREATE MATERIALIZED VIEW m AS SELECT * FROM s;
CREATE TEMPORARY VIEW t AS SELECT * FROM b;
CREATE STREAMING TABLE u AS SELECT * FROM STREAM t;
CREATE VIEW v AS SELECT * FROM t;"
        ),
        [
            "INCOMPATIBLE_STREAMING_VIEW_READ 3:45 m",
            "INCOMPATIBLE_BATCH_VIEW_READ 5:43 u",
            "INVALID_TEMP_OBJ_REFERENCE 6:32 v"
        ]
    );
}

#[test]
fn streams_of_changing_tables() {
    let changing = "CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM b KEYS (id) SEQUENCE BY ts;
CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM b GROUP BY v;
";
    let all = with_bronze(&format!(
        "{changing}CREATE STREAMING TABLE u AS SELECT * FROM STREAM t;
CREATE STREAMING TABLE w AS SELECT * FROM STREAM m;"
    ));
    assert_eq!(
        all,
        ["STREAMING_READ_OF_CHANGING_TABLE 4:43 u", "STREAMING_READ_OF_CHANGING_TABLE 5:43 w"]
    );
}

#[test]
fn constructs_that_need_all_rows_of_a_stream() {
    let code = "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION";
    for (query, place) in [
        ("count(*) AS n FROM STREAM b", "2:36"),
        ("DISTINCT id FROM STREAM b", "2:29"),
        ("id, row_number() OVER (ORDER BY id) AS n FROM STREAM b", "2:40"),
        ("id FROM STREAM b LIMIT 3", "2:29"),
        ("x.id FROM STREAM b x JOIN STREAM b y ON x.id = y.id", "2:29"),
        ("x.id FROM b x LEFT JOIN STREAM b y ON x.id = y.id", "2:29"),
        ("id FROM STREAM b WHERE id NOT IN (SELECT id FROM STREAM b)", "2:29"),
    ] {
        let got = with_bronze(&format!("CREATE STREAMING TABLE t AS SELECT {query}"));
        assert_eq!(got, [format!("{code} {place} t")], "{query}");
    }
}

#[test]
fn resets() {
    let text = "CREATE STREAMING TABLE t TBLPROPERTIES ('pipelines.reset.allowed' = 'false') AS SELECT * FROM STREAM b";
    assert_eq!(with_bronze(text), ["INVALID_RESETTABLE_DEPENDENCY 2:95 t"]);
}

#[test]
fn auto_cdc() {
    let flow = |rest: &str| {
        with_bronze(&format!(
            "CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM\n{rest}"
        ))
    };
    for (rest, wanted) in [
        ("STREAM b KEYS (idd) SEQUENCE BY ts", "AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA 4:16 t"),
        (
            "STREAM b KEYS (id) SEQUENCE BY ts COLUMNS (v)",
            "AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA 4:16 t",
        ),
        (
            "STREAM b KEYS (id) SEQUENCE BY ts COLUMNS (id, w)",
            "AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA 4:48 t",
        ),
        ("STREAM b KEYS (id) SEQUENCE BY nope", "UNRESOLVED_COLUMN 4:32 t"),
        (
            "STREAM b KEYS (id) SEQUENCE BY ts APPLY AS DELETE WHEN id",
            "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN 4:56 t",
        ),
        (
            "STREAM b KEYS (id) SEQUENCE BY ts STORED AS SCD TYPE 2 APPLY AS TRUNCATE WHEN id = 1",
            "UNSUPPORTED_FEATURE 4:79 t",
        ),
        (
            "STREAM b KEYS (id) SEQUENCE BY ts STORED AS SCD TYPE 2 TRACK HISTORY ON (id)",
            "AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA 4:74 t",
        ),
        (
            "(SELECT *, 1 AS __end_at FROM STREAM b) KEYS (id) SEQUENCE BY ts STORED AS SCD TYPE 2",
            "AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT 3:34 t",
        ),
        (
            "(SELECT *, 1 AS __spark_autocdc_x FROM STREAM b) KEYS (id) SEQUENCE BY ts",
            "AUTOCDC_RESERVED_COLUMN_NAME_PREFIX_CONFLICT 3:34 t",
        ),
        (
            "(SELECT * FROM b) KEYS (id) SEQUENCE BY ts",
            "INVALID_FLOW_QUERY_TYPE.BATCH_RELATION_FOR_STREAMING_TABLE 4:16 t",
        ),
        (
            "(SELECT id, max(v) AS v, 1 AS s FROM STREAM b GROUP BY id) KEYS (id) SEQUENCE BY s",
            "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION 4:13 t",
        ),
    ] {
        assert_eq!(flow(rest), [wanted], "{rest}");
    }
    let e = error(&format!(
        "{BRONZE}CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM b KEYS (idd) SEQUENCE BY ts"
    ));
    assert_eq!(e.get_hint(), Some("did you mean 'id'?"));
}
