//! The runner of sqllogictest files, over a file of ours.

use std::path::Path;

use deltaic_proptests::corpus::{Sample, run_file};

#[test]
fn every_query_of_the_files_passes_as_a_view() {
    for (file, queries) in [("queries.test", 8), ("nested.test", 19)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/laws").join(file);
        for seed in 1..=4 {
            let outcome = run_file(&path, Sample { every: 1, seed }).unwrap();
            assert_eq!(outcome.passed, queries, "{}", outcome.report(file));
            assert!(
                outcome.is_good() && outcome.refused.is_empty() && outcome.statements.is_empty()
            );
        }
    }
}

#[test]
fn a_wrong_answer_is_told() {
    let path = std::env::temp_dir().join(format!("wrong-{}.test", std::process::id()));
    std::fs::write(&path, "query I rowsort\nSELECT 1\n----\n2\n").unwrap();
    let outcome = run_file(&path, Sample { every: 1, seed: 1 }).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!((outcome.passed, outcome.unexpected.len()), (0, 1));
    assert!(!outcome.is_good());
}
