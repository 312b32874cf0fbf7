//! What a file of pipeline SQL says.

use std::collections::BTreeMap;

/// A byte range of the file with its first line and column (1-based).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
    /// 1-based line of `start`.
    pub line: u64,
    /// 1-based column of `start`, in characters.
    pub column: u64,
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub span: Span,
}

/// A possibly qualified name; quotes removed, spelling kept, `LIVE.` dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// `[catalog, schema, table]`, the last part always there.
    pub parts: Vec<String>,
    /// Its place.
    pub span: Span,
}

/// What a query reads at one place.
#[derive(Debug, Clone, PartialEq)]
pub enum TableRef {
    /// A table or view of the pipeline, or an external one.
    Table(Name),
    /// `read_files(…)`.
    Files(ReadFiles),
    /// `table_changes('t', from[, to])`.
    Changes {
        /// The table.
        table: Name,
        /// First version.
        from: i64,
        /// Last version; newest when `None`.
        to: Option<i64>,
    },
    /// `table_changes_by_path('/path', from[, to])`, or `table_changes` of ``delta.`/path` ``.
    ExternalChanges {
        /// Path of a Delta table.
        path: String,
        /// First version.
        from: i64,
        /// Last version; newest when `None`.
        to: Option<i64>,
    },
    /// An external table or files by path: ``parquet.`/path` ``, ``delta.`/path` ``,
    /// ``csv.`/path` ``, ``json.`/path` ``.
    External {
        /// `parquet`, `delta`, `csv` or `json`.
        format: String,
        /// The path.
        path: String,
        /// Its place.
        span: Span,
    },
}

/// Arguments of `read_files`: the path and named options as text.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadFiles {
    /// First argument.
    pub path: String,
    /// Options by lower-case name; booleans and numbers as their text.
    pub options: BTreeMap<String, String>,
    /// Place of the call.
    pub span: Span,
}

/// One source of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct QuerySource {
    /// The plain table name that stands in [`Query::text`] for this source: the table's own name
    /// (lower-case, dot-joined) for a batch read of a table, else `__source_<file>_<n>`, unique over all files of a project.
    pub placeholder: String,
    /// What is read.
    pub table: TableRef,
    /// Read as a stream.
    pub streaming: bool,
    /// Its place.
    pub span: Span,
}

/// A construct that needs every row of what it reads, so that it has no place over a stream
/// without bound: an aggregate, `DISTINCT`, `LIMIT`, a window, a set operation without `ALL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unbounded {
    /// What it is, as a noun phrase for messages.
    pub what: String,
    /// Placeholders of the sources that it sees (see [`QuerySource::placeholder`]).
    pub over: Vec<String>,
    /// Its place.
    pub span: Span,
}

/// A join and what each side reads, for the rules of streaming joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedSources {
    /// Its sides, in order.
    pub sides: Vec<JoinSide>,
    /// Its place.
    pub span: Span,
}

/// One side of a join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinSide {
    /// Placeholders of the sources that it reads.
    pub over: Vec<String>,
    /// Its rows without a match are kept (outer and anti joins).
    pub kept: bool,
}

/// A query, rewritten for the planner.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// As the user wrote it.
    pub original: String,
    /// With placeholders for streaming reads and table functions. Where a streaming table read had
    /// no alias, the table's name is added as one, so that `t.column` still resolves. Line breaks
    /// are kept, so line numbers agree with the original.
    pub text: String,
    /// What it reads, CTE names excluded, each place once.
    pub sources: Vec<QuerySource>,
    /// Constructs that need all rows of what they read, in order of their places.
    pub unbounded: Vec<Unbounded>,
    /// Its joins, inner ones first.
    pub joins: Vec<JoinedSources>,
    /// Place of the query.
    pub span: Span,
    /// Where `text` differs from `original`.
    pub(crate) edits: Vec<Edit>,
}

