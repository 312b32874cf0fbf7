//! Whole pipelines in temporary folders.

mod crashes;
mod flows;
#[cfg(test)]
mod project;
mod wrong_input;
