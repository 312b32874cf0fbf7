//! Checkpoints: the whole state of a table in one Parquet file, so that opening a table with a
//! long log reads little of it.

mod read;
mod write;

use deltaic_batch::Result;
use serde::{Deserialize, Serialize};

use super::actions::Action;
use super::log::FOLDER;
use crate::Storage;

pub(crate) use write::write;

/// Versions between two checkpoints.
pub(crate) const INTERVAL: i64 = 50;

/// A checkpoint in the log's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub(crate) version: i64,
    files: Vec<String>,
}

/// Content of `_last_checkpoint`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hint {
    version: i64,
    size: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parts: Option<u32>,
}

impl Checkpoint {
    /// Its actions.
    pub(crate) fn read(&self, root: &Storage) -> Result<Vec<Action>> {
        let mut actions = Vec::new();
        for file in &self.files {
            read::read(root, file, &mut actions)?;
        }
        Ok(actions)
    }
}

fn hint_path() -> String {
    format!("{FOLDER}/_last_checkpoint")
}

fn classic_path(version: i64) -> String {
    format!("{FOLDER}/{version:020}.checkpoint.parquet")
}

/// The checkpoint that the hint names. A hint that is unreadable or names a missing file is none.
pub(crate) fn hinted(root: &Storage) -> Result<Option<Checkpoint>> {
    let Some(bytes) = root.get(&hint_path())? else { return Ok(None) };
    let Ok(hint) = serde_json::from_slice::<Hint>(&bytes) else { return Ok(None) };
    let version = hint.version;
    let files = match hint.parts {
        None => vec![classic_path(version)],
        Some(parts) => (1..=parts)
            .map(|i| format!("{FOLDER}/{version:020}.checkpoint.{i:010}.{parts:010}.parquet"))
            .collect(),
    };
    for file in &files {
        if root.open(file)?.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(Checkpoint { version, files }))
}

/// Complete checkpoints among the names in the log's folder, oldest first.
pub(crate) fn listed(names: &[String]) -> Vec<Checkpoint> {
    let mut found: Vec<Checkpoint> = Vec::new();
    for name in names {
        let mut parts = name.split('.');
        let Some(Ok(version)) = parts.next().map(str::parse::<i64>) else { continue };
        let rest: Vec<&str> = parts.collect();
        let path = format!("{FOLDER}/{name}");
        match rest.as_slice() {
            ["checkpoint", "parquet"] => found.push(Checkpoint { version, files: vec![path] }),
            ["checkpoint", "0000000001", total, "parquet"] => {
                let files: Vec<String> = (1..=total.parse::<u32>().unwrap_or(0))
                    .map(|i| format!("{version:020}.checkpoint.{i:010}.{total}.parquet"))
                    .collect();
                if files.iter().all(|f| names.binary_search(f).is_ok()) {
                    let files = files.iter().map(|f| format!("{FOLDER}/{f}")).collect();
                    found.push(Checkpoint { version, files });
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_checkpoints_are_not_listed() {
        let name = |version: i64, rest: &str| format!("{version:020}.{rest}");
        let mut names = vec![
            name(5, "json"),
            name(5, "checkpoint.parquet"),
            name(9, "checkpoint.0000000001.0000000002.parquet"),
            name(12, "checkpoint.0000000001.0000000002.parquet"),
            name(12, "checkpoint.0000000002.0000000002.parquet"),
        ];
        names.sort();
        let versions: Vec<i64> = listed(&names).iter().map(|c| c.version).collect();
        assert_eq!(versions, [5, 12]);
        assert_eq!(listed(&names)[1].files.len(), 2);
    }
}
