//! [`ScdSpec`]: what an SCD merge is told, and its validation.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::row::{RowConverter, SortField};
use deltaic_batch::{Error, Result};

use crate::scd::sequence::is_number;

/// Kind of an event: an upsert.
pub const KIND_UPSERT: i8 = 0;
/// Kind of an event: a delete of its key.
pub const KIND_DELETE: i8 = 1;
/// Kind of an event: removal of every row at or below its sequence.
pub const KIND_TRUNCATE: i8 = 2;
/// Type 2: first sequence at which a version holds.
pub const START_AT: &str = "__START_AT";
/// Type 2: first sequence at which a version no longer holds; NULL while it is open.
pub const END_AT: &str = "__END_AT";

/// How much history a target keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScdType {
    /// The latest row of each key.
    Type1,
    /// Every version of each key, with the interval in which it holds.
    Type2,
}

/// Declares an SCD merge. All positions refer to `input`.
#[derive(Debug, Clone)]
pub struct ScdSpec {
    /// Schema of the events: all source columns, then the sequence, then the kind.
    pub input: SchemaRef,
    /// Columns that identify a row; at least one.
    pub keys: Vec<usize>,
    /// Column that orders the events of a key: any orderable type, structs included.
    pub sequence: usize,
    /// `Int8` column: 0 upsert, 1 delete, 2 truncate.
    pub kind: usize,
    /// Columns of the target, in its order; the keys are among them.
    pub columns: Vec<usize>,
    /// Type 2: a change in one of these target columns opens a new version.
    pub tracked: Vec<usize>,
    /// Target columns whose NULL in an upsert keeps the older value.
    pub ignore_null: Vec<usize>,
    /// Type 1 or 2.
    pub scd_type: ScdType,
    /// Truncate events are possible (type 1 only); all events then meet in one shard.
    pub truncates: bool,
    /// How far behind the greatest sequence of earlier steps an event may be, in units of the
    /// sequence (numbers; days of a date; units of a timestamp). What is older is dropped and
    /// counted, and what it could have changed is no longer kept; all events then meet in one shard.
    /// `None`: no event is too late, and everything that a late one needs is kept for ever.
    pub retention: Option<u64>,
}

impl ScdSpec {
    /// Schema of the target: the selected columns and, for type 2, `__START_AT` and `__END_AT` of
    /// the sequence's type.
    pub fn target_schema(&self) -> Result<SchemaRef> {
        let mut fields = self.input.project(&self.columns)?.fields().to_vec();
        if self.scd_type == ScdType::Type2 {
            let sequence = self.input.field(self.sequence).data_type();
            fields.push(Arc::new(Field::new(START_AT, sequence.clone(), true)));
            fields.push(Arc::new(Field::new(END_AT, sequence.clone(), true)));
        }
        Ok(Arc::new(Schema::new(fields)))
    }

    pub(super) fn validate(&self) -> Result<()> {
        let width = self.input.fields().len();
        let positions = [&self.keys, &self.columns, &self.tracked, &self.ignore_null];
        let one = [self.sequence, self.kind];
        if positions.into_iter().flatten().chain(&one).any(|&column| column >= width) {
            return Err(Error::internal("SCD_SPEC", "a column position is out of range"));
        }
        if self.input.field(self.kind).data_type() != &DataType::Int8 {
            return Err(Error::internal("SCD_SPEC", "the event kind is not Int8"));
        }
        if self.keys.is_empty() {
            return Err(Error::user("SCD_KEYS", "an SCD merge needs at least one key column")
                .hint("name the columns that identify a row in KEYS (…)"));
        }
        self.check_selected(&self.keys, "key")?;
        self.check_selected(&self.tracked, "tracked")?;
        self.check_selected(&self.ignore_null, "IGNORE NULL UPDATES")?;
        if self.truncates && self.scd_type == ScdType::Type2 {
            return Err(Error::user(
                "SCD_TRUNCATE_TYPE_2",
                "APPLY AS TRUNCATE works with SCD type 1 only",
            )
            .hint("store the target as SCD TYPE 1, or drop APPLY AS TRUNCATE"));
        }
        if !orderable(self.input.field(self.sequence).data_type()) {
            return Err(Error::user(
                "SCD_SEQUENCE_TYPE",
                format!(
                    "a sequence of type {} has no order (AUTOCDC_NON_ORDERABLE_SEQUENCE)",
                    self.input.field(self.sequence).data_type()
                ),
            )
            .hint("sequence by a number, string, date, timestamp, or a struct of these"));
        }
        if self.retention.is_some() && !is_number(self.input.field(self.sequence).data_type()) {
            return Err(Error::user(
                "SCD_RETENTION",
                format!(
                    "a retention needs a sequence of whole numbers, dates or timestamps, not {}",
                    self.input.field(self.sequence).data_type()
                ),
            )
            .hint("sequence by one such column, or leave the retention out"));
        }
        let clash = self.columns.iter().map(|&c| self.input.field(c).name());
        if self.scd_type == ScdType::Type2 {
            for name in clash {
                if name == START_AT || name == END_AT {
                    return Err(Error::user(
                        "SCD_RESERVED_COLUMN",
                        format!("column '{name}' is reserved for the versions of SCD type 2"),
                    )
                    .hint("rename the source column, or leave it out with COLUMNS * EXCEPT (…)"));
                }
            }
        }
        Ok(())
    }

    fn check_selected(&self, columns: &[usize], what: &str) -> Result<()> {
        match columns.iter().find(|column| !self.columns.contains(column)) {
            None => Ok(()),
            Some(&column) => Err(Error::user(
                "SCD_COLUMN_NOT_SELECTED",
                format!("{what} column '{}' is not in the target", self.input.field(column).name()),
            )
            .hint("add it to COLUMNS, or take it out of EXCEPT")),
        }
    }
}

/// Types whose values have one order, field by field inside structs.
fn orderable(data_type: &DataType) -> bool {
    let ordered = match data_type {
        DataType::Map(..) | DataType::Union(..) => false,
        DataType::Struct(fields) => fields.iter().all(|field| orderable(field.data_type())),
        _ => true,
    };
    ordered && RowConverter::supports_fields(&[SortField::new(data_type.clone())])
}
