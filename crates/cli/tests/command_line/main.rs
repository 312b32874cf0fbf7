//! The command line as a person meets it: wrong input, exit codes, second runs.

#[cfg(test)]
mod project;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod wrong_input;
