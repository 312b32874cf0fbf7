//! The views as circuits of the kernel.
//!
//! Usage: `ours <workload> <workers> <data> [--strings] [label:count …]`

mod drain;
mod evaluators;
mod views;
mod wiring;

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::buffer::{Buffer, OffsetBuffer};
use arrow::datatypes::SchemaRef;
use deltaic_batch::ZBatch;
use deltaic_exec::{Circuit, CircuitOptions};
use peers_harness::{Arguments, Check, Column, Result, System, Workload, run};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A circuit, and the rows of the epoch to come.
struct Ours {
    circuit: Circuit,
    schemas: Vec<SchemaRef>,
    workload: Workload,
    waiting: Vec<(String, ZBatch)>,
    check: Check,
}

impl System for Ours {
    fn push(
        &mut self,
        input: usize,
        columns: Vec<Column>,
        weights: Option<Vec<i64>>,
    ) -> Result<()> {
        let arrays = columns.into_iter().map(array).collect::<Result<_>>()?;
        let rows = RecordBatch::try_new(self.schemas[input].clone(), arrays)?;
        let batch = match weights {
            Some(weights) => ZBatch::try_new(rows, weights)?,
            None => ZBatch::inserts(rows),
        };
        self.waiting.push((self.workload.inputs()[input].name.to_owned(), batch));
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let outputs = self.circuit.step(std::mem::take(&mut self.waiting))?;
        for delta in outputs.values() {
            drain::add(&mut self.check, self.workload, delta)?;
        }
        Ok(())
    }

    #[expect(
        unsafe_code,
        reason = "a call into the allocator, without arguments that could be wrong"
    )]
    fn give_back(&mut self) {
        // SAFETY: any thread may call it at any time; it frees what is free already.
        rayon::broadcast(|_| unsafe { libmimalloc_sys::mi_collect(true) });
    }

    fn check(&self) -> Check {
        self.check
    }

    fn state_bytes(&self) -> Option<usize> {
        Some(self.circuit.state_bytes())
    }
}

/// The column as Arrow has it, without copying.
fn array(column: Column) -> Result<ArrayRef> {
    Ok(match column {
        Column::Ints(ints) => Arc::new(Int64Array::from(ints)),
        Column::Texts(texts) => {
            let offsets = OffsetBuffer::new(texts.offsets.into());
            Arc::new(StringArray::try_new(offsets, Buffer::from(texts.text.into_bytes()), None)?)
        }
    })
}

fn main() -> Result<()> {
    let arguments = Arguments::from_command_line()?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(arguments.workers).build()?;
    let report = pool.install(|| work(&arguments).map_err(|error| error.to_string()))?;
    println!("{report}");
    Ok(())
}

fn work(arguments: &Arguments) -> Result<String> {
    let (builder, schemas) = views::wire(arguments.workload, arguments.strings)?;
    let circuit = builder.build(CircuitOptions { shards: arguments.workers, checks: false })?;
    let workload = arguments.workload;
    let mut system =
        Ours { circuit, schemas, workload, waiting: Vec::new(), check: Check::default() };
    let mut report = run(&mut system, "ours", arguments)?;
    report.check = system.check();
    Ok(report.to_string())
}
