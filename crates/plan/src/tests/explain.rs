//! Explain texts, techniques, issues, decisions.

use super::{session, sources};
use crate::{RefreshPolicy, Technique, ViewPlan, ViewStats};

fn plan(sql: &str) -> ViewPlan {
    let sources = sources(&[
        ("orders", "id INT, region STRING, amount INT"),
        ("regions", "name STRING, country STRING"),
    ]);
    session().plan_view(sql, &sources).unwrap()
}

#[test]
fn aggregate_over_join() {
    let plan = plan(
        "SELECT r.country, sum(o.amount) AS total FROM orders o JOIN regions r ON o.region = r.name
         WHERE o.amount > 5 GROUP BY r.country",
    );
    assert_eq!(
        plan.explain(),
        "Technique: GROUP_AGGREGATE
Aggregate sum(CAST(amount AS BIGINT)) by country  [state: groups]
└─ Project country, CAST(amount AS BIGINT)
   └─ InnerJoin region = name  [state: both inputs]
      ├─ Filter amount > 5
      │  └─ Source orders
      └─ Source regions
"
    );
    assert_eq!(plan.technique(), Technique::GroupAggregate);
    assert!(plan.issues().is_empty());
}

#[test]
fn the_first_rows_of_each_group_are_found_below_a_projection() {
    let plan = plan(
        "SELECT region, id FROM (SELECT region, id, row_number() OVER (PARTITION BY region ORDER BY amount) AS rn
         FROM orders) t WHERE rn = 1",
    );
    assert_eq!(
        plan.explain(),
        "Technique: WINDOW_FUNCTION
TopK 1 by amount per region  [state: all rows in order]
└─ Source orders
"
    );
}

#[test]
fn windows_are_kept_in_order_or_recomputed_by_partition() {
    let own = plan(
        "SELECT id, rank() OVER (PARTITION BY region, id ORDER BY amount) AS a,
         sum(amount) OVER (PARTITION BY region ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s,
         row_number() OVER (ORDER BY amount) AS n FROM orders",
    );
    assert_eq!(own.explain().matches("[state: all rows in order]").count(), 3);
    assert_eq!(own.technique(), Technique::WindowFunction);
    assert!(own.issues().is_empty());
    // A change reaches rows near it for one of these and peers for the other.
    let apart = plan(
        "SELECT id, rank() OVER w AS a, lag(id) OVER w AS l FROM orders WINDOW w AS (ORDER BY amount)",
    );
    assert_eq!(apart.explain().matches("[state: all rows in order]").count(), 2);
    let by_partition = plan(
        "SELECT id, median(amount) OVER (PARTITION BY region ORDER BY id) AS a,
         count(DISTINCT id) OVER (PARTITION BY region, id ORDER BY amount) AS c FROM orders",
    );
    let explain = by_partition.explain();
    assert_eq!(explain.matches("[state: all rows; recomputes touched groups]").count(), 2);
    assert_eq!(by_partition.technique(), Technique::WindowFunction);
    let over_all =
        plan("SELECT id, median(id) OVER (ORDER BY amount ROWS 4 PRECEDING) AS a FROM orders");
    assert!(over_all.explain().contains("HYBRID: windows without a common PARTITION BY"));
    assert_eq!(over_all.technique(), Technique::Hybrid);
    assert_eq!(over_all.issues()[0].0, "PLAN_NOT_INCREMENTALIZABLE");
}

#[test]
fn other_aggregates_are_recomputed_by_group() {
    let by_group =
        plan("SELECT region, median(amount) AS m, count(*) AS n FROM orders GROUP BY region");
    assert_eq!(by_group.technique(), Technique::GenericAggregate);
    assert!(by_group.incremental_throughout().is_ok());
    let sets = plan("SELECT region, id, sum(amount) AS s FROM orders GROUP BY CUBE (region, id)");
    assert_eq!(sets.explain().matches("Aggregate sum").count(), 4);
    assert_eq!(sets.technique(), Technique::GroupAggregate);
    let unnested = plan("SELECT id, unnest(make_array(amount, id)) AS x FROM orders");
    assert_eq!(unnested.technique(), Technique::RowBased);
}

#[test]
fn fingerprints_see_meaning_and_not_layout() {
    let a = plan("SELECT id FROM orders WHERE amount > 5").fingerprint();
    assert_eq!(a, plan("select  ID\nfrom Orders\nwhere amount>5").fingerprint());
    assert_ne!(a, plan("SELECT id FROM orders WHERE amount > 6").fingerprint());
    assert_ne!(a, plan("SELECT id AS key FROM orders WHERE amount > 5").fingerprint());
}

#[test]
fn chance_means_a_complete_recompute() {
    for (sql, function) in [
        ("SELECT id FROM orders WHERE amount > random()", "RANDOM"),
        ("SELECT id, uuid() AS t FROM orders", "UUID"),
    ] {
        let plan = plan(sql);
        assert_eq!(plan.technique(), Technique::CompleteRecompute);
        assert_eq!(plan.issues()[0].0, "PLAN_NOT_DETERMINISTIC");
        assert_eq!(plan.issues()[0].1, function);
        let stats = ViewStats { has_state: true, ..ViewStats::default() };
        let decision = plan.decide(RefreshPolicy::Auto, &stats).unwrap();
        assert_eq!(decision.chosen, Technique::CompleteRecompute);
    }
    let a = plan("SELECT id, now() AS t FROM orders").fingerprint();
    assert_eq!(a, plan("SELECT id, now() AS t FROM orders").fingerprint());
}

fn stats(delta: u64, rows: u64) -> ViewStats {
    ViewStats {
        delta_rows: [("orders".to_owned(), delta)].into(),
        source_rows: [("orders".to_owned(), rows)].into(),
        view_rows: rows / 10,
        clock_moved: false,
        has_state: true,
    }
}

#[test]
fn decisions_follow_cost_and_policy() {
    let plan = plan("SELECT region, sum(amount) AS s FROM orders GROUP BY region");
    let auto = |stats: &ViewStats| plan.decide(RefreshPolicy::Auto, stats).unwrap().chosen;
    assert_eq!(auto(&stats(10, 1_000_000)), Technique::GroupAggregate);
    assert_eq!(auto(&stats(2_000_000, 1_000_000)), Technique::CompleteRecompute);
    assert_eq!(auto(&stats(0, 1_000_000)), Technique::NoOp);
    let fresh = ViewStats { has_state: false, ..stats(10, 1_000_000) };
    assert_eq!(auto(&fresh), Technique::CompleteRecompute);
    let full = plan.decide(RefreshPolicy::Full, &stats(10, 1_000_000)).unwrap();
    assert_eq!(full.chosen, Technique::CompleteRecompute);
    assert_eq!(full.candidates.len(), 2);
    let forced = plan.decide(RefreshPolicy::Incremental, &stats(2_000_000, 1_000_000)).unwrap();
    assert_eq!(forced.chosen, Technique::GroupAggregate);
}

#[test]
fn strict_policy_refuses_what_is_recomputed() {
    let plan = plan("SELECT median(amount) AS m FROM orders");
    let error = plan.decide(RefreshPolicy::IncrementalStrict, &stats(1, 10)).unwrap_err();
    assert_eq!(error.code(), "REFRESH_POLICY_NOT_INCREMENTAL");
    assert!(plan.decide(RefreshPolicy::Incremental, &stats(1, 10)).is_ok());
}
