//! One run at a time: an advisory lock that the system releases however the process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use deltaic_batch::{Error, Result};

/// Held for the length of a run.
#[derive(Debug)]
pub(crate) struct RunLock {
    _file: File,
}

impl RunLock {
    /// Takes the lock of a storage folder; fails at once when another run has it.
    pub(crate) fn take(storage: &Path) -> Result<Self> {
        let io = |e: std::io::Error| {
            Error::storage("IO", format!("cannot lock the storage folder: {e}"))
                .object(storage.display().to_string())
        };
        std::fs::create_dir_all(storage).map_err(io)?;
        let path = storage.join(".lock");
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => {
                Err(Error::storage("RUN_IN_PROGRESS", "another run of this project is going on")
                    .object(storage.display().to_string())
                    .hint("wait until it ends; a run that was killed holds no lock"))
            }
            Err(TryLockError::Error(e)) => Err(io(e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RunLock;

    #[test]
    fn a_second_run_is_refused_until_the_first_ends() {
        let folder = tempfile::tempdir().unwrap();
        let first = RunLock::take(folder.path()).unwrap();
        assert_eq!(RunLock::take(folder.path()).unwrap_err().code(), "RUN_IN_PROGRESS");
        drop(first);
        RunLock::take(folder.path()).unwrap();
    }
}
