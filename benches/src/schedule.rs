//! Runs a scenario once over its whole schedule, and says what it cost.

use std::fmt;
use std::time::Duration;

use deltaic_batch::{Error, Result, ZBatch};
use deltaic_exec::Circuit;

use crate::clock::{Clock, Spent};

/// What a circuit is given in one step.
#[derive(Debug)]
pub struct Input {
    /// `load`, or the size class of the change.
    pub label: &'static str,
    /// A delta per source.
    pub deltas: Vec<(String, ZBatch)>,
}

impl Input {
    /// Physical rows of all deltas.
    pub fn rows(&self) -> usize {
        self.deltas.iter().map(|(_, batch)| batch.num_rows()).sum()
    }
}

/// Base rows at which the result is known.
pub const ROWS_LARGE: usize = 10_000_000;

/// A sequence of [`Input`]s.
pub type Inputs = Box<dyn Iterator<Item = Result<Input>>>;

/// A circuit with the output `view`, what it is fed, and what must come out.
pub trait Scenario {
    /// Name in reports.
    fn name(&self) -> &'static str;
    /// The circuit, with empty state.
    fn circuit(&self, shards: usize) -> Result<Circuit>;
    /// The load of `rows` base rows, then all changes in order.
    fn inputs(&self, rows: usize) -> Inputs;
    /// Adds a delta of the view to its sum.
    fn apply(&self, view: &mut View, delta: &ZBatch);
    /// The view after all inputs, by definition, in plain loops.
    fn naive(&self, rows: usize) -> Result<View>;
    /// The view after all inputs of [`ROWS_LARGE`] base rows, as other engines compute it.
    fn known(&self) -> View;
    /// A change can be taken back by feeding it with opposite weights.
    fn can_undo(&self) -> bool;
}

/// Number of rows and a checksum of a view; deltas add to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct View {
    /// Rows.
    pub rows: i64,
    /// A sum over all rows, in any order.
    pub checksum: i64,
}

impl View {
    /// Adds a row of a key and up to four values, `weight` times.
    pub fn add(&mut self, key: i64, values: &[i64], weight: i64) {
        let mut hash = key.wrapping_mul(11);
        for (&value, factor) in values.iter().zip([1_i64, 3, 5, 7]) {
            hash = hash.wrapping_add(value.wrapping_mul(factor));
        }
        self.checksum = self.checksum.wrapping_add(hash.wrapping_mul(weight));
        self.rows += weight;
    }
}

/// What a schedule cost.
#[derive(Debug)]
pub struct Report {
    name: &'static str,
    /// Per label, what a step costs.
    steps: Vec<(&'static str, Step)>,
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

impl fmt::Display for Report {
    /// One line per label, one for state and checksum.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (label, step) in &self.steps {
            let cpu = step.spent.cpu.as_secs_f64();
            writeln!(
                f,
                "{:<6} {label:>6} {:>9} rows  wall {:>9.2} ms  cpu {:>9.2} ms  {:>7.2} Mrows/cpu-s",
                self.name,
                step.rows,
                step.spent.wall.as_secs_f64() * 1e3,
                cpu * 1e3,
                if cpu > 0.0 { rows_f64(step.rows) / cpu / 1e6 } else { 0.0 },
            )?;
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

/// One step; the view's delta.
pub fn step(circuit: &mut Circuit, deltas: Vec<(String, ZBatch)>) -> Result<ZBatch> {
    let mut out = circuit.step(deltas)?;
    out.remove("view").ok_or_else(|| Error::internal("BENCH", "the circuit has no output 'view'"))
}

/// Loads `rows` base rows, then applies all changes in order.
pub fn run(scenario: &dyn Scenario, rows: usize, shards: usize) -> Result<Report> {
    let mut view = View::default();
    let mut circuit = scenario.circuit(shards)?;
    let mut rows_out = 0;
    let mut steps: Vec<(&'static str, Vec<Step>)> = Vec::new();
    for input in scenario.inputs(rows) {
        let input = input?;
        let rows = input.rows();
        let clock = Clock::start();
        let out = step(&mut circuit, input.deltas)?;
        let spent = clock.spent();
        rows_out += out.num_rows();
        scenario.apply(&mut view, &out);
        match steps.last_mut() {
            Some((label, steps)) if *label == input.label => steps.push(Step { rows, spent }),
            _ => steps.push((input.label, vec![Step { rows, spent }])),
        }
    }
    let steps = steps.into_iter().map(|(label, steps)| (label, typical(steps))).collect();
    let (name, state_bytes) = (scenario.name(), circuit.state_bytes());
    Ok(Report { name, steps, state_bytes, view, rows_out })
}

/// The step of median wall time, with the mean CPU time of all: the system counts that too coarsely
/// for a single short step.
fn typical(mut steps: Vec<Step>) -> Step {
    steps.sort_by_key(|step| step.spent.wall);
    let mut typical = steps.get(steps.len() / 2).copied().unwrap_or_default();
    let count = u32::try_from(steps.len()).unwrap_or(u32::MAX).max(1);
    typical.spent.cpu = steps.iter().map(|step| step.spent.cpu).sum::<Duration>() / count;
    typical
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dimension::Scd2;
    use crate::workload::Workload;

    #[test]
    fn every_scenario_ends_with_the_view_of_its_definition() {
        let scenarios: [&dyn Scenario; 4] = [&Workload::W1Lin, &Workload::W1, &Workload::W2, &Scd2];
        for scenario in scenarios {
            let naive = scenario.naive(20_000).unwrap();
            assert!(naive.rows > 100);
            for shards in [1, 3] {
                let report = run(scenario, 20_000, shards).unwrap();
                assert_eq!(report.view, naive, "{report}");
            }
        }
    }
}
