//! The law suite: what must hold of every circuit, whatever the query and the data.

use std::collections::BTreeMap;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Float64Type};
use deltaic_batch::ZBatch;
use deltaic_exec::{Circuit, CircuitOptions};

use crate::{Bag, Epoch, add_bag, to_bag};

/// A law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Law {
    /// At every prefix, the sum of the output deltas is the query over the sum of the inputs.
    Correct,
    /// Every output delta is consolidated, has no zero weight, and its floats are canonical.
    Canonical,
    /// All deltas, then their negations in reverse: the output is that of no input, and the state
    /// is empty.
    Undo,
    /// Any split or merge of deltas gives the same table.
    Chunking,
    /// `f(a + b) = f(a) + f(b)`.
    Linearity,
    /// State that is stored at one step, with its changes after it, and restored at another
    /// changes nothing.
    Restart,
    /// A step without input has no output and leaves the state as it is.
    Idle,
    /// State that is filled and emptied over and over does not grow.
    Bound,
    /// Any number of shards gives the same deltas.
    Shards,
}

impl Law {
    /// Those of an operator that takes retractions; linearity is to be claimed.
    pub const ALL: [Self; 8] = [
        Self::Correct,
        Self::Canonical,
        Self::Undo,
        Self::Chunking,
        Self::Restart,
        Self::Idle,
        Self::Bound,
        Self::Shards,
    ];
}

/// What is tested: a circuit, one of its outputs, and the meaning of that output.
pub struct Subject<'a> {
    /// Makes a circuit with empty state.
    pub make: &'a dyn Fn(CircuitOptions) -> deltaic_batch::Result<Circuit>,
    /// Name of the output.
    pub output: &'a str,
    /// The output's table after the given epochs.
    pub oracle: &'a dyn Fn(&[Epoch]) -> Result<Bag, String>,
}

impl std::fmt::Debug for Subject<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subject").field("output", &self.output).finish_non_exhaustive()
    }
}

/// Checks `laws` on the circuit that `subject` makes. `seed` picks where state is stored and
/// restored. The error says which law is broken, at which step, and how.
pub fn check_laws(
    subject: &Subject<'_>,
    laws: &[Law],
    epochs: &[Epoch],
    seed: u64,
) -> Result<(), String> {
    for law in laws {
        let checked = match law {
            Law::Correct => subject.correct(epochs),
            Law::Canonical => subject.canonical(epochs),
            Law::Undo => subject.undo(epochs),
            Law::Chunking => subject.chunking(epochs),
            Law::Linearity => subject.linearity(epochs),
            Law::Restart => subject.restart(epochs, seed),
            Law::Idle => subject.idle(epochs),
            Law::Bound => subject.bound(epochs),
            Law::Shards => subject.shards(epochs),
        };
        checked.map_err(|why| format!("law {law:?}: {why}"))?;
    }
    Ok(())
}

fn say(error: deltaic_batch::Error) -> String {
    error.to_string()
}

