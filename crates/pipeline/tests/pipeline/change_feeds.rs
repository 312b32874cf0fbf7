//! AUTO CDC from the change feed of a table that is updated.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::project::{TestProject, no_op};

const SQL: &str = "
CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('landing', format => 'csv',
  header => true, schema => 'id INT, a INT, seq INT, op STRING');
CREATE STREAMING TABLE dim;
CREATE FLOW into_dim AS AUTO CDC INTO dim FROM STREAM(raw) KEYS (id)
  APPLY AS DELETE WHEN op = 'd' SEQUENCE BY seq COLUMNS (id, a);
CREATE STREAMING TABLE copy;
CREATE FLOW into_copy AS AUTO CDC INTO copy FROM STREAM table_changes('dim', 0) KEYS (id);
CREATE STREAMING TABLE history;
CREATE FLOW into_history AS AUTO CDC INTO history FROM STREAM table_changes('dim', 0) KEYS (id)
  STORED AS SCD TYPE 2;
";

/// Another project, which knows the tables by their paths.
const ELSEWHERE: &str = "
CREATE STREAMING TABLE copy;
CREATE FLOW into_copy AS AUTO CDC INTO copy FROM STREAM table_changes_by_path('TABLES/dim', 0) KEYS (id);
CREATE STREAMING TABLE history;
CREATE FLOW into_history AS AUTO CDC INTO history FROM STREAM table_changes('delta.`TABLES/dim`', 0)
  KEYS (id) STORED AS SCD TYPE 2;
CREATE STREAMING TABLE raw AS SELECT id, seq FROM STREAM delta.`TABLES/raw`;
CREATE MATERIALIZED VIEW changed AS
  SELECT _change_type AS kind, count(*) AS n FROM table_changes_by_path('TABLES/dim', 0) GROUP BY 1;
";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 32))]

    #[test]
    fn the_feed_of_a_table_makes_the_table(
        batches in prop::collection::vec(
            prop::collection::vec((0..4_i32, 0..3_i32, any::<bool>()), 0..6),
            1..5,
        ),
    ) {
        let project = TestProject::new(SQL);
        std::fs::create_dir(project.root().join("landing")).unwrap();
        let tables = project.storage().join("tables");
        let other = TestProject::new(&ELSEWHERE.replace("TABLES", tables.to_str().unwrap()));
        let mut now: BTreeMap<i32, i32> = BTreeMap::new();
        let mut seq = 0;
        // Versions of each key: value, and whether it ended.
        let mut versions: BTreeMap<i32, Vec<(i32, bool)>> = BTreeMap::new();
        for (n, batch) in batches.iter().enumerate() {
            let mut csv = "id,a,seq,op\n".to_owned();
            let before = now.clone();
            for (id, a, deletes) in batch {
                seq += 1;
                csv += &format!("{id},{a},{seq},{}\n", if *deletes { "d" } else { "u" });
                if *deletes { now.remove(id); } else { now.insert(*id, *a); }
            }
            for id in 0..4 {
                let (old, new) = (before.get(&id), now.get(&id));
                if old == new {
                    continue;
                }
                let versions = versions.entry(id).or_default();
                if let (Some(_), Some(last)) = (old, versions.last_mut()) {
                    last.1 = true;
                }
                versions.extend(new.map(|a| (*a, false)));
            }
            project.write(&format!("landing/{n}.csv"), &csv);
            project.run();
            let expected: Vec<String> = now.iter().map(|(id, a)| format!("{id}|{a}")).collect();
            prop_assert_eq!(&project.rows("SELECT * FROM dim"), &expected);
            prop_assert_eq!(&project.rows("SELECT * FROM copy"), &expected);
            let mut history: Vec<String> = (versions.iter())
                .flat_map(|(id, of)| of.iter().map(move |(a, ended)| format!("{id}|{a}|{ended}")))
                .collect();
            history.sort();
            let rows = "SELECT id, a, __END_AT IS NOT NULL FROM history";
            prop_assert_eq!(&project.rows(rows), &history);
            prop_assert!(no_op(&project.run()));
            other.run();
            prop_assert_eq!(&other.rows("SELECT * FROM copy"), &expected);
            prop_assert_eq!(&other.rows(rows), &history);
            let raw = "SELECT id, seq FROM raw";
            prop_assert_eq!(&other.rows(raw), &project.rows(raw));
            let changed = "SELECT _change_type, count(*) FROM table_changes('dim', 0) GROUP BY 1";
            prop_assert_eq!(&other.rows("SELECT * FROM changed"), &project.rows(changed));
            prop_assert!(no_op(&other.run()));
        }
    }
}
