//! The DataFusion oracle: the same SQL in batch over the integrated tables.

use std::collections::BTreeMap;

use deltaic_plan::{Session, Source, SourceTable, Sources};

use crate::{Bag, add_row, batch_rows, table_names, table_schema};

/// The tables that queries are drawn over, as the planner wants them.
pub fn sources() -> Sources {
    table_names()
        .iter()
        .map(|name| {
            let schema = table_schema(name);
            let table = SourceTable { schema, append_only: false, rows: None };
            ((*name).to_owned(), Source::Table(table))
        })
        .collect()
}

/// The result of `sql` over `tables`.
pub fn run_in_datafusion(
    session: &Session,
    sql: &str,
    tables: &BTreeMap<String, Bag>,
) -> Result<Bag, String> {
    let mut batches = BTreeMap::new();
    for (name, bag) in tables {
        // Copies of a row become rows of their own.
        let rows: Vec<_> =
            bag.iter().flat_map(|(row, n)| (0..*n).map(move |_| (row.clone(), 1))).collect();
        let delta = crate::to_delta(&table_schema(name), &rows)?;
        let delta = delta.canonical().map_err(|e| e.to_string())?;
        batches.insert(name.clone(), vec![delta.rows().clone()]);
    }
    let (_, result) =
        session.run_batch(sql, &sources(), batches).map_err(|e| format!("{sql}: {e}"))?;
    let mut bag = Bag::new();
    for batch in &result {
        for row in batch_rows(batch)? {
            add_row(&mut bag, row, 1);
        }
    }
    Ok(bag)
}
