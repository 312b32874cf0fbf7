//! `WITH RECURSIVE` under inserts and deletes, against batch runs.

use std::collections::BTreeMap;

use deltaic_batch::ZBatch;
use proptest::prelude::*;

use super::{Checked, session, sources};
use crate::Technique;

const TABLES: [(&str, &str); 2] = [("edge", "a INT, b INT"), ("node", "id INT, name STRING")];

/// On graphs with cycles.
const SETS: [&str; 4] = [
    "WITH RECURSIVE r AS (SELECT a, b FROM edge
     UNION SELECT r.a, e.b FROM r JOIN edge e ON r.b = e.a) SELECT * FROM r",
    "WITH RECURSIVE r(x) AS (SELECT id FROM node WHERE id = 0
     UNION SELECT e.b FROM edge e JOIN r ON e.a = r.x WHERE e.b <> 3) SELECT x FROM r",
    "WITH RECURSIVE r AS (SELECT id AS x, 0 AS level FROM node
     UNION SELECT e.b, r.level + 1 FROM r, edge e WHERE e.a = r.x AND r.level < 4)
     SELECT x, min(level) AS level, count(*) AS n FROM r GROUP BY x",
    "WITH RECURSIVE r(x) AS (SELECT id FROM node
     UNION SELECT e.b FROM edge e JOIN r ON e.a = r.x WHERE e.b IN (SELECT id FROM node))
     SELECT n.name, r.x FROM r LEFT JOIN node n ON n.id = r.x",
];

/// On graphs without.
const SUMS: [&str; 4] = [
    "WITH RECURSIVE r AS (SELECT a, b, 1 AS n FROM edge
     UNION ALL SELECT r.a, e.b, n + 1 FROM r JOIN edge e ON r.b = e.a) SELECT * FROM r",
    "WITH RECURSIVE r AS (SELECT id AS x, CAST(id AS STRING) AS path FROM node
     UNION ALL SELECT e.b, r.path || '/' || CAST(e.b AS STRING) FROM r JOIN edge e ON e.a = r.x)
     SELECT path, x FROM r",
    "WITH RECURSIVE r AS (SELECT id AS x, id AS last FROM node
     UNION ALL SELECT e.b, r.x FROM r LEFT JOIN edge e ON e.a = r.x WHERE r.x IS NOT NULL)
     SELECT last, count(*) AS n FROM r WHERE x IS NULL GROUP BY last",
    "WITH RECURSIVE r AS (SELECT id AS x FROM node
     UNION ALL SELECT e.b FROM r JOIN edge e ON e.a = r.x
     WHERE NOT EXISTS (SELECT 1 FROM node n WHERE n.id = e.b AND n.name = 'stop')) SELECT x FROM r",
];

type Changes = Vec<Vec<(bool, i64, i64)>>;

/// Flips edges and nodes: what is there goes, what is not comes.
fn follow(sql: &str, changes: &Changes, acyclic: bool) {
    let mut view = Checked::new(&TABLES, sql);
    assert_eq!(view.plan.technique(), Technique::Recursive, "{}", view.plan.explain());
    let mut there: BTreeMap<String, bool> = BTreeMap::new();
    for changes in changes {
        let (mut edges, mut nodes) = (BTreeMap::new(), BTreeMap::new());
        for &(is_edge, a, b) in changes {
            let (a, b) = if acyclic && is_edge { (a.min(b), a.max(b) + 1) } else { (a, b) };
            let (line, into) = match is_edge {
                true => (format!("{a} | {b}"), &mut edges),
                false => (format!("{a} | {}", if b % 2 == 0 { "stop" } else { "go" }), &mut nodes),
            };
            let is_there = there.entry(format!("{is_edge} {line}")).or_insert(false);
            *is_there = !*is_there;
            *into.entry(line).or_insert(0) += if *is_there { 1 } else { -1 };
        }
        let text = |lines: BTreeMap<String, i64>| {
            let moved = lines.iter().filter(|(_, weight)| **weight != 0);
            moved.map(|(line, weight)| format!("{weight:+} {line}\n")).collect::<String>()
        };
        view.step(&[("edge", &text(edges)), ("node", &text(nodes))]).unwrap();
    }
}

fn changes() -> impl Strategy<Value = Changes> {
    let change = (prop::bool::weighted(0.7), 0..6_i64, 0..6_i64);
    prop::collection::vec(prop::collection::vec(change, 0..8), 1..7)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    #[test]
    fn unions_follow_their_tables(changes in changes(), which in 0..SETS.len()) {
        follow(SETS[which], &changes, false);
    }

    #[test]
    fn sums_follow_their_tables(changes in changes(), which in 0..SUMS.len()) {
        follow(SUMS[which], &changes, true);
    }
}

#[test]
fn a_cycle_does_not_hold_itself_up() {
    let mut view = Checked::new(
        &TABLES,
        "WITH RECURSIVE r(x) AS (SELECT id FROM node
         UNION SELECT e.b FROM edge e JOIN r ON e.a = r.x) SELECT x FROM r",
    );
    view.step(&[("node", "+ 0 | go"), ("edge", "+ 0 | 1\n+ 1 | 2\n+ 2 | 1")]).unwrap();
    assert_eq!(view.rows(), ["+ 0", "+ 1", "+ 2"]);
    let delta = view.step(&[("edge", "- 0 | 1")]).unwrap();
    assert_eq!((view.rows(), delta.num_rows()), (vec!["+ 0".to_owned()], 2));
    let delta = view.step(&[("edge", "+ 0 | 2")]).unwrap();
    assert_eq!((view.rows().len(), delta.num_rows()), (3, 2));
}

#[test]
fn a_recursion_without_end_is_an_error() {
    let sources = sources(&TABLES);
    let sql =
        "WITH RECURSIVE r AS (SELECT id FROM node UNION ALL SELECT id FROM r) SELECT * FROM r";
    let plan = session().plan_view(sql, &sources).unwrap();
    let mut circuit = plan.circuit(Default::default()).unwrap();
    let schema = session().parse_schema(TABLES[1].1).unwrap();
    let delta = ZBatch::parse(&schema, "+ 1 | go").unwrap();
    let error = circuit.step(vec![("node".to_owned(), delta)]).unwrap_err();
    assert_eq!(error.code(), "RECURSION_LEVEL_LIMIT_EXCEEDED");
}

#[test]
fn a_step_that_is_not_linear_is_recomputed() {
    let sources = sources(&TABLES);
    let queries = [
        "WITH RECURSIVE r AS (SELECT a, b FROM edge
         UNION SELECT r.a, s.b FROM r JOIN r s ON r.b = s.a) SELECT * FROM r",
        "WITH RECURSIVE r AS (SELECT 0 AS n UNION ALL SELECT max(n) + 1 FROM r HAVING max(n) < 5)
         SELECT n FROM r",
    ];
    for sql in queries {
        if let Ok(plan) = session().plan_view(sql, &sources) {
            assert_ne!(plan.technique(), Technique::Recursive, "{sql}");
        }
    }
}
