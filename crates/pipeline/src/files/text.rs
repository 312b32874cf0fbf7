//! A file's text: decompressed by suffix, decoded to UTF-8, without byte order mark.

use std::io::Read;
use std::path::Path;

use deltaic_batch::{Error, Result};

fn unreadable(name: &str, why: impl std::fmt::Display) -> Error {
    Error::storage("FILE_UNREADABLE", format!("cannot be read: {why}")).object(name)
}

/// Bytes of a file, decompressed when its name ends in `.gz` or `.zst`.
pub(super) fn read_bytes(path: &Path, name: &str) -> Result<Vec<u8>> {
    let bytes = std::fs::read(path).map_err(|e| unreadable(name, e))?;
    let mut out = Vec::new();
    if name.ends_with(".gz") {
        flate2::read::MultiGzDecoder::new(bytes.as_slice())
            .read_to_end(&mut out)
            .map_err(|e| unreadable(name, format!("not valid gzip: {e}")))?;
        return Ok(out);
    }
    if name.ends_with(".zst") || name.ends_with(".zstd") {
        return zstd::stream::decode_all(bytes.as_slice())
            .map_err(|e| unreadable(name, format!("not valid zstd: {e}")));
    }
    Ok(bytes)
}

/// Text of a file.
pub(super) fn read_text(path: &Path, name: &str, encoding: &str) -> Result<String> {
    decode(read_bytes(path, name)?, name, encoding)
}

fn decode(bytes: Vec<u8>, name: &str, encoding: &str) -> Result<String> {
    match encoding {
        "utf-8" | "utf8" => utf8(bytes, name),
        "us-ascii" | "ascii" => utf8(bytes, name),
        "iso-8859-1" | "latin1" | "latin-1" => Ok(bytes.iter().map(|b| char::from(*b)).collect()),
        "utf-16" | "utf-16le" | "utf-16be" => utf16(&bytes, name, encoding),
        other => {
            Err(Error::user("FILE_ENCODING", format!("encoding '{other}' is not supported yet"))
                .object(name)
                .hint("use utf-8, iso-8859-1 or utf-16"))
        }
    }
}

fn utf8(bytes: Vec<u8>, name: &str) -> Result<String> {
    let text = String::from_utf8(bytes).map_err(|e| {
        let good = e.utf8_error().valid_up_to();
        let line = e.as_bytes()[..good].iter().filter(|b| **b == b'\n').count() + 1;
        Error::data("FILE_UNREADABLE", format!("line {line} is not valid UTF-8"))
            .object(name)
            .hint("set encoding => 'iso-8859-1' or 'utf-16' if the file has another encoding")
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_string(),
        None => text,
    })
}

fn utf16(bytes: &[u8], name: &str, encoding: &str) -> Result<String> {
    let (big, bytes) = match bytes {
        [0xfe, 0xff, rest @ ..] => (true, rest),
        [0xff, 0xfe, rest @ ..] => (false, rest),
        _ => (encoding != "utf-16le", bytes),
    };
    let units = bytes.chunks_exact(2).map(|c| {
        let pair = [c[0], c[1]];
        if big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
    });
    char::decode_utf16(units)
        .collect::<std::result::Result<String, _>>()
        .map_err(|_| Error::data("FILE_UNREADABLE", "is not valid UTF-16").object(name))
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn encodings_and_marks() {
        assert_eq!(decode(b"\xef\xbb\xbfid".to_vec(), "f", "utf-8").unwrap(), "id");
        assert_eq!(decode(b"caf\xe9".to_vec(), "f", "latin1").unwrap(), "café");
        assert_eq!(decode(vec![0xff, 0xfe, b'a', 0], "f", "utf-16").unwrap(), "a");
        assert!(
            decode(b"a\nb\xff".to_vec(), "f", "utf-8").unwrap_err().to_string().contains("line 2")
        );
        assert_eq!(decode(vec![], "f", "ebcdic").unwrap_err().code(), "FILE_ENCODING");
    }
}
