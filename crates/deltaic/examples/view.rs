//! A SQL view over batches made in the program: what changed, and what there is.
//!
//! `cargo run -p deltaic --example view`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, StringArray};
use deltaic::prelude::*;

fn main() -> Result<()> {
    let orders = schema("region STRING, amount BIGINT")?;
    let mut view = View::sql(
        "SELECT region, count(*) AS orders, sum(amount) AS total
         FROM orders GROUP BY region HAVING sum(amount) >= 10",
        [("orders", orders.clone())],
    )?;
    println!("{}", view.explain());

    let first = RecordBatch::try_new(
        orders.clone(),
        vec![
            Arc::new(StringArray::from(vec!["north", "north", "south", "west"])),
            Arc::new(Int64Array::from(vec![8, 5, 30, 4])),
        ],
    )?;
    let change = view.apply([("orders", ZBatch::inserts(first))])?;
    println!("after four orders:\n{change}");

    // A delete and an insert together are an update.
    let change = view.apply([("orders", ZBatch::parse(&orders, "- north | 8\n+ west | 9")?)])?;
    println!("one cancelled, one new:\n{change}");

    println!("all of it:\n{}", ZBatch::inserts(view.snapshot()?));
    println!("{} bytes of state", view.state_bytes());
    Ok(())
}
