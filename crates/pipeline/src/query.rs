//! Queries over the datasets as the newest marker has them; only the tables named are read.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Error, Location, Result};
use deltaic_plan::{Session, Source, SourceTable, Sources};
use deltaic_sql::{ParseError, Query, ReadFiles, TableRef};
use deltaic_table::{ScanOptions, Storage, Table};
use regex::Regex;

use crate::catalog::{FileCatalog, external_call};
use crate::files::{METADATA, metadata_field, read_file};
use crate::marker::Marker;
use crate::near::near_names;
use crate::paths;
use crate::report::{Errors, QueryResult};
use crate::update::{change_rows, change_schema};
use crate::{Graph, InputSource, Project};
use deltaic_plan::type_name;

/// What a query sees.
pub(crate) struct Reader<'a> {
    pub(crate) project: &'a Project,
    pub(crate) session: &'a Session,
    pub(crate) storage: &'a Storage,
    pub(crate) marker: &'a Marker,
    pub(crate) files: &'a FileCatalog<'a>,
    /// Resolves the project's SQL; called only when a name is no stored dataset.
    pub(crate) graph: &'a dyn Fn() -> Result<&'a Graph, Errors>,
}

/// Tables that a query reaches, read.
#[derive(Default)]
struct Bound {
    sources: Sources,
    tables: BTreeMap<String, Vec<RecordBatch>>,
}

const EVENT_LOG: &str = "event_log";

