//! Where the bytes of a slot are: in memory, or stored, to be read in parts.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use deltaic_batch::Result;

use crate::frame::corrupt;

/// Bytes that are stored somewhere.
pub trait Stored: Debug + Send + Sync {
    /// Number of bytes.
    fn size(&self) -> u64;

    /// Fills `into` with the bytes from `at` on; an error when there are fewer.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()>;

    /// All bytes, if they are in memory anyway.
    fn in_memory(&self) -> Option<&[u8]> {
        None
    }
}

impl Stored for Vec<u8> {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        let start = usize::try_from(at).ok();
        let bytes = start.and_then(|start| self.get(start..)?.get(..into.len()));
        into.copy_from_slice(bytes.ok_or_else(|| corrupt("it is cut short"))?);
        Ok(())
    }

    fn in_memory(&self) -> Option<&[u8]> {
        Some(self)
    }
}

/// A full image of a slot, or changes after one: bytes as [`crate::Slot`] writes them.
///
/// ```
/// let image = deltaic_state::Image::from(vec![1, 2, 3]);
/// assert_eq!(image.size(), 3);
/// let mut last = [0; 2];
/// image.read(1, &mut last)?;
/// assert_eq!(last, [2, 3]);
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Image(Arc<dyn Stored>);

impl Image {
    /// Of bytes that are stored.
    pub fn new(stored: impl Stored + 'static) -> Self {
        Self(Arc::new(stored))
    }

    /// Number of bytes.
    pub fn size(&self) -> u64 {
        self.0.size()
    }

    /// True without bytes: changes that change nothing.
    pub fn is_empty(&self) -> bool {
        self.size() == 0
    }

    /// Fills `into` with the bytes from `at` on; an error when there are fewer.
    pub fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.0.read(at, into)
    }

    /// All bytes, if they are in memory anyway.
    pub fn in_memory(&self) -> Option<&[u8]> {
        self.0.in_memory()
    }

    /// All bytes.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        if let Some(bytes) = self.in_memory() {
            return Ok(Cow::Borrowed(bytes));
        }
        let size = usize::try_from(self.size()).map_err(|_| corrupt("it is too large"))?;
        let mut bytes = vec![0; size];
        self.read(0, &mut bytes)?;
        Ok(Cow::Owned(bytes))
    }
}

impl From<Vec<u8>> for Image {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes)
    }
}