/// A piece of [`Query::original`] and what stands for it in [`Query::text`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edit {
    /// First byte in the original.
    pub(crate) original_start: usize,
    /// Byte after the last in the original.
    pub(crate) original_end: usize,
    /// First byte in the text.
    pub(crate) text_start: usize,
    /// Byte after the last in the text.
    pub(crate) text_end: usize,
}

impl Query {
    /// The place in the file of a place in [`Query::text`] (1-based line and column, in
    /// characters), for messages of the planner. A place inside a replaced piece is its start.
    pub fn locate(&self, line: u64, column: u64) -> Span {
        let offset = self.original_offset(byte_of(&self.text, line, column));
        let before = &self.original[..offset];
        let breaks = before.bytes().filter(|b| *b == b'\n').count() as u64;
        let tail = before.rsplit('\n').next().unwrap_or_default();
        let chars = tail.chars().count() as u64;
        let first_column = if breaks == 0 { self.span.column } else { 1 };
        Span {
            start: self.span.start + offset,
            end: self.span.start + offset,
            line: self.span.line + breaks,
            column: first_column + chars,
        }
    }

    /// Byte of the original for a byte of the text.
    fn original_offset(&self, text_offset: usize) -> usize {
        let (mut text_at, mut original_at) = (0, 0);
        for edit in &self.edits {
            if text_offset < edit.text_start {
                break;
            }
            if text_offset < edit.text_end {
                return edit.original_start;
            }
            (text_at, original_at) = (edit.text_end, edit.original_end);
        }
        let offset = (original_at + (text_offset - text_at)).min(self.original.len());
        (0..=offset).rev().find(|o| self.original.is_char_boundary(*o)).unwrap_or(0)
    }
}

/// Byte of a 1-based line and column; the end of the text if there is no such place.
fn byte_of(text: &str, line: u64, column: u64) -> usize {
    let (mut at_line, mut at_column) = (1, 1);
    for (offset, c) in text.char_indices() {
        if at_line > line || (at_line == line && at_column >= column) {
            return offset;
        }
        if c == '\n' {
            (at_line, at_column) = (at_line + 1, 1);
        } else {
            at_column += 1;
        }
    }
    text.len()
}

/// Kind of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatasetKind {
    /// `STREAMING TABLE`.
    StreamingTable,
    /// `MATERIALIZED VIEW`.
    MaterializedView,
    /// `TEMPORARY VIEW`.
    TemporaryView,
    /// `VIEW`.
    View,
}

/// `REFRESH POLICY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RefreshPolicy {
    /// `AUTO`, also when not given.
    #[default]
    Auto,
    /// `INCREMENTAL`.
    Incremental,
    /// `INCREMENTAL STRICT`.
    IncrementalStrict,
    /// `FULL`.
    Full,
}

/// What happens to a row that violates an expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnViolation {
    /// Keep and count.
    Warn,
    /// `DROP ROW`.
    DropRow,
    /// `FAIL UPDATE`.
    FailUpdate,
    /// `QUARANTINE`.
    Quarantine,
}

/// `CONSTRAINT name EXPECT (condition) [ON VIOLATION …]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// Name.
    pub name: Spanned<String>,
    /// Condition as SQL text.
    pub condition: Spanned<String>,
    /// Action.
    pub action: OnViolation,
}

/// A declared column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name.
    pub name: Spanned<String>,
    /// Type as SQL text.
    pub data_type: String,
    /// `NOT NULL`.
    pub not_null: bool,
    /// `COMMENT`.
    pub comment: Option<String>,
}

