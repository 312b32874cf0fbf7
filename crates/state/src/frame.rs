//! The frame around every piece of state bytes: what it is, which version of the format, and
//! whether it is intact.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | magic `DLTS` |
//! | 4 | kind: which structure the payload is of, four ASCII letters |
//! | 2 | version of the format, little-endian: [`VERSION`] |
//! | 2 | zero |
//! | 8 | length of the payload, little-endian |
//! | 4 | CRC-32 (IEEE) of the 20 bytes above and the payload, little-endian |
//! | … | payload |
//!
//! All integers in payloads are little-endian too. Bytes of another kind, version, length or
//! checksum are an error with the code `STATE_CORRUPT`, upon which state is rebuilt.

use deltaic_batch::{Error, Result};

/// Version of the payload formats and of the row hash that they hold.
pub const VERSION: u16 = 2;

/// Which structure a payload is of.
pub type Kind = [u8; 4];

pub(crate) const MAGIC: [u8; 4] = *b"DLTS";
const CHECKED_BYTES: usize = 20;
const HEADER_BYTES: usize = CHECKED_BYTES + 4;

/// The payload in a frame.
///
/// ```
/// use deltaic_state::frame::{open, seal};
///
/// let bytes = seal(*b"TEST", b"payload");
/// assert_eq!(open(*b"TEST", &bytes)?, b"payload");
/// assert_eq!(open(*b"TEST", &bytes[1..]).unwrap_err().code(), "STATE_CORRUPT");
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
pub fn seal(kind: Kind, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&kind);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0, 0]);
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    let checksum = checksum(&bytes, payload);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The payload of a frame of this kind.
pub fn open(kind: Kind, bytes: &[u8]) -> Result<&[u8]> {
    let Some((header, payload)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(corrupt("the header is cut short"));
    };
    let (checked, stored) = header.split_at(CHECKED_BYTES);
    if checked[..4] != MAGIC {
        return Err(corrupt("these are not state bytes"));
    }
    if checked[8..12] != [VERSION.to_le_bytes(), [0, 0]].concat() {
        return Err(corrupt("the format is of another version"));
    }
    if checked[12..20] != (payload.len() as u64).to_le_bytes() {
        return Err(corrupt("the length is not the one written"));
    }
    if stored != checksum(checked, payload).to_le_bytes() {
        return Err(corrupt("the checksum does not match"));
    }
    if checked[4..8] != kind {
        return Err(corrupt("it is of another kind"));
    }
    Ok(payload)
}

/// The error of bytes that are not what was written.
pub fn corrupt(what: &str) -> Error {
    Error::storage("STATE_CORRUPT", format!("stored state cannot be read: {what}"))
        .hint("the state is rebuilt from the tables")
}

fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens() {
        for payload in [&b""[..], b"payload"] {
            assert_eq!(open(*b"ROWS", &seal(*b"ROWS", payload)).unwrap(), payload);
        }
        assert_eq!(open(*b"GRPS", &seal(*b"ROWS", b"x")).unwrap_err().code(), "STATE_CORRUPT");
    }

    #[test]
    fn every_changed_bit_and_every_cut_is_noticed() {
        let bytes = seal(*b"ROWS", b"payload");
        for at in 0..bytes.len() {
            assert_eq!(open(*b"ROWS", &bytes[..at]).unwrap_err().code(), "STATE_CORRUPT");
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                let error = open(*b"ROWS", &damaged).unwrap_err();
                assert_eq!(error.code(), "STATE_CORRUPT", "byte {at}, bit {bit}");
            }
        }
        assert!(open(*b"ROWS", &[&bytes[..], b"x"].concat()).is_err());
    }
}