impl Subject<'_> {
    fn circuit(&self, shards: usize) -> Result<Circuit, String> {
        (self.make)(CircuitOptions { shards, checks: true }).map_err(say)
    }

    fn step_raw(&self, circuit: &mut Circuit, epoch: &Epoch) -> Result<ZBatch, String> {
        let mut outputs = circuit.step(epoch.clone()).map_err(say)?;
        outputs.remove(self.output).ok_or_else(|| format!("no output '{}'", self.output))
    }

    fn step(&self, circuit: &mut Circuit, epoch: &Epoch) -> Result<Bag, String> {
        to_bag(&self.step_raw(circuit, epoch)?)
    }

    /// The output delta of each epoch.
    fn deltas(&self, circuit: &mut Circuit, epochs: &[Epoch]) -> Result<Vec<Bag>, String> {
        epochs
            .iter()
            .enumerate()
            .map(|(i, epoch)| self.step(circuit, epoch).map_err(|e| format!("step {i}: {e}")))
            .collect()
    }

    /// The table after all epochs.
    fn table(&self, circuit: &mut Circuit, epochs: &[Epoch]) -> Result<Bag, String> {
        let mut table = Bag::new();
        self.deltas(circuit, epochs)?.iter().for_each(|delta| add_bag(&mut table, delta));
        Ok(table)
    }

    fn correct(&self, epochs: &[Epoch]) -> Result<(), String> {
        let mut circuit = self.circuit(2)?;
        let mut table = Bag::new();
        for (i, delta) in self.deltas(&mut circuit, epochs)?.iter().enumerate() {
            add_bag(&mut table, delta);
            same(&table, &(self.oracle)(&epochs[..=i])?).map_err(|e| format!("step {i}: {e}"))?;
        }
        Ok(())
    }

    fn canonical(&self, epochs: &[Epoch]) -> Result<(), String> {
        let mut circuit = self.circuit(2)?;
        for (i, epoch) in epochs.iter().enumerate() {
            let delta = self.step_raw(&mut circuit, epoch)?;
            if to_bag(&delta)?.len() != delta.num_rows() || delta.weights().contains(&0) {
                return Err(format!("step {i}: not consolidated: {delta:?}"));
            }
            canonical_floats(&delta).map_err(|e| format!("step {i}: {e}"))?;
        }
        Ok(())
    }

    fn undo(&self, epochs: &[Epoch]) -> Result<(), String> {
        let mut circuit = self.circuit(2)?;
        let mut all = epochs.to_vec();
        all.extend(undone(epochs)?);
        let table = self.table(&mut circuit, &all)?;
        same(&table, &(self.oracle)(&[])?)?;
        let mut fresh = self.circuit(2)?;
        self.step(&mut fresh, &Vec::new())?;
        if fresh.state_is_empty() && !circuit.state_is_empty() {
            return Err(format!("state is left over: {}", held(&circuit)));
        }
        Ok(())
    }

    fn bound(&self, epochs: &[Epoch]) -> Result<(), String> {
        let mut circuit = self.circuit(2)?;
        let mut cycle = epochs.to_vec();
        cycle.extend(undone(epochs)?);
        let mut first = 0;
        for round in 0..6 {
            self.deltas(&mut circuit, &cycle)?;
            let bytes = circuit.state_bytes();
            if round == 1 {
                first = bytes;
            } else if round > 1 && bytes > 2 * first + 16_384 {
                return Err(format!(
                    "emptied state grew from {first} bytes in round 1 to {bytes} in round {round}"
                ));
            }
        }
        Ok(())
    }

    fn chunking(&self, epochs: &[Epoch]) -> Result<(), String> {
        let expected = self.table(&mut self.circuit(2)?, epochs)?;
        let merged: Epoch = epochs.iter().flatten().cloned().collect();
        let table = self.table(&mut self.circuit(2)?, &[merged])?;
        same(&table, &expected).map_err(|e| format!("all epochs in one: {e}"))?;
        // The first step is without input: a row that is always there comes with it.
        let mut single = vec![Vec::new()];
        for epoch in epochs {
            for (name, delta) in consolidated(epoch)? {
                single
                    .extend((0..delta.num_rows()).map(|i| vec![(name.clone(), delta.slice(i, 1))]));
            }
        }
        let table = self.table(&mut self.circuit(2)?, &single)?;
        same(&table, &expected).map_err(|e| format!("row by row: {e}"))
    }

    fn linearity(&self, epochs: &[Epoch]) -> Result<(), String> {
        for (i, pair) in epochs.windows(2).enumerate() {
            let both: Epoch = pair.iter().flatten().cloned().collect();
            let together = self.step(&mut self.circuit(2)?, &both)?;
            let mut apart = self.step(&mut self.circuit(2)?, &pair[0])?;
            add_bag(&mut apart, &self.step(&mut self.circuit(2)?, &pair[1])?);
            same(&together, &apart).map_err(|e| format!("epochs {i} and {}: {e}", i + 1))?;
        }
        Ok(())
    }

    fn restart(&self, epochs: &[Epoch], seed: u64) -> Result<(), String> {
        let [first, second, ..] = seed.to_le_bytes();
        let low = usize::from(first) % (epochs.len() + 1);
        let high = low + usize::from(second) % (epochs.len() - low + 1);
        let mut circuit = self.circuit(2)?;
        self.deltas(&mut circuit, &epochs[..low])?;
        let full = circuit.write_full().map_err(say)?;
        let mut changes = Vec::new();
        for epoch in &epochs[low..high] {
            self.step(&mut circuit, epoch)?;
            changes.push(circuit.write_changes().map_err(say)?);
        }
        let mut restored = self.circuit(2)?;
        restored.restore(&full, &changes).map_err(say)?;
        let at = format!("stored at step {low}, restored at step {high}");
        if restored.state_is_empty() != circuit.state_is_empty() {
            return Err(format!("{at}: the restored state is another one"));
        }
        for epoch in &epochs[high..] {
            let expected = self.step(&mut circuit, epoch)?;
            same(&self.step(&mut restored, epoch)?, &expected).map_err(|e| format!("{at}: {e}"))?;
        }
        Ok(())
    }

    fn idle(&self, epochs: &[Epoch]) -> Result<(), String> {
        let mut circuit = self.circuit(2)?;
        for (i, epoch) in epochs.iter().enumerate() {
            self.step(&mut circuit, epoch)?;
            circuit.write_full().map_err(say)?;
            let delta = self.step(&mut circuit, &Vec::new())?;
            if !delta.is_empty() {
                return Err(format!("after step {i}: output {}", show(&delta)));
            }
            let changes = circuit.write_changes().map_err(say)?;
            if let Some(image) = changes.images.iter().find(|image| !image.image.is_empty()) {
                return Err(format!(
                    "after step {i}: the state of node {} has changed",
                    image.node
                ));
            }
        }
        Ok(())
    }

    fn shards(&self, epochs: &[Epoch]) -> Result<(), String> {
        let expected = self.deltas(&mut self.circuit(1)?, epochs)?;
        let deltas = self.deltas(&mut self.circuit(5)?, epochs)?;
        for (i, (delta, expected)) in deltas.iter().zip(&expected).enumerate() {
            same(delta, expected).map_err(|e| format!("step {i}, 5 shards for 1: {e}"))?;
        }
        Ok(())
    }
}

