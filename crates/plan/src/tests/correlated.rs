//! Correlated subqueries and lateral joins, against the definition: the subquery run anew for each
//! row of the outer query, with that row's values in it.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use deltaic_batch::ZBatch;
use deltaic_exec::CircuitOptions;
use proptest::prelude::*;

use super::{Checked, copies, session, sources};
use crate::{Session, Sources};

const TABLES: [(&str, &str); 2] = [("t", "a INT, b INT"), ("u", "k INT, v INT")];

/// A subquery of columns `x` and `y`; `{a}` and `{b}` stand for the outer row's.
fn subquery() -> impl Strategy<Value = String> {
    let condition = prop::sample::select(vec![
        "u.v < {a}",
        "u.k = {b}",
        "u.k = {b} AND u.v <> {a}",
        "u.k IS NOT DISTINCT FROM {b}",
        "u.v + {a} > 3 OR u.k = {b}",
        "{a} > 1",
        "u.v > 1",
    ]);
    let base = (condition, any::<bool>()).prop_map(|(condition, reads)| {
        let x = if reads { "u.k + {a}" } else { "u.k" };
        format!("SELECT {x} AS x, u.v AS y FROM u WHERE {condition}")
    });
    let base = prop_oneof![
        4 => base,
        1 => Just("SELECT {a} AS x, {b} AS y".to_owned()),
        1 => Just("SELECT e AS x, {b} AS y FROM UNNEST(make_array({a}, 2, {b})) AS w(e)".to_owned()),
    ];
    base.prop_recursive(3, 8, 2, |inner| {
        let one = (inner.clone(), 0..10_usize).prop_map(|(of, which)| match which {
            0 => format!("SELECT count(*) AS x, max(y) AS y FROM ({of}) q"),
            1 => format!("SELECT x, CAST(count(y) AS INT) AS y FROM ({of}) q GROUP BY x"),
            2 => format!("SELECT DISTINCT x, 1 AS y FROM ({of}) q"),
            3 => format!("SELECT x, y FROM ({of}) q ORDER BY y DESC, x LIMIT 2"),
            4 => format!("SELECT x, y FROM ({of}) q ORDER BY x LIMIT 1 OFFSET 1"),
            5 => format!("SELECT x, row_number() OVER (ORDER BY y, x) AS y FROM ({of}) q"),
            6 => format!("SELECT x, sum(y) OVER (PARTITION BY x) AS y FROM ({of}) q"),
            7 => format!(
                "SELECT q.x, u.v AS y FROM ({of}) q LEFT JOIN u ON u.k = q.x AND u.v < {{a}}"
            ),
            8 => format!("SELECT u.k AS x, q.y FROM u LEFT JOIN ({of}) q ON u.k = q.x"),
            _ => {
                format!("SELECT x + 1 AS x, {{b}} AS y FROM ({of}) q WHERE y IS NULL OR x > {{a}}")
            }
        });
        let two = (inner.clone(), inner, 0..4_usize).prop_map(|(l, r, which)| match which {
            0 => format!("SELECT x, y FROM ({l}) l UNION ALL SELECT x, y FROM ({r}) r"),
            1 => format!("SELECT l.x, r.y FROM ({l}) l JOIN ({r}) r ON l.x = r.y"),
            2 => format!("SELECT l.x, r.y FROM ({l}) l LEFT JOIN ({r}) r ON l.x = r.x"),
            _ => format!(
                "SELECT x, y FROM ({l}) l WHERE EXISTS (SELECT 1 FROM ({r}) r WHERE r.y = l.x)"
            ),
        });
        prop_oneof![3 => one, 1 => two]
    })
}

/// How the outer query uses it.
#[derive(Debug, Clone, Copy)]
enum Use {
    Lateral,
    LeftLateral,
    Exists,
    NotExists,
    In,
    Scalar,
}

impl Use {
    const ALL: [Use; 6] =
        [Use::Lateral, Use::LeftLateral, Use::Exists, Use::NotExists, Use::In, Use::Scalar];

    fn query(self, sub: &str) -> String {
        let sub = sub.replace("{a}", "t.a").replace("{b}", "t.b");
        match self {
            Use::Lateral => format!("SELECT a, b, l.x, l.y FROM t, LATERAL ({sub}) l"),
            Use::LeftLateral => {
                format!("SELECT a, b, l.x, l.y FROM t LEFT JOIN LATERAL ({sub}) l ON l.x > 1")
            }
            Use::Exists => format!("SELECT a, b FROM t WHERE EXISTS ({sub})"),
            Use::NotExists => format!("SELECT a, b FROM t WHERE NOT EXISTS ({sub}) OR a = 0"),
            Use::In => {
                format!("SELECT a, b, b IN (SELECT s.x FROM ({sub}) s) AS r FROM t")
            }
            Use::Scalar => {
                format!("SELECT a, b, (SELECT sum(s.y) + count(*) FROM ({sub}) s) AS r FROM t")
            }
        }
    }

