//! Folder names under the storage folder.

use std::fmt::Write;

/// Folder of a dataset or flow: its key, with all but plain characters escaped.
pub(crate) fn folder(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'-')
            || (byte == b'.' && !out.is_empty())
        {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Folder of a dataset's table.
pub(crate) fn table(key: &str) -> String {
    format!("tables/{}", folder(key))
}

/// Folder of the event log's table.
pub(crate) const EVENT_LOG: &str = "events";

#[cfg(test)]
mod tests {
    #[test]
    fn names_stay_inside_their_folder() {
        assert_eq!(super::folder("silver.orders"), "silver.orders");
        assert_eq!(super::folder("../x y"), "%2E.%2Fx%20y");
    }
}
