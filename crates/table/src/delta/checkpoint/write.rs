//! Writes a classic (single file) checkpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType as T, Field, Fields, Schema};
use deltaic_batch::{Error, Result};

use super::{Hint, classic_path, hint_path};
use crate::Storage;
use crate::delta::actions::Action;
use crate::delta::log;
use crate::delta::snapshot::Replay;
use crate::files::parquet_bytes;

/// How long a removed file is kept in checkpoints, unless the table says otherwise.
const RETENTION_MS: i64 = 7 * 24 * 3_600_000;

/// Writes the checkpoint of `version`, then the hint to it.
pub(crate) fn write(root: &Storage, version: i64, now_ms: i64) -> Result<()> {
    let mut replay = Replay::with_tombstones();
    log::replay_to(root, Some(version), &mut replay)?;
    let actions = state(replay, now_ms);
    let schema = Arc::new(Schema::new(columns()));
    let mut decoder = arrow_json::ReaderBuilder::new(schema.clone())
        .with_batch_size(actions.len())
        .build_decoder()?;
    decoder.serialize(&actions)?;
    let rows = decoder.flush()?.ok_or_else(|| {
        Error::internal("CHECKPOINT_ENCODE", "a checkpoint without actions was to be written")
    })?;
    root.put(&classic_path(version), parquet_bytes(&schema, &[rows], &BTreeMap::new())?.into())?;
    let size = i64::try_from(actions.len()).unwrap_or(i64::MAX);
    let hint = serde_json::to_vec(&Hint { version, size, parts: None })
        .map_err(|e| Error::internal("CHECKPOINT_ENCODE", e.to_string()))?;
    root.put(&hint_path(), hint.into())
}

/// The actions that stand for the whole state.
fn state(replay: Replay, now_ms: i64) -> Vec<Action> {
    let mut actions = vec![
        Action { protocol: replay.protocol, ..Action::default() },
        Action { meta_data: replay.metadata, ..Action::default() },
    ];
    let txns = replay.txns.into_values();
    actions.extend(txns.map(|txn| Action { txn: Some(txn), ..Action::default() }));
    for add in replay.files.into_values() {
        let mut add = Arc::unwrap_or_clone(add);
        add.data_change = false;
        actions.push(Action { add: Some(add), ..Action::default() });
    }
    for mut remove in replay.tombstones.unwrap_or_default().into_values() {
        if remove.deletion_timestamp.is_some_and(|t| t > now_ms.saturating_sub(RETENTION_MS)) {
            remove.data_change = false;
            actions.push(Action { remove: Some(remove), ..Action::default() });
        }
    }
    actions
}

fn columns() -> Fields {
    let text = |name: &str| Field::new(name, T::Utf8, true);
    let long = |name: &str| Field::new(name, T::Int64, true);
    let int = |name: &str| Field::new(name, T::Int32, true);
    let flag = |name: &str| Field::new(name, T::Boolean, true);
    let list = |name: &str| Field::new_list(name, Field::new("element", T::Utf8, true), true);
    let map = |name: &str| {
        let (key, value) = (Field::new("key", T::Utf8, false), Field::new("value", T::Utf8, true));
        Field::new_map(name, "key_value", key, value, false, true)
    };
    let group = |name: &str, fields: Vec<Field>| Field::new(name, T::Struct(fields.into()), true);
    let dv = || {
        let fields = vec![
            text("storageType"),
            text("pathOrInlineDv"),
            int("offset"),
            int("sizeInBytes"),
            long("cardinality"),
        ];
        group("deletionVector", fields)
    };
    let format = group("format", vec![text("provider"), map("options")]);
    Fields::from(vec![
        group("txn", vec![text("appId"), long("version"), long("lastUpdated")]),
        group(
            "add",
            vec![
                text("path"),
                map("partitionValues"),
                long("size"),
                long("modificationTime"),
                flag("dataChange"),
                text("stats"),
                dv(),
            ],
        ),
        group(
            "remove",
            vec![
                text("path"),
                long("deletionTimestamp"),
                flag("dataChange"),
                flag("extendedFileMetadata"),
                map("partitionValues"),
                long("size"),
                dv(),
            ],
        ),
        group(
            "metaData",
            vec![
                text("id"),
                text("name"),
                text("description"),
                format,
                text("schemaString"),
                list("partitionColumns"),
                long("createdTime"),
                map("configuration"),
            ],
        ),
        group(
            "protocol",
            vec![
                int("minReaderVersion"),
                int("minWriterVersion"),
                list("readerFeatures"),
                list("writerFeatures"),
            ],
        ),
    ])
}
