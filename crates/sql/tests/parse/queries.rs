//! What queries read, and how their text is rewritten.

use deltaic_sql::{JoinSide, Query, TableRef, parse_query};

use super::query;

/// (placeholder, streaming) of each source.
fn sources(q: &Query) -> Vec<(&str, bool)> {
    q.sources.iter().map(|s| (s.placeholder.as_str(), s.streaming)).collect()
}

fn reads(text: &str) -> Vec<String> {
    query(text).sources.into_iter().map(|s| s.placeholder).collect()
}

#[test]
fn plain_tables() {
    assert_eq!(reads("SELECT * FROM T JOIN a.\"b C\" x ON t.k = x.k"), ["t", "a.b c"]);
    assert_eq!(
        reads("SELECT (SELECT max(a) FROM u) FROM t WHERE EXISTS (SELECT 1 FROM w)"),
        ["u", "t", "w"]
    );
    assert_eq!(
        reads("SELECT * FROM t UNION ALL (SELECT * FROM u EXCEPT SELECT * FROM w)"),
        ["t", "u", "w"]
    );
    assert_eq!(reads("SELECT * FROM t a, t b, LATERAL (SELECT a.x) l"), ["t", "t"]);
    assert_eq!(reads("SELECT 1 AS a"), Vec::<String>::new());
    assert_eq!(reads("VALUES (1), (2)"), Vec::<String>::new());
    assert_eq!(reads("SELECT * FROM generate_series(1, 3)"), Vec::<String>::new());
}

#[test]
fn ctes_hide_tables_within_their_scope_only() {
    assert_eq!(reads("WITH t AS (SELECT * FROM u) SELECT * FROM t"), ["u"]);
    // The CTE does not see itself: a table of its name is meant.
    assert_eq!(reads("WITH t AS (SELECT * FROM t) SELECT * FROM t"), ["t"]);
    assert_eq!(
        reads("WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT * FROM T"),
        Vec::<String>::new()
    );
    // The second sees the first, not the other way round.
    assert_eq!(reads("WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM b"), ["b"]);
    assert_eq!(
        reads("SELECT * FROM (WITH t AS (SELECT 1 AS x) SELECT * FROM t) q JOIN t ON true"),
        ["t"]
    );
    assert_eq!(reads("WITH t AS (SELECT 1 AS x) SELECT * FROM (SELECT * FROM t) q, s.t"), ["s.t"]);
}

#[test]
fn streams() {
    for (text, rewritten) in [
        ("SELECT * FROM STREAM t", "SELECT * FROM __source_7_0 AS t"),
        ("SELECT * FROM STREAM(t)", "SELECT * FROM __source_7_0 AS t"),
        ("SELECT * FROM stream(LIVE.t) WHERE a", "SELECT * FROM __source_7_0 AS t WHERE a"),
        ("SELECT * FROM STREAM t x", "SELECT * FROM __source_7_0 x"),
        ("SELECT * FROM STREAM t AS x", "SELECT * FROM __source_7_0 AS x"),
        ("SELECT * FROM STREAM(c.s.t) `x`", "SELECT * FROM __source_7_0 `x`"),
        (
            "SELECT * FROM STREAM s.\"T\" JOIN u ON true",
            "SELECT * FROM __source_7_0 AS \"T\" JOIN u ON true",
        ),
        ("SELECT * FROM u JOIN STREAM t ON true", "SELECT * FROM u JOIN __source_7_0 AS t ON true"),
        ("SELECT * FROM u, STREAM t", "SELECT * FROM u, __source_7_0 AS t"),
        ("SELECT * FROM (STREAM t)", "SELECT * FROM (__source_7_0 AS t)"),
        (
            "SELECT * FROM (SELECT * FROM STREAM t LIMIT 1) q",
            "SELECT * FROM (SELECT * FROM __source_7_0 AS t LIMIT 1) q",
        ),
        (
            "SELECT * FROM STREAM t LEFT JOIN u ON t.a = u.a",
            "SELECT * FROM __source_7_0 AS t LEFT JOIN u ON t.a = u.a",
        ),
        (
            "SELECT * FROM STREAM t UNION ALL SELECT * FROM u",
            "SELECT * FROM __source_7_0 AS t UNION ALL SELECT * FROM u",
        ),
        ("SELECT LIVE.t.a FROM LIVE.t", "SELECT t.a FROM t"),
        ("SELECT a FROM STREAM\n  t\nWHERE b", "SELECT a FROM __source_7_0 AS t\n\nWHERE b"),
    ] {
        assert_eq!(query(text).text, rewritten, "{text}");
    }
}

#[test]
fn stream_as_an_ordinary_name() {
    for text in [
        "SELECT stream FROM t",
        "SELECT t.stream, stream(1) FROM t WHERE stream > 1 AND f(stream, 2) IS DISTINCT FROM stream",
        "SELECT extract(day FROM stream) FROM t ORDER BY stream",
        "SELECT trim(both 'x' FROM stream) FROM t",
    ] {
        let q = query(text);
        assert_eq!((&*q.text, sources(&q)), (text, vec![("t", false)]));
    }
    for text in [
        "SELECT * FROM stream",
        "SELECT * FROM stream AS s",
        "SELECT * FROM stream WHERE a",
        "SELECT * FROM \"stream\" s",
        "SELECT * FROM stream JOIN stream b ON true",
    ] {
        assert_eq!(sources(&query(text))[0], ("stream", false), "{text}");
    }
    assert_eq!(reads("SELECT * FROM stream.t"), ["stream.t"]);
}

