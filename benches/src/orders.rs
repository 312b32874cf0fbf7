//! Orders and customers, and the changes that come after them.
//!
//! `orders(order_id, customer_id, status, amount, ts)` with ten orders per customer on average and
//! a few hot customers; `customers(customer_id, tier, region)`, of which 2 % are missing. A change
//! of `d` rows inserts 60 %, updates 20 % and deletes 20 % of `d`; an update is two rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use deltaic_batch::{Result, ZBatch};

use crate::random::Stream;

/// Microseconds of a day.
pub const DAY: i64 = 86_400_000_000;
/// 2024-01-01 in microseconds.
const START: i64 = 1_704_067_200_000_000;
const STATUS: [&str; 5] = ["OPEN", "PAID", "SHIPPED", "CLOSED", "CANCELLED"];
const REGION: [&str; 8] = ["EMEA", "NORAM", "LATAM", "APAC", "AFRICA", "ANZ", "NORDICS", "CEE"];
/// Deltas in order: label, share of the base rows, how many of them.
pub const SIZES: [(&str, f64, usize); 4] =
    [("0.01", 0.0001, 20), ("0.1", 0.001, 10), ("1", 0.01, 5), ("10", 0.1, 3)];

/// Schema of `orders`.
pub fn orders_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("order_id", DataType::Int64, false),
        Field::new("customer_id", DataType::Int64, false),
        Field::new("status", DataType::Utf8, false),
        Field::new("amount", DataType::Int64, false),
        Field::new("ts", DataType::Timestamp(TimeUnit::Microsecond, None), false),
    ]))
}

/// Schema of `customers`.
pub fn customers_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("customer_id", DataType::Int64, false),
        Field::new("tier", DataType::Int64, false),
        Field::new("region", DataType::Utf8, false),
    ]))
}

/// One order; `status` is a code.
type Order = [i64; 5];
/// One customer; `region` is a code.
type Customer = [i64; 3];

/// The changes of both tables in one step.
#[derive(Debug)]
pub struct Change {
    /// Size class, as [`SIZES`] names it.
    pub label: &'static str,
    /// Rows of `orders` with weights.
    pub orders: ZBatch,
    /// Rows of `customers` with weights.
    pub customers: ZBatch,
}

/// Both tables as they grow. Iterating makes the changes, in order.
#[derive(Debug)]
pub struct Shop {
    base_rows: usize,
    orders: Table<5>,
    customers: Table<3>,
    next_order: i64,
    next_customer: i64,
    /// Customers that do not exist (any more, or yet).
    missing: Vec<i64>,
    stream: u64,
    size: usize,
    done_of_size: usize,
}

/// Rows by column, and which of them are still there.
#[derive(Debug)]
struct Table<const N: usize> {
    rows: Vec<[i64; N]>,
    alive: Vec<bool>,
}

impl<const N: usize> Table<N> {
    fn new(rows: Vec<[i64; N]>) -> Self {
        let alive = vec![true; rows.len()];
        Self { rows, alive }
    }

    fn alive(&self) -> Vec<usize> {
        (0..self.rows.len()).filter(|&i| self.alive[i]).collect()
    }

    fn live_rows(&self) -> Vec<[i64; N]> {
        self.alive().into_iter().map(|i| self.rows[i]).collect()
    }

    /// Deletes, updates and inserts; returns the rows with their weights.
    fn change(
        &mut self,
        deleted: &[usize],
        updated: &[usize],
        news: &[[i64; N]],
        inserted: Vec<[i64; N]>,
    ) -> (Vec<[i64; N]>, Vec<i64>) {
        let old = deleted.iter().chain(updated).map(|&i| self.rows[i]);
        let rows: Vec<_> = old.chain(news.iter().chain(&inserted).copied()).collect();
        let mut weights = vec![-1; deleted.len() + updated.len()];
        weights.resize(rows.len(), 1);
        updated.iter().zip(news).for_each(|(&i, new)| self.rows[i] = *new);
        deleted.iter().for_each(|&i| self.alive[i] = false);
        self.rows.extend(inserted);
        self.alive.resize(self.rows.len(), true);
        (rows, weights)
    }
}

