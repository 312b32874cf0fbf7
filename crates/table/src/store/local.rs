//! A folder on this machine.
//!
//! Each write goes to a temporary file beside its target, is flushed to the disk, and only then
//! gets its name (`rename`, or `link` where the name must be new); then the folder is flushed too,
//! since a name is as volatile as data until its folder is on the disk. Temporary names start with
//! a dot and are never listed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use uuid::Uuid;

use super::{Backend, NewObject, ReadAt};

/// Names of files that are being written or thrown away.
const TEMPORARY: &str = ".deltaic-tmp-";

#[derive(Debug)]
pub(super) struct LocalBackend {
    root: PathBuf,
}

impl LocalBackend {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    fn path(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }
}

impl Backend for LocalBackend {
    fn local_root(&self) -> Option<&Path> {
        Some(&self.root)
    }

    fn open(&self, path: &str) -> io::Result<Option<Arc<dyn ReadAt>>> {
        let file = match File::open(self.path(path)) {
            Ok(file) => file,
            Err(e) if is_absent(&e) => return Ok(None),
            Err(e) => return Err(e),
        };
        let metadata = file.metadata()?;
        let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Some(Arc::new(LocalFile {
            file,
            size: metadata.len(),
            modified_ms: i64::try_from(modified.as_millis()).unwrap_or(i64::MAX),
        })))
    }

    fn put_all(&self, objects: &[NewObject]) -> io::Result<()> {
        let targets: Vec<PathBuf> = objects.iter().map(|o| self.path(&o.path)).collect();
        let mut folders = BTreeSet::new();
        for (target, object) in targets.iter().zip(objects) {
            make_folder(parent(target)?)?;
            if object.durable {
                folders.insert(parent(target)?);
            }
        }
        let pairs: Vec<_> = targets.iter().zip(objects).collect();
        in_parallel(&pairs, |(target, object)| {
            let temporary = write_temporary(target, object)?;
            fs::rename(&temporary, target).inspect_err(|_| drop(fs::remove_file(&temporary)))
        })?;
        in_parallel(&folders.into_iter().collect::<Vec<_>>(), |folder| sync_folder(folder))
    }

    fn put_if_absent(&self, object: &NewObject) -> io::Result<bool> {
        let target = self.path(&object.path);
        if target.exists() {
            return Ok(false);
        }
        let folder = parent(&target)?;
        make_folder(folder)?;
        let temporary = write_temporary(&target, object)?;
        let linked = fs::hard_link(&temporary, &target);
        fs::remove_file(&temporary)?;
        match linked {
            Ok(()) => sync_folder(folder).map(|()| true),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.path(folder)) {
            Ok(entries) => entries,
            Err(e) if is_absent(&e) => return Ok(Vec::new()),
            Err(e) => return Err(e),
        };
        let mut names = Vec::new();
        for entry in entries {
            if let Ok(name) = entry?.file_name().into_string()
                && !name.starts_with(TEMPORARY)
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn delete(&self, path: &str) -> io::Result<()> {
        match fs::remove_file(self.path(path)) {
            Err(e) if !is_absent(&e) => Err(e),
            _ => Ok(()),
        }
    }

    fn delete_folder(&self, folder: &str) -> io::Result<()> {
        let folder = self.path(folder);
        let doomed = parent(&folder)?.join(format!("{TEMPORARY}{}", Uuid::new_v4().simple()));
        match fs::rename(&folder, &doomed) {
            Ok(()) => {}
            Err(e) if is_absent(&e) => return Ok(()),
            Err(e) => return Err(e),
        }
        sync_folder(parent(&folder)?)?;
        fs::remove_dir_all(doomed)
    }
}

#[derive(Debug)]
struct LocalFile {
    file: File,
    size: u64,
    modified_ms: i64,
}

impl ReadAt for LocalFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn modified_ms(&self) -> i64 {
        self.modified_ms
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }
}

/// Runs `work` on all items, on threads of their own when there are several: what takes time is
/// waiting for the disk, and several waits at once take as long as one.
fn in_parallel<T: Sync>(items: &[T], work: impl Fn(&T) -> io::Result<()> + Sync) -> io::Result<()> {
    let [first, rest @ ..] = items else { return Ok(()) };
    std::thread::scope(|scope| {
        let work = &work;
        let handles: Vec<_> = rest.iter().map(|item| scope.spawn(move || work(item))).collect();
        let mut result = work(first);
        for handle in handles {
            let other = handle.join().unwrap_or_else(|_| Err(io::Error::other("a writer stopped")));
            result = result.and(other);
        }
        result
    })
}

fn write_temporary(target: &Path, object: &NewObject) -> io::Result<PathBuf> {
    let temporary = parent(target)?.join(format!("{TEMPORARY}{}", Uuid::new_v4().simple()));
    let write = || {
        let mut file = File::create_new(&temporary)?;
        object.bytes.iter().try_for_each(|part| file.write_all(part))?;
        if object.durable { file.sync_all() } else { Ok(()) }
    };
    write().inspect_err(|_| drop(fs::remove_file(&temporary)))?;
    Ok(temporary)
}

/// Makes a folder and flushes the folders that got a new name.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = parent(folder)?;
    make_folder(above)?;
    match fs::create_dir(folder) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(e) => Err(e),
        Ok(()) => sync_folder(above),
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn parent(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "the path has no folder"))
}

fn is_absent(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
