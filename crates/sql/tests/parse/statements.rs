//! Statements in both spellings.

use deltaic_sql::{
    CdcSource, ColumnSelection, DatasetKind, FlowBody, OnViolation, RefreshPolicy, ScdType,
    Spanned, Statement, TableRef, parse_file,
};

use super::{cdc, dataset, flow, one};

fn names(list: &[Spanned<String>]) -> Vec<&str> {
    list.iter().map(|s| s.value.as_str()).collect()
}

#[test]
fn heads_of_datasets() {
    use DatasetKind::{MaterializedView, StreamingTable, TemporaryView, View};
    for (head, kind, private) in [
        ("CREATE STREAMING TABLE", StreamingTable, false),
        ("create or refresh streaming table", StreamingTable, false),
        ("CREATE OR REPLACE STREAMING TABLE", StreamingTable, false),
        ("CREATE OR REFRESH PRIVATE STREAMING TABLE", StreamingTable, true),
        ("CREATE STREAMING TABLE IF NOT EXISTS", StreamingTable, false),
        ("CREATE OR REFRESH STREAMING LIVE TABLE", StreamingTable, false),
        ("CREATE MATERIALIZED VIEW", MaterializedView, false),
        ("CREATE OR REFRESH PRIVATE MATERIALIZED VIEW", MaterializedView, true),
        ("CREATE MATERIALIZED VIEW IF NOT EXISTS", MaterializedView, false),
        ("CREATE LIVE TABLE", MaterializedView, false),
        ("CREATE TEMPORARY VIEW", TemporaryView, false),
        ("CREATE TEMPORARY LIVE VIEW", TemporaryView, false),
        ("CREATE VIEW", View, false),
    ] {
        let d = dataset(&format!("{head} a.b.C AS SELECT 1 AS x"));
        assert_eq!((d.kind, d.private), (kind, private), "{head}");
        assert_eq!(d.name.parts, ["a", "b", "C"]);
    }
}

#[test]
fn column_list_with_constraints() {
    let d = dataset(
        "CREATE OR REFRESH STREAMING TABLE orders (
           id BIGINT NOT NULL COMMENT 'the key', `unit price` DECIMAL(10, 2),
           tags ARRAY<STRUCT<k: STRING, v: MAP<STRING, INT>>>, at TIMESTAMP WITH TIME ZONE,
           d DOUBLE PRECISION,
           CONSTRAINT ok EXPECT (id > 0 AND (tags IS NOT NULL)),
           CONSTRAINT gone EXPECT (id IN (1, 2)) ON VIOLATION DROP ROW,
           CONSTRAINT stop EXPECT (true) ON VIOLATION FAIL UPDATE,
           CONSTRAINT aside EXPECT (id % 2 = 0) ON VIOLATION QUARANTINE
         )",
    );
    let columns: Vec<_> = d.columns.iter().map(|c| (&*c.name.value, &*c.data_type)).collect();
    assert_eq!(
        columns,
        [
            ("id", "BIGINT"),
            ("unit price", "DECIMAL(10, 2)"),
            ("tags", "ARRAY<STRUCT<k: STRING, v: MAP<STRING, INT>>>"),
            ("at", "TIMESTAMP WITH TIME ZONE"),
            ("d", "DOUBLE PRECISION"),
        ]
    );
    assert!(d.columns[0].not_null && !d.columns[1].not_null);
    assert_eq!(d.columns[0].comment.as_deref(), Some("the key"));
    let expectations: Vec<_> =
        d.expectations.iter().map(|e| (&*e.name.value, &*e.condition.value, e.action)).collect();
    assert_eq!(
        expectations,
        [
            ("ok", "id > 0 AND (tags IS NOT NULL)", OnViolation::Warn),
            ("gone", "id IN (1, 2)", OnViolation::DropRow),
            ("stop", "true", OnViolation::FailUpdate),
            ("aside", "id % 2 = 0", OnViolation::Quarantine),
        ]
    );
    assert_eq!(
        (d.expectations[0].condition.span.line, d.expectations[0].condition.span.column),
        (5, 34)
    );
    assert!(d.body.is_none());
}

#[test]
fn columns_of_views_need_no_type() {
    let d = dataset(
        "CREATE TEMPORARY VIEW v (a, b COMMENT 'x', CONSTRAINT c EXPECT (a > 1)) AS SELECT 1 AS a, 2 AS b",
    );
    assert_eq!(d.columns.len(), 2);
    assert_eq!(d.columns[1].data_type, "");
    assert_eq!(d.expectations.len(), 1);
}