impl Reader<'_> {
    /// Runs a statement.
    pub(crate) fn query(&self, sql: &str) -> Result<QueryResult, Errors> {
        let sql = sql.trim().trim_end_matches(';').trim_end();
        if let Some(name) = describe(sql)? {
            return self.describe(&name);
        }
        if pattern(r"(?is)^show\s+tables\b.*$")?.is_match(sql) {
            return Ok(self.show_tables()?);
        }
        let query = parse(sql)?;
        let mut bound = Bound::default();
        self.bind(&query, &mut bound)?;
        let (schema, batches) =
            self.session.run_batch(&query.text, &bound.sources, bound.tables)?;
        Ok(QueryResult { schema, batches })
    }

    fn bind(&self, query: &Query, bound: &mut Bound) -> Result<(), Errors> {
        for source in &query.sources {
            let name = source.placeholder.clone();
            if bound.sources.contains_key(&name) {
                continue;
            }
            match &source.table {
                TableRef::Table(table) => self.bind_name(&name, &table.parts.join("."), bound)?,
                TableRef::Changes { table, from, to } => {
                    let table = self.stored(&table.parts.join("."))?;
                    let rows = changes(&table, *from, *to)?;
                    bound.table(name, change_schema(&table.schema()), rows);
                }
                TableRef::ExternalChanges { path, from, to } => {
                    let table = self.files.delta_table(path)?;
                    let rows = changes(&table, *from, *to)?;
                    bound.table(name, change_schema(&table.schema()), rows);
                }
                TableRef::Files(call) => self.bind_files(name, call, bound)?,
                TableRef::External { path, format, .. } => match self.files.external_table(path)? {
                    Some(table) => bound.scan(name, &table)?,
                    None => self.bind_files(name, &external_call(path, format), bound)?,
                },
            }
        }
        Ok(())
    }

    fn bind_files(&self, name: String, call: &ReadFiles, bound: &mut Bound) -> Result<()> {
        self.bind_files_as(name, call, false, bound)
    }

    fn bind_files_as(
        &self,
        name: String,
        call: &ReadFiles,
        with_metadata: bool,
        bound: &mut Bound,
    ) -> Result<()> {
        let files = self.files.resolve(call)?;
        let mut rows = Vec::new();
        for file in &files.listing {
            let root = self.files.root();
            rows.extend(read_file(root, file, &files.options, &files.schema, with_metadata)?);
        }
        let mut fields = files.schema.rows.fields().to_vec();
        if with_metadata {
            fields.push(Arc::new(metadata_field()));
        }
        bound.table(name, Arc::new(Schema::new(fields)), rows);
        Ok(())
    }

    fn bind_name(&self, name: &str, table: &str, bound: &mut Bound) -> Result<(), Errors> {
        if let Some(table) = self.find_stored(table)? {
            return Ok(bound.scan(name.to_string(), &table)?);
        }
        let graph = (self.graph)()?;
        let key = self.key(table);
        let Some(node) = graph.datasets.iter().find(|d| d.key == key) else {
            return Err(self.unknown(table, graph).into());
        };
        let Some(text) = &node.view_query else { return Err(not_yet(&node.name).into()) };
        bound.sources.insert(name.to_string(), Source::View { sql: text.clone() });
        for (view, text) in &node.view_views {
            bound.sources.insert(view.clone(), Source::View { sql: text.clone() });
        }
        for input in &node.view_inputs {
            let name = input.name.clone();
            match &input.source {
                InputSource::Dataset(d) => {
                    bound.scan(name, &self.stored(&graph.datasets[*d].key)?)?;
                }
                InputSource::Changes { dataset, from, to } => {
                    let table = self.stored(&graph.datasets[*dataset].key)?;
                    let rows = changes(&table, *from, *to)?;
                    bound.table(name, change_schema(&table.schema()), rows);
                }
                InputSource::ExternalChanges { path, from, to } => {
                    let table = self.files.delta_table(path)?;
                    let rows = changes(&table, *from, *to)?;
                    bound.table(name, change_schema(&table.schema()), rows);
                }
                InputSource::Files(call) => {
                    let with_metadata = input.schema.index_of(METADATA).is_ok();
                    self.bind_files_as(name, call, with_metadata, bound)?;
                }
                InputSource::External(path) => match self.files.external_table(path)? {
                    Some(table) => bound.scan(name, &table)?,
                    None => self.bind_files(name, &external_call(path, "parquet"), bound)?,
                },
            }
        }
        Ok(())
    }

    /// Key of a dataset: lower-case, without the default catalog and schema.
    fn key(&self, name: &str) -> String {
        let name = name.to_lowercase();
        let catalog = self.project.catalog.as_deref().map(str::to_lowercase);
        let mut rest = name.as_str();
        if let Some(catalog) = &catalog
            && let Some(tail) = rest.strip_prefix(&format!("{catalog}."))
        {
            rest = tail;
        }
        let schema = format!("{}.", self.project.schema.to_lowercase());
        rest.strip_prefix(&schema).unwrap_or(rest).to_string()
    }

    fn find_stored(&self, name: &str) -> Result<Option<Table>> {
        let key = self.key(name);
        let (path, version) = match self.marker.datasets.get(&key) {
            Some(marked) => (paths::table(&key), marked.version),
            None if key == EVENT_LOG => match self.marker.event_log {
                Some(version) => (paths::EVENT_LOG.to_string(), version),
                None => return Ok(None),
            },
            None => return Ok(None),
        };
        Table::open_at(self.storage, &path, version)
    }

    /// A stored dataset, by name.
    pub(crate) fn stored(&self, name: &str) -> Result<Table, Errors> {
        if let Some(table) = self.find_stored(name)? {
            return Ok(table);
        }
        let graph = (self.graph)()?;
        let key = self.key(name);
        if graph.datasets.iter().any(|d| d.key == key) {
            return Err(not_yet(name).into());
        }
        Err(self.unknown(name, graph).into())
    }

    fn unknown(&self, name: &str, graph: &Graph) -> Error {
        if self.key(name) == EVENT_LOG {
            return Error::user("NOT_MATERIALIZED", "nothing was logged yet")
                .object(name)
                .hint("run the pipeline first: deltaic run");
        }
        let error = Error::user(
            "TABLE_OR_VIEW_NOT_FOUND",
            "there is no such table or view in the pipeline",
        )
        .object(name);
        let names: Vec<&str> = graph.datasets.iter().map(|d| d.name.as_str()).collect();
        match near_names(name, names.iter().copied()).as_slice() {
            [] => error.hint(format!("the pipeline has {}", names.join(", "))),
            near => error.hint(format!("did you mean {}?", near.join(" or "))),
        }
    }

    fn describe(&self, name: &str) -> Result<QueryResult, Errors> {
        let schema = match self.find_stored(name)? {
            Some(table) => table.schema(),
            None => {
                let graph = (self.graph)()?;
                let key = self.key(name);
                match graph.datasets.iter().find(|d| d.key == key) {
                    Some(node) => node.schema.clone(),
                    None => return Err(self.unknown(name, graph).into()),
                }
            }
        };
        Ok(describe_schema(&schema)?)
    }

    fn show_tables(&self) -> Result<QueryResult> {
        let marked = self.marker.datasets.values();
        let names: StringArray = marked.clone().map(|m| Some(m.name.as_str())).collect();
        let kinds: StringArray = marked.clone().map(|m| Some(m.kind.as_str())).collect();
        let versions: Int64Array = marked.map(|m| Some(m.version)).collect();
        let schema = Arc::new(Schema::new(vec![
            Field::new("table_name", DataType::Utf8, false),
            Field::new("kind", DataType::Utf8, false),
            Field::new("version", DataType::Int64, false),
        ]));
        let columns: Vec<ArrayRef> = vec![Arc::new(names), Arc::new(kinds), Arc::new(versions)];
        let batches = vec![RecordBatch::try_new(schema.clone(), columns)?];
        Ok(QueryResult { schema, batches })
    }
}

