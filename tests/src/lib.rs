//! Integration tests of the workspace: dependency edges, readers, cases, crashes.