#[test]
fn table_clauses_in_any_order() {
    let d = dataset(
        "CREATE STREAMING TABLE t TBLPROPERTIES ('pipelines.reset.allowed' = 'false', a.b = 3, c true)
         COMMENT \"text\" CLUSTER BY (x) PARTITIONED BY (y, z) USING delta AS SELECT * FROM STREAM s",
    );
    assert_eq!(d.comment.as_deref(), Some("text"));
    assert_eq!(names(&d.partitioned_by), ["y", "z"]);
    assert_eq!(names(&d.cluster_by), ["x"]);
    let properties: Vec<_> = d.properties.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(properties, [("a.b", "3"), ("c", "true"), ("pipelines.reset.allowed", "false")]);
    let d = dataset("CREATE STREAMING TABLE t CLUSTER BY AUTO");
    assert_eq!(d.cluster_by, []);
}

#[test]
fn refresh_policies() {
    for (text, policy) in [
        ("", RefreshPolicy::Auto),
        ("REFRESH POLICY AUTO", RefreshPolicy::Auto),
        ("REFRESH POLICY INCREMENTAL", RefreshPolicy::Incremental),
        ("REFRESH POLICY INCREMENTAL STRICT", RefreshPolicy::IncrementalStrict),
        ("REFRESH POLICY FULL", RefreshPolicy::Full),
    ] {
        let d = dataset(&format!("CREATE MATERIALIZED VIEW v {text} COMMENT 'c' AS SELECT 1 AS a"));
        assert_eq!(d.refresh_policy, policy);
    }
}

#[test]
fn append_flows() {
    let f = flow("CREATE FLOW f COMMENT 'c' AS INSERT INTO LIVE.t BY NAME SELECT * FROM STREAM(s)");
    assert_eq!((f.name.parts, f.target.parts), (vec!["f".to_owned()], vec!["t".to_owned()]));
    assert_eq!((f.comment.as_deref(), f.once, f.update), (Some("c"), false, false));
    let f = flow(
        "CREATE FLOW f AS INSERT INTO ONCE t BY NAME WITH a AS (SELECT 1 AS x) SELECT * FROM a",
    );
    assert!(f.once);
    let f =
        flow("CREATE FLOW f AS UPDATE INTO sink SELECT k, count(*) AS n FROM STREAM s GROUP BY k");
    assert!(f.update);
}

