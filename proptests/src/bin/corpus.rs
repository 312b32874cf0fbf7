//! Runs sqllogictest files: `corpus [--every N] [--seed N] PATH…`; a folder stands for all files in it.
//!
//! Prints a line per file and one for all, with the first differences. With `--every N` one query of N
//! runs. Exits with 1 when a view is wrong or an answer is not the expected one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use deltaic_proptests::corpus::{Outcome, Sample, run_file};

const USAGE: &str = "usage: corpus [--every N] [--seed N] PATH…";

fn parse(arguments: impl Iterator<Item = String>) -> Option<(Sample, Vec<PathBuf>)> {
    let (mut sample, mut paths) = (Sample { every: 1, seed: 1 }, Vec::new());
    let mut arguments = arguments;
    while let Some(word) = arguments.next() {
        match word.as_str() {
            "--every" => sample.every = arguments.next()?.parse().ok()?,
            "--seed" => sample.seed = arguments.next()?.parse().ok()?,
            _ if word.starts_with('-') => return None,
            _ => files(Path::new(&word), &mut paths),
        }
    }
    (!paths.is_empty()).then_some((sample, paths))
}

/// Appends a file, or all files of a folder in order.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(path) else {
        found.push(path.to_owned());
        return;
    };
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for entry in entries {
        let name = entry.to_string_lossy().into_owned();
        let is_test = [".test", ".slt", ".gz"].iter().any(|end| name.ends_with(end));
        if entry.is_dir() || is_test {
            files(&entry, found);
        }
    }
}

fn main() -> ExitCode {
    let Some((sample, paths)) = parse(std::env::args().skip(1)) else {
        let _ = writeln!(std::io::stderr(), "{USAGE}");
        return ExitCode::from(2);
    };
    let (next, all) = (AtomicUsize::new(0), Mutex::new((Outcome::default(), true)));
    let work = || {
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = run_file(path, sample);
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            let text = match &outcome {
                Ok(outcome) => outcome.report(&path.display().to_string()),
                Err(why) => why.clone(),
            };
            let _ = writeln!(std::io::stdout(), "{text}");
            match outcome {
                Ok(outcome) => all.0.add(outcome),
                Err(_) => all.1 = false,
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        (0..threads).for_each(|_| {
            scope.spawn(work);
        });
    });
    let (outcome, could_read) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    let _ = writeln!(std::io::stdout(), "{}", outcome.report("all"));
    if outcome.is_good() && could_read { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
