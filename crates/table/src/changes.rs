//! The change feed: what each version changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Error, Result, ZBatch};
use roaring::RoaringTreemap;

use crate::Table;
use crate::delta::actions::{Action, Add, Cdc, DvDescriptor, InfoLine, Remove, parse_lines};
use crate::delta::schema::CHANGE_TYPE;
use crate::delta::{deletion_vector, log};
use crate::files::read_logical;

/// One version's change as in the change feed.
#[derive(Debug, Clone)]
pub struct Change {
    /// Version that made the change.
    pub version: i64,
    /// Commit time, milliseconds since 1970.
    pub timestamp_ms: i64,
    /// The change: deletes −1, inserts +1.
    pub delta: ZBatch,
}

/// What one version says about data.
#[derive(Debug, Default)]
struct Data {
    adds: Vec<Add>,
    removes: Vec<Remove>,
    cdc: Vec<Cdc>,
}

impl Table {
    /// Changes of the versions `from..=to`, in order. Versions without data change are left out.
    ///
    /// Rows come in this version's schema: columns that are younger than a change are NULL.
    pub fn changes(&self, from: i64, to: i64) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        for version in self.checked(from, to)? {
            let entry = log::entry(&self.root, version).map_err(|e| e.object(&*self.path))?;
            let name = log::entry_path(version);
            let data = Data::of(parse_lines(&entry, &self.root.full(&name))?);
            let delta = self.delta_of(&data).map_err(|e| match e.code() {
                "SCHEMA_MISMATCH" => Error::data(
                    "CHANGES_INCOMPATIBLE_SCHEMA",
                    format!("version {version} has rows of another schema: {}", e.message()),
                )
                .object(&*self.path)
                .hint("read the whole table instead of its changes"),
                _ => e,
            })?;
            if delta.is_empty() {
                continue;
            }
            let info = parse_lines::<InfoLine>(&entry, &name)?;
            let info = info.into_iter().find_map(|line| line.commit_info);
            let timestamp_ms = match info.and_then(|info| info["timestamp"].as_i64()) {
                Some(timestamp_ms) => timestamp_ms,
                None => self.root.open(&name)?.map_or(0, |object| object.modified_ms()),
            };
            changes.push(Change { version, timestamp_ms, delta });
        }
        Ok(changes)
    }

    /// True when every version in `from..=to` only added rows.
    pub fn only_appends(&self, from: i64, to: i64) -> Result<bool> {
        for version in self.checked(from, to)? {
            let entry = log::entry(&self.root, version).map_err(|e| e.object(&*self.path))?;
            let data = Data::of(parse_lines(&entry, &log::entry_path(version))?);
            if !data.removes.is_empty() || !data.cdc.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn checked(&self, from: i64, to: i64) -> Result<std::ops::RangeInclusive<i64>> {
        if from < 0 || to > self.version() {
            return Err(Error::user(
                "VERSION_NOT_FOUND",
                format!(
                    "versions {from} to {to} were asked for; there are 0 to {}",
                    self.version()
                ),
            )
            .object(&*self.path));
        }
        Ok(from..=to)
    }

    fn delta_of(&self, data: &Data) -> Result<ZBatch> {
        let schema = self.schema();
        let mut parts = Vec::new();
        for cdc in &data.cdc {
            self.read_cdc(cdc, &schema, &mut parts)?;
        }
        if data.cdc.is_empty() {
            self.read_actions(data, &schema, &mut parts)?;
        }
        ZBatch::concat(&schema, &parts)
    }

    fn read_cdc(&self, cdc: &Cdc, schema: &SchemaRef, parts: &mut Vec<ZBatch>) -> Result<()> {
        let mut fields = schema.fields().to_vec();
        fields.push(Arc::new(Field::new(CHANGE_TYPE, DataType::Utf8, true)));
        let wide = Arc::new(Schema::new(fields));
        let all: Vec<usize> = (0..schema.fields().len()).collect();
        let none = RoaringTreemap::new();
        for rows in read_logical(&self.root, &cdc.path, &cdc.partition_values, &wide, none)? {
            let rows = rows?;
            let weights = weights(&rows).map_err(|e| e.object(&cdc.path))?;
            parts.push(ZBatch::try_new(with_schema(&rows.project(&all)?, schema)?, weights)?);
        }
        Ok(())
    }

    /// Without change data files: rows that are hidden now and were not before are deleted, and the
    /// other way round.
    fn read_actions(&self, data: &Data, schema: &SchemaRef, parts: &mut Vec<ZBatch>) -> Result<()> {
        let mut adds: BTreeMap<&str, &Add> =
            data.adds.iter().map(|add| (add.path.as_str(), add)).collect();
        for remove in &data.removes {
            let before = self.hidden(remove.deletion_vector.as_ref())?;
            let values = remove.partition_values.clone().unwrap_or_default();
            let Some(add) = adds.remove(remove.path.as_str()) else {
                self.read_file(&remove.path, &values, schema, before, -1, parts)?;
                continue;
            };
            let after = self.hidden(add.deletion_vector.as_ref())?;
            let rows = match add.num_records() {
                Some(rows) => rows,
                None => crate::files::count_rows(&self.root, add)?,
            };
            for (shown, weight) in [(&after - &before, -1), (&before - &after, 1)] {
                if !shown.is_empty() {
                    let mut others = RoaringTreemap::new();
                    others.insert_range(0..rows);
                    others -= shown;
                    self.read_file(&add.path, &values, schema, others, weight, parts)?;
                }
            }
        }
        for add in adds.into_values() {
            let hidden = self.hidden(add.deletion_vector.as_ref())?;
            self.read_file(&add.path, &add.partition_values, schema, hidden, 1, parts)?;
        }
        Ok(())
    }

    fn hidden(&self, dv: Option<&DvDescriptor>) -> Result<RoaringTreemap> {
        match dv {
            Some(dv) => deletion_vector::read(&self.storage, &self.root, dv),
            None => Ok(RoaringTreemap::new()),
        }
    }

    fn read_file(
        &self,
        path: &str,
        values: &BTreeMap<String, Option<String>>,
        schema: &SchemaRef,
        hidden: RoaringTreemap,
        weight: i64,
        parts: &mut Vec<ZBatch>,
    ) -> Result<()> {
        for rows in read_logical(&self.root, path, values, schema, hidden)? {
            let rows = rows?;
            let weights = vec![weight; rows.num_rows()];
            parts.push(ZBatch::try_new(rows, weights)?);
        }
        Ok(())
    }
}

impl Data {
    fn of(actions: Vec<Action>) -> Self {
        let mut data = Self::default();
        for action in actions {
            data.adds.extend(action.add.filter(|add| add.data_change));
            data.removes.extend(action.remove.filter(|remove| remove.data_change));
            data.cdc.extend(action.cdc);
        }
        data
    }
}

fn with_schema(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    Ok(RecordBatch::try_new(schema.clone(), rows.columns().to_vec())?)
}

/// Change types as weights.
fn weights(rows: &RecordBatch) -> Result<Vec<i64>> {
    let unknown =
        |what: &str| Error::storage("CHANGE_FILE_CORRUPT", format!("unknown change type {what:?}"));
    let types = rows.column(rows.num_columns() - 1).as_string::<i32>();
    types
        .iter()
        .map(|change| match change {
            Some("insert" | "update_postimage") => Ok(1),
            Some("delete" | "update_preimage") => Ok(-1),
            other => Err(unknown(other.unwrap_or("NULL"))),
        })
        .collect()
}
