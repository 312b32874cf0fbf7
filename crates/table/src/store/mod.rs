//! Objects in folders: the only door of this crate to the outside.
//!
//! [`Storage`] is synchronous. Behind it stands the small trait [`Backend`]; local folders are
//! served by plain file calls, so that opening a storage costs nothing and no runtime is needed.

mod fault;
mod local;
mod storage;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

pub use fault::Fault;
pub use storage::{Object, Storage};

/// An object that is about to be written.
#[derive(Debug, Clone)]
pub(crate) struct NewObject {
    /// Path below the root.
    pub(crate) path: String,
    /// Content.
    pub(crate) bytes: Vec<Bytes>,
    /// False for what can be rebuilt: it need not survive a power failure.
    pub(crate) durable: bool,
}

/// An open object that is read in pieces.
pub(crate) trait ReadAt: Debug + Send + Sync {
    /// Number of bytes.
    fn size(&self) -> u64;
    /// Last change, milliseconds since 1970.
    fn modified_ms(&self) -> i64;
    /// Exactly `length` bytes from `offset`; an error when the object is shorter.
    fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        let mut buffer = vec![0; length];
        self.read_into(offset, &mut buffer)?;
        Ok(buffer.into())
    }
    /// The same, into a buffer.
    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

/// What a storage must be able to do. Every write is atomic: after a crash at any moment an object
/// is there as a whole or not at all.
pub(crate) trait Backend: Debug + Send + Sync {
    /// The folder on this machine, if it is one.
    fn local_root(&self) -> Option<&Path>;
    /// `None` when absent.
    fn open(&self, path: &str) -> io::Result<Option<Arc<dyn ReadAt>>>;
    /// Writes all objects, replacing what is there; returns when they are durable.
    fn put_all(&self, objects: &[NewObject]) -> io::Result<()>;
    /// `false` when the object exists.
    fn put_if_absent(&self, object: &NewObject) -> io::Result<bool>;
    /// Names of objects and folders directly under a folder, in no order; empty when absent.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    /// Absent is fine.
    fn delete(&self, path: &str) -> io::Result<()>;
    /// Removes a folder and all in it, atomically for readers.
    fn delete_folder(&self, folder: &str) -> io::Result<()>;
}
