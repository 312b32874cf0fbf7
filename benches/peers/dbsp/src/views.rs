//! The circuit of each view.

use dbsp::circuit::CircuitConfig;
use dbsp::operator::{Max, Min};
use dbsp::typed_batch::{IndexedZSetReader, SpineSnapshot};
use dbsp::utils::{Tup2, Tup3, Tup4};
use dbsp::{
    CmpFunc, DBData, DBSPHandle, OrdIndexedZSet, OrdZSet, OutputHandle, RootCircuit, Runtime,
    Stream, ZSetHandle,
};
use peers_harness::{BUILDING, CANCELLED, Check, DAY, MARCH_15, Result, Workload, row_hash};

use crate::rows::{Customer, Feed, Order, TpchCustomer, TpchLine, TpchOrder, feed};

/// Adds the view's delta up.
pub type Drain = Box<dyn FnMut(&mut Check)>;

/// A view, ready to run.
pub struct Wired {
    pub circuit: DBSPHandle,
    pub feeds: Vec<Feed>,
    pub drain: Drain,
}

type Indexed<K, V> = OrdIndexedZSet<K, V>;
type Rows<B> = Stream<RootCircuit, B>;
type Output<K, V> = OutputHandle<SpineSnapshot<Indexed<K, V>>>;

/// Wires the circuit of a view; the feeds in the order of [`Workload::inputs`].
pub fn wire(workload: Workload, workers: usize) -> Result<Wired> {
    match workload {
        Workload::W2 => by_day_and_tier(workers),
        Workload::W3 => top_orders(workers),
        Workload::W1 => over_orders(
            workers,
            |orders| extremes(&orders.map_index(amounts)).accumulate_output(),
            |k, v| [*k, v.0, v.1, v.2, v.3],
        ),
        Workload::W5 => over_orders(
            workers,
            |orders| customers_per_day(&orders).accumulate_output(),
            |day, count| [*day, *count, 0, 0, 0],
        ),
        Workload::W6 => over_orders(
            workers,
            |orders| largest(&orders).accumulate_output(),
            |k, v| [*k, v.0, v.1, v.2, 0],
        ),
        Workload::Epochs => over_orders(
            workers,
            |orders| {
                totals(&orders.filter(|order| order.2 != CANCELLED).map_index(amounts))
                    .accumulate_output()
            },
            |k, v| [*k, v.0, v.1, 0, 0],
        ),
        Workload::Idle => over_orders(
            workers,
            |orders| twenty(&orders).map_index(|row| (row.0, row.1)).accumulate_output(),
            |k, v| [*k, *v, 0, 0, 0],
        ),
        Workload::W1Lin => over_orders(
            workers,
            |orders| totals(&orders.map_index(amounts)).accumulate_output(),
            |k, v| [*k, v.0, v.1, 0, 0],
        ),
    }
}

/// A view over orders alone.
fn over_orders<K: DBData, V: DBData>(
    workers: usize,
    view: impl FnOnce(Rows<OrdZSet<Order>>) -> Output<K, V> + Clone + Send + 'static,
    hashed: fn(&K, &V) -> [i64; 5],
) -> Result<Wired> {
    let (circuit, (input, output)) = circuit(workers, move |circuit| {
        let (orders, input) = circuit.add_input_zset::<Order>();
        Ok((input, view(orders)))
    })?;
    Ok(Wired { circuit, feeds: vec![feed(input)], drain: drain(output, hashed) })
}

fn circuit<T: Send + 'static>(
    workers: usize,
    wire: impl FnOnce(&mut RootCircuit) -> anyhow::Result<T> + Clone + Send + 'static,
) -> Result<(DBSPHandle, T)> {
    Ok(Runtime::init_circuit(CircuitConfig::with_workers(workers), wire)?)
}

fn drain<K: DBData, V: DBData>(output: Output<K, V>, hashed: fn(&K, &V) -> [i64; 5]) -> Drain {
    Box::new(move |check| {
        for (key, value, weight) in output.concat().iter() {
            check.add(row_hash(hashed(&key, &value)), weight);
        }
    })
}

fn amounts(order: &Order) -> (i64, i64) {
    (order.1, order.3)
}

/// Count and sum of each key.
fn totals<K: DBData>(amounts: &Rows<Indexed<K, i64>>) -> Rows<Indexed<K, Tup2<i64, i64>>> {
    amounts.aggregate_linear_postprocess(|amount: &i64| Tup2(1_i64, *amount), |total| total)
}

