//! All integration tests of the workspace, linked into one binary.

mod dependency_edges;
#[cfg(test)]
mod readers;
mod sql_cases;