#[test]
fn cdc_clauses_in_any_order() {
    let c = cdc("FROM STREAM(src) KEYS (id, `other key`) IGNORE NULL UPDATES
         APPLY AS DELETE WHEN op = 'DELETE' AND x IS DISTINCT FROM y
         APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY STRUCT(ts, seq)
         COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (city)");
    assert_eq!(names(&c.keys), ["id", "other key"]);
    assert_eq!(c.delete_when.unwrap().value, "op = 'DELETE' AND x IS DISTINCT FROM y");
    assert_eq!(c.truncate_when.unwrap().value, "op = 'T'");
    assert_eq!(c.sequence_by.unwrap().value, "STRUCT(ts, seq)");
    assert_eq!(c.ignore_null_updates, Some(ColumnSelection::All));
    assert!(matches!(&c.columns, ColumnSelection::Except(l) if names(l) == ["op", "seq"]));
    assert!(matches!(&c.track_history, ColumnSelection::Except(l) if names(l) == ["city"]));
    assert_eq!(c.scd_type, ScdType::Type2);

    let c = cdc(
        "STORED AS SCD TYPE 2 TRACK HISTORY ON name, city SEQUENCE BY seq + 1 COLUMNS (id, name, city)
         KEYS (id) FROM STREAM src IGNORE NULL UPDATES ON (name)",
    );
    assert!(matches!(&c.track_history, ColumnSelection::Only(l) if names(l) == ["name", "city"]));
    assert!(matches!(&c.columns, ColumnSelection::Only(l) if l.len() == 3));
    assert!(
        matches!(&c.ignore_null_updates, Some(ColumnSelection::Only(l)) if names(l) == ["name"])
    );
    assert_eq!(c.sequence_by.unwrap().value, "seq + 1");
}

#[test]
fn cdc_sources() {
    let tail = "KEYS (id) SEQUENCE BY seq";
    for (from, text) in [
        ("STREAM src", "SELECT * FROM __source_7_0 AS src"),
        ("STREAM(a.src)", "SELECT * FROM __source_7_0 AS src"),
        ("stream LIVE.`my src`", "SELECT * FROM __source_7_0 AS `my src`"),
        ("STREAM read_files('x', format => 'json')", "SELECT * FROM __source_7_0"),
        ("(SELECT * FROM STREAM src WHERE a > 1)", "SELECT * FROM __source_7_0 AS src WHERE a > 1"),
        ("(SELECT 1 AS a FROM STREAM(src) x) AS q", "SELECT 1 AS a FROM __source_7_0 x"),
    ] {
        let c = cdc(&format!("FROM {from} {tail}"));
        let CdcSource::Events(q) = c.source else { panic!("{from}") };
        assert_eq!(q.text, text);
        assert!(q.sources[0].streaming, "{from}");
    }
}

#[test]
fn cdc_snapshots() {
    let c = cdc(
        "FROM SNAPSHOT read_files('snap', versionPattern => 'v(\\d+)\\.jsonl') KEYS (id) STORED AS SCD TYPE 2",
    );
    let CdcSource::Snapshot(q) = c.source else { panic!() };
    let TableRef::Files(files) = &q.sources[0].table else { panic!() };
    assert_eq!(files.path, "snap");
    assert_eq!(files.options["versionpattern"], "v(\\d+)\\.jsonl");
    assert!(!q.sources[0].streaming);
    let c = cdc("FROM SNAPSHOT t2 KEYS id");
    let CdcSource::Snapshot(q) = c.source else { panic!() };
    assert_eq!((&*q.text, &*q.sources[0].placeholder), ("SELECT * FROM t2", "t2"));
    // A table that is called snapshot.
    let c = cdc("FROM STREAM snapshot KEYS (id) SEQUENCE BY s");
    assert!(matches!(c.source, CdcSource::Events(_)));
}

#[test]
fn cdc_other_heads() {
    let f = flow("CREATE FLOW f AS APPLY CHANGES INTO t FROM STREAM s KEYS (k) SEQUENCE BY v");
    assert!(matches!(f.body, FlowBody::Cdc(_)) && !f.once);
    let f = flow("CREATE FLOW f AS AUTO CDC ONCE INTO t FROM STREAM s KEYS (k) SEQUENCE BY v");
    assert!(f.once);
    let d = dataset(
        "CREATE STREAMING TABLE t (a INT) FLOW AUTO CDC FROM STREAM s KEYS (k) SEQUENCE BY v",
    );
    assert!(matches!(d.body, Some(FlowBody::Cdc(_))));
}

#[test]
fn sinks_settings_and_names() {
    let Statement::Sink(s) = one("CREATE SINK out FORMAT kafka OPTIONS ('a' = 'b', n = -1)") else {
        panic!()
    };
    assert_eq!((&*s.format, &*s.options["a"], &*s.options["n"]), ("kafka", "b", "-1"));
    let Statement::Set { key, value, .. } = one("SET spark.sql.x = 'a b'") else { panic!() };
    assert_eq!((&*key, &*value), ("spark.sql.x", "a b"));
    let Statement::Set { value, .. } = one("SET x = 10 minutes;") else { panic!() };
    assert_eq!(value, "10 minutes");
    for (text, catalog, parts) in [
        ("USE CATALOG c", true, vec!["c"]),
        ("USE SCHEMA s", false, vec!["s"]),
        ("USE DATABASE s", false, vec!["s"]),
        ("USE c.s", false, vec!["c", "s"]),
        ("USE schema", false, vec!["schema"]),
    ] {
        let Statement::Use { catalog: c, name } = one(text) else { panic!("{text}") };
        assert_eq!(
            (c, name.parts),
            (catalog, parts.into_iter().map(str::to_owned).collect::<Vec<_>>())
        );
    }
}

#[test]
fn comments_and_strings_do_not_split() {
    let text = "-- first; not a statement\n/* nor; this /* nested */ */ SET a = 'x;y';\n;;\n\
                CREATE VIEW v -- inside\n AS /* ; */ SELECT ';' AS s; -- end";
    let (statements, errors) = parse_file(text, 0);
    assert_eq!(errors, vec![]);
    assert_eq!(statements.len(), 2);
    let Statement::Dataset(d) = &statements[1] else { panic!() };
    assert_eq!((d.span.line, d.span.column), (4, 1));
    assert_eq!(parse_file(" -- nothing\n", 0), (vec![], vec![]));
}

#[test]
fn spans_count_characters() {
    let text = "SET ä = 'öü'; CREATE VIEW v AS SELECT 1 AS x";
    let (statements, _) = parse_file(text, 0);
    let Statement::Dataset(d) = &statements[1] else { panic!() };
    assert_eq!((d.span.line, d.span.column), (1, 15));
    assert_eq!(&text[d.span.start..d.span.end], "CREATE VIEW v AS SELECT 1 AS x");
}
