//! The event log: a table with one row per event, one commit per update.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use deltaic_batch::{Result, ZBatch};
use deltaic_sql::OnViolation;
use deltaic_table::{Storage, Table, TableOptions};
use serde_json::{Value, json};

use crate::paths::EVENT_LOG;
use crate::report::{ExpectationCounts, FlowReport, FlowStatus};
use crate::update::Planning;

/// Columns of the event log.
pub(crate) fn schema() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("timestamp", time, true),
        Field::new("update_id", DataType::Int64, true),
        Field::new("level", DataType::Utf8, true),
        Field::new("event_type", DataType::Utf8, true),
        Field::new("dataset", DataType::Utf8, true),
        Field::new("flow", DataType::Utf8, true),
        Field::new("message", DataType::Utf8, true),
        Field::new("details", DataType::Utf8, true),
    ]))
}

/// The event log's table.
#[derive(Debug)]
pub(crate) struct EventLog<'a> {
    storage: &'a Storage,
}

/// One event.
struct Event {
    level: &'static str,
    event_type: &'static str,
    dataset: Option<String>,
    flow: Option<String>,
    message: String,
    details: Value,
}

impl<'a> EventLog<'a> {
    /// In a storage folder.
    pub(crate) fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Appends the events of an update; returns the table's version.
    pub(crate) fn append(
        &self,
        update: u64,
        now_us: i64,
        reports: &[(FlowReport, Option<Planning>)],
    ) -> Result<i64> {
        let table = match Table::open(self.storage, EVENT_LOG)? {
            Some(table) => table,
            None => {
                let options =
                    TableOptions { name: Some("event_log".to_string()), ..TableOptions::default() };
                Table::create(self.storage, EVENT_LOG, schema(), &options)?
            }
        };
        let rows = record_batch(update, now_us, &events(update, reports))?;
        let mut commit = table.begin();
        commit.apply(&ZBatch::inserts(rows))?;
        commit.set_info("WRITE", serde_json::Map::new());
        Ok(commit.commit()?.version())
    }
}

fn record_batch(update: u64, now_us: i64, events: &[Event]) -> Result<RecordBatch> {
    let update = i64::try_from(update).unwrap_or(i64::MAX);
    let texts = |get: &dyn Fn(&Event) -> Option<String>| -> ArrayRef {
        Arc::new(events.iter().map(get).collect::<StringArray>())
    };
    let time = TimestampMicrosecondArray::from(vec![now_us; events.len()]).with_timezone("UTC");
    let columns: Vec<ArrayRef> = vec![
        Arc::new(time),
        Arc::new(Int64Array::from(vec![update; events.len()])),
        texts(&|e| Some(e.level.to_string())),
        texts(&|e| Some(e.event_type.to_string())),
        texts(&|e| e.dataset.clone()),
        texts(&|e| e.flow.clone()),
        texts(&|e| Some(e.message.clone())),
        texts(&|e| Some(e.details.to_string())),
    ];
    Ok(RecordBatch::try_new(schema(), columns)?)
}

fn events(update: u64, reports: &[(FlowReport, Option<Planning>)]) -> Vec<Event> {
    let mut out = vec![of_update("create_update", "INFO", format!("update {update} started"))];
    let mut failed = 0;
    for (report, planning) in reports {
        if let Some(planning) = planning {
            out.push(planning_event(report, planning));
        }
        out.push(flow_event(report));
        for warning in &report.warnings {
            out.push(Event {
                level: "WARN",
                event_type: "flow_progress",
                dataset: Some(report.dataset.clone()),
                flow: Some(report.flow.clone()),
                message: warning.clone(),
                details: json!({}),
            });
        }
        failed += usize::from(!matches!(report.status, FlowStatus::Done | FlowStatus::NoOp));
    }
    out.push(match failed {
        0 => of_update("update_progress", "INFO", format!("update {update} COMPLETED")),
        n => of_update("update_progress", "ERROR", format!("update {update} FAILED: {n} flows")),
    });
    out
}

fn of_update(event_type: &'static str, level: &'static str, message: String) -> Event {
    Event { level, event_type, dataset: None, flow: None, message, details: json!({}) }
}

fn flow_event(report: &FlowReport) -> Event {
    let (level, status) = match &report.status {
        FlowStatus::Done | FlowStatus::NoOp => ("INFO", "COMPLETED"),
        FlowStatus::Failed(_) => ("ERROR", "FAILED"),
        FlowStatus::Skipped { .. } => ("WARN", "SKIPPED"),
    };
    let message = match &report.status {
        FlowStatus::Failed(error) => error.to_string(),
        FlowStatus::Skipped { because_of } => format!("skipped since '{because_of}' failed"),
        FlowStatus::Done | FlowStatus::NoOp => format!(
            "{}: {} rows in, {} inserted, {} deleted",
            report.technique, report.rows_in, report.rows_inserted, report.rows_deleted
        ),
    };
    let details = json!({"flow_progress": {
        "status": status,
        "technique": report.technique,
        "metrics": {
            "num_input_rows": report.rows_in,
            "num_output_rows": report.rows_inserted,
            "num_upserted_rows": report.rows_inserted,
            "num_deleted_rows": report.rows_deleted,
            "duration_ms": u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
        },
        "version": report.version,
        "data_quality": {
            "expectations": report.expectations.iter().map(expectation).collect::<Vec<_>>(),
        },
    }});
    Event {
        level,
        event_type: "flow_progress",
        dataset: Some(report.dataset.clone()),
        flow: Some(report.flow.clone()),
        message,
        details,
    }
}

fn expectation(counts: &ExpectationCounts) -> Value {
    let action = match counts.action {
        OnViolation::Warn => "WARN",
        OnViolation::DropRow => "DROP ROW",
        OnViolation::FailUpdate => "FAIL UPDATE",
        OnViolation::Quarantine => "QUARANTINE",
    };
    json!({
        "name": counts.name,
        "action": action,
        "passed_records": counts.passed,
        "failed_records": counts.failed,
    })
}

fn planning_event(report: &FlowReport, planning: &Planning) -> Event {
    let issues: Vec<Value> = planning
        .issues
        .iter()
        .map(|(kind, operator, reason)| {
            json!({
                "issue_type": kind,
                "prevent_incrementalization": true,
                "operator_name": operator,
                "reason": reason,
            })
        })
        .collect();
    let decision = &planning.decision;
    let techniques: Vec<Value> = decision
        .candidates
        .iter()
        .map(|c| {
            json!({
                "maintenance_type": c.technique.name(),
                "is_chosen": c.technique == decision.chosen,
                "is_applicable": c.applicable,
                "cost": c.cost_us,
                "incrementalization_issues": issues,
            })
        })
        .collect();
    let sources: Vec<Value> = planning
        .sources
        .iter()
        .map(|(name, change, full)| {
            let name = name.split_once(':').map_or(name.as_str(), |(_, name)| name);
            json!({"table_name": name, "change_size": change, "full_size": full})
        })
        .collect();
    let details = json!({"planning_information": {
        "technique_information": techniques,
        "source_table_information": sources,
        "target_table_information": {
            "table_name": report.dataset,
            "full_size": planning.view_rows,
        },
        "reason": report.reason,
    }});
    Event {
        level: "INFO",
        event_type: "planning_information",
        dataset: Some(report.dataset.clone()),
        flow: Some(report.flow.clone()),
        message: format!(
            "{}: {}",
            decision.chosen.name(),
            report.reason.as_deref().unwrap_or(&decision.reason)
        ),
        details,
    }
}
