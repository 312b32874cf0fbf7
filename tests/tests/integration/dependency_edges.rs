//! Dependencies point one way: a crate may depend only on those above it in this list, and the
//! kernel knows nothing of planning, files, or asynchronous runtimes.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

const ORDER: [&str; 11] = [
    "deltaic-batch",
    "deltaic-state",
    "deltaic-ops",
    "deltaic-exec",
    "deltaic-table",
    "deltaic-plan",
    "deltaic-sql",
    "deltaic-pipeline",
    "deltaic",
    "deltaic-cli",
    "deltaic-testkit",
];

const KERNEL: [&str; 4] = ["deltaic-batch", "deltaic-state", "deltaic-ops", "deltaic-exec"];

const KERNEL_MAY_USE: [&str; 10] = [
    "arrow",
    "hashbrown",
    "rayon",
    "thiserror",
    "timely",
    "differential-dataflow",
    "crc32fast",
    "deltaic-batch",
    "deltaic-state",
    "deltaic-ops",
];

/// Crate name to the names of its normal (not development) dependencies.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let text = |v: &Value| v.as_str().expect("a string").to_owned();
    metadata["packages"]
        .as_array()
        .expect("packages")
        .iter()
        .map(|package| {
            let normal = package["dependencies"].as_array().expect("dependencies").iter();
            let normal = normal.filter(|d| d["kind"].is_null()).map(|d| text(&d["name"]));
            (text(&package["name"]), normal.collect())
        })
        .collect()
}

#[test]
fn crates_depend_only_on_those_above_them() {
    let all = dependencies();
    for (rank, name) in ORDER.iter().enumerate() {
        let used = all.get(*name).unwrap_or_else(|| panic!("{name} is not in the workspace"));
        for dependency in used {
            if let Some(other) = ORDER.iter().position(|o| o == dependency) {
                assert!(other < rank, "{name} must not depend on {dependency}");
            }
        }
    }
    let testkit = "deltaic-testkit".to_owned();
    for (name, used) in &all {
        if ORDER.contains(&name.as_str()) {
            assert!(!used.contains(&testkit), "{name} may use {testkit} only in its tests");
        }
    }
}

#[test]
fn the_kernel_uses_little() {
    let all = dependencies();
    for name in KERNEL {
        for dependency in &all[name] {
            assert!(
                KERNEL_MAY_USE.contains(&dependency.as_str()),
                "{name} must not depend on {dependency}"
            );
        }
    }
}
