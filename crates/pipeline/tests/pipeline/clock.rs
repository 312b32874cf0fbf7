//! Views that ask for the time, run by run.

use deltaic_pipeline::{PipelineOptions, RunOptions};

use crate::project::{TestProject, flow, no_op};

const SQL: &str = "
CREATE OR REFRESH STREAMING TABLE events AS
SELECT * FROM STREAM read_files('landing', format => 'csv', header => true,
  schema => 'id INT, at TIMESTAMP');
CREATE OR REFRESH MATERIALIZED VIEW recent REFRESH POLICY INCREMENTAL STRICT AS
SELECT id, at FROM events WHERE at > now() - INTERVAL 1 DAY;
CREATE OR REFRESH MATERIALIZED VIEW recent_count AS SELECT count(*) AS n FROM recent;
";
const HOUR: i64 = 3_600_000_000;
/// 2024-05-01 12:00 UTC.
const NOON: i64 = 1_714_564_800_000_000;

fn project() -> TestProject {
    let project = TestProject::new(SQL);
    project.write(
        "landing/1.csv",
        "id,at\n1,2024-04-30T18:00:00Z\n2,2024-05-01T06:00:00Z\n3,2024-05-03T00:00:00Z\n",
    );
    project
}

fn recent(project: &TestProject) -> (Vec<String>, Vec<String>) {
    (project.rows("SELECT id FROM recent"), project.rows("SELECT n FROM recent_count"))
}

fn is(project: &TestProject, ids: &[&str]) {
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let n = ids.len().to_string();
    assert_eq!(recent(project), (ids, vec![n]));
}

#[test]
fn rows_leave_as_time_passes() {
    let project = project();
    project.run_at(NOON);
    is(&project, &["1", "2", "3"]);
    // Nothing leaves within the next hour, and that leaves no trace.
    let before = project.listing();
    assert!(no_op(&project.run_at(NOON + HOUR)));
    assert_eq!(project.listing(), before);
    let report = project.run_at(NOON + 7 * HOUR);
    is(&project, &["2", "3"]);
    assert_eq!(flow(&report, "recent").technique, "TEMPORAL");
    assert_eq!(flow(&report, "recent").rows_deleted, 1);
    assert_eq!(flow(&report, "recent_count").technique, "GROUP_AGGREGATE");
    // New rows and time at once; a clock that is set back.
    project.write("landing/2.csv", "id,at\n4,2024-05-01T19:30:00Z\n5,2024-04-30T20:00:00Z\n");
    project.run_at(NOON + 20 * HOUR);
    is(&project, &["3", "4"]);
    project.run_at(NOON);
    is(&project, &["1", "2", "3", "4", "5"]);
    let changes = "SELECT id, _change_type FROM table_changes('recent', 3)";
    assert!(project.rows(changes).contains(&"5|insert".to_owned()), "{:?}", project.rows(changes));
}

#[test]
fn a_stop_between_two_times_changes_nothing() {
    let mut steps = 0;
    loop {
        let project = project();
        project.run_at(NOON);
        let options = PipelineOptions { threads: Some(1), now_us: Some(NOON + 7 * HOUR) };
        let pipeline = deltaic_pipeline::Pipeline::open(project.root(), options).unwrap();
        pipeline.fail_after(steps);
        let stopped = match pipeline.run(&RunOptions::default(), &()) {
            Ok(report) => !report.succeeded(),
            Err(_) => true,
        };
        project.run_at(NOON + 19 * HOUR);
        is(&project, &["3"]);
        if !stopped {
            break;
        }
        steps += 1;
    }
    assert!(steps > 5, "{steps} steps");
}

#[test]
fn what_cannot_follow_the_clock_is_computed_anew() {
    let project = TestProject::new(
        "CREATE MATERIALIZED VIEW v AS
         WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n + 1 FROM r WHERE n < 3)
         SELECT n, now() AS at FROM r WHERE now() > TIMESTAMP '2024-05-01 13:00:00'",
    );
    project.run_at(NOON);
    assert_eq!(project.rows("SELECT * FROM v").len(), 0);
    project.run_at(NOON + 2 * HOUR);
    assert_eq!(project.rows("SELECT * FROM v").len(), 3);
    assert!(no_op(&project.run_at(NOON + 2 * HOUR)));
}
