//! Views that ask for the time, against batch runs at the same time.

use deltaic_batch::ZBatch;
use deltaic_exec::CircuitOptions;

use super::{copies, sorted, sources};
use crate::{Session, SessionOptions, Technique, ViewPlan};

const TABLES: [(&str, &str); 1] =
    [("events", "id BIGINT, ts TIMESTAMP, day DATE, tag STRING, parts ARRAY<INT>")];
const HOUR: i64 = 3_600_000_000;

fn session_at(zone: &str, now_us: i64) -> Session {
    let options = SessionOptions { time_zone: zone.into(), now_us: Some(now_us) };
    Session::try_new(options).unwrap()
}

/// 2024-05-01 00:00 UTC.
fn start() -> i64 {
    1_714_521_600_000_000
}

/// Steps the view through times forth and back, with rows that come and go, and compares.
fn follow(zone: &str, sql: &str) -> ViewPlan {
    let sources = sources(&TABLES);
    let plan = session_at(zone, start()).plan_view(sql, &sources).unwrap();
    let options = CircuitOptions { shards: 2, ..CircuitOptions::default() };
    let mut circuit = plan.circuit(options).unwrap();
    let schema = session_at(zone, 0).parse_schema(TABLES[0].1).unwrap();
    let (mut rows, mut view) = (ZBatch::empty(schema.clone()), ZBatch::empty(plan.schema()));
    let mut before = None;
    for (step, hours) in [0, 1, 1, 30, 20, 49, 500, 26].into_iter().enumerate() {
        let now = start() + hours * HOUR;
        let mut text = String::new();
        for i in 0..40_usize {
            let (id, at) = (i * 7 % 13, (i * 5 + step * 17) % 90);
            let weight = if (i + step) % 3 == 0 { "+2" } else { "+" };
            let (day, hour) = (at / 24 + 1, at % 24);
            let ts = match i % 9 {
                0 => "NULL".to_owned(),
                _ => format!("2024-05-{day:02}T{hour:02}:00:00Z"),
            };
            text += &format!("{weight} {id} | {ts} | 2024-05-{day:02} | t{} | NULL\n", i % 3);
        }
        let new = ZBatch::parse(&schema, &text).unwrap();
        // A third of what is there goes.
        let old: Vec<u32> = (0..).take(rows.num_rows()).filter(|row| row % 3 == 0).collect();
        let gone = rows.take(&old.into()).unwrap().negate().unwrap();
        let delta = ZBatch::concat(&schema, &[new, gone]).unwrap();
        rows = ZBatch::concat(&schema, &[rows, delta.clone()]).unwrap().consolidate().unwrap();
        let mut inputs = vec![("events".to_owned(), delta)];
        inputs.retain(|(name, _)| plan.sources().contains(name));
        inputs.extend(plan.clock_change(before, now).unwrap());
        before = Some(now);
        let change = circuit.step(inputs).unwrap()["view"].clone();
        view = ZBatch::concat(&plan.schema(), &[view, change]).unwrap().consolidate().unwrap();
        let tables = [("events".to_owned(), vec![copies(&rows)])].into();
        let (schema, batches) = session_at(zone, now).run_batch(sql, &sources, tables).unwrap();
        let pieces: Vec<ZBatch> = batches.into_iter().map(ZBatch::inserts).collect();
        let expected = ZBatch::concat(&schema, &pieces).unwrap().consolidate().unwrap();
        assert_eq!(sorted(&view), sorted(&expected), "{sql}\nat {hours} h\n{}", plan.explain());
    }
    plan
}

#[test]
fn rows_enter_and_leave_as_time_passes() {
    let conditions = [
        "ts > now() - INTERVAL 1 DAY",
        "ts <= current_timestamp",
        "current_timestamp() >= ts + INTERVAL 5 HOURS",
        "ts BETWEEN now() - INTERVAL 1 DAY AND now()",
        "day = current_date",
        "day >= current_date() - 1",
        "day < date_add(current_date, 1) AND tag <> 't1'",
        "date_trunc('day', ts) = date_trunc('day', now())",
        "now() - ts < INTERVAL 30 HOURS",
        "ts - now() >= INTERVAL -26 HOURS",
        "ts > now() - INTERVAL 3 HOURS AND id IN (SELECT id FROM events WHERE day < current_date)",
    ];
    for condition in conditions {
        let sql = format!("SELECT id, ts, day, tag FROM events WHERE {condition}");
        let plan = follow("UTC", &sql);
        assert_eq!(plan.technique(), Technique::Temporal, "{sql}");
        assert!(plan.explain().contains("TemporalFilter"), "{}", plan.explain());
        assert!(plan.issues().is_empty());
        follow("America/New_York", &sql);
    }
}

#[test]
fn what_is_computed_from_the_time_follows_it() {
    let queries = [
        "SELECT id, now() AS at, current_date AS today, current_time() AS clock FROM events",
        "SELECT tag, count(*) AS n FROM events WHERE ts > now() - INTERVAL 1 DAY GROUP BY tag",
        "SELECT tag, count(*) FILTER (WHERE ts > now() - INTERVAL 1 DAY) AS n, max(now()) AS at
         FROM events GROUP BY tag",
        "SELECT id, CASE WHEN day < current_date THEN 'past' ELSE 'new' END AS age FROM events",
        "SELECT id FROM events WHERE ts > now() - INTERVAL 1 DAY OR day = current_date",
        "SELECT a.id, b.tag FROM events a LEFT JOIN events b
         ON a.id = b.id AND b.ts > now() - INTERVAL 9 HOURS WHERE a.day < current_date",
        "SELECT tag FROM events GROUP BY tag HAVING max(ts) < now() - INTERVAL 1 DAY",
        "SELECT count(*) AS n, now() AS at FROM events WHERE ts > now()",
        "SELECT id, row_number() OVER (PARTITION BY tag ORDER BY id, ts, day) AS n FROM events
         WHERE ts < now()",
        "SELECT id, day FROM events WHERE now() - ts < CASE WHEN id < 5 THEN INTERVAL 1 DAY ELSE INTERVAL 9 DAYS END",
        "SELECT now() AS at",
    ];
    for sql in queries {
        for zone in ["UTC", "Asia/Kolkata"] {
            let plan = follow(zone, sql);
            assert_eq!(plan.technique(), Technique::Temporal, "{sql}\n{}", plan.explain());
        }
    }
}

#[test]
fn rows_without_an_order_are_kept_beside_the_clock() {
    let plan = follow("UTC", "SELECT id, parts FROM events WHERE ts > now() - INTERVAL 1 DAY");
    assert_eq!(plan.technique(), Technique::Temporal);
}

#[test]
fn a_time_within_a_recursion_is_that_of_a_complete_run() {
    let sources = sources(&TABLES);
    let plan = session_at("UTC", start()).plan_view(
        "WITH RECURSIVE r AS (SELECT id, now() AS at FROM events
         UNION SELECT id + 1, now() FROM r WHERE id < 3) SELECT * FROM r",
        &sources,
    );
    let plan = plan.unwrap();
    assert_eq!(plan.technique(), Technique::CompleteRecompute);
    assert!(plan.asks_for_time() && plan.clock_change(None, 0).unwrap().is_none());
}

#[test]
fn the_time_is_no_part_of_a_views_identity() {
    let sources = sources(&TABLES);
    let sql = "SELECT id FROM events WHERE ts > now() - INTERVAL 1 DAY";
    let at = |now| session_at("UTC", now).plan_view(sql, &sources).unwrap().fingerprint();
    assert_eq!(at(start()), at(start() + HOUR));
}
