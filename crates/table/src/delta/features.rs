//! Which tables we can read and write.

use arrow::datatypes::Schema;
use deltaic_batch::{Error, Result};

use super::actions::{Metadata, Protocol};
use super::schema::has_timestamp_ntz;

pub(crate) const ENABLE_CHANGE_FEED: &str = "delta.enableChangeDataFeed";
pub(crate) const ENABLE_DELETION_VECTORS: &str = "delta.enableDeletionVectors";

const READABLE: [&str; 3] = ["deletionVectors", "timestampNtz", "vacuumProtocolCheck"];
const WRITABLE: [&str; 5] =
    ["deletionVectors", "timestampNtz", "changeDataFeed", "appendOnly", "invariants"];

/// The protocol of the tables that we make.
pub(crate) fn protocol(timestamp_ntz: bool) -> Protocol {
    let mut reader = vec!["deletionVectors".to_string()];
    let mut writer = vec!["deletionVectors".to_string(), "changeDataFeed".to_string()];
    if timestamp_ntz {
        reader.push("timestampNtz".into());
        writer.push("timestampNtz".into());
    }
    Protocol {
        min_reader_version: 3,
        min_writer_version: 7,
        reader_features: Some(reader),
        writer_features: Some(writer),
    }
}

/// Fails when a table needs what we cannot read.
pub(crate) fn check_readable(protocol: &Protocol, metadata: &Metadata) -> Result<()> {
    let features = protocol.reader_features.as_deref().unwrap_or_default();
    let foreign: Vec<&str> = features
        .iter()
        .map(String::as_str)
        .filter(|f| !READABLE.contains(f) && *f != "columnMapping")
        .collect();
    if protocol.min_reader_version > 3 || !foreign.is_empty() {
        return Err(unsupported(&format!(
            "reading it needs reader version {} and the features {foreign:?}",
            protocol.min_reader_version
        )));
    }
    match metadata.configuration.get("delta.columnMapping.mode").map(String::as_str) {
        None | Some("none") => {}
        Some(mode) => return Err(unsupported(&format!("it uses column mapping ({mode})"))),
    }
    match metadata.format.provider.as_str() {
        "parquet" => Ok(()),
        other => Err(unsupported(&format!("its data files are in the format {other:?}"))),
    }
}

/// Fails when a table asks of its writers what we do not do.
pub(crate) fn check_writable(protocol: &Protocol, metadata: &Metadata) -> Result<()> {
    let features = protocol.writer_features.as_deref().unwrap_or_default();
    let foreign: Vec<&str> =
        features.iter().map(String::as_str).filter(|f| !WRITABLE.contains(f)).collect();
    if protocol.min_writer_version != 7 && protocol.min_writer_version > 2 || !foreign.is_empty() {
        return Err(unsupported(&format!(
            "writing it needs writer version {} and the features {foreign:?}",
            protocol.min_writer_version
        )));
    }
    if !metadata.partition_columns.is_empty() {
        return Err(unsupported("writing partitioned tables is not supported"));
    }
    if metadata.schema_string.contains("delta.invariants") {
        return Err(unsupported("writing columns with invariants is not supported"));
    }
    Ok(())
}

/// Fails when rows cannot be taken out of a table.
pub(crate) fn check_deletable(protocol: &Protocol, metadata: &Metadata) -> Result<()> {
    if is_on(metadata, "delta.appendOnly") {
        return Err(unsupported("its property delta.appendOnly forbids to delete rows"));
    }
    let features = protocol.writer_features.as_deref().unwrap_or_default();
    let has_feature = features.iter().any(|f| f == "deletionVectors");
    if has_feature && is_on(metadata, ENABLE_DELETION_VECTORS) {
        return Ok(());
    }
    Err(unsupported("rows are deleted through deletion vectors, which are not enabled in it"))
}

/// True when a property is set to `true`.
pub(crate) fn is_on(metadata: &Metadata, property: &str) -> bool {
    metadata.configuration.get(property).is_some_and(|v| v.eq_ignore_ascii_case("true"))
}

fn unsupported(why: &str) -> Error {
    Error::storage("UNSUPPORTED_TABLE", format!("the Delta table is not supported: {why}"))
}

/// The protocol that a table needs for a schema, if it is another one than it has.
pub(crate) fn upgrade(current: &Protocol, schema: &Schema) -> Option<Protocol> {
    const NTZ: &str = "timestampNtz";
    let has = |features: &Option<Vec<String>>| features.iter().flatten().any(|f| f == NTZ);
    if !has_timestamp_ntz(schema.fields()) || has(&current.writer_features) {
        return None;
    }
    let mut upgraded = protocol(true);
    for (ours, theirs) in [
        (&mut upgraded.reader_features, &current.reader_features),
        (&mut upgraded.writer_features, &current.writer_features),
    ] {
        let others = theirs.iter().flatten().cloned();
        let missing: Vec<String> =
            others.filter(|f| !ours.iter().flatten().any(|o| o == f)).collect();
        ours.get_or_insert_default().extend(missing);
    }
    Some(upgraded)
}
