//! Runs every law test many times: `laws [--cases N] [--seed N] [--only NAME]`.
//!
//! Prints, per law, the number of cases, the seed and the outcome; the same seed draws the same
//! cases. Exits with 1 when a law fails and with 2 on wrong usage.

use std::io::Write;
use std::process::ExitCode;

use deltaic_proptests::{Settings, all};

const USAGE: &str = "usage: laws [--cases N] [--seed N] [--only NAME]";

struct Arguments {
    settings: Settings,
    only: Option<String>,
}

fn parse(arguments: impl Iterator<Item = String>) -> Option<Arguments> {
    let mut parsed = Arguments {
        settings: Settings { cases: 10_000, ..Settings::from_environment() },
        only: None,
    };
    let mut arguments = arguments;
    while let Some(name) = arguments.next() {
        let value = arguments.next()?;
        match name.as_str() {
            "--cases" => parsed.settings.cases = value.parse().ok()?,
            "--seed" => parsed.settings.seed = value.parse().ok()?,
            "--only" => parsed.only = Some(value),
            _ => return None,
        }
    }
    Some(parsed)
}

fn run(arguments: &Arguments, out: &mut impl Write) -> std::io::Result<bool> {
    let mut good = true;
    for test in all() {
        if arguments.only.as_ref().is_some_and(|only| only != test.name) {
            continue;
        }
        let Settings { cases, seed } = arguments.settings;
        let outcome = match (test.run)(arguments.settings) {
            Ok(()) => "ok".to_owned(),
            Err(why) => {
                good = false;
                format!("FAILED\n{why}")
            }
        };
        writeln!(out, "{:<24} cases {cases:>7}  seed {seed}  {outcome}", test.name)?;
        out.flush()?;
    }
    Ok(good)
}

fn main() -> ExitCode {
    let mut errors = std::io::stderr();
    let Some(arguments) = parse(std::env::args().skip(1)) else {
        let _ = writeln!(errors, "{USAGE}");
        return ExitCode::from(2);
    };
    match run(&arguments, &mut std::io::stdout().lock()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            let _ = writeln!(errors, "{why}");
            ExitCode::FAILURE
        }
    }
}
