//! The log: one JSON file per version, checkpoints now and then.

use deltaic_batch::{Error, Result};

use super::actions::{Action, parse_lines};
use super::checkpoint::{self, Checkpoint};
use super::snapshot::{Replay, Snapshot};
use crate::Storage;

/// Folder of the log below the table's.
pub(crate) const FOLDER: &str = "_delta_log";

/// Path of a version's entry below the table's folder.
pub(crate) fn entry_path(version: i64) -> String {
    format!("{FOLDER}/{version:020}.json")
}

/// The newest state, or that of `version`; `None` when there is no table.
pub(crate) fn load(root: &Storage, version: Option<i64>) -> Result<Option<Snapshot>> {
    let mut replay = Replay::default();
    match replay_to(root, version, &mut replay)? {
        Some(reached) => replay.finish(reached).map(Some),
        None => Ok(None),
    }
}

/// Replays up to `version` (or the newest) and says which version that is.
///
/// The usual case needs no listing: the hint names the newest checkpoint, and entries after it are
/// read one by one until there is none.
pub(crate) fn replay_to(
    root: &Storage,
    version: Option<i64>,
    replay: &mut Replay,
) -> Result<Option<i64>> {
    let mut reached = None;
    if let Some(start) = start_of(root, version)? {
        replay.apply(start.read(root)?);
        reached = Some(start.version);
    }
    if version.is_some() && reached == version {
        return Ok(reached);
    }
    loop {
        let next = reached.map_or(0, |v| v + 1);
        let Some(bytes) = root.get(&entry_path(next))? else { break };
        replay.apply(parse_lines::<Action>(&bytes, &root.full(&entry_path(next)))?);
        reached = Some(next);
        if version == reached {
            return Ok(reached);
        }
    }
    match (reached, version) {
        (Some(newest), Some(wanted)) => Err(Error::user(
            "VERSION_NOT_FOUND",
            format!("version {wanted} of the table does not exist; versions go to {newest}"),
        )),
        (reached, _) => Ok(reached),
    }
}

/// The newest checkpoint that is not after `version`.
fn start_of(root: &Storage, version: Option<i64>) -> Result<Option<Checkpoint>> {
    let usable = |c: &Checkpoint| version.is_none_or(|v| c.version <= v);
    if let Some(hinted) = checkpoint::hinted(root)?
        && usable(&hinted)
    {
        return Ok(Some(hinted));
    }
    if root.open(&entry_path(0))?.is_some() && version.is_none_or(|v| v < checkpoint::INTERVAL) {
        return Ok(None);
    }
    let names = root.list(FOLDER)?;
    Ok(checkpoint::listed(&names).into_iter().rev().find(usable))
}

/// Bytes of a version's entry; an error when the log no longer has it.
pub(crate) fn entry(root: &Storage, version: i64) -> Result<bytes::Bytes> {
    root.get(&entry_path(version))?.ok_or_else(|| {
        Error::storage(
            "VERSION_NOT_FOUND",
            format!("the table's log has no entry for version {version} (any more)"),
        )
    })
}

/// Versions whose entries are there, ascending.
pub(crate) fn versions(root: &Storage) -> Result<Vec<i64>> {
    let names = root.list(FOLDER)?;
    Ok(names
        .iter()
        .filter_map(|name| name.strip_suffix(".json"))
        .filter(|stem| stem.len() == 20)
        .filter_map(|stem| stem.parse().ok())
        .collect())
}
