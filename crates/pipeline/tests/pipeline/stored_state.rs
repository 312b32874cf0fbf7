//! Operator state between runs: which files hold it, and what happens when one of them is damaged.

use std::path::PathBuf;

use super::project::{TestProject, flow};

const DIMENSION: &str = "
    CREATE STREAMING TABLE dim;
    CREATE FLOW f AS AUTO CDC INTO dim
    FROM STREAM read_files('landing', format => 'json', schema => 'id INT, name STRING, seq INT')
    KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq) STORED AS SCD TYPE 2;";
const VERSIONS: &str = "SELECT count(*), count(__END_AT), sum(id), sum(__START_AT) FROM dim";

/// Events of keys from `first` on, one each.
fn land(project: &TestProject, file: u32, first: u32, keys: u32) {
    let event = |id: u32| format!(r#"{{"id":{id},"name":"name {file} of {id}","seq":{file}}}"#);
    let events: Vec<String> = (first..first + keys).map(event).collect();
    project.write(&format!("landing/{file:03}.json"), &events.join("\n"));
}

fn files(project: &TestProject) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(project.storage().join("state/dim")).unwrap();
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn many_small_updates_leave_few_files() {
    let project = TestProject::new(DIMENSION);
    land(&project, 0, 0, 2_000);
    project.run();
    for update in 1..=40 {
        land(&project, update, 10 * update, 5);
        project.run();
        assert!(files(&project).len() <= 7, "update {update}: {:?}", files(&project));
    }
    // 2000 versions of the load, and 40 times 5 that end one of them.
    assert_eq!(project.rows(VERSIONS), ["2200|200|2040400|4100"]);
    // Changes of half of the load's size make a new full image.
    land(&project, 41, 0, 1_500);
    project.run();
    assert_eq!(files(&project).len(), 1, "{:?}", files(&project));
    assert_eq!(project.rows(VERSIONS), ["3700|1700|3164650|65600"]);
}

/// A block is looked at when a key in it is: then the merge starts again from the source.
#[test]
fn damage_is_noticed_where_it_is_read() {
    let project = TestProject::new(DIMENSION);
    land(&project, 0, 0, 2_000);
    project.run();
    land(&project, 1, 0, 1);
    project.run();
    let full = files(&project).remove(0);
    let whole = std::fs::read(&full).unwrap();
    let mut rebuilt = 0;
    for (update, at) in (2..12).zip((0..10).map(|part| whole.len() - 1 - part * whole.len() / 12)) {
        let mut damaged = std::fs::read(&full).unwrap_or_default();
        if let Some(byte) = damaged.get_mut(at) {
            *byte ^= 1;
            std::fs::write(&full, damaged).unwrap();
        }
        land(&project, update, 100 * update, 40);
        let report = project.run();
        rebuilt += flow(&report, "dim").warnings.iter().filter(|w| w.contains("damaged")).count();
        let landed = u64::from(update - 1) * 40 + 2_001;
        let counted = project.rows("SELECT count(*) FROM dim");
        assert_eq!(counted, [landed.to_string()], "update {update}");
    }
    assert!(rebuilt > 0);
    let mut last = TestProject::new(DIMENSION);
    last = last.parallel();
    land(&last, 0, 0, 2_000);
    land(&last, 1, 0, 1);
    (2..12).for_each(|update| land(&last, update, 100 * update, 40));
    last.run();
    assert_eq!(project.rows(VERSIONS), last.rows(VERSIONS));
}