/// `CREATE … STREAMING TABLE | MATERIALIZED VIEW | [TEMPORARY] VIEW`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// Kind.
    pub kind: DatasetKind,
    /// Name.
    pub name: Name,
    /// `PRIVATE`.
    pub private: bool,
    /// Declared columns, if any.
    pub columns: Vec<Column>,
    /// Expectations.
    pub expectations: Vec<Expectation>,
    /// `PARTITIONED BY`.
    pub partitioned_by: Vec<Spanned<String>>,
    /// `CLUSTER BY`.
    pub cluster_by: Vec<Spanned<String>>,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// `TBLPROPERTIES`.
    pub properties: BTreeMap<String, String>,
    /// `REFRESH POLICY` (materialized views).
    pub refresh_policy: RefreshPolicy,
    /// Implicit flow: `AS query` or `FLOW AUTO CDC …`.
    pub body: Option<FlowBody>,
    /// Place of the statement.
    pub span: Span,
}

/// What a flow does.
#[derive(Debug, Clone, PartialEq)]
pub enum FlowBody {
    /// A query: append into a streaming table, or the definition of a view.
    Query(Query),
    /// AUTO CDC.
    Cdc(Box<CdcSpec>),
}

/// `CREATE FLOW`.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Name (single part).
    pub name: Name,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// Target dataset.
    pub target: Name,
    /// `ONCE`.
    pub once: bool,
    /// `UPDATE INTO`.
    pub update: bool,
    /// Body.
    pub body: FlowBody,
    /// Place of the statement.
    pub span: Span,
}

/// Where AUTO CDC reads.
#[derive(Debug, Clone, PartialEq)]
pub enum CdcSource {
    /// Change events: a query (a plain `STREAM t` becomes `SELECT * FROM …`).
    Events(Query),
    /// Snapshots: a query over a table or over `read_files`.
    Snapshot(Query),
}

/// A list of columns, or all but a list.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ColumnSelection {
    /// Not given.
    #[default]
    All,
    /// `(a, b)`.
    Only(Vec<Spanned<String>>),
    /// `* EXCEPT (a, b)`.
    Except(Vec<Spanned<String>>),
}

/// `STORED AS SCD TYPE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScdType {
    /// Current rows only.
    Type1,
    /// With history.
    Type2,
}

/// Clauses of AUTO CDC.
#[derive(Debug, Clone, PartialEq)]
pub struct CdcSpec {
    /// Source.
    pub source: CdcSource,
    /// `KEYS`.
    pub keys: Vec<Spanned<String>>,
    /// `SEQUENCE BY` as SQL text.
    pub sequence_by: Option<Spanned<String>>,
    /// `APPLY AS DELETE WHEN` as SQL text.
    pub delete_when: Option<Spanned<String>>,
    /// `APPLY AS TRUNCATE WHEN` as SQL text.
    pub truncate_when: Option<Spanned<String>>,
    /// `IGNORE NULL UPDATES`: `None` = not given, `All` = every column.
    pub ignore_null_updates: Option<ColumnSelection>,
    /// `COLUMNS`.
    pub columns: ColumnSelection,
    /// `STORED AS SCD TYPE` (default 1).
    pub scd_type: ScdType,
    /// `TRACK HISTORY ON`.
    pub track_history: ColumnSelection,
    /// Place of the clauses.
    pub span: Span,
}

/// `CREATE SINK`.
#[derive(Debug, Clone, PartialEq)]
pub struct Sink {
    /// Name.
    pub name: Name,
    /// `FORMAT`.
    pub format: String,
    /// `OPTIONS`.
    pub options: BTreeMap<String, String>,
    /// Place.
    pub span: Span,
}

/// One statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// `CREATE … TABLE | VIEW`.
    Dataset(Box<Dataset>),
    /// `CREATE FLOW`.
    Flow(Box<Flow>),
    /// `CREATE SINK`.
    Sink(Sink),
    /// `SET key = value`.
    Set {
        /// Key.
        key: String,
        /// Value.
        value: String,
        /// Place.
        span: Span,
    },
    /// `USE [CATALOG | SCHEMA] name`.
    Use {
        /// `USE CATALOG`.
        catalog: bool,
        /// Name.
        name: Name,
    },
}

/// A syntax error.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// Where.
    pub span: Span,
}
