//! A project: `pipeline.yml` and the SQL files that it covers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use deltaic_batch::Result;

/// One SQL file.
#[derive(Debug, Clone)]
pub struct SqlFile {
    /// Path relative to the project folder.
    pub path: String,
    /// Content.
    pub text: String,
}

/// A loaded project.
#[derive(Debug, Clone)]
pub struct Project {
    /// Folder of the project file.
    pub root: PathBuf,
    /// `name`.
    pub name: String,
    /// `storage`, absolute.
    pub storage: PathBuf,
    /// `catalog`.
    pub catalog: Option<String>,
    /// `database` or `schema`.
    pub schema: String,
    /// `configuration`.
    pub configuration: BTreeMap<String, String>,
    /// Covered SQL files, sorted by path.
    pub files: Vec<SqlFile>,
    /// SQL files under the root that no glob covers (`dry-run` names them).
    pub uncovered: Vec<String>,
}

impl Project {
    /// Finds and loads the project of `folder` or the nearest parent that has one.
    pub fn load(_folder: &Path) -> Result<Self> {
        unimplemented!("skeleton")
    }
}
