//! A project: `pipeline.yml` and the SQL files that it covers.

mod files;
mod spec;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use deltaic_batch::{Error, Result};

pub(crate) use spec::SPEC_NAMES;

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
    /// Finds and loads the project of `folder` or the nearest parent that has one. `folder` may
    /// also be the project file itself.
    pub fn load(folder: &Path) -> Result<Self> {
        let path = find(folder)?;
        let root = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        let file = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let text = std::fs::read_to_string(&path).map_err(|e| {
            Error::storage("IO", format!("cannot read it: {e}")).object(path.display().to_string())
        })?;
        let spec = spec::parse(&text, &file)?;
        let storage = root.join(&spec.storage);
        let (files, uncovered) = files::covered(&root, &storage, &spec.globs)?;
        Ok(Self {
            root,
            name: spec.name,
            storage,
            catalog: spec.catalog,
            schema: spec.schema,
            configuration: spec.configuration,
            files,
            uncovered,
        })
    }
}

/// The project file of `folder` or of the nearest parent that has one.
fn find(folder: &Path) -> Result<PathBuf> {
    let start = std::path::absolute(folder)
        .map_err(|e| Error::storage("IO", e.to_string()).object(folder.display().to_string()))?;
    if start.is_file() {
        return Ok(start);
    }
    if !start.is_dir() {
        let message = "there is no such folder".to_owned();
        return Err(Error::user("PIPELINE_SPEC_FILE_NOT_FOUND", message)
            .object(folder.display().to_string()));
    }
    for dir in start.ancestors() {
        let found: Vec<&str> =
            SPEC_NAMES.iter().copied().filter(|n| dir.join(n).is_file()).collect();
        match found[..] {
            [] => {}
            [one] => return Ok(dir.join(one)),
            _ => {
                let message = format!("there is more than one project file: {}", found.join(", "));
                return Err(Error::user("MULTIPLE_PIPELINE_SPEC_FILES_FOUND", message)
                    .object(dir.display().to_string())
                    .hint("keep one of them"));
            }
        }
    }
    let message = format!("no {} here or in a parent folder", SPEC_NAMES[0]);
    Err(Error::user("PIPELINE_SPEC_FILE_NOT_FOUND", message)
        .object(folder.display().to_string())
        .hint("create a project with 'deltaic init DIR', or name its folder with --project"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn paths(project: &Project) -> Vec<&str> {
        project.files.iter().map(|f| f.path.as_str()).collect()
    }

    #[test]
    fn defaults_and_search_in_parents() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "pipeline.yml", "name: shop\n");
        write(dir.path(), "transformations/b/x.sql", "-- x");
        write(dir.path(), "transformations/a.sql", "-- a");
        write(dir.path(), "transformations/.hidden/y.sql", "");
        write(dir.path(), "transformations/notes.txt", "");
        write(dir.path(), "scratch/old.sql", "");
        write(dir.path(), "storage/table/z.sql", "");
        let project = Project::load(&dir.path().join("transformations/b")).unwrap();
        assert_eq!(
            (&*project.name, &*project.schema, &project.catalog),
            ("shop", "default", &None)
        );
        assert_eq!(paths(&project), ["transformations/a.sql", "transformations/b/x.sql"]);
        assert_eq!(project.files[0].text, "-- a");
        assert_eq!(project.uncovered, ["scratch/old.sql"]);
        assert_eq!(project.storage, project.root.join("storage"));
    }

    #[test]
    fn all_fields() {
        let dir = tempfile::tempdir().unwrap();
        let spec = "name: n\nstorage: file:///data/store\ncatalog: c\nschema: s\n\
                    configuration:\n  a.b: 'true'\n  x: text\n\
                    libraries:\n  - glob:\n      include: one.sql\n  - glob: {include: more/**}\n";
        write(dir.path(), "spark-pipeline.yaml", spec);
        write(dir.path(), "one.sql", "");
        write(dir.path(), "more/two.sql", "");
        write(dir.path(), "transformations/three.sql", "");
        let project = Project::load(dir.path()).unwrap();
        assert_eq!(project.storage, Path::new("/data/store"));
        assert_eq!((project.catalog.as_deref(), &*project.schema), (Some("c"), "s"));
        assert_eq!(project.configuration["a.b"], "true");
        assert_eq!(paths(&project), ["more/two.sql", "one.sql"]);
        assert_eq!(project.uncovered, ["transformations/three.sql"]);
    }

    #[test]
    fn no_project_and_two_projects() {
        let dir = tempfile::tempdir().unwrap();
        let missing = Project::load(&dir.path().join("nowhere")).unwrap_err();
        assert_eq!(missing.code(), "PIPELINE_SPEC_FILE_NOT_FOUND");
        write(dir.path(), "pipeline.yml", "name: a\n");
        write(dir.path(), "spark-pipeline.yml", "name: a\n");
        let two = Project::load(dir.path()).unwrap_err();
        assert_eq!(two.code(), "MULTIPLE_PIPELINE_SPEC_FILES_FOUND");
    }

    #[test]
    fn files_of_globs_must_be_sql() {
        let dir = tempfile::tempdir().unwrap();
        let spec = "name: a\nlibraries:\n  - glob:\n      include: x.txt\n";
        write(dir.path(), "pipeline.yml", spec);
        let missing = Project::load(dir.path()).unwrap_err();
        assert_eq!(missing.code(), "PIPELINE_SPEC_INVALID_GLOB_PATTERN");
        assert_eq!(missing.location().unwrap().line, 4);
        write(dir.path(), "x.txt", "");
        let wrong = Project::load(dir.path()).unwrap_err();
        assert_eq!(wrong.code(), "PIPELINE_UNSUPPORTED_DEFINITIONS_FILE_EXTENSION");
    }
}
