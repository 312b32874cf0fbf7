//! Which SQL files the globs of a project cover.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use deltaic_batch::{Error, Result};

use super::SqlFile;
use super::spec::Glob;

/// Entries looked at in search of files that no glob covers.
const ENTRIES_MAX: usize = 20_000;

/// Covered files with their text, and paths of SQL files that no glob covers; both sorted.
pub(super) fn covered(
    root: &Path,
    storage: &Path,
    globs: &[Glob],
) -> Result<(Vec<SqlFile>, Vec<String>)> {
    let mut paths: BTreeMap<String, PathBuf> = BTreeMap::new();
    for glob in globs {
        match glob.include.strip_suffix("/**") {
            Some(folder) => add_folder(root, &root.join(folder), &mut paths)?,
            None => {
                let path = root.join(&glob.include);
                check_file(&path, glob)?;
                paths.insert(relative(root, &path), path);
            }
        }
    }
    let mut files = Vec::with_capacity(paths.len());
    for (path, full) in &paths {
        let text = std::fs::read_to_string(full).map_err(|e| {
            Error::storage("IO", format!("cannot read it: {e}")).object(path.clone())
        })?;
        files.push(SqlFile { path: path.clone(), text });
    }
    let mut uncovered = Vec::new();
    let mut left = ENTRIES_MAX;
    walk(root, &mut |path, is_dir| {
        left = left.saturating_sub(1);
        if left == 0 || (is_dir && path == storage) {
            return false;
        }
        let name = relative(root, path);
        if !is_dir && is_sql(path) && !paths.contains_key(&name) {
            uncovered.push(name);
        }
        true
    })?;
    uncovered.sort();
    Ok((files, uncovered))
}

fn is_sql(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("sql"))
}

fn relative(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    path.components().map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn check_file(path: &Path, glob: &Glob) -> Result<()> {
    let error = if !path.is_file() {
        let message = format!("there is no file '{}'", glob.include);
        Error::user("PIPELINE_SPEC_INVALID_GLOB_PATTERN", message)
            .hint("a folder is written with /** at its end")
    } else if !is_sql(path) {
        unsupported(&glob.include)
    } else {
        return Ok(());
    };
    Err(match &glob.location {
        Some(location) => error.at(location.clone()),
        None => error,
    })
}

fn unsupported(path: &str) -> Error {
    let message = format!("'{path}' is not a .sql file");
    Error::user("PIPELINE_UNSUPPORTED_DEFINITIONS_FILE_EXTENSION", message)
        .hint("definitions are written in SQL")
}

/// A folder that is not there has no files: a new project may have none yet.
fn add_folder(root: &Path, folder: &Path, paths: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    let mut python = None;
    walk(folder, &mut |path, is_dir| {
        if !is_dir && is_sql(path) {
            paths.insert(relative(root, path), path.to_path_buf());
        } else if path.extension().is_some_and(|e| e == "py") {
            python.get_or_insert_with(|| relative(root, path));
        }
        path.file_name().is_none_or(|n| n != "__pycache__")
    })?;
    python.map_or(Ok(()), |path| Err(unsupported(&path)))
}

/// Calls `see` for every entry that is not hidden; `false` for a folder leaves it out.
fn walk(folder: &Path, see: &mut dyn FnMut(&Path, bool) -> bool) -> Result<()> {
    let io = |e: std::io::Error| {
        Error::storage("IO", format!("cannot list it: {e}")).object(folder.display().to_string())
    };
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let is_dir = entry.file_type().map_err(io)?.is_dir();
        let path = entry.path();
        if see(&path, is_dir) && is_dir {
            walk(&path, see)?;
        }
    }
    Ok(())
}
