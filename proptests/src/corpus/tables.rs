//! The tables that the statements of a file make, and how their rows reach a view.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::ZBatch;
use deltaic_plan::{Session, Source, SourceTable, Sources};

/// One epoch: deltas of tables.
type Epoch = Vec<(String, ZBatch)>;

/// All tables and views.
pub(super) struct Tables {
    sources: Sources,
    tables: BTreeMap<String, Table>,
    seed: u64,
    /// Types are our own names for them, not SQLite's.
    own_types: bool,
}

struct Table {
    schema: SchemaRef,
    rows: ZBatch,
    /// Deltas that add up to the rows.
    pieces: Vec<ZBatch>,
}

impl Tables {
    pub(super) fn new(seed: u64, own_types: bool) -> Self {
        Self { sources: Sources::new(), tables: BTreeMap::new(), seed, own_types }
    }

    pub(super) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The rows of all tables, for a batch run.
    pub(super) fn batches(&self) -> BTreeMap<String, Vec<RecordBatch>> {
        let rows = |table: &Table| copies(&table.rows).into_iter().collect();
        self.tables.iter().map(|(name, table)| (name.clone(), rows(table))).collect()
    }

    /// The rows of the tables that are read, as they come.
    pub(super) fn epochs(&self, read: &[String], in_pieces: bool) -> Vec<Epoch> {
        let tables = || self.tables.iter().filter(|(name, _)| read.contains(name));
        if !in_pieces {
            return vec![tables().map(|(name, t)| (name.clone(), t.rows.clone())).collect()];
        }
        let count = tables().map(|(_, table)| table.pieces.len()).max().unwrap_or(1);
        let epoch = |at: usize| {
            let piece = |(name, table): (&String, &Table)| {
                table.pieces.get(at).map(|piece| (name.clone(), piece.clone()))
            };
            tables().filter_map(piece).collect()
        };
        (0..count).map(epoch).collect()
    }

    /// Runs a statement; the error says what kind of statement is not known, or why it failed.
    pub(super) fn execute(&mut self, session: &Session, sql: &str) -> Result<(), String> {
        let sql = sql.trim().trim_end_matches(';');
        let words: Vec<String> =
            sql.split_whitespace().take(4).map(str::to_ascii_uppercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["CREATE", "TABLE", ..] | ["CREATE", "OR", "REPLACE", "TABLE"] => {
                self.create_table(session, after(sql, "TABLE"))
            }
            ["CREATE", "VIEW", ..] | ["CREATE", "OR", "REPLACE", "VIEW"] => {
                self.create_view(after(sql, "VIEW"))
            }
            ["CREATE", "INDEX", ..] | ["CREATE", "UNIQUE", "INDEX", ..] => Ok(()),
            ["DROP", "INDEX", ..] | ["REINDEX", ..] => Ok(()),
            ["DROP", "TABLE" | "VIEW", ..] => {
                let name = name_of(sql.split_whitespace().last().unwrap_or_default());
                self.tables.remove(&name);
                self.sources.remove(&name);
                Ok(())
            }
            ["INSERT", "INTO", ..] => self.insert(session, after(sql, "INTO")),
            ["DELETE", "FROM", ..] => self.delete(session, after(sql, "FROM")),
            _ => Err(words.iter().take(2).copied().collect::<Vec<_>>().join(" ")),
        }
    }

    fn create_table(&mut self, session: &Session, rest: &str) -> Result<(), String> {
        let rest = rest.strip_prefix("IF NOT EXISTS").unwrap_or(rest).trim();
        let end = rest.find(|c: char| c == '(' || c.is_whitespace()).ok_or("CREATE TABLE")?;
        let (name, rest) = (name_of(&rest[..end]), rest[end..].trim());
        let (columns, query) = match rest.strip_prefix('(') {
            None => (None, Some(rest)),
            Some(inner) => {
                let end = closing(inner).ok_or("CREATE TABLE")?;
                let query = Some(inner[end + 1..].trim()).filter(|query| !query.is_empty());
                (Some(&inner[..end]), query)
            }
        };
        let query = match query.map(|query| query.split_at_checked(2)) {
            None => None,
            Some(Some((word, query))) if word.eq_ignore_ascii_case("AS") => Some(query.trim()),
            Some(_) => return Err("CREATE TABLE with options".to_owned()),
        };
        let rows = query.map(|query| self.run(session, query)).transpose()?;
        let schema = match (columns, &rows) {
            (Some(columns), _) => Arc::new(Schema::new(self.fields(session, columns)?)),
            (None, Some(rows)) => rows.rows().schema(),
            (None, None) => return Err("CREATE TABLE".to_owned()),
        };
        let table = SourceTable { schema: schema.clone(), append_only: false, rows: None };
        self.sources.insert(name.clone(), Source::Table(table));
        let empty = ZBatch::empty(schema.clone());
        self.tables
            .insert(name.clone(), Table { schema, pieces: vec![empty.clone()], rows: empty });
        match rows {
            Some(rows) => self.change(&name, rows),
            None => Ok(()),
        }
    }

