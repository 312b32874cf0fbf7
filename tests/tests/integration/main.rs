//! All integration tests of the workspace, linked into one binary.

mod dependency_edges;
mod error_codes;
#[cfg(test)]
mod readers;
mod sql_cases;
