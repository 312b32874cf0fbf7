//! The order of events, the same for every system: load, deltas, single rows, nothing.

use std::time::Instant;

use crate::column::Table;
use crate::memory::resident_mib;
use crate::report::{Epochs, Load};
use crate::{Arguments, Check, Clock, Column, Report, Result, Spent, Step, Workload};

/// Rows that are handed over at a time.
const PIECE_ROWS: usize = 500_000;
/// Numbers of orders that are in no file start here.
const NEW_ORDERS: i64 = 1_000_000_000_000;
/// Epochs without any row.
const EMPTY_EPOCHS: usize = 2000;

/// A system under measurement.
pub trait System {
    /// Takes rows of an input; they belong to the epoch that the next `commit` ends. Without
    /// weights every row counts once.
    fn push(&mut self, input: usize, columns: Vec<Column>, weights: Option<Vec<i64>>)
    -> Result<()>;

    /// Brings the view up to date and drains its delta.
    fn commit(&mut self) -> Result<()>;

    /// All workers have come this far.
    fn meet(&self) {}

    /// Time for work in the background, as a system has that waits for rows.
    fn settle(&mut self) {}

    /// Gives memory that nothing is in back to the operating system.
    fn give_back(&mut self) {}

    /// What has been drained.
    fn check(&self) -> Check;

    /// Bytes of state, if the system counts them.
    fn state_bytes(&self) -> Option<usize> {
        None
    }
}

/// The whole schedule.
pub fn run(system: &mut dyn System, peer: &'static str, arguments: &Arguments) -> Result<Report> {
    let mut report = Report::new(peer, arguments);
    report.load = load(system, arguments)?;
    if arguments.workload.has_deltas() {
        for (label, count) in &arguments.deltas {
            let steps = (0..*count).map(|number| delta(system, arguments, label, number));
            report.deltas.push((label.clone(), steps.collect::<Result<_>>()?));
        }
    }
    if arguments.workload.single_rows() > 0 {
        report.single = Some(single_rows(system, arguments)?);
    }
    system.settle();
    report.empty = epochs(EMPTY_EPOCHS, |_| system.commit())?;
    report.state_bytes = system.state_bytes();
    report.peak_mib = resident_mib().1;
    Ok(report)
}

fn load(system: &mut dyn System, arguments: &Arguments) -> Result<Load> {
    let mut load = Load::default();
    for (input, spec) in arguments.workload.inputs().iter().enumerate() {
        let table = Table::open(&arguments.data, spec.name, spec.columns, arguments.strings)?;
        let rows = table.rows().min(arguments.workload.load_rows_max());
        for from in (0..rows).step_by(PIECE_ROWS) {
            let columns = table.read(from, PIECE_ROWS.min(rows - from))?;
            system.meet();
            let clock = Clock::start();
            system.push(input, columns, None)?;
            load.spent += clock.spent();
        }
        load.rows += rows;
    }
    system.meet();
    let clock = Clock::start();
    system.commit()?;
    system.meet();
    load.spent += clock.spent();
    system.settle();
    system.give_back();
    system.meet();
    load.resident_mib = resident_mib().0;
    Ok(load)
}

/// One delta of many rows, over all inputs that change.
fn delta(
    system: &mut dyn System,
    arguments: &Arguments,
    label: &str,
    number: usize,
) -> Result<Step> {
    let mut deltas = Vec::new();
    for (input, spec) in arguments.workload.inputs().iter().enumerate() {
        if spec.changes {
            let columns: Vec<&str> = spec.columns.iter().copied().chain(["w"]).collect();
            let name = format!("{}_d{label}_{number}", spec.name);
            let table = Table::open(&arguments.data, &name, &columns, arguments.strings)?;
            let mut columns = table.read(0, table.rows())?;
            let weights = match columns.pop() {
                Some(Column::Ints(weights)) => weights,
                _ => return Err("a delta without weights".into()),
            };
            deltas.push((input, columns, weights));
        }
    }
    let rows = deltas.iter().map(|(_, _, weights)| weights.len()).sum();
    system.meet();
    let clock = Clock::start();
    for (input, columns, weights) in deltas {
        system.push(input, columns, Some(weights))?;
    }
    system.commit()?;
    system.meet();
    let spent = clock.spent();
    system.settle();
    Ok(Step { rows, spent })
}

/// New orders that come, and go again, one by one.
fn single_rows(system: &mut dyn System, arguments: &Arguments) -> Result<Epochs> {
    let spec = &Workload::W1.inputs()[0];
    let table = Table::open(&arguments.data, spec.name, spec.columns, arguments.strings)?;
    let count = arguments.workload.single_rows().min(table.rows());
    let mut rows = table.read(0, count)?;
    if let Column::Ints(orders) = &mut rows[0] {
        orders.iter_mut().for_each(|order| *order += NEW_ORDERS);
    }
    let row = |i: usize| -> Vec<Column> { rows.iter().map(|column| column.part(i, 1)).collect() };
    let once = || (0..count).map(row);
    let weights = std::iter::repeat_n(1, count).chain(std::iter::repeat_n(-1, count));
    let changes: Vec<_> = once().chain(once()).zip(weights).collect();
    let mut changes = changes.into_iter();
    epochs(2 * count, |_| {
        let (row, weight) = changes.next().ok_or("no row left")?;
        system.push(0, row, Some(vec![weight]))?;
        system.commit()
    })
}

fn epochs(count: usize, mut epoch: impl FnMut(usize) -> Result<()>) -> Result<Epochs> {
    let mut walls = Vec::with_capacity(count);
    let clock = Clock::start();
    for i in 0..count {
        let start = Instant::now();
        epoch(i)?;
        walls.push(start.elapsed());
    }
    let spent: Spent = clock.spent();
    Ok(Epochs::new(walls, spent))
}
