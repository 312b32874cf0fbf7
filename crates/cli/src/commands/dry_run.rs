//! `deltaic dry-run`.

use std::sync::Arc;

use arrow::datatypes::Field;
use deltaic_pipeline::{DatasetSummary, DryRun, Pipeline, type_name};
use serde_json::{Value, json};

use crate::args::ReportFormat;
use crate::complaint::{Complaint, Sources, as_json, exit_code, say};
use crate::output::Out;

/// Checks the project and lists what it defines.
pub(super) fn dry_run(
    pipeline: &Pipeline,
    format: ReportFormat,
    sources: &Sources,
    out: &mut Out,
) -> Result<u8, Complaint> {
    match (pipeline.dry_run(), format) {
        (Ok(found), ReportFormat::Text) => text(&found, out)?,
        (Ok(found), ReportFormat::Json) => out.line(&json_of(&found).to_string())?,
        (Err(e), ReportFormat::Text) => return Err(Complaint::new(e, sources)),
        (Err(e), ReportFormat::Json) => {
            let errors: Vec<Value> = e.0.iter().map(as_json).collect();
            out.line(&json!({ "valid": false, "errors": errors }).to_string())?;
            return Ok(exit_code(&e.0));
        }
    }
    Ok(0)
}

fn text(found: &DryRun, out: &mut Out) -> Result<(), Complaint> {
    for dataset in &found.datasets {
        out.line(&format!("{} ({})", dataset.name, dataset.kind))?;
        if !dataset.reads.is_empty() {
            out.line(&format!("  reads    {}", dataset.reads.join(", ")))?;
        }
        let implicit = dataset.flows.len() == 1 && dataset.flows[0] == dataset.name;
        if !dataset.flows.is_empty() && !implicit {
            out.line(&format!("  flows    {}", dataset.flows.join(", ")))?;
        }
        out.line(&format!("  columns  {}", columns(dataset)))?;
    }
    for file in &found.uncovered {
        out.line(&format!("not covered by the project: {file}"))?;
    }
    for name in &found.inactive {
        out.line(&format!(
            "stored, but no longer defined: {name} (run --drop-inactive removes it)"
        ))?;
    }
    for warning in &found.warnings {
        say(&format!("warning: {warning}"));
    }
    let stored =
        found.datasets.iter().filter(|d| !d.kind.ends_with(" view") || d.kind.starts_with("mat"));
    out.line(&format!("The project is valid: {} tables and views to keep.", stored.count()))
}

fn columns(dataset: &DatasetSummary) -> String {
    let one = |f: &Arc<Field>| format!("{} {}", f.name(), type_name(f.data_type()));
    dataset.schema.fields().iter().map(one).collect::<Vec<_>>().join(", ")
}

fn json_of(found: &DryRun) -> Value {
    let column = |f: &Arc<Field>| {
        json!({
            "name": f.name(),
            "type": type_name(f.data_type()),
            "nullable": f.is_nullable(),
        })
    };
    let dataset = |d: &DatasetSummary| {
        json!({
            "name": d.name,
            "kind": d.kind,
            "flows": d.flows,
            "reads": d.reads,
            "columns": d.schema.fields().iter().map(column).collect::<Vec<_>>(),
        })
    };
    json!({
        "valid": true,
        "datasets": found.datasets.iter().map(dataset).collect::<Vec<_>>(),
        "uncovered": found.uncovered,
        "inactive": found.inactive,
        "warnings": found.warnings,
    })
}