/// The negations of the epochs, last one first.
fn undone(epochs: &[Epoch]) -> Result<Vec<Epoch>, String> {
    epochs
        .iter()
        .rev()
        .map(|epoch| {
            consolidated(epoch)?
                .into_iter()
                .map(|(name, delta)| Ok((name, delta.negate().map_err(say)?)))
                .collect()
        })
        .collect()
}

/// One delta per source, with every row once.
fn consolidated(epoch: &Epoch) -> Result<Epoch, String> {
    let mut sums: BTreeMap<&str, Vec<ZBatch>> = BTreeMap::new();
    for (name, delta) in epoch {
        sums.entry(name).or_default().push(delta.clone());
    }
    sums.into_iter()
        .map(|(name, deltas)| {
            let sum = ZBatch::concat(&deltas[0].schema(), &deltas)
                .and_then(|sum| sum.canonical()?.consolidate());
            Ok((name.to_owned(), sum.map_err(say)?))
        })
        .collect()
}

fn canonical_floats(delta: &ZBatch) -> Result<(), String> {
    for column in delta.rows().columns() {
        if column.data_type() != &DataType::Float64 {
            continue;
        }
        for value in column.as_primitive::<Float64Type>().iter().flatten() {
            let odd_zero = value == 0.0 && value.is_sign_negative();
            if odd_zero || (value.is_nan() && value.to_bits() != f64::NAN.to_bits()) {
                return Err(format!("float {value} with bits {:x}", value.to_bits()));
            }
        }
    }
    Ok(())
}

fn held(circuit: &Circuit) -> String {
    let nodes: Vec<String> = circuit
        .metrics()
        .iter()
        .enumerate()
        .map(|(i, node)| format!("{i} {} {} bytes", node.name, node.state_bytes))
        .collect();
    nodes.join(", ")
}

/// Fails with the rows that differ.
fn same(got: &Bag, expected: &Bag) -> Result<(), String> {
    if got == expected {
        return Ok(());
    }
    let mut difference = got.clone();
    for (row, n) in expected {
        crate::add_row(&mut difference, row.clone(), -n);
    }
    Err(format!("got minus expected is {}", show(&difference)))
}

fn show(bag: &Bag) -> String {
    let rows: Vec<String> = bag.iter().take(8).map(|(row, n)| format!("{n:+} × {row:?}")).collect();
    let more =
        if bag.len() > rows.len() { format!(" … {} rows", bag.len()) } else { String::new() };
    format!("{{ {}{more} }}", rows.join(", "))
}