pub(crate) fn to_i64(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn amounts(stream: u64, count: usize) -> Vec<i64> {
    Stream(stream).below(count, 1_000_000).into_iter().map(|a| a + 100).collect()
}

fn times(stream: u64, count: usize) -> Vec<i64> {
    let seconds = Stream(stream).below(count, 365 * 86_400);
    seconds.into_iter().map(|s| START + s * 1_000_000).collect()
}

/// Orders from `first` on.
fn new_orders(streams: [u64; 4], first: i64, count: usize, customers: i64) -> Vec<Order> {
    let customer = Stream(streams[0]).skewed(count, customers);
    let status = Stream(streams[1]).below(count, 5);
    let (amount, ts) = (amounts(streams[2], count), times(streams[3], count));
    let order = |i: usize| [first + to_i64(i), customer[i], status[i], amount[i], ts[i]];
    (0..count).map(order).collect()
}

impl Shop {
    /// The tables before any change: `rows` orders.
    pub fn new(rows: usize) -> Self {
        let keys = to_i64(rows / 10);
        let scattered: Vec<i64> = (0..keys).map(|i| (i * 314_159 + 11) % keys).collect();
        let present = share(rows / 10, 0.98);
        let (tier, region) = (Stream(10).below(present, 4), Stream(11).below(present, 8));
        let customers = (0..present).map(|i| [scattered[i], tier[i], region[i]]).collect();
        Self {
            base_rows: rows,
            orders: Table::new(new_orders([1, 2, 3, 4], 0, rows, keys)),
            customers: Table::new(customers),
            next_order: to_i64(rows),
            next_customer: keys,
            missing: scattered[present..].to_vec(),
            stream: 100,
            size: 0,
            done_of_size: 0,
        }
    }

    /// All orders that are there now.
    pub fn orders(&self) -> Result<RecordBatch> {
        orders_batch(&self.orders.live_rows())
    }

    /// All customers that are there now.
    pub fn customers(&self) -> Result<RecordBatch> {
        customers_batch(&self.customers.live_rows())
    }

    fn change_orders(&mut self, share_of_base: f64) -> Result<ZBatch> {
        let st = self.stream;
        let changes = share(self.base_rows, share_of_base);
        let [inserts, updates, deletes] = [changes * 6 / 10, changes * 2 / 10, changes * 2 / 10];
        let alive = self.orders.alive();
        let mut picked: Vec<usize> = if changes > 200_000 {
            let order = Stream(st).order(alive.len());
            order.into_iter().take(updates + deletes).map(|i| alive[i]).collect()
        } else {
            let drawn = Stream(st).below((updates + deletes) * 2, to_i64(alive.len()));
            let mut drawn: Vec<usize> = drawn
                .into_iter()
                .filter_map(|i| alive.get(usize::try_from(i).ok()?))
                .copied()
                .collect();
            drawn.sort_unstable();
            drawn.dedup();
            drawn
        };
        if picked.len() > updates + deletes {
            let order = Stream(st + 1).order(picked.len());
            picked = order.into_iter().take(updates + deletes).map(|i| picked[i]).collect();
        }
        let (updated, deleted) = picked.split_at(updates.min(picked.len()));
        let keys = to_i64(self.base_rows / 10);
        let inserted = new_orders([st + 2, st + 3, st + 4, st + 5], self.next_order, inserts, keys);
        self.next_order += to_i64(inserts);
        let amount = amounts(st + 6, updated.len());
        let news: Vec<Order> = (updated.iter().zip(amount))
            .map(|(&i, amount)| {
                let [id, customer, status, _, ts] = self.orders.rows[i];
                [id, customer, (status + 1) % 5, amount, ts]
            })
            .collect();
        let (rows, weights) = self.orders.change(deleted, updated, &news, inserted);
        ZBatch::try_new(orders_batch(&rows)?, weights)
    }

    fn change_customers(&mut self, share_of_base: f64) -> Result<ZBatch> {
        let st = self.stream;
        let changes = share(self.base_rows / 10, share_of_base);
        let [inserts, updates, deletes] = [changes * 6 / 10, changes * 2 / 10, changes * 2 / 10];
        let alive = self.customers.alive();
        let order = Stream(st + 7).order(alive.len());
        let picked: Vec<usize> =
            order.into_iter().take(updates + deletes).map(|i| alive[i]).collect();
        let (updated, deleted) = picked.split_at(updates.min(picked.len()));
        let back: Vec<i64> = self.missing.drain(..(inserts / 2).min(self.missing.len())).collect();
        let fresh = self.next_customer..self.next_customer + to_i64(inserts - back.len());
        self.next_customer = fresh.end;
        let (tier, region) = (Stream(st + 8).below(inserts, 4), Stream(st + 9).below(inserts, 8));
        let inserted: Vec<Customer> = (back.into_iter().chain(fresh))
            .zip(tier.into_iter().zip(region))
            .map(|(id, (tier, region))| [id, tier, region])
            .collect();
        let news: Vec<Customer> = (updated.iter())
            .map(|&i| {
                let [id, tier, region] = self.customers.rows[i];
                [id, (tier + 1) % 4, region]
            })
            .collect();
        self.missing.extend(deleted.iter().map(|&i| self.customers.rows[i][0]));
        let (rows, weights) = self.customers.change(deleted, updated, &news, inserted);
        ZBatch::try_new(customers_batch(&rows)?, weights)
    }
}

impl Iterator for Shop {
    type Item = Result<Change>;

    fn next(&mut self) -> Option<Self::Item> {
        let &(label, share_of_base, repetitions) = SIZES.get(self.size)?;
        self.stream += 20;
        let orders = self.change_orders(share_of_base);
        let customers = self.change_customers(share_of_base);
        self.done_of_size += 1;
        if self.done_of_size == repetitions {
            (self.size, self.done_of_size) = (self.size + 1, 0);
        }
        Some(orders.and_then(|orders| Ok(Change { label, orders, customers: customers? })))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "row counts are far below 2^53"
)]
pub(crate) fn share(rows: usize, share: f64) -> usize {
    (rows as f64 * share) as usize
}

fn ints<const N: usize>(rows: &[[i64; N]], column: usize) -> ArrayRef {
    Arc::new(rows.iter().map(|row| row[column]).collect::<Int64Array>())
}

pub(crate) fn strings<const N: usize>(
    rows: &[[i64; N]],
    column: usize,
    names: &[impl AsRef<str>],
) -> ArrayRef {
    let name = |row: &[i64; N]| usize::try_from(row[column]).ok().and_then(|i| names.get(i));
    Arc::new(rows.iter().map(|row| name(row).map(AsRef::as_ref)).collect::<StringArray>())
}

fn orders_batch(rows: &[Order]) -> Result<RecordBatch> {
    let ts = rows.iter().map(|row| row[4]).collect::<Vec<i64>>();
    let ts: ArrayRef = Arc::new(TimestampMicrosecondArray::from(ts));
    let columns = vec![ints(rows, 0), ints(rows, 1), strings(rows, 2, &STATUS), ints(rows, 3), ts];
    Ok(RecordBatch::try_new(orders_schema(), columns)?)
}

fn customers_batch(rows: &[Customer]) -> Result<RecordBatch> {
    let columns = vec![ints(rows, 0), ints(rows, 1), strings(rows, 2, &REGION)];
    Ok(RecordBatch::try_new(customers_schema(), columns)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::{Int64Type, TimestampMicrosecondType};

    /// Weighted sum over columns and row numbers, order included.
    fn digest(batch: &ZBatch, codes: &[&str]) -> i64 {
        let mut digest = 0_i64;
        for (c, column) in batch.rows().columns().iter().enumerate() {
            for (i, &weight) in batch.weights().iter().enumerate() {
                let value = match column.data_type() {
                    DataType::Int64 => column.as_primitive::<Int64Type>().value(i),
                    DataType::Utf8 => {
                        let text = column.as_string::<i32>().value(i);
                        to_i64(codes.iter().position(|code| *code == text).unwrap())
                    }
                    _ => column.as_primitive::<TimestampMicrosecondType>().value(i),
                };
                let place = to_i64(i * 7 + c * 1_000_003 + 1);
                let cell = value.wrapping_mul(place).wrapping_mul(weight);
                digest = digest.wrapping_mul(31).wrapping_add(cell);
            }
        }
        digest
    }

    #[test]
    fn the_data_are_those_of_the_peers_generator() {
        let mut shop = Shop::new(50_000);
        let mut found = vec![
            digest(&ZBatch::inserts(shop.orders().unwrap()), &STATUS),
            digest(&ZBatch::inserts(shop.customers().unwrap()), &REGION),
        ];
        for change in shop.by_ref() {
            let change = change.unwrap();
            found.push(digest(&change.orders, &STATUS));
            found.push(digest(&change.customers, &REGION));
        }
        found.push(digest(&ZBatch::inserts(shop.orders().unwrap()), &STATUS));
        found.push(digest(&ZBatch::inserts(shop.customers().unwrap()), &REGION));
        assert_eq!(found.len(), 80);
        let all = found.iter().fold(0_i64, |all, &d| all.wrapping_mul(1_000_003).wrapping_add(d));
        assert_eq!(all, 6_238_389_845_569_638_110, "{found:?}");
    }
}
