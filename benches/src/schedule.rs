//! Runs a workload once over its whole schedule, and says what it cost.

use deltaic_batch::{Result, ZBatch};
use deltaic_exec::Circuit;

use crate::clock::{Clock, Spent};
use crate::orders::{Change, SIZES, Shop};
use crate::workload::{View, Workload};

/// What a schedule cost.
#[derive(Debug)]
pub struct Report {
    name: String,
    load: Step,
    /// Per size class, its label and the median step.
    deltas: Vec<(&'static str, Step)>,
    state_bytes: usize,
    /// The view after all steps.
    pub view: View,
    /// Physical rows of all output deltas.
    rows_out: usize,
}

/// One step: input rows and time.
#[derive(Debug, Clone, Copy, Default)]
struct Step {
    rows: usize,
    spent: Spent,
}

impl std::fmt::Display for Report {
    /// One line for the load, one per size class, one for state and checksum.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line = |f: &mut std::fmt::Formatter<'_>, label: &str, step: &Step| {
            let cpu = step.spent.cpu.as_secs_f64();
            writeln!(
                f,
                "{:<6} {label:>6}  {:>9} rows  wall {:>9.2} ms  cpu {:>9.2} ms  {:>8.2} Mrows/cpu-s",
                self.name,
                step.rows,
                step.spent.wall.as_secs_f64() * 1e3,
                cpu * 1e3,
                if cpu > 0.0 { rows_f64(step.rows) / cpu / 1e6 } else { 0.0 },
            )
        };
        line(f, "load", &self.load)?;
        for (label, step) in &self.deltas {
            line(f, &format!("{label} %"), step)?;
        }
        write!(
            f,
            "{:<6} state {} bytes, view {} rows, checksum {}, {} output rows",
            self.name, self.state_bytes, self.view.rows, self.view.checksum, self.rows_out
        )
    }
}

#[expect(clippy::cast_precision_loss, reason = "row counts are far below 2^53")]
fn rows_f64(rows: usize) -> f64 {
    rows as f64
}

/// The inputs of a step as the circuit takes them.
pub fn inputs(workload: Workload, orders: ZBatch, customers: ZBatch) -> Vec<(String, ZBatch)> {
    let mut inputs = vec![("orders".to_owned(), orders)];
    if workload.joins() {
        inputs.push(("customers".to_owned(), customers));
    }
    inputs
}

/// A circuit that has been loaded with the shop's tables as they are now.
pub fn loaded(workload: Workload, shop: &Shop, shards: usize) -> Result<(Circuit, ZBatch)> {
    let mut circuit = workload.circuit(shards)?;
    let orders = ZBatch::inserts(shop.orders()?);
    let customers = ZBatch::inserts(shop.customers()?);
    let out = step(&mut circuit, inputs(workload, orders, customers))?;
    Ok((circuit, out))
}

/// One step; the view's delta.
pub fn step(circuit: &mut Circuit, inputs: Vec<(String, ZBatch)>) -> Result<ZBatch> {
    let mut out = circuit.step(inputs)?;
    out.remove("view")
        .ok_or_else(|| deltaic_batch::Error::internal("BENCH", "the circuit has no output 'view'"))
}

/// Loads `rows` orders, then applies all changes in order. Also returns the shop at the end.
pub fn run(workload: Workload, rows: usize, shards: usize) -> Result<(Report, Shop)> {
    let mut shop = Shop::new(rows);
    let mut view = workload.empty_view();
    let mut circuit = workload.circuit(shards)?;
    let mut rows_out = 0;
    let mut timed = |inputs: Vec<(String, ZBatch)>, circuit: &mut Circuit| -> Result<Step> {
        let rows = inputs.iter().map(|(_, batch)| batch.num_rows()).sum();
        let clock = Clock::start();
        let out = step(circuit, inputs)?;
        let spent = clock.spent();
        rows_out += out.num_rows();
        view.apply(&out);
        Ok(Step { rows, spent })
    };
    let orders = ZBatch::inserts(shop.orders()?);
    let customers = ZBatch::inserts(shop.customers()?);
    let load = timed(inputs(workload, orders, customers), &mut circuit)?;
    let mut steps: Vec<(&'static str, Step)> = Vec::new();
    for change in shop.by_ref() {
        let Change { label, orders, customers } = change?;
        steps.push((label, timed(inputs(workload, orders, customers), &mut circuit)?));
    }
    let deltas = SIZES.iter().map(|&(label, ..)| (label, median(label, &steps))).collect();
    let name = workload.name().to_owned();
    let state_bytes = circuit.state_bytes();
    Ok((Report { name, load, deltas, state_bytes, view, rows_out }, shop))
}

/// The step of median CPU time (wall time where that is unknown) among those of a label.
fn median(label: &str, steps: &[(&'static str, Step)]) -> Step {
    let mut of_label: Vec<Step> =
        steps.iter().filter(|(l, _)| *l == label).map(|(_, step)| *step).collect();
    of_label.sort_by_key(|step| (step.spent.cpu, step.spent.wall));
    of_label.get(of_label.len() / 2).copied().unwrap_or_default()
}
