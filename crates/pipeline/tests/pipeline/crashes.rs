//! A run that stops at any write step, and the run after it.

use deltaic_pipeline::RunOptions;

use crate::flows::{MEDALLION, land_first, land_second};
use crate::project::{TestProject, no_op};

const TABLES: [&str; 4] = [
    "SELECT * FROM customers_raw",
    "SELECT * FROM customers",
    "SELECT * FROM orders",
    "SELECT * FROM revenue",
];

fn tables(project: &TestProject) -> Vec<Vec<String>> {
    TABLES.iter().map(|sql| project.rows(sql)).collect()
}

/// Two runs, the second of which stops at each of its writes in turn; the run after it makes the
/// tables what they are without a stop. Returns the number of writes.
pub(crate) fn stop_at_each_write(
    sql: &str,
    [land_first, land_second]: [fn(&TestProject); 2],
    tables: impl Fn(&TestProject) -> Vec<Vec<String>>,
) -> i64 {
    let whole = TestProject::new(sql);
    land_first(&whole);
    whole.run();
    let after_first = tables(&whole);
    land_second(&whole);
    whole.run();
    let after_second = tables(&whole);

    let mut steps = 0;
    loop {
        let project = TestProject::new(sql);
        land_first(&project);
        project.run();
        land_second(&project);
        let pipeline = project.open();
        pipeline.fail_after(steps);
        let stopped = match pipeline.run(&RunOptions::default(), &()) {
            Ok(report) => !report.succeeded(),
            Err(_) => true,
        };
        // Readers see the old update or the new one, never a mixture.
        let seen = tables(&project);
        assert!(seen == after_first || seen == after_second, "step {steps}: {seen:?}");
        project.run();
        assert_eq!(tables(&project), after_second, "step {steps}");
        assert!(no_op(&project.run()), "step {steps}");
        if !stopped {
            return steps;
        }
        steps += 1;
    }
}

#[test]
fn a_stop_at_any_write_loses_nothing_and_doubles_nothing() {
    let steps = stop_at_each_write(MEDALLION, [land_first, land_second], tables);
    assert!(steps > 10, "{steps} steps");
}

#[test]
fn a_stop_in_the_first_run_is_no_different() {
    let whole = TestProject::new(MEDALLION);
    land_first(&whole);
    whole.run();
    let expected = tables(&whole);
    for steps in 0..20 {
        let project = TestProject::new(MEDALLION);
        land_first(&project);
        let pipeline = project.open();
        pipeline.fail_after(steps);
        drop(pipeline.run(&RunOptions::default(), &()));
        project.run();
        assert_eq!(tables(&project), expected, "step {steps}");
    }
}