    fn fields(&self, session: &Session, columns: &str) -> Result<Vec<Field>, String> {
        let mut fields = Vec::new();
        for column in split_commas(columns) {
            let column = column.trim();
            let (name, rest) = column.split_once(char::is_whitespace).unwrap_or((column, "TEXT"));
            let constraints = ["PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT"];
            if constraints.iter().any(|word| name.to_ascii_uppercase().starts_with(word)) {
                continue;
            }
            let data_type = if self.own_types {
                let upper = rest.to_ascii_uppercase();
                let ends = ["NOT NULL", "NULL", "PRIMARY KEY", "DEFAULT"];
                let end = ends.iter().filter_map(|word| upper.find(word)).min();
                let sql =
                    format!("SELECT CAST(NULL AS {}) AS x", &rest[..end.unwrap_or(rest.len())]);
                let schema = session.query_schema(&sql, &self.sources);
                schema.map_err(|e| format!("a type: {}", e.code()))?.field(0).data_type().clone()
            } else {
                type_of(rest.split_whitespace().next().unwrap_or("TEXT"))
            };
            fields.push(Field::new(name_of(name), data_type, true));
        }
        Ok(fields)
    }

    fn create_view(&mut self, rest: &str) -> Result<(), String> {
        let lower = rest.to_ascii_lowercase();
        let at = lower.find(" as ").or(lower.find(" as\n")).ok_or("CREATE VIEW")?;
        let sql = rest[at + 4..].trim().to_owned();
        self.sources.insert(name_of(rest[..at].trim()), Source::View { sql });
        Ok(())
    }

    fn insert(&mut self, session: &Session, rest: &str) -> Result<(), String> {
        let end = rest.find(|c: char| c == '(' || c.is_whitespace()).ok_or("INSERT INTO")?;
        let (name, rest) = (name_of(&rest[..end]), rest[end..].trim());
        let schema = self.tables.get(&name).ok_or("INSERT INTO an unknown table")?.schema.clone();
        let all: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
        let (columns, query) = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            Some((columns, query)) => {
                (split_commas(columns).iter().map(|c| name_of(c)).collect(), query)
            }
            None => (all.clone(), rest),
        };
        // The columns of what is inserted have names of their own.
        let named: Vec<String> = (0..columns.len()).map(|i| format!("x{i}")).collect();
        if self.own_types {
            let column = |name: &String| match columns.iter().position(|other| other == name) {
                Some(at) => format!("x{at} AS \"{name}\""),
                None => format!("NULL AS \"{name}\""),
            };
            let cells: Vec<String> = all.iter().map(column).collect();
            let named = named.join(", ");
            let sql = format!("SELECT {} FROM ({query}) AS v({named})", cells.join(", "));
            let rows = self.run(session, &sql)?;
            return self.change(&name, rows);
        }
        let cells: Vec<String> = (all.iter().zip(schema.fields()))
            .map(|(column, field)| {
                let value = match columns.iter().position(|other| other == column) {
                    Some(at) => format!("x{at}"),
                    None => "NULL".to_owned(),
                };
                format!("CAST({value} AS {}) AS {column}", sql_type(field.data_type()))
            })
            .collect();
        let sql = format!("SELECT {} FROM ({query}) AS v({})", cells.join(", "), named.join(", "));
        let rows = self.run(session, &sql)?;
        self.change(&name, rows)
    }

    fn delete(&mut self, session: &Session, rest: &str) -> Result<(), String> {
        let name = name_of(rest.split_whitespace().next().unwrap_or_default());
        let rows = self.run(session, &format!("SELECT * FROM {rest}"))?;
        self.change(&name, rows.negate().map_err(|e| e.code().to_owned())?)
    }

    fn run(&self, session: &Session, sql: &str) -> Result<ZBatch, String> {
        let (schema, batches) = session
            .run_batch(sql, &self.sources, self.batches())
            .map_err(|e| e.code().to_owned())?;
        let pieces: Vec<ZBatch> = batches.into_iter().map(ZBatch::inserts).collect();
        ZBatch::concat(&schema, &pieces).map_err(|e| e.code().to_owned())
    }

    /// Adds to a table, and cuts it anew.
    fn change(&mut self, name: &str, delta: ZBatch) -> Result<(), String> {
        let table = self.tables.get_mut(name).ok_or("an unknown table")?;
        let say = |e: deltaic_batch::Error| e.code().to_owned();
        let columns = (delta.rows().columns().iter().zip(table.schema.fields()))
            .map(|(column, field)| arrow::compute::cast(column, field.data_type()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| e.to_string())?;
        let delta = RecordBatch::try_new(table.schema.clone(), columns)
            .map_err(|e| e.to_string())
            .and_then(|rows| ZBatch::try_new(rows, delta.weights().to_vec()).map_err(say))?;
        let rows = ZBatch::concat(&table.schema, &[table.rows.clone(), delta]);
        table.rows = rows.and_then(|rows| rows.canonical()?.consolidate()).map_err(say)?;
        table.pieces = pieces(&table.rows, self.seed)?;
        Ok(())
    }
}

