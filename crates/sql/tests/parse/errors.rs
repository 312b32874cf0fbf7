//! Each mistake: where it is reported, what is said, what to do.

use deltaic_sql::parse_file;

/// `line:column`, part of the message, part of the hint (empty: none asked for).
fn fails(text: &str, place: &str, message: &str, hint: &str) {
    let (_, errors) = parse_file(text, 0);
    let [e] = &errors[..] else { panic!("{text}: {errors:?}") };
    assert_eq!(format!("{}:{}", e.span.line, e.span.column), place, "{text}: {e:?}");
    assert!(e.message.contains(message), "{text}: {e:?}");
    assert!(e.hint.as_deref().unwrap_or_default().contains(hint), "{text}: {e:?}");
}

#[test]
fn statement_heads() {
    fails("SELECT 1", "1:1", "does not begin a pipeline statement", "deltaic query");
    fails("CRAETE VIEW v AS SELECT 1", "1:1", "'CRAETE'", "did you mean CREATE?");
    fails("CREATE TABLE t (a INT)", "1:8", "no plain tables", "CREATE STREAMING TABLE");
    fails("CREATE OR REPLACE TABLE t AS SELECT 1", "1:19", "no plain tables", "MATERIALIZED VIEW");
    fails("CREATE STREAMNG TABLE t", "1:8", "expected STREAMING TABLE", "did you mean STREAMING?");
    fails("CREATE STREAMING VIEW t", "1:18", "expected TABLE after STREAMING", "");
    fails("CREATE MATERIALIZED TABLE t", "1:21", "expected VIEW after MATERIALIZED", "");
    fails("INSERT INTO t SELECT 1", "1:1", "does not begin", "");
    fails("CREATE STREAMING TABLE", "1:23", "expected the name of the dataset, found the end", "");
}

#[test]
fn dataset_clauses() {
    fails(
        "CREATE MATERIALIZED VIEW v SELECT 1",
        "1:28",
        "expected AS",
        "write AS before the query",
    );
    fails("CREATE MATERIALIZED VIEW v", "1:27", "needs a query", "AS SELECT");
    fails("CREATE MATERIALIZED VIEW v AS", "1:30", "expected a query", "");
    fails(
        "CREATE MATERIALIZED VIEW v AS SELCT 1",
        "1:31",
        "expected a query",
        "did you mean SELECT?",
    );
    fails(
        "CREATE MATERIALIZED VIEW v COMENT 'x' AS SELECT 1",
        "1:28",
        "'COMENT' is not a clause",
        "did you mean COMMENT?",
    );
    fails(
        "CREATE STREAMING TABLE t LOCATION 'x'",
        "1:26",
        "not a clause of a STREAMING TABLE",
        "PARTITIONED BY",
    );
    fails(
        "CREATE STREAMING TABLE t (a INT, CONSTRAINT c CHECK (a > 1))",
        "1:47",
        "expected EXPECT",
        "primary and foreign",
    );
    fails(
        "CREATE STREAMING TABLE t (a INT, CONSTRAINT c EXPECT (a >))",
        "1:58",
        "expected an expression",
        "",
    );
    fails(
        "CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (a) ON VIOLATION DROP)",
        "1:64",
        "'DROP' is not a clause",
        "DROP ROW",
    );
    fails(
        "CREATE STREAMING TABLE t (a INT PRIMARY KEY)",
        "1:33",
        "'PRIMARY' is not a clause of column 'a'",
        "",
    );
    fails("CREATE STREAMING TABLE t (a INT", "1:26", "never closed", "");
    fails("CREATE STREAMING TABLE t (a ARRAY<INT)", "1:34", "never closed", "");
    fails(
        "CREATE MATERIALIZED VIEW v REFRESH POLICY SOMETIMES AS SELECT 1",
        "1:43",
        "not a clause of REFRESH POLICY",
        "INCREMENTAL",
    );
    fails("CREATE STREAMING TABLE t COMMENT x", "1:34", "expected a comment in quotes", "");
}

#[test]
fn queries() {
    let head = "CREATE VIEW v AS\n";
    for (text, place, message, hint) in [
        ("SELECT a FROM", "2:14", "found the end", ""),
        ("SELECT a FORM t", "2:15", "'t'", ""),
        (
            "SELECT a FROM t WERE a = 1",
            "2:22",
            "expected the end of the query, found",
            "did you mean WHERE?",
        ),
        ("SELECT a FROM t WHERE (a = 1", "2:29", "expected )", ""),
        ("SELECT a,, b FROM t", "2:10", "expected an expression", ""),
        (
            "WITH c AS (SELECT 1 AS x) SELECT * FROM STREAM c",
            "2:41",
            "common table expression",
            "leave STREAM out",
        ),
        ("SELECT * FROM STREAM(SELECT 1)", "2:29", "expected the end of STREAM(table)", ""),
        (
            "SELECT * FROM STREAM explode(a)",
            "2:22",
            "'explode' cannot be read as a stream",
            "read_files",
        ),
        ("SELECT * FROM read_files()", "2:15", "no path", "read_files('folder'"),
        ("SELECT * FROM read_files('a', 'b')", "2:31", "expected an option", "name => value"),
        ("SELECT * FROM read_files('a', header => f(x))", "2:41", "expected a string", ""),
        ("SELECT * FROM table_changes('t')", "2:32", "expected ','", ""),
        (
            "SELECT * FROM table_changes('t', 'x')",
            "2:34",
            "expected a version number",
            "deltaic history",
        ),
    ] {
        fails(&format!("{head}{text}"), place, message, hint);
    }
}

