//! Scenarios of AUTO CDC after those of Apache Spark's AutoCDC suites, one test each: a target is
//! what the set of its events says, whatever their order, their batches and their repetitions.
#![expect(clippy::unwrap_used, reason = "a test that fails")]

mod harness;
mod late;
mod random;
mod refusals;
mod tracked;
mod type_1;
mod versions;
