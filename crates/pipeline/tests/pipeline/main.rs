//! Whole pipelines in temporary folders.

mod clock;
mod crashes;
mod flows;
#[cfg(test)]
mod project;
mod redefined;
mod wrong_input;