fn not_yet(name: &str) -> Error {
    Error::user("NOT_MATERIALIZED", "it has no stored data").object(name).hint(
        "run the pipeline first (deltaic run); views that are not materialized are never stored",
    )
}

fn changes(table: &Table, from: i64, to: Option<i64>) -> Result<Vec<RecordBatch>> {
    let last = to.unwrap_or(table.version()).min(table.version());
    change_rows(table, from, last, &change_schema(&table.schema()))
}

impl Bound {
    fn scan(&mut self, name: String, table: &Table) -> Result<()> {
        let rows = table.scan(&ScanOptions::default())?.collect::<Result<Vec<_>>>()?;
        self.table(name, table.schema(), rows);
        Ok(())
    }

    fn table(&mut self, name: String, schema: SchemaRef, rows: Vec<RecordBatch>) {
        let count = rows.iter().map(|b| b.num_rows() as u64).sum();
        let table = SourceTable { schema, append_only: false, rows: Some(count) };
        self.sources.insert(name.clone(), Source::Table(table));
        self.tables.insert(name, rows);
    }
}

fn describe_schema(schema: &Schema) -> Result<QueryResult> {
    let fields = schema.fields().iter();
    let names: StringArray = fields.clone().map(|f| Some(f.name().as_str())).collect();
    let types: StringArray = fields.clone().map(|f| Some(type_name(f.data_type()))).collect();
    let comments: StringArray =
        fields.map(|f| f.metadata().get("comment").map(String::as_str)).collect();
    let schema = Arc::new(Schema::new(vec![
        Field::new("column_name", DataType::Utf8, false),
        Field::new("data_type", DataType::Utf8, false),
        Field::new("comment", DataType::Utf8, true),
    ]));
    let columns: Vec<ArrayRef> = vec![Arc::new(names), Arc::new(types), Arc::new(comments)];
    let batches = vec![RecordBatch::try_new(schema.clone(), columns)?];
    Ok(QueryResult { schema, batches })
}

fn pattern(text: &str) -> Result<Regex> {
    Regex::new(text).map_err(|e| Error::internal("PATTERN", e.to_string()))
}

/// Name in `DESCRIBE [TABLE] name`.
fn describe(sql: &str) -> Result<Option<String>> {
    let form = pattern(r"(?is)^desc(?:ribe)?\s+(?:table\s+)?(?:extended\s+)?(\S+)$")?;
    Ok(form.captures(sql).map(|c| c[1].replace(['"', '`'], "")))
}

/// Far above the number of any SQL file, so that placeholders differ from those of the project.
const QUERY_FILE: usize = usize::MAX;

/// The query, rewritten by the pipeline dialect like the query of a view.
fn parse(sql: &str) -> Result<Query, Errors> {
    let sql = pattern(r"(?i)\bevent_log\s*\(\s*\)")?.replace_all(sql, EVENT_LOG);
    Ok(deltaic_sql::parse_query(&sql, QUERY_FILE).map_err(parse_error)?)
}

fn parse_error(error: ParseError) -> Error {
    let location =
        Location { file: "query".to_string(), line: error.span.line, column: error.span.column };
    let out = Error::user("PARSE_SYNTAX_ERROR", error.message).at(location);
    match error.hint {
        Some(hint) => out.hint(hint),
        None => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describe_takes_quoted_names() {
        assert_eq!(describe("DESCRIBE `My T`").unwrap(), None);
        assert_eq!(describe("desc table \"t\"").unwrap().as_deref(), Some("t"));
        assert_eq!(describe("describe silver.t").unwrap().as_deref(), Some("silver.t"));
    }
}
