//! Laws of every operator and flow, as property tests.
//!
//! Each [`LawTest`] draws its subject and its data together and checks the laws of
//! `deltaic_testkit`. `tests/laws.rs` runs each with 64 cases (`PROPTEST_CASES` overrides it); the
//! binary `laws` runs them as often as it is told. The binary `corpus` runs sqllogictest files.

#[cfg(feature = "views")]
pub mod corpus;
mod operators;
mod runner;
mod scd;
#[cfg(feature = "views")]
mod views;

pub use runner::{LawTest, Settings};

/// All law tests.
pub fn all() -> Vec<LawTest> {
    let mut tests = operators::laws();
    tests.extend(scd::laws());
    #[cfg(feature = "views")]
    tests.extend(views::laws());
    tests
}
