//! The `deltaic` binary: arguments in, a pipeline called, results on standard output, everything
//! else on standard error. Exit codes: 0 done, 1 failed, 2 wrong usage or invalid project.

mod args;
mod commands;
mod complaint;
mod output;
mod progress;

use std::process::ExitCode;

use clap::Parser;

use args::Args;
use output::Out;

fn main() -> ExitCode {
    let args = Args::parse();
    let mut out = Out::stdout();
    let ended = commands::execute(&args, &mut out).and_then(|code| {
        out.flush()?;
        Ok(code)
    });
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(complaint) => ExitCode::from(complaint.tell()),
    }
}
