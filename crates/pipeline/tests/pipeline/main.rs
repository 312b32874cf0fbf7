//! Whole pipelines in temporary folders.

mod crashes;
mod flows;
mod project;
mod wrong_input;
