//! A project in a temporary folder, and the binary run on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A project that is removed when dropped.
pub(crate) struct Project {
    folder: TempDir,
}

/// What a call of the binary gave.
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Project {
    /// A project whose only SQL file is `transformations/pipeline.sql`.
    pub(crate) fn new(sql: &str) -> Self {
        let project = Self { folder: TempDir::new().expect("a temporary folder") };
        project.write("pipeline.yml", "name: test\n");
        project.write("transformations/pipeline.sql", sql);
        project
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folder is made");
        std::fs::write(path, text).expect("file is written");
    }

    /// Runs `deltaic ARGS --project ROOT`.
    pub(crate) fn call(&self, args: &[&str]) -> Answer {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deltaic"));
        answer(command.args(args).arg("--project").arg(self.root()))
    }

    /// Runs a query and gives its JSON rows.
    pub(crate) fn rows(&self, sql: &str) -> Vec<serde_json::Value> {
        let answer = self.call(&["query", "--format", "json", sql]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        serde_json::from_str(&answer.stdout).expect("an array of rows")
    }

    /// Every file under the storage folder with its bytes.
    pub(crate) fn storage(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.root().join("storage")];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = std::fs::read_dir(folder) else { continue };
            for entry in entries {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = std::fs::read(&path).expect("readable");
                    files.insert(path, bytes);
                }
            }
        }
        files
    }
}

/// Runs a prepared command.
pub(crate) fn answer(command: &mut Command) -> Answer {
    let Output { status, stdout, stderr } = command.output().expect("the binary starts");
    Answer {
        code: status.code().unwrap_or(-1),
        stdout: String::from_utf8(stdout).expect("UTF-8"),
        stderr: String::from_utf8(stderr).expect("UTF-8"),
    }
}
