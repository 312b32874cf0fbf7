//! The pipeline dialect: statements with source spans. Parsing only, no resolution.
//!
//! A file is split into tokens once; statement heads that `sqlparser` does not know are matched by
//! hand, and queries are rewritten so that a plain SQL planner accepts them: each `STREAM x`,
//! `STREAM(x)` and `[STREAM] read_files(…)` becomes a plain table name (see [`Query`]).
//!
//! | file | what it reads |
//! |---|---|
//! | `tokens` | text → tokens with byte places, and the cursor that all others read with |
//! | `statements` | a file → statements, split at `;`, dispatched by their first words |
//! | `dataset`, `columns` | `CREATE … TABLE \| VIEW` and its column list |
//! | `flow`, `cdc` | `CREATE FLOW`, AUTO CDC clauses |
//! | `settings` | `CREATE SINK`, `SET`, `USE`, property lists |
//! | `query` | a query → [`Query`], with `streams` (table positions), `calls` (`read_files`, `table_changes`) and `relations` (table names, with CTEs in scope) |

mod ast;
mod calls;
mod cdc;
mod columns;
mod dataset;
mod errors;
mod flow;
mod query;
mod relations;
mod settings;
mod statements;
mod streams;
mod tokens;

pub use ast::{
    CdcSource, CdcSpec, Column, ColumnSelection, Dataset, DatasetKind, Expectation, Flow, FlowBody,
    JoinSide, JoinedSources, Name, OnViolation, ParseError, Query, QuerySource, ReadFiles,
    RefreshPolicy, ScdType, Sink, Span, Spanned, Statement, TableRef, Unbounded,
};
pub use statements::{parse_file, parse_query};
