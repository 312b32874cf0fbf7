//! Actions: the lines of a log entry.

use std::collections::BTreeMap;

use deltaic_batch::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a client must be able to do.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Protocol {
    pub(crate) min_reader_version: i32,
    pub(crate) min_writer_version: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reader_features: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) writer_features: Option<Vec<String>>,
}

/// Encoding of the data files.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) provider: String,
    #[serde(default)]
    pub(crate) options: BTreeMap<String, String>,
}

/// Schema and properties.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    pub(crate) format: Format,
    pub(crate) schema_string: String,
    #[serde(default)]
    pub(crate) partition_columns: Vec<String>,
    #[serde(default)]
    pub(crate) configuration: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) created_time: Option<i64>,
}

/// Where the deleted positions of a data file are listed.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DvDescriptor {
    /// `u`: file named by a UUID; `i`: inline; `p`: absolute path.
    pub(crate) storage_type: String,
    pub(crate) path_or_inline_dv: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) offset: Option<u32>,
    pub(crate) size_in_bytes: u32,
    pub(crate) cardinality: u64,
}

/// A data file that is in the table.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Add {
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) partition_values: BTreeMap<String, Option<String>>,
    pub(crate) size: u64,
    pub(crate) modification_time: i64,
    pub(crate) data_change: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stats: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deletion_vector: Option<DvDescriptor>,
}

/// A data file that is no longer in the table.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Remove {
    pub(crate) path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deletion_timestamp: Option<i64>,
    pub(crate) data_change: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) extended_file_metadata: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) partition_values: Option<BTreeMap<String, Option<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deletion_vector: Option<DvDescriptor>,
}

/// A change data file.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cdc {
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) partition_values: BTreeMap<String, Option<String>>,
    pub(crate) size: u64,
    pub(crate) data_change: bool,
}

/// How far an application has come.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Txn {
    pub(crate) app_id: String,
    pub(crate) version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_updated: Option<i64>,
}

/// One line, without `commitInfo`; what we do not know is skipped, as the protocol asks.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Action {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<Protocol>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) meta_data: Option<Metadata>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) txn: Option<Txn>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) add: Option<Add>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remove: Option<Remove>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cdc: Option<Cdc>,
}

/// One line, `commitInfo` alone.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InfoLine {
    #[serde(default)]
    pub(crate) commit_info: Option<Value>,
}

impl DvDescriptor {
    /// Identifies the deletion vector within the table.
    pub(crate) fn unique_id(&self) -> String {
        match self.offset {
            Some(offset) => format!("{}{}@{offset}", self.storage_type, self.path_or_inline_dv),
            None => format!("{}{}", self.storage_type, self.path_or_inline_dv),
        }
    }
}

impl Add {
    /// Physical rows of the file by its statistics.
    pub(crate) fn num_records(&self) -> Option<u64> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Count {
            num_records: Option<u64>,
        }
        serde_json::from_str::<Count>(self.stats.as_deref()?).ok()?.num_records
    }

    /// Rows that its deletion vector hides.
    pub(crate) fn num_deleted(&self) -> u64 {
        self.deletion_vector.as_ref().map_or(0, |dv| dv.cardinality)
    }

    /// The action that takes this logical file out of the table.
    pub(crate) fn to_remove(&self, timestamp_ms: i64) -> Remove {
        Remove {
            path: self.path.clone(),
            deletion_timestamp: Some(timestamp_ms),
            data_change: true,
            extended_file_metadata: Some(true),
            partition_values: Some(self.partition_values.clone()),
            size: Some(self.size),
            deletion_vector: self.deletion_vector.clone(),
        }
    }
}

/// All lines of a log entry.
pub(crate) fn parse_lines<'a, T: Deserialize<'a>>(bytes: &'a [u8], name: &str) -> Result<Vec<T>> {
    bytes
        .split(|&b| b == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
        .map(|line| {
            serde_json::from_slice(line).map_err(|e| {
                Error::storage(
                    "LOG_CORRUPT",
                    format!("a line of the table's log is malformed: {e}"),
                )
                .object(name)
            })
        })
        .collect()
}

/// Adds an action as one line.
pub(crate) fn write_line<T: Serialize>(out: &mut Vec<u8>, action: &T) -> Result<()> {
    serde_json::to_writer(&mut *out, action)
        .map_err(|e| Error::internal("LOG_ENCODE", format!("cannot write an action: {e}")))?;
    out.push(b'\n');
    Ok(())
}
