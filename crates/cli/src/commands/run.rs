//! `deltaic run`.

use std::time::Duration;

use deltaic_pipeline::{
    ExpectationCounts, FlowReport, FlowStatus, Pipeline, RunOptions, UpdateReport,
};
use deltaic_sql::OnViolation;
use serde_json::{Value, json};

use crate::args::{ReportFormat, RunArgs};
use crate::complaint::{Complaint, Sources, as_json, colour, exit_code, render, say};
use crate::output::Out;
use crate::progress::Bars;

/// Refreshes datasets and reports what was done.
pub(super) fn run(
    pipeline: &Pipeline,
    args: &RunArgs,
    sources: &Sources,
    out: &mut Out,
) -> Result<u8, Complaint> {
    let options = RunOptions {
        refresh: args.refresh.clone(),
        full_refresh: args.full_refresh.clone(),
        full_refresh_all: args.full_refresh_all,
        drop_inactive: args.drop_inactive,
    };
    let bars = Bars::default();
    let ended = pipeline.run(&options, &bars);
    bars.clear();
    let report = match (ended, args.format) {
        (Ok(report), _) => report,
        (Err(e), ReportFormat::Text) => return Err(Complaint::new(e, sources)),
        (Err(e), ReportFormat::Json) => {
            let errors: Vec<Value> = e.0.iter().map(as_json).collect();
            out.line(&json!({ "succeeded": false, "errors": errors }).to_string())?;
            return Ok(exit_code(&e.0));
        }
    };
    for (flow, error) in report.flows.iter().filter_map(|f| Some((f, f.error()?))) {
        say(&render(error, sources, Some(&flow.dataset), colour()));
    }
    match args.format {
        ReportFormat::Text => text(&report, out)?,
        ReportFormat::Json => out.line(&json_of(&report).to_string())?,
    }
    Ok(report.exit_code())
}

fn text(report: &UpdateReport, out: &mut Out) -> Result<(), Complaint> {
    let label = |f: &FlowReport| {
        if f.flow == f.dataset { f.dataset.clone() } else { format!("{} <- {}", f.dataset, f.flow) }
    };
    let width = report.flows.iter().map(|f| label(f).chars().count()).max().unwrap_or(0);
    for flow in &report.flows {
        let name = label(flow);
        let gap = " ".repeat(width - name.chars().count());
        out.line(&format!("{name}{gap}  {}", outcome(flow)))?;
        for counts in flow.expectations.iter().filter(|e| e.failed > 0) {
            out.line(&format!("  {}", violations(counts)))?;
        }
        for warning in &flow.warnings {
            say(&format!("warning: {}: {warning}", flow.dataset));
        }
    }
    for warning in &report.warnings {
        say(&format!("warning: {warning}"));
    }
    let count =
        |wanted: fn(&FlowStatus) -> bool| report.flows.iter().filter(|f| wanted(&f.status)).count();
    let done = count(|s| matches!(s, FlowStatus::Done));
    let idle = count(|s| matches!(s, FlowStatus::NoOp));
    let failed = count(|s| matches!(s, FlowStatus::Failed(_)));
    let skipped = count(|s| matches!(s, FlowStatus::Skipped { .. }));
    if report.update.is_none() && idle == report.flows.len() {
        return out.line(&format!(
            "Nothing to do: {idle} flows are up to date ({})",
            time(report.duration)
        ));
    }
    let mut parts = vec![format!("{done} refreshed"), format!("{idle} had nothing to do")];
    if failed + skipped > 0 {
        parts.push(format!("{failed} failed"));
        parts.push(format!("{skipped} skipped"));
    }
    let update = report.update.map_or_else(|| "No update".into(), |n| format!("Update {n}"));
    out.line(&format!("{update}: {} in {}", parts.join(", "), time(report.duration)))
}

fn outcome(flow: &FlowReport) -> String {
    match &flow.status {
        FlowStatus::Done => format!(
            "{}  {} rows in, +{} -{}  {}",
            flow.technique,
            grouped(flow.rows_in),
            grouped(flow.rows_inserted),
            grouped(flow.rows_deleted),
            time(flow.duration)
        ),
        FlowStatus::NoOp => "NO_OP".into(),
        FlowStatus::Failed(error) => format!("FAILED  {}", error.code()),
        FlowStatus::Skipped { because_of } => format!("SKIPPED since {because_of} failed"),
    }
}

fn violations(counts: &ExpectationCounts) -> String {
    let what = match counts.action {
        OnViolation::Warn => "kept",
        OnViolation::DropRow => "dropped",
        OnViolation::FailUpdate => "refused",
        OnViolation::Quarantine => "quarantined",
    };
    let of = grouped(counts.passed + counts.failed);
    format!("{}: {} of {of} rows violate it, {what}", counts.name, grouped(counts.failed))
}

/// `1,234,567`.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `340 µs`, `12 ms`, `3.4 s`.
fn time(duration: Duration) -> String {
    match duration.as_micros() {
        us @ ..1_000 => format!("{us} µs"),
        us @ ..1_000_000 => format!("{} ms", us / 1_000),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

fn json_of(report: &UpdateReport) -> Value {
    json!({
        "update": report.update,
        "succeeded": report.succeeded(),
        "duration_ms": report.duration.as_secs_f64() * 1000.0,
        "flows": report.flows.iter().map(flow_json).collect::<Vec<_>>(),
        "warnings": report.warnings,
    })
}

fn flow_json(flow: &FlowReport) -> Value {
    let (status, because_of) = match &flow.status {
        FlowStatus::Done => ("done", None),
        FlowStatus::NoOp => ("no_op", None),
        FlowStatus::Failed(_) => ("failed", None),
        FlowStatus::Skipped { because_of } => ("skipped", Some(because_of)),
    };
    let expectation = |e: &ExpectationCounts| json!({ "name": e.name, "passed_records": e.passed, "failed_records": e.failed });
    json!({
        "flow": flow.flow,
        "dataset": flow.dataset,
        "status": status,
        "because_of": because_of,
        "technique": flow.technique,
        "reason": flow.reason,
        "rows_in": flow.rows_in,
        "rows_inserted": flow.rows_inserted,
        "rows_deleted": flow.rows_deleted,
        "version": flow.version,
        "duration_ms": flow.duration.as_secs_f64() * 1000.0,
        "expectations": flow.expectations.iter().map(expectation).collect::<Vec<_>>(),
        "error": flow.error().map(as_json),
        "warnings": flow.warnings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_to_read() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        let times = [340, 12_900, 3_400_000].map(|us| time(Duration::from_micros(us)));
        assert_eq!(times, ["340 µs", "12 ms", "3.4 s"]);
    }
}