/// Three deltas that add up to the rows: some come late, some too early and are taken back, some are
/// taken away and put back.
fn pieces(rows: &ZBatch, seed: u64) -> Result<Vec<ZBatch>, String> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut plan: Vec<[i64; 3]> = Vec::with_capacity(rows.num_rows());
    for &weight in rows.weights().iter() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        plan.push(match state >> 61 {
            0 | 1 => [weight, 0, 0],
            2 => [0, weight, 0],
            3 => [0, 0, weight],
            4 => [weight, -weight, weight],
            5 => [2 * weight, -weight, 0],
            6 => [0, 2 * weight, -weight],
            _ => [weight, weight, -weight],
        });
    }
    let piece = |at: usize| {
        let keep: BooleanArray = plan.iter().map(|weights| Some(weights[at] != 0)).collect();
        let weights =
            plan.iter().map(|weights| weights[at]).filter(|w| *w != 0).collect::<Vec<_>>();
        let kept = filter_record_batch(rows.rows(), &keep).map_err(|e| e.to_string())?;
        ZBatch::try_new(kept, weights).map_err(|e| e.to_string())
    };
    (0..3).map(piece).collect()
}

/// Each row as often as its weight says; nothing if there are none.
fn copies(rows: &ZBatch) -> Option<RecordBatch> {
    let indices: Vec<u32> = (rows.weights().iter().zip(0_u32..))
        .flat_map(|(&weight, row)| std::iter::repeat_n(row, usize::try_from(weight).unwrap_or(0)))
        .collect();
    arrow::compute::take_record_batch(rows.rows(), &UInt32Array::from(indices)).ok()
}

/// Where the bracket closes that was opened before.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// What follows a word.
fn after<'a>(sql: &'a str, word: &str) -> &'a str {
    let at = sql.to_ascii_uppercase().find(word).map_or(0, |at| at + word.len());
    sql[at..].trim()
}

/// A name without quotes, in lower case.
fn name_of(text: &str) -> String {
    text.trim().trim_matches(['"', '`', '[', ']']).to_ascii_lowercase()
}

/// Parts between commas that are not in brackets.
fn split_commas(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        match (c, depth, parts.last_mut()) {
            (',', 0, _) => parts.push(String::new()),
            (_, _, Some(part)) => part.push(c),
            _ => {}
        }
    }
    parts
}

/// SQLite's types by their names.
fn type_of(name: &str) -> DataType {
    let name = name.to_ascii_uppercase();
    if name.contains("INT") {
        DataType::Int64
    } else if ["REAL", "FLOA", "DOUB", "NUM", "DEC"].iter().any(|part| name.contains(part)) {
        DataType::Float64
    } else {
        DataType::Utf8
    }
}

fn sql_type(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Int64 => "BIGINT",
        DataType::Float64 => "DOUBLE",
        _ => "STRING",
    }
}
