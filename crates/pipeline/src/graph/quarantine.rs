//! Quarantine tables: beside each streaming table that diverts rows there is one more,
//! `<table>__quarantine`, which holds them. It has no flow: the table's own turn writes it.

use deltaic_batch::Error;
use deltaic_sql::{Dataset, DatasetKind, OnViolation, Statement, parse_file};

use super::definitions::{DatasetDef, Definitions};

/// What configuration diverts invalid change events instead of refusing them.
pub(crate) const INVALID_ROWS: &str = "deltaic.cdc.invalidRows";
/// The value of it that does.
pub(crate) const QUARANTINE: &str = "quarantine";

const SUFFIX: &str = "__quarantine";
/// The row is JSON, since the rows of several flows, and of one over time, have different columns.
const COLUMNS: &str =
    "row STRING, rules ARRAY<STRING>, flow STRING, source STRING, update_id BIGINT";

/// Adds the quarantine tables of all datasets.
pub(super) fn add(definitions: &mut Definitions, errors: &mut Vec<Error>) {
    for dataset in 0..definitions.datasets.len() {
        let definition = &definitions.datasets[dataset];
        if diverts(definition, definitions)
            && let Some(ast) = table_of(definition)
        {
            let (name, key) = (ast.name.parts.join("."), format!("{}{SUFFIX}", definition.key));
            let file = definition.file.clone();
            let (flows, quarantine_of) = (Vec::new(), Some(dataset));
            let quarantine = DatasetDef { key, name, ast, file, flows, quarantine_of };
            definitions.add_quarantine(quarantine, errors);
        }
    }
}

fn diverts(definition: &DatasetDef, definitions: &Definitions) -> bool {
    let by_rule = definition.ast.expectations.iter().any(|e| e.action == OnViolation::Quarantine);
    let invalid = |flow: &usize| {
        let value = definitions.flows[*flow].configuration.get(INVALID_ROWS);
        value.is_some_and(|value| value.eq_ignore_ascii_case(QUARANTINE))
            && definitions.flows[*flow].is_cdc_of_events()
    };
    definition.ast.kind == DatasetKind::StreamingTable
        && (by_rule || definition.flows.iter().any(invalid))
}

fn table_of(definition: &DatasetDef) -> Option<Dataset> {
    let (statements, _) = parse_file(&format!("CREATE STREAMING TABLE q ({COLUMNS})"), 0);
    let Some(Statement::Dataset(mut ast)) = statements.into_iter().next() else { return None };
    ast.name = definition.ast.name.clone();
    if let Some(last) = ast.name.parts.last_mut() {
        last.push_str(SUFFIX);
    }
    ast.comment = Some(format!("Rows that {} did not take", definition.name));
    Some(*ast)
}
