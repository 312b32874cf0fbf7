//! A storage that dies at its n-th write, for tests of crashes.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Backend, NewObject, ReadAt};

/// When a storage dies. Writes are counted over all storages that share the fault.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Fault {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    writes: AtomicU64,
    fatal: u64,
    after_writing: bool,
    dead: AtomicBool,
}

impl Fault {
    /// Dies at the write with this number (from 0): before it takes effect, or just after, so that
    /// the caller never hears of its success.
    pub fn new(fatal: u64, after_writing: bool) -> Self {
        Self {
            shared: Arc::new(Shared {
                writes: AtomicU64::new(0),
                fatal,
                after_writing,
                dead: AtomicBool::new(false),
            }),
        }
    }

    /// True once the fatal write was reached.
    pub fn happened(&self) -> bool {
        self.shared.dead.load(Ordering::SeqCst)
    }

    fn write<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.alive()?;
        if self.shared.writes.fetch_add(1, Ordering::SeqCst) != self.shared.fatal {
            return work();
        }
        self.shared.dead.store(true, Ordering::SeqCst);
        if self.shared.after_writing {
            work()?;
        }
        Err(died())
    }

    fn alive(&self) -> io::Result<()> {
        if self.happened() { Err(died()) } else { Ok(()) }
    }
}

fn died() -> io::Error {
    io::Error::other("injected fault")
}

#[derive(Debug)]
pub(super) struct FaultBackend {
    inner: Arc<dyn Backend>,
    fault: Fault,
}

impl FaultBackend {
    pub(super) fn new(inner: Arc<dyn Backend>, fault: Fault) -> Self {
        Self { inner, fault }
    }
}

impl Backend for FaultBackend {
    fn local_root(&self) -> Option<&Path> {
        self.inner.local_root()
    }

    fn open(&self, path: &str) -> io::Result<Option<Arc<dyn ReadAt>>> {
        self.fault.alive()?;
        self.inner.open(path)
    }

    /// The objects of one call become visible one by one, so each counts as a write.
    fn put_all(&self, objects: &[NewObject]) -> io::Result<()> {
        objects
            .iter()
            .try_for_each(|o| self.fault.write(|| self.inner.put_all(std::slice::from_ref(o))))
    }

    fn put_if_absent(&self, object: &NewObject) -> io::Result<bool> {
        self.fault.write(|| self.inner.put_if_absent(object))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.fault.alive()?;
        self.inner.list(folder)
    }

    fn delete(&self, path: &str) -> io::Result<()> {
        self.fault.write(|| self.inner.delete(path))
    }

    fn delete_folder(&self, folder: &str) -> io::Result<()> {
        self.fault.write(|| self.inner.delete_folder(folder))
    }
}
