//! A project in a scratch folder, and the binary run on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// What a command gave back.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the binary in a folder.
pub(crate) fn deltaic(folder: &Path, args: &[&str]) -> Ended {
    let output = Command::new(env!("CARGO_BIN_EXE_deltaic"))
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|e| panic!("the binary runs: {e}"));
    Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A folder with `pipeline.yml`, `transformations/all.sql` and `landing/`.
pub(crate) struct Project(TempDir);

impl Project {
    pub(crate) fn new(sql: &str) -> Self {
        let project = Self(tempfile::tempdir().unwrap_or_else(|e| panic!("{e}")));
        project.write("pipeline.yml", "name: test\n");
        project.write("transformations/all.sql", sql);
        fs::create_dir_all(project.path("landing")).unwrap_or_else(|e| panic!("{e}"));
        project
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        let parent = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(parent).unwrap_or_else(|e| panic!("{e}"));
        fs::write(path, text).unwrap_or_else(|e| panic!("{e}"));
    }

    pub(crate) fn land(&self, file: &str, text: &str) {
        self.write(&format!("landing/{file}"), text);
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        deltaic(self.0.path(), args)
    }

    /// Standard output of a command that succeeds, as JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let ended = self.run(args);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.stderr);
        serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {}", ended.stdout))
    }
}
