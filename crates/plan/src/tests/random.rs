//! Random deltas through many views, each prefix against a batch run.

use proptest::prelude::*;

use super::Checked;

const TABLES: [(&str, &str); 2] = [("t", "k INT, v INT, s STRING"), ("u", "k INT, w INT")];

const VIEWS: [&str; 14] = [
    "SELECT k, count(*) AS n, sum(v) AS s, min(v) AS lo, max(v) AS hi, avg(v) AS a FROM t GROUP BY k",
    "SELECT t.k, t.v, u.w FROM t JOIN u ON t.k = u.k",
    "SELECT t.k, t.v, u.w FROM t LEFT JOIN u ON t.k = u.k AND t.v < u.w",
    "SELECT t.k AS a, u.k AS b FROM t FULL JOIN u ON t.k = u.k",
    "SELECT k, v FROM t WHERE k NOT IN (SELECT k FROM u)",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.w > t.v)",
    "SELECT k FROM t EXCEPT ALL SELECT k FROM u",
    "SELECT DISTINCT k, s FROM t",
    "SELECT k, count(DISTINCT v) AS d, count(DISTINCT s) AS e, sum(v) AS x FROM t GROUP BY k",
    "SELECT k, v, s, row_number() OVER (PARTITION BY k ORDER BY v) AS rn FROM t",
    "SELECT k, v FROM t ORDER BY v LIMIT 3",
    "SELECT a.k, b.c FROM t a JOIN (SELECT k, count(*) AS c FROM u GROUP BY k) b ON a.k = b.k WHERE b.c > 1",
    "SELECT k, median(v) AS m, count(*) AS n FROM t GROUP BY k",
    "SELECT s, sum(w) AS x FROM t JOIN u USING (k) GROUP BY s HAVING count(*) > 1",
];

#[derive(Debug, Clone)]
enum Change {
    InsertT(Option<i32>, Option<i32>, String),
    InsertU(Option<i32>, Option<i32>),
    /// Deletes an earlier inserted row, if it is still there.
    Delete(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let key = || proptest::option::weighted(0.85, 0..4i32);
    let value = || proptest::option::weighted(0.85, 0..6i32);
    prop_oneof![
        3 => (key(), value(), "[ab]?").prop_map(|(k, v, s)| Change::InsertT(k, v, s)),
        2 => (key(), value()).prop_map(|(k, w)| Change::InsertU(k, w)),
        3 => (0..20usize).prop_map(Change::Delete),
    ]
}

fn text(value: Option<i32>) -> String {
    value.map_or("NULL".into(), |v| v.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn views_equal_their_queries(
        view in 0..VIEWS.len(),
        steps in prop::collection::vec(prop::collection::vec(change(), 0..6), 1..5),
    ) {
        let mut checked = Checked::new(&TABLES, VIEWS[view]);
        let mut live: Vec<(&str, String)> = Vec::new();
        for step in steps {
            let mut lines = [("t", String::new()), ("u", String::new())];
            for change in step {
                let (sign, table, row) = match change {
                    Change::InsertT(k, v, s) => ('+', 0, format!("{} | {} | \"{s}\"", text(k), text(v))),
                    Change::InsertU(k, w) => ('+', 1, format!("{} | {}", text(k), text(w))),
                    Change::Delete(_) if live.is_empty() => continue,
                    Change::Delete(i) => {
                        let (table, row) = live.swap_remove(i % live.len());
                        ('-', usize::from(table == "u"), row)
                    }
                };
                if sign == '+' {
                    live.push((TABLES[table].0, row.clone()));
                }
                lines[table].1 += &format!("{sign} {row}\n");
            }
            let deltas: Vec<(&str, &str)> = lines.iter().map(|(t, l)| (*t, l.as_str())).collect();
            checked.step(&deltas).unwrap();
        }
    }
}
