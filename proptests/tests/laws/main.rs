//! Every law test, 64 cases each unless `PROPTEST_CASES` says otherwise.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what is wrong by panicking"
)]

mod golden;
#[cfg(feature = "views")]
mod nexmark;
#[cfg(feature = "views")]
mod queries;

use deltaic_proptests::{Settings, all};

fn run(name: &str) {
    let test = all().into_iter().find(|test| test.name == name).expect("a law test of this name");
    if let Err(why) = (test.run)(Settings::from_environment()) {
        panic!("{name}: {why}");
    }
}

macro_rules! law_tests {
    ($($(#[$when:meta])? $function:ident => $name:literal),+ $(,)?) => {
        $($(#[$when])? #[test] fn $function() { run($name); })+

        #[test]
        fn every_law_is_tested() {
            let tested = [$($name),+];
            let missing: Vec<&str> =
                all().iter().map(|test| test.name).filter(|name| !tested.contains(name)).collect();
            assert!(missing.is_empty(), "{missing:?}");
        }
    };
}

law_tests! {
    filter => "filter",
    project => "project",
    set_operation => "set operation",
    join => "join",
    aggregate => "aggregate",
    distinct => "distinct",
    top_k => "top-k",
    operators => "operators",
    scd => "scd",
    scd_hot_key => "scd, one key with many versions",
    scd_with_a_retention => "scd with a retention",
    scd_with_a_retention_hot_key => "scd with a retention, one key with many versions",
    #[cfg(feature = "views")]
    views_of_one_operator => "views of one operator",
    #[cfg(feature = "views")]
    views => "views",
    #[cfg(feature = "views")]
    oracles_agree => "oracles agree",
}
