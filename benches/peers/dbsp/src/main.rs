//! The views in dbsp.
//!
//! Usage: `dbsp <workload> <workers> <data> [label:count …]`

mod rows;
mod views;

use std::time::Duration;

use dbsp::DBSPHandle;
use dbsp::mimalloc::MiMalloc;
use peers_harness::{Arguments, Check, Column, Result, System, run};

use rows::Feed;
use views::Drain;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

unsafe extern "C" {
    /// Of the allocator: frees what is free already.
    fn mi_collect(force: bool);
}

/// Time between two deltas, for merges in the background.
const SETTLING_TIME: Duration = Duration::from_millis(200);

/// A circuit, its inputs and its view.
struct Dbsp {
    circuit: DBSPHandle,
    feeds: Vec<Feed>,
    drain: Drain,
    check: Check,
    /// The load is one transaction of many steps; every later epoch is a transaction of one.
    loading: bool,
}

impl System for Dbsp {
    fn push(
        &mut self,
        input: usize,
        columns: Vec<Column>,
        weights: Option<Vec<i64>>,
    ) -> Result<()> {
        (self.feeds[input])(&columns, weights.as_deref());
        if self.loading {
            self.circuit.step()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        if std::mem::take(&mut self.loading) {
            self.circuit.commit_transaction()?;
        } else {
            self.circuit.transaction()?;
        }
        (self.drain)(&mut self.check);
        Ok(())
    }

    fn settle(&mut self) {
        std::thread::sleep(SETTLING_TIME);
    }

    fn give_back(&mut self) {
        // SAFETY: any thread may call it at any time.
        unsafe { mi_collect(true) };
    }

    fn check(&self) -> Check {
        self.check
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::from_command_line()?;
    if arguments.strings {
        return Err("the views are over numbers".into());
    }
    let views::Wired { mut circuit, feeds, drain } =
        views::wire(arguments.workload, arguments.workers)?;
    circuit.start_transaction()?;
    let mut system = Dbsp { circuit, feeds, drain, check: Check::default(), loading: true };
    let mut report = run(&mut system, "dbsp", &arguments)?;
    report.check = system.check();
    println!("{report}");
    // Nobody waits for the merges that still run.
    std::process::exit(0);
}
