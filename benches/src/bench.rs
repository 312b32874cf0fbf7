//! A scenario as criterion benchmarks: the load, and one delta of each size.

use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, SamplingMode, Throughput};
use deltaic_batch::{Result, ZBatch};
use deltaic_exec::Circuit;

use crate::schedule::{self, Input, Scenario};

/// Prints what the whole schedule costs, compares the final view with its definition (at the small
/// size) or with what other engines have found (at the large one), and measures the load and, where it can be taken back, the first delta of each size.
///
/// # Panics
///
/// When a step fails or the view is wrong: then there is nothing to measure.
#[expect(clippy::panic, reason = "a benchmark of a wrong result is worth nothing")]
pub fn scenario(criterion: &mut Criterion, scenario: &dyn Scenario) {
    let measured = report(scenario).and_then(|()| measure(criterion, scenario));
    if let Err(error) = measured {
        panic!("{}: {error}", scenario.name());
    }
}

#[expect(clippy::print_stdout, reason = "the report is the benchmark's output")]
fn report(scenario: &dyn Scenario) -> Result<()> {
    let rows = crate::rows();
    let report = schedule::run(scenario, rows, crate::shards())?;
    println!("{report}");
    let expected = match rows {
        ..=crate::ROWS_SMALL => scenario.naive(rows)?,
        schedule::ROWS_LARGE => scenario.known(),
        _ => return Ok(()),
    };
    assert_eq!(report.view, expected, "{} has a wrong result", scenario.name());
    Ok(())
}

fn measure(criterion: &mut Criterion, scenario: &dyn Scenario) -> Result<()> {
    let shards = crate::shards();
    let mut group = criterion.benchmark_group(scenario.name());
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_secs(2));
    let mut circuit = scenario.circuit(shards)?;
    let mut last_label = "";
    for input in scenario.inputs(crate::rows()) {
        let input = input?;
        group.throughput(Throughput::Elements(input.rows() as u64));
        let Input { label, deltas } = input;
        if label == "load" {
            group.bench_function("load", |bencher| {
                bencher.iter_batched(
                    || scenario.circuit(shards),
                    |circuit| circuit.and_then(|mut circuit| circuit.step(deltas.clone())),
                    BatchSize::PerIteration,
                );
            });
        } else if label != last_label && scenario.can_undo() {
            let mut failure = Ok(());
            group.bench_function(format!("delta {label} %"), |bencher| {
                bencher.iter_custom(|repetitions| {
                    let spent = there_and_back(&mut circuit, &deltas, repetitions);
                    spent.unwrap_or_else(|error| {
                        failure = Err(error);
                        Duration::ZERO
                    })
                });
            });
            failure?;
        }
        last_label = label;
        circuit.step(deltas)?;
    }
    group.finish();
    Ok(())
}

/// Applies a delta and takes it back, that often; the time of the applying alone.
fn there_and_back(
    circuit: &mut Circuit,
    deltas: &[(String, ZBatch)],
    repetitions: u64,
) -> Result<Duration> {
    let negated = deltas
        .iter()
        .map(|(name, batch)| Ok((name.clone(), batch.negate()?)))
        .collect::<Result<Vec<_>>>()?;
    let mut spent = Duration::ZERO;
    for _ in 0..repetitions {
        let input = deltas.to_vec();
        let start = Instant::now();
        std::hint::black_box(circuit.step(input)?);
        spent += start.elapsed();
        circuit.step(negated.clone())?;
    }
    Ok(spent)
}
