//! The command line as a person meets it: wrong input, exit codes, second runs.

mod project;
mod runs;
mod wrong_input;