fn extremes(amounts: &Rows<Indexed<i64, i64>>) -> Rows<Indexed<i64, Tup4<i64, i64, i64, i64>>> {
    let (least, most) = (amounts.aggregate(Min), amounts.aggregate(Max));
    totals(amounts)
        .join_index(&least, |k, total, least| Some((*k, Tup3(total.0, total.1, *least))))
        .join_index(&most, |k, rest, most| Some((*k, Tup4(rest.0, rest.1, rest.2, *most))))
}

fn customers_per_day(orders: &Rows<OrdZSet<Order>>) -> Rows<Indexed<i64, i64>> {
    orders
        .map(|order| Tup2(order.4.div_euclid(DAY), order.1))
        .distinct()
        .map_index(|pair| (pair.0, pair.1))
        .aggregate_linear_postprocess(|_: &i64| 1_i64, |count| count)
}

fn largest(orders: &Rows<OrdZSet<Order>>) -> Rows<Indexed<i64, Tup3<i64, i64, i64>>> {
    orders
        .map_index(|order| (order.1, Tup2(-order.3, order.0)))
        .topk_row_number_custom_order::<Ascending, _, _>(3, |place, order| {
            Tup3(place, -order.0, order.1)
        })
}

struct Ascending;

impl CmpFunc<Tup2<i64, i64>> for Ascending {
    fn cmp(left: &Tup2<i64, i64>, right: &Tup2<i64, i64>) -> std::cmp::Ordering {
        left.cmp(right)
    }
}

/// Ten filters and ten sets of rows.
fn twenty(orders: &Rows<OrdZSet<Order>>) -> Rows<OrdZSet<Tup2<i64, i64>>> {
    let mut rows = orders.map(|order| Tup2(order.1, order.3));
    for least in 0..10 {
        rows = rows.filter(move |row| row.1 > least).distinct();
    }
    rows
}

fn by_day_and_tier(workers: usize) -> Result<Wired> {
    let (circuit, (orders, customers, output)) = circuit(workers, |circuit| {
        let (orders, order_input) = circuit.add_input_zset::<Order>();
        let (customers, customer_input) = circuit.add_input_zset::<Customer>();
        let orders = orders.map_index(|order| (order.1, Tup2(order.4.div_euclid(DAY), order.3)));
        let tiers = customers.map_index(|customer| (customer.0, Some(customer.1)));
        let joined = orders.left_join_index(&tiers, |_, order, tier| {
            Some((Tup2(order.0, tier.unwrap_or(-1)), order.1))
        });
        Ok((order_input, customer_input, totals(&joined).accumulate_output()))
    })?;
    let drain = drain(output, |k, v| [k.0 * 16 + k.1, v.0, v.1, 0, 0]);
    Ok(Wired { circuit, feeds: vec![feed(orders), feed(customers)], drain })
}

fn top_orders(workers: usize) -> Result<Wired> {
    type Inputs = (ZSetHandle<TpchCustomer>, ZSetHandle<TpchOrder>, ZSetHandle<TpchLine>);
    let (circuit, (inputs, output)) = circuit(workers, |circuit| {
        let (customers, customer_input) = circuit.add_input_zset::<TpchCustomer>();
        let (orders, order_input) = circuit.add_input_zset::<TpchOrder>();
        let (lines, line_input) = circuit.add_input_zset::<TpchLine>();
        let customers = customers.filter(|c| c.1 == BUILDING).map_index(|c| (c.0, ()));
        let orders = orders.filter(|o| o.2 < MARCH_15).map_index(|o| (o.1, Tup3(o.0, o.2, o.3)));
        let lines = lines.filter(|l| l.4 > MARCH_15).map_index(|l| (l.0, l.2 * (100 - l.3)));
        let revenues = orders
            .join_index(&customers, |_, o, ()| Some((o.0, Tup2(o.1, o.2))))
            .join_index(&lines, |order, o, revenue| Some((Tup3(*order, o.0, o.1), *revenue)))
            .aggregate_linear_postprocess(|revenue: &i64| *revenue, |revenue| revenue);
        // revenue, −date, −order, priority
        let top = revenues.map_index(|(k, v)| ((), Tup4(*v, -k.1, -k.0, k.2))).topk_desc(10);
        let inputs: Inputs = (customer_input, order_input, line_input);
        Ok((inputs, top.accumulate_output()))
    })?;
    let feeds = vec![feed(inputs.0), feed(inputs.1), feed(inputs.2)];
    let drain = drain(output, |(), v| [-v.2, v.0, -v.1, v.3, 0]);
    Ok(Wired { circuit, feeds, drain })
}