#[test]
fn read_files() {
    let q = query(
        "SELECT * FROM STREAM read_files('in/*.csv', FORMAT => 'csv', header => true,\n  sep => ';', n => -1) f",
    );
    assert_eq!(q.text, "SELECT * FROM __source_7_0\n f");
    let TableRef::Files(f) = &q.sources[0].table else { panic!() };
    let options: Vec<_> = f.options.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(options, [("format", "csv"), ("header", "true"), ("n", "-1"), ("sep", ";")]);
    assert!(q.sources[0].streaming);
    let q = query("SELECT * FROM read_files(path => 'x'), STREAM(read_files('y'))");
    assert_eq!(sources(&q), [("__source_7_0", false), ("__source_7_1", true)]);
}

#[test]
fn changes_and_external_tables() {
    let q = query("SELECT * FROM table_changes('s.t', 3, 5) c JOIN parquet.`/data/x` p ON true");
    assert_eq!(q.text, "SELECT * FROM __source_7_0 c JOIN __source_7_1 p ON true");
    let TableRef::Changes { table, from, to } = &q.sources[0].table else { panic!() };
    assert_eq!((table.parts.join("."), *from, *to), ("s.t".to_owned(), 3, Some(5)));
    let TableRef::External { format, path, .. } = &q.sources[1].table else { panic!() };
    assert_eq!((&**format, &**path), ("parquet", "/data/x"));
    for call in ["table_changes_by_path('/a.b/c', 3)", "table_changes('delta.`/a.b/c`', 3)"] {
        let q = query(&format!("SELECT * FROM STREAM {call}"));
        let TableRef::ExternalChanges { path, from, to } = &q.sources[0].table else { panic!() };
        assert_eq!((&**path, *from, *to), ("/a.b/c", 3, None));
        assert!(q.sources[0].streaming);
    }
    let q = query("SELECT * FROM STREAM delta.`/data/x`");
    assert_eq!(q.text, "SELECT * FROM __source_7_0");
    assert!(matches!(&q.sources[0].table, TableRef::External { format, .. } if format == "delta"));
}

#[test]
fn places_map_back() {
    let text = "SELECT a,\n  s.b FROM STREAM(s) JOIN\n  STREAM\n t ON s.x = nope";
    let q = query(text);
    let at = |needle: &str| {
        let line = q.text.lines().position(|l| l.contains(needle)).unwrap();
        let column = q.text.lines().nth(line).unwrap().find(needle).unwrap();
        q.locate(line as u64 + 1, column as u64 + 1)
    };
    let prefix = "CREATE MATERIALIZED VIEW v AS ";
    let file = format!("{prefix}{text}");
    for needle in ["a,", "s.b", "nope", "ON"] {
        let span = at(needle);
        let offset = file.find(needle).unwrap();
        let before = &file[..offset];
        let line = before.matches('\n').count() as u64 + 1;
        let column = before.rsplit('\n').next().unwrap().len() as u64 + 1;
        assert_eq!((span.start, span.line, span.column), (offset, line, column), "{needle}");
    }
    // Inside of a replaced piece: its start.
    assert_eq!(at("__source_7_0").start, file.find("STREAM(s)").unwrap());
}

#[test]
fn unbounded_constructs_and_what_they_see() {
    let unbounded = |text: &str| -> Vec<(String, Vec<String>)> {
        query(text).unbounded.into_iter().map(|u| (u.what, u.over)).collect()
    };
    let stream = || vec!["__source_7_0".to_owned()];
    for (text, what) in [
        ("SELECT count(*) FROM STREAM s", "the aggregate function count"),
        ("SELECT k FROM STREAM s GROUP BY k", "GROUP BY"),
        ("SELECT DISTINCT k FROM STREAM s", "SELECT DISTINCT"),
        ("SELECT k FROM STREAM s ORDER BY k LIMIT 3", "LIMIT"),
        ("SELECT row_number() OVER (ORDER BY k) FROM STREAM s", "a window function"),
        ("SELECT k FROM STREAM s UNION SELECT 1", "UNION without duplicates"),
        ("WITH c AS (SELECT * FROM STREAM s) SELECT max(k) FROM c", "the aggregate function max"),
    ] {
        assert_eq!(unbounded(text), [(what.to_owned(), stream())], "{text}");
    }
    assert_eq!(unbounded("SELECT upper(a) FROM STREAM s WHERE b ORDER BY a"), []);
    let static_side =
        "SELECT * FROM STREAM s JOIN (SELECT k, sum(v) AS v FROM d GROUP BY k) d ON s.k = d.k";
    assert_eq!(
        unbounded(static_side),
        [("the aggregate function sum".to_owned(), vec!["d".to_owned()])]
    );
}

#[test]
fn sides_of_joins() {
    let q = query("SELECT * FROM STREAM s LEFT JOIN d ON true JOIN (SELECT * FROM e) e ON true");
    let side = |over: &str, kept| JoinSide { over: vec![over.to_owned()], kept };
    let sides = [side("__source_7_0", true), side("d", false), side("e", false)];
    assert_eq!(q.joins.len(), 1);
    assert_eq!(q.joins[0].sides, sides);
    assert!(query("SELECT * FROM STREAM s").joins.is_empty());
}

#[test]
fn single_queries() {
    assert_eq!(parse_query("SELECT 1;", 0).unwrap().text, "SELECT 1");
    assert!(parse_query("SELECT 1; SELECT 2", 0).unwrap_err().message.contains("more than one"));
    assert!(parse_query("", 0).is_err());
    assert!(parse_query("SELECT 'a", 0).is_err());
}
