//! The circuit of each view.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::Result;
use deltaic_exec::{CircuitBuilder, NodeId};
use deltaic_ops::AggregateFunction::{CountStar, Max, Min, Sum};
use deltaic_ops::{Distinct, JoinKind, TopK, TopKSpec};
use deltaic_state::SortKey;
use peers_harness::{BUILDING, Input, MARCH_15, Workload};

use crate::evaluators::{Compare, DayOf, NotCancelled, Revenue};
use crate::wiring::Select::{Column, Number};
use crate::wiring::{count_distinct, filter, group, join, project};

// Columns of `orders`.
const ORDER: usize = 0;
const CUSTOMER: usize = 1;
const STATUS: usize = 2;
const AMOUNT: usize = 3;
const TIME: usize = 4;

/// The circuit of a view, and the schemas of its inputs.
pub fn wire(workload: Workload, strings: bool) -> Result<(CircuitBuilder, Vec<SchemaRef>)> {
    let mut builder = CircuitBuilder::new();
    let schemas: Vec<SchemaRef> =
        workload.inputs().iter().map(|input| schema(input, strings)).collect();
    let mut sources = Vec::with_capacity(schemas.len());
    for (input, schema) in workload.inputs().iter().zip(&schemas) {
        sources.push(builder.source(input.name, schema.clone())?);
    }
    let b = &mut builder;
    let view = match (workload, sources.as_slice()) {
        (Workload::W2, &[orders, customers]) => by_day_and_tier(b, orders, customers)?,
        (Workload::W3, &[customers, orders, lines]) => top_orders(b, customers, orders, lines)?,
        (Workload::W1, sources) => {
            let narrow = project(b, sources[0], vec![Column(CUSTOMER), Column(AMOUNT)])?;
            group(b, narrow, 1, &[CountStar, Sum, Min, Max])?
        }
        (Workload::W5, sources) => {
            let day = Number("day", Arc::new(DayOf(TIME)));
            let narrow = project(b, sources[0], vec![day, Column(CUSTOMER)])?;
            count_distinct(b, narrow)?
        }
        (Workload::W6, sources) => largest(b, sources[0])?,
        (Workload::Epochs, sources) => {
            let kept = filter(b, sources[0], NotCancelled(STATUS))?;
            totals(b, kept)?
        }
        (Workload::Idle, sources) => twenty(b, sources[0])?,
        (_, sources) => totals(b, sources[0])?,
    };
    builder.output("view", view)?;
    Ok((builder, schemas))
}

fn schema(input: &Input, strings: bool) -> SchemaRef {
    let field = |&name: &&str| match name {
        "customer_id" | "status" | "tier" | "region" if strings => {
            Field::new(name, DataType::Utf8, false)
        }
        _ => Field::new(name, DataType::Int64, false),
    };
    Arc::new(Schema::new(input.columns.iter().map(field).collect::<Vec<_>>()))
}

fn totals(b: &mut CircuitBuilder, orders: NodeId) -> Result<NodeId> {
    let narrow = project(b, orders, vec![Column(CUSTOMER), Column(AMOUNT)])?;
    group(b, narrow, 1, &[CountStar, Sum])
}

fn by_day_and_tier(b: &mut CircuitBuilder, orders: NodeId, customers: NodeId) -> Result<NodeId> {
    let day = Number("day", Arc::new(DayOf(TIME)));
    let orders = project(b, orders, vec![Column(CUSTOMER), day, Column(AMOUNT)])?;
    let customers = project(b, customers, vec![Column(0), Column(1)])?;
    // day, tier, amount
    let narrow = join(b, JoinKind::Left, orders, customers, vec![1, 4, 2])?;
    group(b, narrow, 2, &[CountStar, Sum])
}

fn largest(b: &mut CircuitBuilder, orders: NodeId) -> Result<NodeId> {
    let narrow = project(b, orders, vec![Column(CUSTOMER), Column(AMOUNT), Column(ORDER)])?;
    let top = TopK::try_new(TopKSpec {
        input: b.schema(narrow)?,
        partition: vec![0],
        order: vec![descending(1), ascending(2)],
        offset: 0,
        limit: 3,
        number: Some(Field::new("place", DataType::UInt64, false)),
    })?;
    b.add(Arc::new(top), &[narrow])
}

fn top_orders(
    b: &mut CircuitBuilder,
    customers: NodeId,
    orders: NodeId,
    lines: NodeId,
) -> Result<NodeId> {
    let customers = filter(b, customers, Compare::Equal(1, BUILDING))?;
    let customers = project(b, customers, vec![Column(0)])?;
    let orders = filter(b, orders, Compare::Less(2, MARCH_15))?;
    let orders = project(b, orders, vec![Column(1), Column(0), Column(2), Column(3)])?;
    let lines = filter(b, lines, Compare::Greater(4, MARCH_15))?;
    let revenue = Number("revenue", Arc::new(Revenue { price: 2, discount: 3 }));
    let lines = project(b, lines, vec![Column(0), revenue])?;
    let orders = join(b, JoinKind::Inner, orders, customers, vec![1, 2, 3])?;
    // order, date, priority, revenue
    let narrow = join(b, JoinKind::Inner, orders, lines, vec![0, 1, 2, 4])?;
    let revenues = group(b, narrow, 3, &[Sum])?;
    let top = TopK::try_new(TopKSpec {
        input: b.schema(revenues)?,
        partition: Vec::new(),
        order: vec![descending(3), ascending(1), ascending(0)],
        offset: 0,
        limit: 10,
        number: None,
    })?;
    b.add(Arc::new(top), &[revenues])
}

/// Ten filters and ten sets of rows.
fn twenty(b: &mut CircuitBuilder, orders: NodeId) -> Result<NodeId> {
    let mut rows = project(b, orders, vec![Column(CUSTOMER), Column(AMOUNT)])?;
    for least in 0..10 {
        rows = filter(b, rows, Compare::Greater(1, least))?;
        rows = b.add(Arc::new(Distinct::try_new(b.schema(rows)?)?), &[rows])?;
    }
    Ok(rows)
}

fn descending(column: usize) -> SortKey {
    SortKey { column, descending: true, nulls_first: false }
}

fn ascending(column: usize) -> SortKey {
    SortKey { column, descending: false, nulls_first: false }
}
