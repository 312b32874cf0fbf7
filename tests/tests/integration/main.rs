//! All integration tests of the workspace, linked into one binary.

#[cfg(test)]
mod dependency_edges;
#[cfg(test)]
mod error_codes;
#[cfg(test)]
mod readers;
#[cfg(test)]
mod sql_cases;
