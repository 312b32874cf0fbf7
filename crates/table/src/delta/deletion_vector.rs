//! Deletion vectors: the positions of a data file's rows that are no longer in the table.

use deltaic_batch::{Error, Result};
use roaring::RoaringTreemap;
use uuid::Uuid;

use super::actions::DvDescriptor;
use super::z85;
use crate::Storage;

/// Marks the portable 64-bit roaring format.
const MAGIC: u32 = 1_681_511_377;
/// A vector up to this size goes into the log itself and spares a file.
const INLINE_BYTES_MAX: usize = 512;

/// Gathers the deletion vectors of one commit: small ones inline, the others in one file.
#[derive(Debug)]
pub(crate) struct DvWriter {
    id: Uuid,
    file: Vec<u8>,
}

impl DvWriter {
    pub(crate) fn new() -> Self {
        Self { id: Uuid::new_v4(), file: vec![1] }
    }

    /// Encodes one vector.
    pub(crate) fn add(&mut self, mut positions: RoaringTreemap) -> Result<DvDescriptor> {
        positions.optimize();
        let cardinality = positions.len();
        let mut data = MAGIC.to_le_bytes().to_vec();
        positions.serialize_into(&mut data).map_err(|e| encode_error(&e.to_string()))?;
        let size_in_bytes = u32::try_from(data.len()).map_err(|e| encode_error(&e.to_string()))?;
        if data.len() <= INLINE_BYTES_MAX {
            return Ok(DvDescriptor {
                storage_type: "i".into(),
                path_or_inline_dv: z85::encode(&data),
                offset: None,
                size_in_bytes,
                cardinality,
            });
        }
        let offset = u32::try_from(self.file.len()).map_err(|e| encode_error(&e.to_string()))?;
        self.file.extend_from_slice(&size_in_bytes.to_be_bytes());
        self.file.extend_from_slice(&data);
        self.file.extend_from_slice(&crc32fast::hash(&data).to_be_bytes());
        Ok(DvDescriptor {
            storage_type: "u".into(),
            path_or_inline_dv: z85::encode(self.id.as_bytes()),
            offset: Some(offset),
            size_in_bytes,
            cardinality,
        })
    }

    /// Name and content of the file, when any vector needed one.
    pub(crate) fn finish(self) -> Option<(String, Vec<u8>)> {
        (self.file.len() > 1).then(|| (file_name("", self.id), self.file))
    }
}

/// Reads a vector; `root` is the table's folder.
pub(crate) fn read(storage: &Storage, root: &Storage, dv: &DvDescriptor) -> Result<RoaringTreemap> {
    let positions = match dv.storage_type.as_str() {
        "i" => {
            let mut data = z85::decode(&dv.path_or_inline_dv)?;
            data.truncate(dv.size_in_bytes as usize);
            decode(&data)?
        }
        "u" => {
            let path = relative_path(&dv.path_or_inline_dv)?;
            decode(&read_file(root, &path, dv)?).map_err(|e| e.object(path))?
        }
        "p" => {
            let path = dv.path_or_inline_dv.trim_start_matches("file://");
            decode(&read_file(storage, path, dv)?).map_err(|e| e.object(path))?
        }
        other => return Err(corrupt(&format!("unknown storage type {other:?}"))),
    };
    if positions.len() != dv.cardinality {
        return Err(corrupt(&format!("{} rows instead of {}", positions.len(), dv.cardinality)));
    }
    Ok(positions)
}

fn read_file(root: &Storage, path: &str, dv: &DvDescriptor) -> Result<bytes::Bytes> {
    let object = root.open(path)?.ok_or_else(|| corrupt("its file is missing").object(path))?;
    let offset = u64::from(dv.offset.unwrap_or(1));
    let size = dv.size_in_bytes as usize;
    let all = object.read_at(offset, size + 8).map_err(|e| corrupt(&e.to_string()).object(path))?;
    let number = |at: usize| all[at..at + 4].iter().fold(0_u32, |n, &b| n << 8 | u32::from(b));
    let data = all.slice(4..4 + size);
    if number(0) != dv.size_in_bytes || number(4 + size) != crc32fast::hash(&data) {
        return Err(corrupt("size or checksum does not match").object(path));
    }
    Ok(data)
}

fn decode(data: &[u8]) -> Result<RoaringTreemap> {
    match data.split_at_checked(4) {
        Some((magic, rest)) if magic == MAGIC.to_le_bytes() => {
            RoaringTreemap::deserialize_from(rest).map_err(|e| corrupt(&e.to_string()))
        }
        _ => Err(corrupt("unknown format")),
    }
}

/// `<optional prefix><20 characters of base 85>` → path below the table.
fn relative_path(text: &str) -> Result<String> {
    let at = text.len().checked_sub(20).ok_or_else(|| corrupt("malformed file name"))?;
    let (prefix, id) = text.split_at_checked(at).ok_or_else(|| corrupt("malformed file name"))?;
    let id = Uuid::from_slice(&z85::decode(id)?).map_err(|e| corrupt(&e.to_string()))?;
    Ok(file_name(prefix, id))
}

fn file_name(prefix: &str, id: Uuid) -> String {
    let folder = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
    format!("{folder}deletion_vector_{id}.bin")
}

fn corrupt(why: &str) -> Error {
    Error::storage("DELETION_VECTOR_CORRUPT", format!("cannot read a deletion vector: {why}"))
}

fn encode_error(why: &str) -> Error {
    Error::internal("DELETION_VECTOR_ENCODE", format!("cannot write a deletion vector: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(positions: RoaringTreemap) -> DvDescriptor {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::local(dir.path()).unwrap();
        let mut writer = DvWriter::new();
        writer.add((0..5_000).map(|i| i * i).collect()).unwrap();
        let descriptor = writer.add(positions.clone()).unwrap();
        let (name, file) = writer.finish().unwrap();
        storage.put(&name, file.into()).unwrap();
        assert_eq!(read(&storage, &storage, &descriptor).unwrap(), positions);
        descriptor
    }

    #[test]
    fn small_vectors_are_inline_and_large_ones_in_a_file() {
        assert_eq!(round_trip([0, 7, 1 << 40].into_iter().collect()).storage_type, "i");
        assert_eq!(round_trip((0..100_000).collect()).storage_type, "i");
        let large = round_trip((0..3_000).map(|i| i * 3).collect());
        assert_eq!(large.storage_type, "u");
        assert!(large.offset.unwrap() > 1);
    }

    /// The vector of the inline example of the specification, in the portable format.
    #[test]
    fn a_foreign_vector_is_read() {
        let dv = DvDescriptor {
            storage_type: "i".into(),
            path_or_inline_dv: "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L".into(),
            offset: None,
            size_in_bytes: 44,
            cardinality: 6,
        };
        let storage = Storage::local("/nowhere").unwrap();
        let rows: Vec<u64> = read(&storage, &storage, &dv).unwrap().iter().collect();
        assert_eq!(rows, [3, 4, 7, 11, 18, 29]);
    }

    #[test]
    fn damage_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::local(dir.path()).unwrap();
        let mut writer = DvWriter::new();
        let descriptor = writer.add((0..3_000).map(|i| i * 3).collect()).unwrap();
        let (name, mut file) = writer.finish().unwrap();
        assert!(read(&storage, &storage, &descriptor).is_err());
        file[100] ^= 1;
        storage.put(&name, file.into()).unwrap();
        let e = read(&storage, &storage, &descriptor).unwrap_err();
        assert_eq!(e.code(), "DELETION_VECTOR_CORRUPT");
    }
}