#[test]
fn flows() {
    fails("CREATE FLOW f AS INSERT INTO t SELECT 1", "1:32", "expected BY NAME", "matched by name");
    fails(
        "CREATE FLOW f INSERT INTO t BY NAME SELECT 1",
        "1:15",
        "not a clause of CREATE FLOW",
        "AS",
    );
    fails("CREATE FLOW f AS SELECT 1", "1:18", "not a clause", "INSERT INTO");
    let cdc = |rest: &str| format!("CREATE FLOW f AS AUTO CDC INTO t\n{rest}");
    for (rest, place, message, hint) in [
        ("KEYS (a) SEQUENCE BY s", "2:1", "AUTOCDC_MISSING_SOURCE", "FROM STREAM"),
        ("FROM STREAM s SEQUENCE BY a", "2:1", "AUTOCDC_EMPTY_KEYS", "KEYS (column"),
        ("FROM STREAM s KEYS () SEQUENCE BY a", "2:15", "AUTOCDC_EMPTY_KEYS", ""),
        ("FROM s KEYS (a) SEQUENCE BY b", "2:6", "as a batch", "FROM STREAM(s)"),
        ("FROM SNAPSHOT STREAM s KEYS (a)", "2:15", "reads a stream", ""),
        ("FROM STREAM s KEYS (a + 1) SEQUENCE BY b", "2:23", "expected ','", "columns only"),
        ("FROM STREAM s KEYS (1) SEQUENCE BY b", "2:21", "AUTOCDC_NON_COLUMN_IDENTIFIER", ""),
        (
            "FROM STREAM s KEYS (x.a) SEQUENCE BY b",
            "2:21",
            "AUTOCDC_MULTIPART_COLUMN_IDENTIFIER",
            "",
        ),
        ("FROM STREAM s KEYS (a, A) SEQUENCE BY b", "2:24", "listed twice", ""),
        (
            "FROM STREAM s KEYS (a) SEQUENCE BY b TRACK HISTORY ON (c)",
            "2:1",
            "AUTOCDC_TRACK_HISTORY_REQUIRES_SCD2",
            "SCD TYPE 2",
        ),
        (
            "FROM STREAM s KEYS (a) SEQUENCE BY b STORED AS SCD TYPE 3",
            "2:57",
            "expected 1 or 2",
            "",
        ),
        ("FROM STREAM s KEYS (a) SEQUENCE BY b KEYS (a)", "2:38", "KEYS is given twice", ""),
        (
            "FROM STREAM s KEYS (a) SEQUENCE BY b COLUMNS * EXCPT (a)",
            "2:48",
            "not a clause of AUTO CDC",
            "",
        ),
        (
            "FROM STREAM s KEYS (a) SEQUENSE BY b",
            "2:24",
            "'SEQUENSE' is not a clause",
            "SEQUENCE BY",
        ),
        ("FROM STREAM s KEYS (a) SEQUENCE BY", "2:35", "expected an expression", ""),
    ] {
        fails(&cdc(rest), place, message, hint);
    }
}

#[test]
fn other_statements() {
    fails("CREATE SINK s OPTIONS (a = 'b')", "1:32", "expected FORMAT", "");
    fails("SET x", "1:6", "expected '='", "");
    fails("USE", "1:4", "expected the name", "");
}

#[test]
fn a_missing_semicolon_costs_one_error() {
    let text = "CREATE VIEW a AS SELECT * FROM t\nCREATE VIEW b AS SELECT * FROM u;";
    let (statements, errors) = parse_file(text, 0);
    assert_eq!(statements.len(), 2);
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].message, "expected ';' before CREATE");
    assert_eq!((errors[0].span.line, errors[0].span.column), (2, 1));
}

#[test]
fn several_errors_and_the_rest_are_reported_in_order() {
    let text = "CREATE TABLE a;\nCREATE VIEW ok AS SELECT 1 AS x;\nCREATE VIEW b AS SELECT FROM;\nSET y = 'open";
    let (statements, errors) = parse_file(text, 0);
    assert_eq!(statements.len(), 1);
    let lines: Vec<_> = errors.iter().map(|e| e.span.line).collect();
    assert_eq!(lines, [1, 3, 4]);
    assert!(errors[2].message.contains("nterminated"), "{:?}", errors[2]);
}
