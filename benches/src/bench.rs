//! A workload as criterion benchmarks: the load, and one delta of each size.

use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput};
use deltaic_batch::{Result, ZBatch};
use deltaic_exec::Circuit;

use crate::orders::{Change, Shop};
use crate::schedule::{self, inputs, loaded};
use crate::workload::Workload;

/// Prints what the whole schedule costs, compares the final view with its definition (at the small
/// size), and measures the load and each size of delta.
///
/// # Panics
///
/// When a step fails or the view is wrong: then there is nothing to measure.
#[expect(clippy::panic, reason = "a benchmark of a wrong result is worth nothing")]
pub fn workload(criterion: &mut Criterion, workload: Workload) {
    let measured = report(workload).and_then(|()| measure(criterion, workload));
    if let Err(error) = measured {
        panic!("{}: {error}", workload.name());
    }
}

#[expect(clippy::print_stdout, reason = "the report is the benchmark's output")]
fn report(workload: Workload) -> Result<()> {
    let (rows, shards) = (crate::rows(), crate::shards());
    let (report, shop) = schedule::run(workload, rows, shards)?;
    println!("{report}");
    if rows <= crate::ROWS_SMALL {
        let naive = workload.naive(&shop.orders()?, &shop.customers()?);
        assert_eq!(report.view, naive, "{} differs from its definition", workload.name());
    }
    Ok(())
}

fn measure(criterion: &mut Criterion, workload: Workload) -> Result<()> {
    let (rows, shards) = (crate::rows(), crate::shards());
    let shop = Shop::new(rows);
    let mut group = criterion.benchmark_group(workload.name());
    group.sample_size(10).warm_up_time(Duration::from_millis(100));
    let orders = ZBatch::inserts(shop.orders()?);
    let customers = ZBatch::inserts(shop.customers()?);
    let all = inputs(workload, orders, customers);
    let count = |inputs: &[(String, ZBatch)]| -> u64 {
        inputs.iter().map(|(_, batch)| batch.num_rows() as u64).sum()
    };
    group.throughput(Throughput::Elements(count(&all)));
    group.bench_function("load", |bencher| {
        bencher.iter_batched(
            || workload.circuit(shards),
            |circuit| circuit.and_then(|mut circuit| circuit.step(all.clone())),
            BatchSize::PerIteration,
        );
    });
    let (mut circuit, _) = loaded(workload, &shop, shards)?;
    let mut last_label = "";
    for change in shop {
        let Change { label, orders, customers } = change?;
        let delta = inputs(workload, orders, customers);
        if label != last_label {
            let mut failure = Ok(());
            group.throughput(Throughput::Elements(count(&delta)));
            group.bench_function(format!("delta {label} %"), |bencher| {
                bencher.iter_custom(|repetitions| {
                    let spent = there_and_back(&mut circuit, &delta, repetitions);
                    spent.unwrap_or_else(|error| {
                        failure = Err(error);
                        Duration::ZERO
                    })
                });
            });
            failure?;
            last_label = label;
        }
        circuit.step(delta)?;
    }
    group.finish();
    Ok(())
}

/// Applies a delta and takes it back, that often; the time of the applying alone.
fn there_and_back(
    circuit: &mut Circuit,
    delta: &[(String, ZBatch)],
    repetitions: u64,
) -> Result<Duration> {
    let negated = delta
        .iter()
        .map(|(name, batch)| Ok((name.clone(), batch.negate()?)))
        .collect::<Result<Vec<_>>>()?;
    let mut spent = Duration::ZERO;
    for _ in 0..repetitions {
        let input = delta.to_vec();
        let start = Instant::now();
        std::hint::black_box(circuit.step(input)?);
        spent += start.elapsed();
        circuit.step(negated.clone())?;
    }
    Ok(spent)
}
