//! Whatever the text, parsing ends without a panic, and what is rewritten maps back.

use deltaic_sql::{parse_file, parse_query};
use proptest::prelude::*;

const WORDS: &[&str] = &[
    "CREATE",
    "OR",
    "REFRESH",
    "STREAMING",
    "TABLE",
    "MATERIALIZED",
    "VIEW",
    "TEMPORARY",
    "LIVE",
    "FLOW",
    "AS",
    "AUTO",
    "CDC",
    "INTO",
    "FROM",
    "STREAM",
    "KEYS",
    "(",
    ")",
    ",",
    ";",
    ".",
    "*",
    "SELECT",
    "WITH",
    "a",
    "b",
    "`q x`",
    "\"Q\"",
    "'s'",
    "1",
    "=>",
    "=",
    "read_files",
    "table_changes",
    "SEQUENCE",
    "BY",
    "APPLY",
    "DELETE",
    "WHEN",
    "COLUMNS",
    "EXCEPT",
    "STORED",
    "SCD",
    "TYPE",
    "2",
    "TRACK",
    "HISTORY",
    "ON",
    "JOIN",
    "LEFT",
    "UNION",
    "ALL",
    "WHERE",
    "GROUP",
    "CONSTRAINT",
    "EXPECT",
    "VIOLATION",
    "DROP",
    "ROW",
    "INSERT",
    "NAME",
    "\n",
    "-- c\n",
    "/*c*/",
    "<",
    ">",
    ">>",
    "é",
    "SET",
    "USE",
    "SINK",
    "FORMAT",
    "SNAPSHOT",
    "INT",
    "COMMENT",
    "LATERAL",
    "parquet.`/x`",
    "ORDER",
    "LIMIT",
    "RECURSIVE",
    "count(*)",
    "OVER",
    "'",
    "-",
    "::",
];

fn words() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(WORDS), 0..40).prop_map(|w| w.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn token_soup(text in words()) {
        let (_, errors) = parse_file(&text, 0);
        for e in errors {
            prop_assert!(e.span.start <= e.span.end && e.span.end <= text.len());
            prop_assert!(e.span.line >= 1 && e.span.column >= 1);
        }
    }

    #[test]
    fn character_soup(text in "[\\x20-\\x7e\\n'\"`äß(;)]{0,60}") {
        let _ = parse_file(&text, 0);
    }

    #[test]
    fn query_soup(tail in words()) {
        let text = format!("SELECT * FROM STREAM t {tail}");
        if let Ok(q) = parse_query(&text, 0) {
            prop_assert_eq!(q.text.matches('\n').count(), q.original.matches('\n').count());
            let mut last = 0;
            for (n, line) in q.text.lines().enumerate() {
                for column in 0..line.chars().count() {
                    let at = q.locate(n as u64 + 1, column as u64 + 1).start;
                    prop_assert!(at >= last, "places go forward");
                    last = at;
                }
            }
        }
    }
}
