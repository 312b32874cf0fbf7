//! The views in differential-dataflow.
//!
//! Usage: `differential <workload> <workers> <data> [--strings] [label:count …]`

mod rows;
mod views;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Barrier, Mutex};

use peers_harness::{Arguments, Check, Column, Report, Result, System, run};
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use rows::Feed;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Steps between two deltas, for merges in the background.
const SETTLING_STEPS: usize = 50;

/// The system, as one of its workers sees it.
struct Differential<'a> {
    worker: &'a mut Worker,
    feeds: Vec<Box<dyn Feed>>,
    probe: Handle<u64>,
    epoch: u64,
    check: Rc<Cell<Check>>,
    barrier: &'a Barrier,
}

impl System for Differential<'_> {
    fn push(
        &mut self,
        input: usize,
        columns: Vec<Column>,
        weights: Option<Vec<i64>>,
    ) -> Result<()> {
        let (index, peers) = (self.worker.index(), self.worker.peers());
        let rows = columns.first().map_or(0, Column::len);
        let own = rows * index / peers..rows * (index + 1) / peers;
        self.feeds[input].push(&columns, weights.as_deref(), own);
        if weights.is_none() {
            // Part of a load; more will come.
            self.worker.step();
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.epoch += 1;
        self.feeds.iter_mut().for_each(|feed| feed.advance(self.epoch));
        self.worker.step_while(|| self.probe.less_than(&self.epoch));
        Ok(())
    }

    fn meet(&self) {
        self.barrier.wait();
    }

    fn settle(&mut self) {
        (0..SETTLING_STEPS).for_each(|_| {
            self.worker.step();
        });
    }

    #[expect(
        unsafe_code,
        reason = "a call into the allocator, without arguments that could be wrong"
    )]
    fn give_back(&mut self) {
        // SAFETY: any thread may call it at any time; it frees what is free already.
        unsafe { libmimalloc_sys::mi_collect(true) };
    }

    fn check(&self) -> Check {
        self.check.get()
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::from_command_line()?;
    let config = match arguments.workers {
        1 => timely::Config::thread(),
        workers => timely::Config::process(workers),
    };
    let barrier = Arc::new(Barrier::new(arguments.workers));
    let reports = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&reports);
    let guards = timely::execute(config, move |worker| {
        let report = work(worker, &arguments, &barrier).map_err(|error| error.to_string());
        if let Ok(mut reports) = shared.lock() {
            reports.push((worker.index(), report));
        }
    })?;
    drop(guards.join());
    let mut reports = std::mem::take(&mut *reports.lock().map_err(|_| "a worker panicked")?);
    reports.sort_by_key(|&(index, _)| index);
    let mut whole: Option<Report> = None;
    for (_, report) in reports {
        let report = report?;
        match &mut whole {
            None => whole = Some(report),
            Some(whole) => whole.check.merge(report.check),
        }
    }
    println!("{}", whole.ok_or("no worker has reported")?);
    Ok(())
}

fn work(worker: &mut Worker, arguments: &Arguments, barrier: &Barrier) -> Result<Report> {
    let check = Rc::new(Cell::new(Check::default()));
    let probe = Handle::new();
    let feeds = worker.dataflow::<u64, _, _>(|scope| {
        let sink = views::Sink { check: Rc::clone(&check), probe: probe.clone() };
        if arguments.strings {
            views::wire::<String>(scope, arguments.workload, &sink)
        } else {
            views::wire::<i64>(scope, arguments.workload, &sink)
        }
    });
    let mut system = Differential { worker, feeds, probe, epoch: 0, check, barrier };
    let mut report = run(&mut system, "differential", arguments)?;
    report.check = system.check();
    Ok(report)
}
