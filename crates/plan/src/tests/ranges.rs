//! Joins on comparisons, under inserts and deletes, against batch runs.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::Checked;

const TABLES: [(&str, &str); 2] = [("l", "a INT, b STRING"), ("r", "lo INT, hi INT")];

const QUERIES: [&str; 11] = [
    "SELECT l.a, l.b, r.lo, r.hi FROM l JOIN r ON l.a >= r.lo AND l.a < r.hi",
    "SELECT l.a, r.hi FROM l JOIN r ON l.a BETWEEN r.lo AND r.hi WHERE l.b <> 'x'",
    "SELECT r.lo, count(*) AS n, max(l.b) AS b FROM r JOIN l ON r.lo < l.a GROUP BY r.lo",
    "SELECT x.a AS one, y.a AS other FROM l x JOIN l y ON x.a + 2 < y.a",
    "SELECT l.a, r.lo FROM l, r WHERE l.a > r.lo AND (l.b = 'x' OR r.hi < 4)",
    "SELECT l.a, (SELECT count(*) FROM r WHERE r.hi <= l.a) AS n FROM l",
    "SELECT x.lo, y.hi FROM r x JOIN r y ON x.lo < y.lo AND x.hi > y.hi",
    "SELECT a, b FROM l WHERE a > (SELECT avg(lo) FROM r)",
    "SELECT b, count(*) AS n FROM l WHERE (SELECT max(a) - 2 FROM l) <= a GROUP BY b",
    "SELECT lo FROM r WHERE hi < (SELECT min(a) FROM l WHERE b = 'x')",
    "SELECT b, sum(a) AS s FROM l GROUP BY b HAVING sum(a) >= (SELECT sum(a) * 0.5 FROM l)",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    #[test]
    fn pairs_follow(
        which in 0..QUERIES.len(),
        steps in prop::collection::vec(
            prop::collection::vec(
                (
                    any::<bool>(),
                    prop::option::weighted(0.9, 0..9_i64),
                    prop::option::weighted(0.9, 0..9_i64),
                    -2..3_i64,
                ),
                0..12,
            ),
            1..6,
        ),
    ) {
        let mut view = Checked::new(&TABLES, QUERIES[which]);
        let (explain, is_bounded) = (view.plan.explain(), which > 6);
        prop_assert!(explain.contains(["RangeJoin", "DynamicFilter"][usize::from(is_bounded)]), "{explain}");
        let mut there: BTreeMap<(bool, String), i64> = BTreeMap::new();
        let shown = |value: Option<i64>| value.map_or("NULL".to_owned(), |value| value.to_string());
        for changes in steps {
            let mut texts = [String::new(), String::new()];
            for (is_left, one, other, weight) in changes {
                let line = match is_left {
                    true => format!("{} | {}", shown(one), if other > Some(4) { "x" } else { "y" }),
                    false => format!("{} | {}", shown(one), shown(other)),
                };
                let known = there.entry((is_left, line.clone())).or_insert(0);
                let weight = weight.max(-*known);
                *known += weight;
                if weight != 0 {
                    texts[usize::from(!is_left)] += &format!("{weight:+} {line}\n");
                }
            }
            let deltas = [("l", texts[0].as_str()), ("r", texts[1].as_str())];
            view.step(&deltas).unwrap();
        }
    }
}
