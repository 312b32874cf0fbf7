//! A circuit wired by hand, without SQL: orders that are open, and how many each customer has.
//!
//! `cargo run -p deltaic --no-default-features --example circuit`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use deltaic::ops::{Aggregate, AggregateCall, AggregateFunction, AggregateSpec, ColumnRef, Filter};
use deltaic::prelude::*;

fn main() -> Result<()> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("customer", DataType::Utf8, true),
        Field::new("open", DataType::Boolean, true),
    ]));
    let mut builder = CircuitBuilder::new();
    let orders = builder.source("orders", schema.clone())?;
    let filter = Filter::try_new(schema.clone(), Arc::new(ColumnRef(1)), "open".into())?;
    let open = builder.add(Arc::new(filter), &[orders])?;
    let count = Aggregate::try_new(AggregateSpec {
        input: builder.schema(open)?,
        keys: vec![0],
        calls: vec![AggregateCall {
            function: AggregateFunction::CountStar,
            distinct: false,
            input: None,
            filter: None,
            output: Field::new("orders", DataType::Int64, true),
        }],
    })?;
    let per_customer = builder.add(Arc::new(count), &[open])?;
    builder.output("open", open)?;
    builder.output("per_customer", per_customer)?;
    let mut circuit = builder.build(CircuitOptions::default())?;

    for change in ["+ ann | true\n+ bo | true\n+ bo | false", "- bo | true\n+ ann | true"] {
        let outputs = circuit.step(vec![("orders".into(), ZBatch::parse(&schema, change)?)])?;
        for (name, change) in outputs {
            println!("{name}:\n{change}");
        }
    }
    println!("{} bytes of state after {} epochs", circuit.state_bytes(), circuit.epoch());
    Ok(())
}
