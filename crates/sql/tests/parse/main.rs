//! The grammar of pipeline SQL, production by production, and its errors.

#![expect(clippy::panic, reason = "a test that cannot go on says why")]

mod errors;
mod queries;
mod soup;
mod statements;

use deltaic_sql::{CdcSpec, Dataset, Flow, FlowBody, Query, Statement, parse_file};

/// The one statement of a text without errors.
fn one(text: &str) -> Statement {
    let (mut statements, errors) = parse_file(text, 7);
    assert_eq!(errors, vec![], "{text}");
    assert_eq!(statements.len(), 1, "{text}");
    statements.remove(0)
}

fn dataset(text: &str) -> Dataset {
    match one(text) {
        Statement::Dataset(d) => *d,
        other => panic!("{other:?}"),
    }
}

fn flow(text: &str) -> Flow {
    match one(text) {
        Statement::Flow(f) => *f,
        other => panic!("{other:?}"),
    }
}

/// The query of `CREATE MATERIALIZED VIEW v AS …`.
fn query(text: &str) -> Query {
    match dataset(&format!("CREATE MATERIALIZED VIEW v AS {text}")).body {
        Some(FlowBody::Query(q)) => q,
        other => panic!("{other:?}"),
    }
}

/// The clauses of `CREATE FLOW f AS AUTO CDC INTO t …`.
fn cdc(text: &str) -> CdcSpec {
    match flow(&format!("CREATE FLOW f AS AUTO CDC INTO t {text}")).body {
        FlowBody::Cdc(c) => *c,
        other => panic!("{other:?}"),
    }
}
