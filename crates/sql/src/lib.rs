//! The pipeline dialect: statements with source spans. Parsing only, no resolution.
//!
//! A file is split into tokens once; statement heads that `sqlparser` does not know are matched by
//! hand, and queries are rewritten so that a plain SQL planner accepts them: each `STREAM x`,
//! `STREAM(x)` and `[STREAM] read_files(…)` becomes a plain table name (see [`Query`]).

mod ast;

pub use ast::{
    CdcSource, CdcSpec, Column, ColumnSelection, Dataset, DatasetKind, Expectation, Flow, FlowBody,
    Name, OnViolation, ParseError, Query, QuerySource, ReadFiles, RefreshPolicy, ScdType, Sink,
    Span, Spanned, Statement, TableRef, parse_file,
};
