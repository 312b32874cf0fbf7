//! [`Storage`]: a root under which all paths are relative.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use deltaic_batch::{Error, Result};

use super::fault::{Fault, FaultBackend};
use super::local::LocalBackend;
use super::{Backend, NewObject, ReadAt};

/// A root under which all paths are relative and `/`-separated. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Storage {
    backend: Arc<dyn Backend>,
    prefix: Arc<str>,
}

impl Storage {
    /// A folder on this machine (made if missing when first written).
    pub fn local(root: impl AsRef<Path>) -> Result<Self> {
        let root = std::path::absolute(root.as_ref())
            .map_err(|e| io_error("open", &root.as_ref().display().to_string(), &e))?;
        Ok(Self { backend: Arc::new(LocalBackend::new(root)), prefix: "".into() })
    }

    /// The same storage with a prefix added to all paths.
    #[must_use]
    pub fn child(&self, prefix: &str) -> Self {
        Self { backend: self.backend.clone(), prefix: self.full(prefix).into() }
    }

    /// The same storage, failing from its n-th write on, for tests of crashes.
    #[doc(hidden)]
    #[must_use]
    pub fn with_fault(&self, fault: &Fault) -> Self {
        let backend = FaultBackend::new(self.backend.clone(), fault.clone());
        Self { backend: Arc::new(backend), prefix: self.prefix.clone() }
    }

    /// Local folder of this storage, when it is one.
    pub fn local_root(&self) -> Option<PathBuf> {
        self.backend.local_root().map(|root| match &*self.prefix {
            "" => root.to_path_buf(),
            prefix => root.join(prefix),
        })
    }

    /// Whole object; `None` when absent.
    pub fn get(&self, path: &str) -> Result<Option<Bytes>> {
        match self.open(path)? {
            None => Ok(None),
            Some(object) => {
                let length = usize::try_from(object.size()).map_err(|_| too_large(path))?;
                object.read_at(0, length).map(Some).map_err(|e| io_error("read", path, &e))
            }
        }
    }

    /// An object that is read in parts; `None` when absent. It stays readable after its removal.
    pub fn object(&self, path: &str) -> Result<Option<Object>> {
        let object = |bytes| Object { path: self.full(path).into(), bytes };
        Ok(self.open(path)?.map(object))
    }

    /// Atomic, durable write, replacing what is there.
    pub fn put(&self, path: &str, bytes: Bytes) -> Result<()> {
        self.put_parts(path, vec![bytes])
    }

    /// As [`Self::put`], of bytes that are in several places.
    pub fn put_parts(&self, path: &str, bytes: Vec<Bytes>) -> Result<()> {
        self.put_all(vec![NewObject { path: path.into(), bytes, durable: true }])
    }

    /// Atomic, durable write that fails when the object exists (`false`).
    pub fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<bool> {
        let object = NewObject { path: self.full(path), bytes: vec![bytes], durable: true };
        self.backend.put_if_absent(&object).map_err(|e| io_error("write", path, &e))
    }

    /// Names directly under a folder, sorted; empty when absent.
    pub fn list(&self, folder: &str) -> Result<Vec<String>> {
        let mut names =
            self.backend.list(&self.full(folder)).map_err(|e| io_error("list", folder, &e))?;
        names.sort_unstable();
        Ok(names)
    }

    /// Removes an object; absent is fine.
    pub fn delete(&self, path: &str) -> Result<()> {
        self.backend.delete(&self.full(path)).map_err(|e| io_error("delete", path, &e))
    }

    /// Removes all objects under a folder.
    pub fn delete_folder(&self, folder: &str) -> Result<()> {
        self.backend.delete_folder(&self.full(folder)).map_err(|e| io_error("delete", folder, &e))
    }

    /// Opens an object for reading in pieces; `None` when absent.
    pub(crate) fn open(&self, path: &str) -> Result<Option<Arc<dyn ReadAt>>> {
        self.backend.open(&self.full(path)).map_err(|e| io_error("open", path, &e))
    }

    /// Writes several objects at once: one wait for the disk instead of one per object.
    pub(crate) fn put_all(&self, mut objects: Vec<NewObject>) -> Result<()> {
        let Some(first) = objects.first().map(|o| o.path.clone()) else { return Ok(()) };
        for object in &mut objects {
            object.path = self.full(&object.path);
        }
        self.backend.put_all(&objects).map_err(|e| io_error("write", &first, &e))
    }

    /// The path from the top of the storage, as messages name it.
    pub(crate) fn full(&self, path: &str) -> String {
        match (&*self.prefix, path) {
            ("", path) => path.into(),
            (prefix, "") => prefix.into(),
            (prefix, path) => format!("{prefix}/{path}"),
        }
    }
}

/// An object that is read in parts. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Object {
    path: Arc<str>,
    bytes: Arc<dyn ReadAt>,
}

impl Object {
    /// Number of bytes.
    pub fn size(&self) -> u64 {
        self.bytes.size()
    }

    /// Fills a buffer with the bytes from `offset` on; an error when there are fewer.
    pub fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.bytes.read_into(offset, buffer).map_err(|e| io_error("read", &self.path, &e))
    }
}

pub(crate) fn io_error(verb: &str, path: &str, e: &io::Error) -> Error {
    Error::storage("IO", format!("cannot {verb}: {e}")).object(path)
}

fn too_large(path: &str) -> Error {
    Error::storage("IO", "the object is too large for this machine").object(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_atomic_and_listed_without_leftovers() {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::local(dir.path().join("not/yet")).unwrap();
        assert!(storage.list("a").unwrap().is_empty());
        assert!(storage.get("a/x").unwrap().is_none());
        storage.put("a/x", Bytes::from_static(b"1")).unwrap();
        storage.put("a/x", Bytes::from_static(b"22")).unwrap();
        assert!(storage.put_if_absent("a/y", Bytes::from_static(b"3")).unwrap());
        assert!(!storage.put_if_absent("a/y", Bytes::from_static(b"4")).unwrap());
        assert_eq!(storage.get("a/x").unwrap().unwrap(), "22");
        assert_eq!(storage.get("a/y").unwrap().unwrap(), "3");
        assert_eq!(storage.list("a").unwrap(), ["x", "y"]);
        assert_eq!(storage.list("").unwrap(), ["a"]);
        let on_disk = std::fs::read_dir(dir.path().join("not/yet/a")).unwrap().count();
        assert_eq!(on_disk, 2);
        let child = storage.child("a");
        assert_eq!(child.get("x").unwrap().unwrap(), "22");
        assert_eq!(child.local_root().unwrap(), dir.path().join("not/yet/a"));
        child.delete("x").unwrap();
        child.delete("x").unwrap();
        assert_eq!(child.list("").unwrap(), ["y"]);
        storage.delete_folder("a").unwrap();
        storage.delete_folder("a").unwrap();
        assert!(storage.list("").unwrap().is_empty());
    }

    #[test]
    fn a_failing_write_names_the_object() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), b"").unwrap();
        let storage = Storage::local(dir.path()).unwrap();
        let e = storage.put("file/below", Bytes::new()).unwrap_err();
        assert_eq!((e.code(), e.get_object()), ("IO", Some("file/below")));
    }
}