    /// The same for one outer row.
    fn of_row(self, sub: &str, a: &str, b: &str) -> String {
        let sub = sub.replace("{a}", a).replace("{b}", b);
        match self {
            Use::Lateral => format!("SELECT {a} AS a, {b} AS b, l.x, l.y FROM ({sub}) l"),
            Use::LeftLateral => format!(
                "SELECT {a} AS a, {b} AS b, l.x, l.y FROM (SELECT 1 AS one) LEFT JOIN ({sub}) l ON l.x > 1"
            ),
            Use::Exists => {
                format!(
                    "SELECT {a} AS a, {b} AS b FROM (SELECT count(*) AS n FROM ({sub}) s) WHERE n > 0"
                )
            }
            Use::NotExists => format!(
                "SELECT {a} AS a, {b} AS b FROM (SELECT count(*) AS n FROM ({sub}) s) WHERE n = 0 OR {a} = 0"
            ),
            Use::In => format!(
                "SELECT {a} AS a, {b} AS b, CASE WHEN n = 0 THEN FALSE WHEN m > 0 THEN TRUE
                 WHEN {b} IS NULL OR c < n THEN NULL ELSE FALSE END AS r
                 FROM (SELECT count(*) AS n, count(x) AS c, count(CASE WHEN x = {b} THEN 1 END) AS m
                       FROM ({sub}) s)"
            ),
            Use::Scalar => {
                format!("SELECT {a} AS a, {b} AS b, sum(s.y) + count(*) AS r FROM ({sub}) s")
            }
        }
    }
}

type Pair = (Option<i64>, Option<i64>);

fn literal(value: Option<i64>) -> String {
    value.map_or("CAST(NULL AS INT)".into(), |value| format!("CAST({value} AS INT)"))
}

fn text(rows: &[Pair]) -> String {
    let shown = |value: Option<i64>| value.map_or("NULL".into(), |value: i64| value.to_string());
    rows.iter().map(|(one, other)| format!("+ {} | {}\n", shown(*one), shown(*other))).collect()
}

struct Rows {
    session: Session,
    sources: Sources,
    tables: BTreeMap<String, Vec<RecordBatch>>,
}

impl Rows {
    fn run(&self, sql: &str) -> Vec<String> {
        let result = self.session.run_batch(sql, &self.sources, self.tables.clone());
        let (_, batches) = result.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let pieces = batches.into_iter().map(ZBatch::inserts);
        pieces.flat_map(|piece| lines(&piece)).collect()
    }
}

/// A line per row, as often as it occurs.
fn lines(rows: &ZBatch) -> Vec<String> {
    let ones = ZBatch::inserts(copies(rows));
    ones.to_string().lines().map(str::to_owned).collect()
}

fn value() -> impl Strategy<Value = Option<i64>> {
    prop::option::weighted(0.8, 0..4_i64)
}

#[test]
fn null_is_not_equal_to_the_null_of_its_subquery() {
    let sql = "SELECT count(*) FROM t AS o WHERE o.a =
        (SELECT min(i.a) FROM t AS i WHERE o.a = i.a AND o.a < i.a)";
    let mut view = Checked::new(&TABLES, sql);
    view.step(&[("t", "+1 NULL | 0\n")]).unwrap();
    assert_eq!(view.rows(), ["+ 0"]);
}

proptest! {
    // Each case is up to twenty planned queries.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 5))]

    #[test]
    fn each_outer_row_has_its_own(
        sub in subquery(),
        which in 0..Use::ALL.len(),
        t in prop::collection::vec((value(), value()), 0..5),
        u in prop::collection::vec((value(), value()), 0..7),
        gone in prop::collection::vec(any::<bool>(), 7),
    ) {
        let used = Use::ALL[which];
        let (session, sources) = (session(), sources(&TABLES));
        let sql = used.query(&sub);
        let plan = session.plan_view(&sql, &sources).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let mut circuit = plan.circuit(CircuitOptions::default()).unwrap();
        let schemas: Vec<_> =
            TABLES.iter().map(|(_, ddl)| session.parse_schema(ddl).unwrap()).collect();
        // All rows, then without some of each table.
        let kept = |rows: &[Pair]| -> Vec<Pair> {
            rows.iter().zip(&gone).filter(|(_, gone)| !**gone).map(|(row, _)| *row).collect()
        };
        let mut view = ZBatch::empty(plan.schema());
        let mut before: Vec<ZBatch> = schemas.iter().map(|s| ZBatch::empty(s.clone())).collect();
        for (t, u) in [(t.clone(), u.clone()), (kept(&t), u.clone()), (t.clone(), kept(&u))] {
            let now = [
                ZBatch::parse(&schemas[0], &text(&t)).unwrap(),
                ZBatch::parse(&schemas[1], &text(&u)).unwrap(),
            ];
            let mut deltas = Vec::new();
            for (at, (name, _)) in TABLES.iter().enumerate() {
                let old = before[at].negate().unwrap();
                let delta = ZBatch::concat(&schemas[at], &[now[at].clone(), old]).unwrap();
                if plan.sources().contains(&(*name).to_owned()) {
                    deltas.push(((*name).to_owned(), delta.consolidate().unwrap()));
                }
            }
            let change = circuit.step(deltas).unwrap_or_else(|e| panic!("{sql}: {e}"));
            let pieces = [view, change["view"].clone()];
            view = ZBatch::concat(&plan.schema(), &pieces).unwrap().consolidate().unwrap();
            let tables = TABLES.iter().zip(&now);
            let tables = tables.map(|((name, _), rows)| ((*name).to_owned(), vec![copies(rows)]));
            let rows = Rows { session: super::session(), sources: sources.clone(), tables: tables.collect() };
            let mut expected: Vec<String> = (t.iter())
                .flat_map(|(a, b)| rows.run(&used.of_row(&sub, &literal(*a), &literal(*b))))
                .collect();
            expected.sort();
            let mut seen = lines(&view);
            seen.sort();
            prop_assert_eq!(&seen, &expected, "{}\n{}", sql, plan.explain());
            let mut batch = rows.run(&sql);
            batch.sort();
            prop_assert_eq!(&batch, &expected, "batch: {}", sql);
            before = now.into();
        }
    }
}
