//! Z85 (ZeroMQ RFC 32): four bytes as five printable characters.

use deltaic_batch::{Error, Result};

const ALPHABET: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// Encodes bytes; the last group is padded with zero bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(4) * 5);
    for chunk in bytes.chunks(4) {
        let mut group = [0; 4];
        group[..chunk.len()].copy_from_slice(chunk);
        let value = u32::from_be_bytes(group);
        for power in [85 * 85 * 85 * 85, 85 * 85 * 85, 85 * 85, 85, 1] {
            text.push(char::from(ALPHABET[(value / power % 85) as usize]));
        }
    }
    text
}

/// Decodes whole groups of five characters.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>> {
    let malformed = || Error::storage("LOG_CORRUPT", "malformed base-85 text in a deletion vector");
    if !text.len().is_multiple_of(5) {
        return Err(malformed());
    }
    let mut bytes = Vec::with_capacity(text.len() / 5 * 4);
    for group in text.as_bytes().chunks(5) {
        let mut value = 0_u32;
        for c in group {
            let digit =
                ALPHABET.iter().zip(0_u32..).find(|(a, _)| *a == c).ok_or_else(malformed)?.1;
            value =
                value.checked_mul(85).and_then(|v| v.checked_add(digit)).ok_or_else(malformed)?;
        }
        bytes.extend_from_slice(&value.to_be_bytes());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification() {
        let bytes = [0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B];
        assert_eq!(encode(&bytes), "HelloWorld");
        assert_eq!(decode("HelloWorld").unwrap(), bytes);
        assert_eq!(decode(&encode(&[1, 2, 3, 4, 5])).unwrap(), [1, 2, 3, 4, 5, 0, 0, 0]);
        assert!(decode("HelloWorl").is_err());
        assert!(decode("#####").is_err());
        assert!(decode("abc\"d").is_err());
    }
}
