//! The `_metadata` column of files: there for queries that name it, not for `*`.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};

use super::FlowInput;
use crate::files::{METADATA, metadata_field};

/// The query names the column somewhere.
pub(super) fn is_read(query: &str) -> bool {
    query.to_ascii_lowercase().contains(METADATA)
}

/// Schema of files with the column last.
pub(super) fn with(schema: &SchemaRef) -> SchemaRef {
    let mut fields = schema.fields().to_vec();
    fields.push(Arc::new(metadata_field()));
    Arc::new(Schema::new(fields))
}

/// What a `*` over such files means: the column itself is left out again.
pub(super) fn without(schema: &SchemaRef, inputs: &[FlowInput]) -> SchemaRef {
    if !inputs.iter().any(|i| i.schema.index_of(METADATA).is_ok()) {
        return schema.clone();
    }
    let fields = schema.fields().iter().filter(|f| f.name() != METADATA);
    Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()))
}
