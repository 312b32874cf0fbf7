//! Runs one law test with a number of cases and a seed, and shrinks what fails.

use std::fmt::Debug;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

/// How often, and from which seed.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Number of cases.
    pub cases: u32,
    /// The same seed draws the same cases.
    pub seed: u64,
}

impl Settings {
    /// 64 cases unless `PROPTEST_CASES` says otherwise.
    pub fn from_environment() -> Self {
        let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
        Self { cases: cases.unwrap_or(64), seed: 1 }
    }
}

/// A law test.
#[derive(Debug, Clone, Copy)]
pub struct LawTest {
    /// Name, as the runner prints it.
    pub name: &'static str,
    /// Runs it; the error has the shrunk case.
    pub run: fn(Settings) -> Result<(), String>,
}

/// Checks `law` for values of `strategy`. A failure is shrunk, and told with the smallest value
/// that still fails.
pub(crate) fn check<S: Strategy>(
    settings: Settings,
    strategy: &S,
    describe: impl Fn(&S::Value) -> String,
    law: impl Fn(&S::Value) -> Result<(), String>,
) -> Result<(), String>
where
    S::Value: Debug,
{
    let config = Config {
        cases: settings.cases,
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..Config::default()
    };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&settings.seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(strategy, |value| law(&value).map_err(TestCaseError::fail));
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Abort(why)) => Err(format!("aborted: {why}")),
        Err(TestError::Fail(why, value)) => {
            Err(format!("seed {}: {why}\n{}", settings.seed, describe(&value)))
        }
    }
}
