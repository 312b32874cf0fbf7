//! `CREATE … STREAMING TABLE | MATERIALIZED VIEW | [TEMPORARY] VIEW`.

use sqlparser::tokenizer::Token;

use crate::ast::{Dataset, DatasetKind, FlowBody, ParseError, RefreshPolicy, Span, Spanned};
use crate::cdc;
use crate::columns::column_list;
use crate::errors::{error, unknown_clause};
use crate::query::{Placeholders, query};
use crate::settings::properties;
use crate::tokens::Cursor;

/// Words between `CREATE` and the name.
#[derive(Debug, Default)]
struct Head {
    private: bool,
    temporary: bool,
}

/// The statement after `CREATE`, or `None` if its head is not that of a dataset.
pub(crate) fn dataset(
    at: &mut Cursor<'_>,
    span: Span,
    placeholders: &mut Placeholders,
) -> Result<Option<Dataset>, ParseError> {
    let start = at.pos;
    let head = head(at);
    let Some(kind) = kind(at, &head) else {
        at.pos = start;
        return Ok(None);
    };
    at.eat(&["IF", "NOT", "EXISTS"]);
    let mut dataset = Dataset {
        kind,
        name: at.name("the name of the dataset")?,
        private: head.private,
        columns: Vec::new(),
        expectations: Vec::new(),
        partitioned_by: Vec::new(),
        cluster_by: Vec::new(),
        comment: None,
        properties: std::collections::BTreeMap::new(),
        refresh_policy: RefreshPolicy::Auto,
        body: None,
        span,
    };
    if at.sees_token(&Token::LParen) {
        (dataset.columns, dataset.expectations) = column_list(at)?;
    }
    clauses(at, &mut dataset, placeholders)?;
    if dataset.body.is_none() && kind != DatasetKind::StreamingTable {
        return Err(missing_query(at, kind));
    }
    Ok(Some(dataset))
}

fn head(at: &mut Cursor<'_>) -> Head {
    let mut head = Head::default();
    loop {
        if at.eat(&["OR", "REFRESH"]) || at.eat(&["OR", "REPLACE"]) {
            // Both say what every run does anyway.
        } else if at.eat(&["PRIVATE"]) {
            head.private = true;
        } else if at.eat(&["TEMPORARY"]) || at.eat(&["TEMP"]) {
            head.temporary = true;
        } else {
            return head;
        }
    }
}

/// The kind by its words, with the older Lakeflow spellings (`STREAMING LIVE TABLE`, `LIVE TABLE`).
fn kind(at: &mut Cursor<'_>, head: &Head) -> Option<DatasetKind> {
    if at.eat(&["STREAMING", "TABLE"]) || at.eat(&["STREAMING", "LIVE", "TABLE"]) {
        return Some(DatasetKind::StreamingTable);
    }
    if at.eat(&["MATERIALIZED", "VIEW"]) || at.eat(&["LIVE", "TABLE"]) {
        return Some(DatasetKind::MaterializedView);
    }
    if at.eat(&["LIVE", "VIEW"]) {
        return Some(DatasetKind::TemporaryView);
    }
    at.eat(&["VIEW"]).then_some(if head.temporary {
        DatasetKind::TemporaryView
    } else {
        DatasetKind::View
    })
}

const TABLE_CLAUSES: &[&str] =
    &["AS", "FLOW AUTO CDC", "USING", "PARTITIONED BY", "CLUSTER BY", "COMMENT", "TBLPROPERTIES"];
const VIEW_CLAUSES: &[&str] =
    &["AS", "USING", "PARTITIONED BY", "CLUSTER BY", "COMMENT", "TBLPROPERTIES", "REFRESH POLICY"];

/// Everything behind the column list, in any order; the query or the flow comes last.
fn clauses(
    at: &mut Cursor<'_>,
    dataset: &mut Dataset,
    placeholders: &mut Placeholders,
) -> Result<(), ParseError> {
    let table = dataset.kind == DatasetKind::StreamingTable;
    while !at.at_end() {
        if at.eat(&["USING"]) {
            at.identifier("a table format such as delta or parquet")?;
        } else if at.eat(&["PARTITIONED", "BY"]) {
            dataset.partitioned_by = cdc::identifiers(at)?;
        } else if at.sees(&["CLUSTER", "BY"]) {
            dataset.cluster_by = cluster_by(at)?;
        } else if at.eat(&["COMMENT"]) {
            dataset.comment = Some(at.string("a comment")?);
        } else if at.eat(&["TBLPROPERTIES"]) {
            dataset.properties = properties(at)?;
        } else if at.eat(&["DEFAULT", "COLLATION"]) {
            at.identifier("a collation")?;
        } else if !table && at.eat(&["REFRESH", "POLICY"]) {
            dataset.refresh_policy = refresh_policy(at)?;
        } else if at.eat(&["AS"]) {
            dataset.body = Some(FlowBody::Query(query(at, placeholders)?));
            return Ok(());
        } else if table && at.eat(&["FLOW"]) {
            cdc::head(at)?;
            dataset.body = Some(FlowBody::Cdc(Box::new(cdc::clauses(at, placeholders)?)));
            return Ok(());
        } else if at.sees(&["SELECT"]) || at.sees(&["WITH"]) {
            let hint = "write AS before the query".to_owned();
            return Err(at.expected("AS", Some(hint)));
        } else {
            let known = if table { TABLE_CLAUSES } else { VIEW_CLAUSES };
            return Err(unknown_clause(at, kind_name(dataset.kind), known));
        }
    }
    Ok(())
}

fn cluster_by(at: &mut Cursor<'_>) -> Result<Vec<Spanned<String>>, ParseError> {
    at.expect(&["CLUSTER", "BY"])?;
    if at.eat(&["AUTO"]) || at.eat(&["NONE"]) {
        return Ok(Vec::new());
    }
    cdc::identifiers(at)
}

fn refresh_policy(at: &mut Cursor<'_>) -> Result<RefreshPolicy, ParseError> {
    if at.eat(&["AUTO"]) {
        return Ok(RefreshPolicy::Auto);
    }
    if at.eat(&["INCREMENTAL", "STRICT"]) {
        return Ok(RefreshPolicy::IncrementalStrict);
    }
    if at.eat(&["INCREMENTAL"]) {
        return Ok(RefreshPolicy::Incremental);
    }
    if at.eat(&["FULL"]) {
        return Ok(RefreshPolicy::Full);
    }
    let known = ["AUTO", "INCREMENTAL", "INCREMENTAL STRICT", "FULL"];
    Err(unknown_clause(at, "REFRESH POLICY", &known))
}

fn missing_query(at: &Cursor<'_>, kind: DatasetKind) -> ParseError {
    let message = format!("{} needs a query", kind_name(kind));
    error(at.here(), message, Some("end the statement with AS SELECT …".into()))
}

/// As the user writes it.
fn kind_name(kind: DatasetKind) -> &'static str {
    match kind {
        DatasetKind::StreamingTable => "a STREAMING TABLE",
        DatasetKind::MaterializedView => "a MATERIALIZED VIEW",
        DatasetKind::TemporaryView => "a TEMPORARY VIEW",
        DatasetKind::View => "a VIEW",
    }
}
