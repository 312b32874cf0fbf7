//! One small, synchronous face over `object_store`; local files are fsynced.

use bytes::Bytes;
use deltaic_batch::Result;

/// A root under which all paths are relative and `/`-separated. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Storage {}

impl Storage {
    /// A folder on this machine (made if missing when first written).
    pub fn local(_root: impl AsRef<std::path::Path>) -> Result<Self> {
        unimplemented!("skeleton")
    }
    /// The same storage with a prefix added to all paths.
    pub fn child(&self, _prefix: &str) -> Self {
        unimplemented!("skeleton")
    }
    /// Local folder of this storage, when it is one.
    pub fn local_root(&self) -> Option<std::path::PathBuf> {
        unimplemented!("skeleton")
    }
    /// Whole object; `None` when absent.
    pub fn get(&self, _path: &str) -> Result<Option<Bytes>> {
        unimplemented!("skeleton")
    }
    /// Atomic, durable write, replacing what is there.
    pub fn put(&self, _path: &str, _bytes: Bytes) -> Result<()> {
        unimplemented!("skeleton")
    }
    /// Atomic, durable write that fails when the object exists (`false`).
    pub fn put_if_absent(&self, _path: &str, _bytes: Bytes) -> Result<bool> {
        unimplemented!("skeleton")
    }
    /// Names directly under a folder, sorted; empty when absent.
    pub fn list(&self, _folder: &str) -> Result<Vec<String>> {
        unimplemented!("skeleton")
    }
    /// Removes an object; absent is fine.
    pub fn delete(&self, _path: &str) -> Result<()> {
        unimplemented!("skeleton")
    }
    /// Removes all objects under a folder.
    pub fn delete_folder(&self, _folder: &str) -> Result<()> {
        unimplemented!("skeleton")
    }
}
