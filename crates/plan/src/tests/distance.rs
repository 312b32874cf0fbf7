//! Frames by distance, under inserts and deletes, against DataFusion's own windows.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::Checked;

const TABLE: [(&str, &str); 1] =
    [("t", "p INT, k INT, day DATE, ts TIMESTAMP, d DECIMAL(10,2), x INT")];

const QUERIES: [&str; 16] = [
    "SELECT p, k, sum(x) OVER (PARTITION BY p ORDER BY CAST(k AS DOUBLE) / 3 RANGE BETWEEN 0.7 PRECEDING AND 0.1 FOLLOWING) AS s FROM t",
    "SELECT p, k, x, sum(x) OVER (PARTITION BY p ORDER BY k RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS s FROM t",
    "SELECT k, count(*) OVER (ORDER BY k RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM t",
    "SELECT p, k, min(x) OVER w AS lo, max(x) OVER w AS hi, avg(x) OVER w AS m FROM t
     WINDOW w AS (PARTITION BY p ORDER BY k DESC RANGE BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "SELECT k, x, count(x) OVER (ORDER BY k RANGE BETWEEN 2 FOLLOWING AND 3 FOLLOWING) AS n,
     sum(x) OVER (ORDER BY k RANGE BETWEEN 2 FOLLOWING AND 3 FOLLOWING) AS s FROM t",
    "SELECT k, x, sum(x) OVER (ORDER BY k DESC RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING) AS s FROM t",
    "SELECT p, day, sum(x) OVER (PARTITION BY p ORDER BY day RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW) AS s FROM t",
    "SELECT ts, count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 36 HOURS PRECEDING AND INTERVAL 1 HOUR FOLLOWING) AS n FROM t",
    "SELECT d, sum(x) OVER (ORDER BY d RANGE BETWEEN 1.5 PRECEDING AND 0.25 FOLLOWING) AS s FROM t",
    "SELECT p, k, row_number() OVER (PARTITION BY p ORDER BY k, x) AS r,
     sum(x) OVER (PARTITION BY p ORDER BY k RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s,
     sum(x) OVER (PARTITION BY p ORDER BY k) AS c,
     count(*) OVER (PARTITION BY p ORDER BY k RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) AS n FROM t",
    "SELECT k, sum(x) FILTER (WHERE x > 1) OVER (ORDER BY k RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM t",
    "SELECT p, n FROM (SELECT p, count(*) OVER (PARTITION BY p ORDER BY k NULLS FIRST
     RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS n FROM t) WHERE n > 1",
    "SELECT day, x, sum(x) OVER (ORDER BY day RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) AS s FROM t",
    "SELECT p, ts, count(*) OVER (PARTITION BY p ORDER BY ts DESC
     RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND INTERVAL 2 MONTHS FOLLOWING) AS n FROM t",
    "SELECT p, k, x, sum(x) OVER w AS s, count(*) OVER w AS n, max(x) OVER w AS m FROM t
     WINDOW w AS (PARTITION BY p ORDER BY k, x GROUPS BETWEEN 1 PRECEDING AND 2 FOLLOWING)",
    "SELECT k + 1 AS j, sum(x * 2) OVER (PARTITION BY p % 2 ORDER BY k + 1 RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM t",
];

const OPEN: [&str; 7] = [
    "SELECT p, k, x, sum(x) OVER (PARTITION BY p ORDER BY k RANGE BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING) AS s FROM t",
    "SELECT k, count(*) OVER (ORDER BY k DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) AS n FROM t",
    "SELECT p, k, min(x) OVER w AS lo, max(x) OVER w AS hi, avg(x) OVER w AS m FROM t
     WINDOW w AS (PARTITION BY p ORDER BY k NULLS FIRST RANGE BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING)",
    "SELECT day, sum(x) OVER (ORDER BY day DESC RANGE BETWEEN INTERVAL 2 DAYS FOLLOWING AND UNBOUNDED FOLLOWING) AS s FROM t",
    "SELECT ts, count(x) FILTER (WHERE x > 1) OVER (PARTITION BY p ORDER BY ts
     RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL 1 MONTH PRECEDING) AS n FROM t",
    "SELECT k / 2.0 AS h, sum(x) OVER (ORDER BY CAST(k AS DOUBLE) / 2 RANGE BETWEEN UNBOUNDED PRECEDING AND 1.5 PRECEDING) AS s FROM t",
    "SELECT p, k, sum(x) OVER (PARTITION BY p ORDER BY k GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS s,
     row_number() OVER (PARTITION BY p ORDER BY k, x) AS r FROM t",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    #[test]
    fn frames_follow(
        which in 0..QUERIES.len() + OPEN.len(),
        steps in prop::collection::vec(
            prop::collection::vec(
                (
                    prop::option::weighted(0.9, 0..3_i64),
                    prop::option::weighted(0.9, 0..9_i64),
                    prop::option::weighted(0.8, 0..4_i64),
                    -2..3_i64,
                ),
                0..9,
            ),
            1..6,
        ),
    ) {
        let query = QUERIES.iter().chain(&OPEN).nth(which).unwrap();
        let mut view = Checked::new(&TABLE, query);
        let joins_by_range = which < QUERIES.len();
        prop_assert_eq!(view.plan.explain().contains("RangeJoin"), joins_by_range, "{}", view.plan.explain());
        prop_assert!(!view.plan.explain().contains("Hybrid"), "{}", view.plan.explain());
        prop_assert!(!view.plan.explain().contains("Generic"), "{}", view.plan.explain());
        let mut there: BTreeMap<String, i64> = BTreeMap::new();
        let shown = |value: Option<i64>| value.map_or("NULL".to_owned(), |value| value.to_string());
        for changes in steps {
            let mut text = String::new();
            for (p, k, x, weight) in changes {
                let (day, ts, d) = match k {
                    None => ("NULL".to_owned(), "NULL".to_owned(), "NULL".to_owned()),
                    Some(k) => (
                        ["2024-01-30", "2024-01-31", "2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01", "2024-03-29", "2024-03-30", "2024-03-31"][usize::try_from(k).unwrap()].to_owned(),
                        format!("2024-{:02}-{:02}T{:02}:00:00Z", 1 + k / 4, 27 + k / 5, k * 7 % 24),
                        format!("{}.{}", k / 2, [0, 25, 5, 75][usize::try_from(k % 4).unwrap()]),
                    ),
                };
                let line = format!("{} | {} | {day} | {ts} | {d} | {}", shown(p), shown(k), shown(x));
                let known = there.entry(line.clone()).or_insert(0);
                let weight = weight.max(-*known);
                *known += weight;
                if weight != 0 {
                    text += &format!("{weight:+} {line}\n");
                }
            }
            view.step(&[("t", &text)]).unwrap();
        }
    }
}
