//! `deltaic events`: the event log, without its details where people read it.

use arrow::array::RecordBatch;
use deltaic_batch::Error;
use deltaic_pipeline::Pipeline;

use crate::args::RowFormat;
use crate::complaint::{Complaint, Sources};
use crate::output::Out;

/// Prints the events of one update, or of all. The table leaves out `details`, a JSON document per
/// row that no terminal is wide enough for; the other formats have it.
pub(super) fn events(
    pipeline: &Pipeline,
    update: Option<u64>,
    format: RowFormat,
    sources: &Sources,
    out: &mut Out,
) -> Result<(), Complaint> {
    let events = pipeline.events(update).map_err(|e| Complaint::new(e, sources))?;
    let all = 0..events.schema.fields().len();
    let shown: Vec<usize> = match format {
        RowFormat::Table => all.filter(|&i| events.schema.field(i).name() != "details").collect(),
        RowFormat::Csv | RowFormat::Json => all.collect(),
    };
    let failed = |e| Complaint::new(Error::from(e), sources);
    let schema = events.schema.project(&shown).map_err(failed)?;
    let batches: Result<Vec<RecordBatch>, _> =
        events.batches.iter().map(|batch| batch.project(&shown)).collect();
    out.rows(&schema, &batches.map_err(failed)?, format)
}
