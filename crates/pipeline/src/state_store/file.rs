//! One file of state.

use bytes::Bytes;
use deltaic_batch::{Error, Result};
use deltaic_exec::{SlotImage, SlotImages};
use deltaic_state::{Image, Stored};
use deltaic_table::Object;
use serde::{Deserialize, Serialize};

const MAGIC: &[u8; 8] = b"DLTSTAT2";
/// Read at once: all of the meta, but for circuits of hundreds of slots.
const FIRST_READ: u64 = 1 << 14;

/// What a state file says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Meta {
    /// Identity of plan, types and settings that the state fits.
    pub(super) fingerprint: String,
    /// Epoch of the dataset.
    pub(super) epoch: i64,
    /// Changes: epoch of the file that they follow. 0 in a full file.
    pub(super) previous: i64,
    /// Epochs that the circuit has done.
    pub(super) circuit_epoch: u64,
    /// Shards of the circuit.
    pub(super) shards: usize,
    /// Node, slot, shard and number of bytes of each image.
    pub(super) images: Vec<(usize, usize, usize, u64)>,
}

impl Meta {
    pub(super) fn new(images: &SlotImages, fingerprint: &str, epoch: i64, previous: i64) -> Self {
        let place = |i: &SlotImage| (i.node, i.slot, i.shard, i.image.size());
        Self {
            fingerprint: fingerprint.to_string(),
            epoch,
            previous,
            circuit_epoch: images.epoch,
            shards: images.shards,
            images: images.images.iter().map(place).collect(),
        }
    }
}

/// A file whose images are where they are.
#[derive(Debug)]
pub(super) struct StateFile {
    pub(super) meta: Meta,
    pub(super) images: SlotImages,
    pub(super) bytes: u64,
}

impl StateFile {
    pub(super) fn open(object: Object) -> Result<Self, String> {
        let bytes = object.size();
        let mut head = read(&object, 0, bytes.min(FIRST_READ))?;
        let length = match head.split_at_checked(16) {
            None => return Err("the file is too short".to_string()),
            Some((start, _)) if start[..8] != *MAGIC => {
                return Err("it has another format version".to_string());
            }
            Some((start, _)) => start[8..].first_chunk().map_or(0, |l| u64::from_le_bytes(*l)),
        };
        let start = length.checked_add(20).filter(|&start| start <= bytes);
        let start = start.ok_or("the file ends too early")?;
        let end = usize::try_from(start).map_err(|e| e.to_string())?;
        if head.len() < end {
            head = read(&object, 0, start)?;
        }
        let (checked, crc) = head[..end].split_at(end - 4);
        if crc32fast::hash(checked).to_le_bytes() != crc {
            return Err("the checksum is wrong".to_string());
        }
        let meta: Meta = serde_json::from_slice(&checked[16..]).map_err(|e| e.to_string())?;
        let mut at = start;
        let mut images = Vec::with_capacity(meta.images.len());
        for &(node, slot, shard, size) in &meta.images {
            let image = Image::new(Part { object: object.clone(), start: at, size });
            images.push(SlotImage { node, slot, shard, image });
            at = at.checked_add(size).ok_or("the file ends too early")?;
        }
        if at != bytes {
            return Err("the file is not as long as it was".to_string());
        }
        let images = SlotImages { epoch: meta.circuit_epoch, shards: meta.shards, images };
        Ok(Self { meta, images, bytes })
    }
}

fn read(object: &Object, at: u64, length: u64) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; usize::try_from(length).map_err(|e| e.to_string())?];
    object.read_into(at, &mut bytes).map_err(|e| e.message().to_string())?;
    Ok(bytes)
}

/// A part of a file.
#[derive(Debug)]
struct Part {
    object: Object,
    start: u64,
    size: u64,
}

impl Stored for Part {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        let end = at.checked_add(into.len() as u64);
        if end.is_none_or(|end| end > self.size) {
            return Err(deltaic_state::frame::corrupt("it is cut short"));
        }
        self.object.read_into(self.start + at, into)
    }
}

/// The bytes of a file, those of the images as they lie in memory.
pub(super) fn encode(meta: &Meta, images: &SlotImages) -> Result<Vec<Bytes>> {
    let meta = serde_json::to_vec(meta).map_err(|e| Error::internal("STATE", e.to_string()))?;
    let mut head = Vec::with_capacity(meta.len() + 20);
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(&(meta.len() as u64).to_le_bytes());
    head.extend_from_slice(&meta);
    let crc = crc32fast::hash(&head);
    head.extend_from_slice(&crc.to_le_bytes());
    let mut parts = vec![Bytes::from(head)];
    for image in &images.images {
        match image.image.in_memory() {
            Some(in_memory) => {
                let part = |part| Bytes::from_owner(Shared(image.image.clone(), part));
                parts.extend((0..in_memory.len()).map(part));
            }
            None => parts.push(Bytes::from(image.image.bytes()?.into_owned())),
        }
    }
    Ok(parts)
}

/// A part of an image that is in memory.
struct Shared(Image, usize);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.in_memory().and_then(|parts| parts.get(self.1)).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use deltaic_table::Storage;

    use super::*;

    fn sample() -> (Meta, SlotImages) {
        let image = |shard, bytes: &[u8]| SlotImage {
            node: 1,
            slot: 0,
            shard,
            image: bytes.to_vec().into(),
        };
        let images = SlotImages {
            epoch: 7,
            shards: 2,
            images: vec![image(0, &[1, 2, 3]), image(1, &[]), image(1, &[4])],
        };
        (Meta::new(&images, "f", 3, 0), images)
    }

    fn open(storage: &Storage, bytes: &[u8]) -> Result<StateFile, String> {
        storage.put("x", bytes.to_vec().into()).unwrap();
        StateFile::open(storage.object("x").unwrap().unwrap())
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::local(folder.path()).unwrap();
        let (meta, images) = sample();
        storage.put_parts("x", encode(&meta, &images).unwrap()).unwrap();
        let file = StateFile::open(storage.object("x").unwrap().unwrap()).unwrap();
        assert_eq!(file.meta, meta);
        assert_eq!((file.images.epoch, file.images.shards), (7, 2));
        for (read, written) in file.images.images.iter().zip(&images.images) {
            assert_eq!(read.image.bytes().unwrap(), written.image.bytes().unwrap());
        }
        // A part does not show what lies beside it.
        let beyond = file.images.images[0].image.read(2, &mut [0; 2]);
        assert_eq!(beyond.unwrap_err().code(), "STATE_CORRUPT");
    }

    #[test]
    fn any_damaged_byte_of_the_head_and_any_cut_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::local(folder.path()).unwrap();
        let (meta, images) = sample();
        let parts = encode(&meta, &images).unwrap();
        let (head, bytes) = (parts[0].len(), parts.concat());
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 0x10;
            // Images check themselves.
            assert_eq!(open(&storage, &damaged).is_err(), i < head, "byte {i}");
            assert!(open(&storage, &bytes[..i]).is_err(), "cut at {i}");
        }
        assert!(open(&storage, &[&bytes[..], b"x"].concat()).is_err());
    }
}
