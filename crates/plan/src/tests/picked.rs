//! Aggregates that pick a row of each group, under inserts and deletes, against batch runs.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::Checked;

const TABLE: [(&str, &str); 1] = [("t", "g INT, k INT, x STRING")];

const QUERIES: [&str; 9] = [
    "SELECT g, first_value(x ORDER BY k) AS f, last_value(x ORDER BY k) AS l FROM t GROUP BY g",
    "SELECT g, count(*) AS n, max_by(x, k) AS x FROM t GROUP BY g",
    "SELECT min_by(x, k) AS lo, max_by(k, x) AS hi, sum(k) AS s FROM t",
    "SELECT g, nth_value(x, 2 ORDER BY k DESC) AS second FROM t GROUP BY g",
    "SELECT first_value(x ORDER BY k DESC NULLS LAST) AS f FROM t",
    "SELECT g, last_value(k ORDER BY x) FILTER (WHERE k > 1) AS l, min(k) AS m FROM t GROUP BY g",
    "SELECT g, first_value(x) IGNORE NULLS AS f, array_agg(k ORDER BY k) AS ks FROM t GROUP BY g",
    "SELECT k % 2 AS odd, max_by(g, k + 1) FILTER (WHERE x <> 'b') AS g FROM t GROUP BY k % 2",
    "SELECT g, last_value(x ORDER BY k, x DESC) AS l, median(k) AS m, count(DISTINCT x) AS n FROM t
     GROUP BY g",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    #[test]
    fn picked_rows_follow(
        which in 0..QUERIES.len(),
        steps in prop::collection::vec(
            prop::collection::vec(
                (
                    prop::option::weighted(0.9, 0..3_i64),
                    prop::option::weighted(0.8, 0..4_i64),
                    prop::option::weighted(0.8, 0..3_usize),
                    -2..3_i64,
                ),
                0..8,
            ),
            1..7,
        ),
    ) {
        let mut view = Checked::new(&TABLE, QUERIES[which]);
        prop_assert!(!view.plan.explain().contains("HYBRID"), "{}", view.plan.explain());
        let mut there: BTreeMap<String, i64> = BTreeMap::new();
        let shown = |value: Option<i64>| value.map_or("NULL".to_owned(), |value| value.to_string());
        for changes in steps {
            let mut text = String::new();
            for (g, k, x, weight) in changes {
                let x = x.map_or("NULL", |x| ["a", "b", "c"][x]);
                let line = format!("{} | {} | {x}", shown(g), shown(k));
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

#[test]
fn names_and_values() {
    let mut view = Checked::new(&TABLE, "SELECT g, max_by(x, k) FROM t GROUP BY g");
    view.step(&[("t", "+ 1 | 5 | a\n+ 1 | 7 | b\n+ 1 | NULL | c\n+ 2 | NULL | d")]).unwrap();
    assert_eq!(view.rows(), ["+ 1 | b", "+ 2 | NULL"]);
    assert_eq!(view.plan.schema().field(1).name(), "max_by(x, k)");
    assert!(view.plan.explain().contains("TopK"), "{}", view.plan.explain());
    view.step(&[("t", "- 1 | 7 | b")]).unwrap();
    assert_eq!(view.rows(), ["+ 1 | a", "+ 2 | NULL"]);
}
