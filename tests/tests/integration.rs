//! All integration tests of the workspace, linked into one binary.

mod dependency_edges;
mod sql_cases;
