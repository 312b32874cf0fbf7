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

/// Batches come and go by the megabyte: the system's allocator gives each back to the kernel and has
/// it cleared again, a quarter of the time of a large update.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
