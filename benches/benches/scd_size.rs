//! What a small batch of change events costs beside a large dimension of type 2.
//!
//! Keys of 1/100, 1/10 and all of `DELTAIC_BENCH_ROWS`; batches of 1, 100 and 10,000 events of as many
//! keys: microseconds of a step (median), the factor from the fewest keys to the most, and the
//! state in memory after the steps. First with all of the state in memory; then in what a new process
//! does: state is opened from a file, by key, for each step.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, Int8Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_benches::random::Stream;
use deltaic_ops::{Operator, ScdMerge, ScdSpec, ScdType, StepContext};
use deltaic_state::{Image, Slot, Stored};

const BATCHES: [usize; 3] = [1, 100, 10_000];
const REPETITIONS: [usize; 3] = [31, 31, 7];

fn main() -> Result<()> {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let keys = if is_test { 10_000 } else { deltaic_benches::rows().max(10_000) };
    show(&format!(
        "| state | keys | {} | growth | MiB in memory |\n|---|---:|---:|---:|---:|---:|---:|",
        BATCHES.map(|batch| format!("{batch} events, µs")).join(" | ")
    ));
    let mut first = [None; 2];
    for keys in [keys / 100, keys / 10, keys] {
        let merge = ScdMerge::try_new(spec())?;
        let mut state = merge.spec().slots.iter().map(Slot::try_new).collect::<Result<Vec<_>>>()?;
        step(&merge, &mut state, &events(0..keys, keys, 0)?)?;
        let file = OnDisk::new(state[0].write_full()?)?;
        let held = in_memory(&merge, &mut state, keys)?;
        drop(state);
        let opened = opened(&merge, &file, keys)?;
        for ((name, (costs, bytes)), first) in
            [("in memory", held), ("opened by key", opened)].into_iter().zip(&mut first)
        {
            let first = first.get_or_insert(costs);
            let growth: Vec<String> = (costs.iter().zip(first.iter()))
                .map(|(cost, first)| format!("{:.1}", micros(*cost) / micros(*first)))
                .collect();
            let shown = costs.map(|cost| format!("{:.1}", micros(cost))).join(" | ");
            let mib = f64::from(u32::try_from(bytes >> 10).unwrap_or(u32::MAX)) / 1024.0;
            show(&format!("| {name} | {keys} | {shown} | {} | {mib:.1} |", growth.join(" / ")));
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the table is the benchmark's output")]
fn show(line: &str) {
    println!("{line}");
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

type Costs = [Duration; BATCHES.len()];

/// Steps on one state.
fn in_memory(merge: &ScdMerge, state: &mut [Slot], keys: usize) -> Result<(Costs, usize)> {
    let costs = costs(keys, |batch| step(merge, state, batch))?;
    Ok((costs, state.iter().map(Slot::memory_bytes).sum()))
}

/// Each step on state that is opened for it; the bytes are those after the largest batch.
fn opened(merge: &ScdMerge, file: &OnDisk, keys: usize) -> Result<(Costs, usize)> {
    let image = Image::new(file.try_clone()?);
    let mut bytes = 0;
    let costs = costs(keys, |batch| {
        let start = Instant::now();
        let slot = Slot::restore(&merge.spec().slots[0], &image, &[])?;
        let mut state = vec![slot];
        step(merge, &mut state, batch)?;
        bytes = state[0].memory_bytes();
        Ok(start.elapsed())
    })?;
    Ok((costs, bytes))
}

/// Median time for each size of batch.
fn costs(keys: usize, mut run: impl FnMut(&ZBatch) -> Result<Duration>) -> Result<Costs> {
    let mut medians = [Duration::ZERO; BATCHES.len()];
    let mut sequence = 0;
    for ((median, batch), repetitions) in medians.iter_mut().zip(BATCHES).zip(REPETITIONS) {
        let mut times = Vec::new();
        for _ in 0..repetitions {
            sequence += 1;
            let of = |i: usize| (sequence * 104_729 + i * 7_919) % keys;
            times.push(run(&events((0..batch.min(keys)).map(of), keys, sequence)?)?);
        }
        times.sort();
        *median = times[times.len() / 2];
    }
    Ok(medians)
}

fn step(merge: &ScdMerge, state: &mut [Slot], batch: &ZBatch) -> Result<Duration> {
    let mut out: Vec<ZBatch> = Vec::new();
    let start = Instant::now();
    let cx = StepContext { epoch: 1, shard: 0, shards: 1 };
    merge.step(std::slice::from_ref(batch), state, &mut out, &cx)?;
    std::hint::black_box(&out);
    Ok(start.elapsed())
}

fn schema() -> SchemaRef {
    let field = |name| Field::new(name, DataType::Int64, true);
    let mut fields: Vec<Field> = ["id", "a", "b", "c", "seq"].map(field).to_vec();
    fields.push(Field::new("kind", DataType::Int8, true));
    Arc::new(Schema::new(fields))
}

fn spec() -> ScdSpec {
    ScdSpec {
        input: schema(),
        keys: vec![0],
        sequence: 4,
        kind: 5,
        columns: vec![0, 1, 2, 3],
        tracked: vec![1, 2, 3],
        ignore_null: Vec::new(),
        scd_type: ScdType::Type2,
        truncates: false,
        retention: None,
    }
}

/// One event for each of some keys.
fn events(keys: impl IntoIterator<Item = usize>, of: usize, sequence: usize) -> Result<ZBatch> {
    let integer = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let keys: Vec<usize> = keys.into_iter().collect();
    let column = |value: &dyn Fn(usize) -> usize| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(keys.iter().map(|&key| integer(value(key)))))
    };
    let random = |stream: u64, key: usize| {
        let number = Stream(stream).number(key + sequence * of);
        usize::try_from(number >> 40).unwrap_or(0)
    };
    let columns: Vec<ArrayRef> = vec![
        column(&|key| key),
        column(&|key| random(1, key)),
        column(&|key| random(2, key)),
        column(&|key| random(3, key)),
        column(&|_| sequence),
        Arc::new(Int8Array::from(vec![0; keys.len()])),
    ];
    Ok(ZBatch::inserts(RecordBatch::try_new(schema(), columns)?))
}

/// An image in a file, which goes with it.
#[derive(Debug)]
struct OnDisk {
    file: File,
    size: u64,
    path: Option<PathBuf>,
}

impl OnDisk {
    fn new(image: Image) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("deltaic-bench-{}", std::process::id()));
        std::fs::write(&path, &*image.bytes()?).map_err(io_error)?;
        let file = File::open(&path).map_err(io_error)?;
        Ok(Self { file, size: image.size(), path: Some(path) })
    }

    fn try_clone(&self) -> Result<Self> {
        let file = self.file.try_clone().map_err(io_error)?;
        Ok(Self { file, size: self.size, path: None })
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            drop(std::fs::remove_file(path));
        }
    }
}

impl Stored for OnDisk {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(into, at).map_err(io_error)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn io_error(error: std::io::Error) -> Error {
    Error::storage("IO", error.to_string())
}
