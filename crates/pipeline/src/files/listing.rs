//! Which files a path means: a file, a folder or a glob, relative to the project.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use deltaic_batch::{Error, Result};
use serde::{Deserialize, Serialize};

use super::options::FileOptions;
use crate::near::near_names;

/// A file as it lies there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    /// Path, relative to the project where it lies inside it.
    pub(crate) path: String,
    /// Bytes.
    pub(crate) size: u64,
    /// Modification time, microseconds since 1970.
    pub(crate) mtime_us: i64,
}

impl FileEntry {
    /// Where to open it.
    pub(crate) fn full_path(&self, root: &Path) -> PathBuf {
        root.join(&self.path)
    }
}

/// Files of a call, sorted by path. Hidden and `_`-prefixed files and folders are skipped.
pub(crate) fn list(root: &Path, options: &FileOptions) -> Result<Vec<FileEntry>> {
    let path = options.path.strip_prefix("file://").unwrap_or(&options.path);
    if path.contains("://") {
        return Err(Error::user("FILE_PATH_SCHEME", "only local files can be read")
            .object(&options.path)
            .hint("give a path relative to the project folder, or an absolute one"));
    }
    let full = root.join(path);
    let mut found = Vec::new();
    if path.contains(['*', '?', '[']) {
        glob_files(&full, options, &mut found)?;
    } else if full.is_dir() {
        walk(&full, options, &mut found)?;
    } else if full.is_file() {
        found.push(full);
    } else if !options.ignore_missing {
        return Err(missing(root, path));
    }
    let mut entries = Vec::with_capacity(found.len());
    for file in found {
        if let Some(entry) = entry(root, &file, options)? {
            entries.push(entry);
        }
    }
    entries.sort_by(|a: &FileEntry, b| a.path.cmp(&b.path));
    entries.dedup_by(|a, b| a.path == b.path);
    Ok(entries)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::storage("FILE_UNREADABLE", format!("cannot be read: {error}"))
        .object(path.display().to_string())
}

fn hidden(path: &Path) -> bool {
    path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(['.', '_']))
}

fn walk(folder: &Path, options: &FileOptions, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).map_err(|e| unreadable(folder, &e))? {
        let entry = entry.map_err(|e| unreadable(folder, &e))?;
        let path = entry.path();
        if hidden(&path) {
            continue;
        }
        let kind = entry.file_type().map_err(|e| unreadable(&path, &e))?;
        if kind.is_dir() || (kind.is_symlink() && path.is_dir()) {
            if options.recursive {
                walk(&path, options, found)?;
            }
        } else {
            found.push(path);
        }
    }
    Ok(())
}

fn glob_files(full: &Path, options: &FileOptions, found: &mut Vec<PathBuf>) -> Result<()> {
    let pattern = full.to_string_lossy();
    let paths = glob::glob(&pattern).map_err(|e| {
        Error::user("FILE_PATTERN", format!("is not a valid pattern: {e}")).object(&options.path)
    })?;
    for path in paths {
        let path = path.map_err(|e| unreadable(e.path(), e.error()))?;
        if hidden(&path) {
            continue;
        }
        if path.is_dir() { walk(&path, options, found)? } else { found.push(path) }
    }
    Ok(())
}

fn entry(root: &Path, file: &Path, options: &FileOptions) -> Result<Option<FileEntry>> {
    let name = file.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    if options.name_pattern.as_ref().is_some_and(|p| !p.matches(name)) {
        return Ok(None);
    }
    let meta = std::fs::metadata(file).map_err(|e| unreadable(file, &e))?;
    let mtime_us = meta
        .modified()
        .ok()
        .and_then(|t| t.duration_since(UNIX_EPOCH).ok())
        .and_then(|d| i64::try_from(d.as_micros()).ok())
        .unwrap_or(0);
    let path = file.strip_prefix(root).unwrap_or(file).to_string_lossy().replace('\\', "/");
    Ok(Some(FileEntry { path, size: meta.len(), mtime_us }))
}

fn missing(root: &Path, path: &str) -> Error {
    let full = root.join(path);
    let error = Error::user("PATH_NOT_FOUND", "there is no such file or folder").object(path);
    let names: Vec<String> = full
        .parent()
        .and_then(|parent| std::fs::read_dir(parent).ok())
        .map(|dir| dir.flatten().filter_map(|e| e.file_name().into_string().ok()).collect())
        .unwrap_or_default();
    let wanted = full.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    match near_names(wanted, names.iter().map(String::as_str)).as_slice() {
        [] => error.hint("make the folder, or set ignoreMissingFiles => true"),
        near => error.hint(format!("beside it there is {}", near.join(", "))),
    }
}
