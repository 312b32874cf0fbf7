//! The dataflow of each view.

use std::cell::Cell;
use std::rc::Rc;

use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::{CountTotal, ThresholdTotal};
use differential_dataflow::{Data, VecCollection};
use peers_harness::{BUILDING, Check, DAY, MARCH_15, Workload, row_hash};
use timely::dataflow::Scope;
use timely::dataflow::operators::probe::Handle;

use crate::rows::{Customer, Feed, Order, TpchCustomer, TpchLine, TpchOrder, Word};

type Rows<'scope, D> = VecCollection<'scope, u64, D, isize>;
type Feeds = Vec<Box<dyn Feed>>;

/// Where a view's delta goes.
pub struct Sink {
    /// Adds it up.
    pub check: Rc<Cell<Check>>,
    /// Knows which epochs are done.
    pub probe: Handle<u64>,
}

impl Sink {
    fn drain<D: Data>(&self, view: Rows<'_, D>, hashed: impl Fn(&D) -> [i64; 5] + 'static) {
        let check = Rc::clone(&self.check);
        view.inspect(move |(row, _, weight)| {
            let mut sum = check.get();
            sum.add(row_hash(hashed(row)), *weight as i64);
            check.set(sum);
        })
        .probe_with(&self.probe);
    }
}

/// Wires the dataflow of a view; the inputs in the order of [`Workload::inputs`].
pub fn wire<W: Word>(scope: Scope<'_, u64>, workload: Workload, sink: &Sink) -> Feeds {
    if workload == Workload::W3 {
        return top_orders(scope, sink);
    }
    let (input, orders): (InputSession<u64, Order<W>, isize>, Rows<'_, Order<W>>) =
        scope.new_collection();
    let mut feeds: Feeds = vec![Box::new(input)];
    match workload {
        Workload::W1Lin => totals(orders, sink),
        Workload::W1 => extremes(orders, sink),
        Workload::W2 => feeds.push(by_day_and_tier(scope, orders, sink)),
        Workload::W5 => customers_per_day(orders, sink),
        Workload::W6 => largest(orders, sink),
        Workload::Epochs => totals(orders.filter(|order| !order.2.is_cancelled()), sink),
        Workload::W3 | Workload::Idle => twenty(orders, sink),
    }
    feeds
}

fn totals<W: Word>(orders: Rows<'_, Order<W>>, sink: &Sink) {
    let totals = orders.explode(|o| Some((o.1, (1_isize, o.3 as isize)))).count_total();
    sink.drain(totals, |(k, v)| [k.customer(), v.0 as i64, v.1 as i64, 0, 0]);
}

fn extremes<W: Word>(orders: Rows<'_, Order<W>>, sink: &Sink) {
    let all = orders.map(|o| (o.1, o.3)).reduce(|_, values, out| {
        let (mut count, mut sum) = (0_i64, 0_i64);
        for (value, weight) in values.iter() {
            count += *weight as i64;
            sum += **value * *weight as i64;
        }
        out.push(((count, sum, *values[0].0, *values[values.len() - 1].0), 1_isize));
    });
    sink.drain(all, |(k, v)| [k.customer(), v.0, v.1, v.2, v.3]);
}

fn by_day_and_tier<W: Word>(
    scope: Scope<'_, u64>,
    orders: Rows<'_, Order<W>>,
    sink: &Sink,
) -> Box<dyn Feed> {
    let (input, customers): (InputSession<u64, Customer<W>, isize>, Rows<'_, Customer<W>>) =
        scope.new_collection();
    let orders = orders.map(|o| (o.1, (o.4.div_euclid(DAY), o.3))).arrange_by_key();
    let customers = customers.map(|c| (c.0, c.1)).arrange_by_key();
    let pairs = (orders.clone())
        .join_core(customers.clone(), |_, o, tier| Some(((o.0, tier.clone()), o.1)));
    let met = orders.clone().join_core(customers, |_, o, _| Some(((o.0, W::missing()), o.1)));
    let all = orders.as_collection(|_, o| ((o.0, W::missing()), o.1));
    let view = (pairs.concat(all.concat(met.negate())))
        .explode(|(key, amount)| Some((key, (1_isize, amount as isize))))
        .count_total();
    sink.drain(view, |(k, v)| [k.0 * 16 + k.1.tier(), v.0 as i64, v.1 as i64, 0, 0]);
    Box::new(input)
}

fn customers_per_day<W: Word>(orders: Rows<'_, Order<W>>, sink: &Sink) {
    let per_day = (orders.map(|o| (o.4.div_euclid(DAY), o.1)))
        .distinct_total()
        .map(|(day, _)| day)
        .count_total();
    sink.drain(per_day, |(day, count)| [*day, *count as i64, 0, 0, 0]);
}

fn largest<W: Word>(orders: Rows<'_, Order<W>>, sink: &Sink) {
    let top = orders.map(|o| (o.1, (-o.3, o.0))).reduce(|_, values, out| {
        for (place, (value, _)) in (1_i64..).zip(values.iter().take(3)) {
            out.push(((place, -value.0, value.1), 1_isize));
        }
    });
    sink.drain(top, |(k, v)| [k.customer(), v.0, v.1, v.2, 0]);
}

/// −revenue, date, order, priority
type Ranked = (i64, i64, i64, i64);

fn top_orders(scope: Scope<'_, u64>, sink: &Sink) -> Feeds {
    let (customer_input, customers): (InputSession<u64, TpchCustomer, isize>, _) =
        scope.new_collection();
    let (order_input, orders): (InputSession<u64, TpchOrder, isize>, _) = scope.new_collection();
    let (line_input, lines): (InputSession<u64, TpchLine, isize>, _) = scope.new_collection();
    let customers = customers.filter(|c| c.1 == BUILDING).map(|c| (c.0, ()));
    let orders = orders.filter(|o| o.2 < MARCH_15).map(|o| (o.1, (o.0, o.2, o.3)));
    let lines = lines.filter(|l| l.4 > MARCH_15).map(|l| (l.0, l.2 * (100 - l.3)));
    let orders = orders.join_map(customers, |_, o, ()| (o.0, (o.1, o.2)));
    let revenues = (orders.join_map(lines, |order, o, revenue| ((*order, o.0, o.1), *revenue)))
        .explode(|(key, revenue)| Some((key, revenue as isize)))
        .count_total();
    let top = |values: &[(&Ranked, isize)], out: &mut Vec<(Ranked, isize)>| {
        out.extend(values.iter().take(10).map(|(value, _)| (**value, 1)));
    };
    // In two levels, so that no group is large.
    let top = revenues
        .map(|(k, revenue)| (k.0.cast_unsigned() & 255, (-(revenue as i64), k.1, k.0, k.2)))
        .reduce(move |_, values, out| top(values, out))
        .map(|(_, value)| (0_u64, value))
        .reduce(move |_, values, out| top(values, out));
    sink.drain(top, |(_, v)| [v.2, -v.0, v.1, v.3, 0]);
    vec![Box::new(customer_input), Box::new(order_input), Box::new(line_input)]
}

/// Ten filters and ten sets of rows.
fn twenty<W: Word>(orders: Rows<'_, Order<W>>, sink: &Sink) {
    let mut rows = orders.map(|o| (o.1, o.3));
    for least in 0..10 {
        rows = rows.filter(move |row| row.1 > least).distinct_total();
    }
    sink.drain(rows, |row| [row.0.customer(), row.1, 0, 0, 0]);
}
