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

    /// All bytes in order, if they are in memory anyway.
    fn in_memory(&self) -> Option<&[Vec<u8>]> {
        None
    }
}

/// Bytes in memory, in parts: a large image is not copied to grow.
#[derive(Debug)]
struct Parts {
    parts: Vec<Vec<u8>>,
    /// Where each part starts, and where the last one ends.
    starts: Vec<u64>,
}

impl Parts {
    fn new(parts: Vec<Vec<u8>>) -> Self {
        let ends = parts.iter().scan(0, |end, part| {
            *end += part.len() as u64;
            Some(*end)
        });
        let starts = std::iter::once(0).chain(ends).collect();
        Self { parts, starts }
    }
}

impl Stored for Parts {
    fn size(&self) -> u64 {
        self.starts[self.parts.len()]
    }

    fn read(&self, at: u64, mut into: &mut [u8]) -> Result<()> {
        if at.checked_add(into.len() as u64).is_none_or(|end| end > self.size()) {
            return Err(corrupt("it is cut short"));
        }
        let first = self.starts.partition_point(|&start| start <= at).saturating_sub(1);
        let mut skip = usize::try_from(at - self.starts[first]).unwrap_or(usize::MAX);
        for part in &self.parts[first..] {
            let rest = part.get(skip..).unwrap_or_default();
            let (now, later) = into.split_at_mut(rest.len().min(into.len()));
            now.copy_from_slice(&rest[..now.len()]);
            into = later;
            skip = 0;
        }
        Ok(())
    }

    fn in_memory(&self) -> Option<&[Vec<u8>]> {
        Some(&self.parts)
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

    /// All bytes in order, if they are in memory anyway.
    pub fn in_memory(&self) -> Option<&[Vec<u8>]> {
        self.0.in_memory()
    }

    /// All bytes.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        if let Some([bytes]) = self.in_memory() {
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
        Self::from(vec![bytes])
    }
}

impl From<Vec<Vec<u8>>> for Image {
    fn from(parts: Vec<Vec<u8>>) -> Self {
        Self::new(Parts::new(parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_one() {
        let parts = [vec![0, 1], vec![], vec![2], vec![3, 4, 5]];
        let image = Image::from(parts.to_vec());
        assert_eq!(image.size(), 6);
        assert_eq!(*image.bytes().unwrap(), [0, 1, 2, 3, 4, 5]);
        for start in 0..=6_u8 {
            for end in start..=6 {
                let mut bytes = vec![9; usize::from(end - start)];
                image.read(start.into(), &mut bytes).unwrap();
                assert_eq!(bytes, (start..end).collect::<Vec<u8>>());
            }
        }
        assert_eq!(image.read(5, &mut [0; 2]).unwrap_err().code(), "STATE_CORRUPT");
        assert!(Image::from(Vec::<Vec<u8>>::new()).is_empty());
    }
}
