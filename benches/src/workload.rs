//! The workloads: a circuit each, and the same view in plain loops.
//!
//! | name | view |
//! |---|---|
//! | `w1lin` | count and sum of the amounts per customer |
//! | `w1` | the same, with minimum and maximum |
//! | `w2` | orders LEFT JOIN customers; count and sum per day and tier |

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, TimestampMicrosecondType};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_exec::{Circuit, CircuitBuilder, CircuitOptions, NodeId};
use deltaic_ops::{
    Aggregate, AggregateCall, AggregateFunction, AggregateSpec, ColumnRef, Evaluator, Join,
    JoinKind, JoinSpec, Project,
};

use crate::orders::{Change, DAY, Shop, customers_schema, orders_schema};
use crate::schedule::{Input, Inputs, Scenario, View};

/// A view over orders (and customers).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// `SELECT customer_id, count(*), sum(amount) FROM orders GROUP BY 1`.
    W1Lin,
    /// As `W1Lin`, with `min(amount), max(amount)`.
    W1,
    /// `SELECT day(ts), tier, count(*), sum(amount) FROM orders LEFT JOIN customers USING
    /// (customer_id) GROUP BY 1, 2`.
    W2,
}

impl Workload {
    /// Key columns of the view.
    fn keys(self) -> usize {
        if self == Self::W2 { 2 } else { 1 }
    }

    /// A change of the tables as the circuit's input.
    fn input(self, label: &'static str, orders: ZBatch, customers: ZBatch) -> Input {
        let mut deltas = vec![("orders".to_owned(), orders)];
        if self == Self::W2 {
            deltas.push(("customers".to_owned(), customers));
        }
        Input { label, deltas }
    }
}

impl Scenario for Workload {
    fn name(&self) -> &'static str {
        match self {
            Self::W1Lin => "w1lin",
            Self::W1 => "w1",
            Self::W2 => "w2",
        }
    }

    fn circuit(&self, shards: usize) -> Result<Circuit> {
        let mut builder = CircuitBuilder::new();
        let orders = builder.source("orders", orders_schema())?;
        let view = match self {
            Self::W1Lin => by_customer(&mut builder, orders, false)?,
            Self::W1 => by_customer(&mut builder, orders, true)?,
            Self::W2 => {
                let customers = builder.source("customers", customers_schema())?;
                by_day_and_tier(&mut builder, orders, customers)?
            }
        };
        builder.output("view", view)?;
        builder.build(CircuitOptions { shards, checks: false })
    }

    fn inputs(&self, rows: usize) -> Inputs {
        let workload = *self;
        let shop = Shop::new(rows);
        let load = || {
            let orders = ZBatch::inserts(shop.orders()?);
            Ok(workload.input("load", orders, ZBatch::inserts(shop.customers()?)))
        };
        let load = load();
        let changes = shop.map(move |change| {
            change
                .map(|Change { label, orders, customers }| workload.input(label, orders, customers))
        });
        Box::new(std::iter::once(load).chain(changes))
    }

    /// All columns are `Int64`. A key of two counts as `16·first + second`; NULL is −1.
    fn apply(&self, view: &mut View, delta: &ZBatch) {
        let columns: Vec<&Int64Array> =
            delta.rows().columns().iter().map(|c| c.as_primitive::<Int64Type>()).collect();
        let mut row = Vec::with_capacity(columns.len());
        for (i, &weight) in delta.weights().iter().enumerate() {
            row.clear();
            row.extend(columns.iter().map(|c| if c.is_valid(i) { c.value(i) } else { -1 }));
            let (key, values) = row.split_at(self.keys());
            view.add(key.iter().fold(0, |all, &k| all * 16 + k), values, weight);
        }
    }

    fn naive(&self, rows: usize) -> Result<View> {
        let mut shop = Shop::new(rows);
        shop.by_ref().try_for_each(|change| change.map(drop))?;
        let (orders, customers) = (shop.orders()?, shop.customers()?);
        let tiers: BTreeMap<i64, i64> =
            ints(&customers, 0).iter().copied().zip(ints(&customers, 1).iter().copied()).collect();
        let times = orders.column(4).as_primitive::<TimestampMicrosecondType>().values();
        let mut groups: BTreeMap<i64, [i64; 4]> = BTreeMap::new();
        for ((&customer, &amount), &ts) in ints(&orders, 1).iter().zip(ints(&orders, 3)).zip(times)
        {
            let key = match self {
                Self::W1Lin | Self::W1 => customer,
                Self::W2 => ts.div_euclid(DAY) * 16 + tiers.get(&customer).copied().unwrap_or(-1),
            };
            let group = groups.entry(key).or_insert([0, 0, i64::MAX, i64::MIN]);
            let [count, sum, least, most] = *group;
            *group = [count + 1, sum + amount, least.min(amount), most.max(amount)];
        }
        let mut view = View::default();
        let values = if *self == Self::W1 { 4 } else { 2 };
        groups.iter().for_each(|(&key, group)| view.add(key, &group[..values], 1));
        Ok(view)
    }

    fn known(&self) -> View {
        match self {
            Self::W1Lin => View { rows: 994_426, checksum: 22_643_598_258_118 },
            Self::W1 => View { rows: 994_426, checksum: 29_303_709_127_809 },
            Self::W2 => View { rows: 1825, checksum: 17_180_648_172_668 },
        }
    }

    fn can_undo(&self) -> bool {
        true
    }
}

fn ints(batch: &RecordBatch, column: usize) -> &[i64] {
    batch.column(column).as_primitive::<Int64Type>().values()
}

/// Groups `node` by its first `keys` columns and aggregates the one after them.
fn grouped(
    builder: &mut CircuitBuilder,
    node: NodeId,
    keys: usize,
    functions: &[(AggregateFunction, &str)],
) -> Result<NodeId> {
    let calls = functions.iter().map(|&(function, name)| AggregateCall {
        function,
        distinct: false,
        input: (function != AggregateFunction::CountStar).then_some(keys),
        filter: None,
        output: Field::new(name, DataType::Int64, true),
    });
    let input = builder.schema(node)?;
    let spec = AggregateSpec { input, keys: (0..keys).collect(), calls: calls.collect() };
    builder.add(Arc::new(Aggregate::try_new(spec)?), &[node])
}

fn project(
    builder: &mut CircuitBuilder,
    node: NodeId,
    columns: Vec<(Arc<dyn Evaluator>, &str)>,
) -> Result<NodeId> {
    let field = |name: &str| Field::new(name, DataType::Int64, true);
    let columns = columns.into_iter().map(|(column, name)| (column, field(name))).collect();
    let project = Project::try_new(builder.schema(node)?, columns, String::new())?;
    builder.add(Arc::new(project), &[node])
}

fn column(i: usize) -> Arc<dyn Evaluator> {
    Arc::new(ColumnRef(i))
}

fn by_customer(builder: &mut CircuitBuilder, orders: NodeId, extremes: bool) -> Result<NodeId> {
    use AggregateFunction::{CountStar, Max, Min, Sum};
    let columns = vec![(column(1), "customer_id"), (column(3), "amount")];
    let narrow = project(builder, orders, columns)?;
    let functions = [(CountStar, "orders"), (Sum, "total"), (Min, "least"), (Max, "most")];
    grouped(builder, narrow, 1, if extremes { &functions } else { &functions[..2] })
}

fn by_day_and_tier(
    builder: &mut CircuitBuilder,
    orders: NodeId,
    customers: NodeId,
) -> Result<NodeId> {
    use AggregateFunction::{CountStar, Sum};
    let day: Arc<dyn Evaluator> = Arc::new(DayOf(4));
    let columns = vec![(column(1), "customer_id"), (day, "day"), (column(3), "amount")];
    let orders = project(builder, orders, columns)?;
    let columns = vec![(column(0), "customer_id"), (column(1), "tier")];
    let customers = project(builder, customers, columns)?;
    let (left, right) = (builder.schema(orders)?, builder.schema(customers)?);
    let join = Join::try_new(JoinSpec {
        columns: JoinKind::Left.columns(&left, &right),
        output: joined_schema(&left, &right),
        left,
        right,
        kind: JoinKind::Left,
        on: vec![(0, 0)],
        null_equals_null: false,
        residual: None,
        detail: "customer_id".into(),
    })?;
    let joined = builder.add(Arc::new(join), &[orders, customers])?;
    let columns = vec![(column(1), "day"), (column(4), "tier"), (column(2), "amount")];
    let narrow = project(builder, joined, columns)?;
    grouped(builder, narrow, 2, &[(CountStar, "orders"), (Sum, "total")])
}

fn joined_schema(left: &Schema, right: &Schema) -> SchemaRef {
    Arc::new(Schema::new(left.fields().iter().chain(right.fields()).cloned().collect::<Vec<_>>()))
}

/// Days since 1970 of a timestamp column.
#[derive(Debug)]
struct DayOf(usize);

impl Evaluator for DayOf {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let times = batch
            .column(self.0)
            .as_primitive_opt::<TimestampMicrosecondType>()
            .ok_or_else(|| Error::internal("BENCH", "not a timestamp"))?;
        Ok(Arc::new(times.unary::<_, Int64Type>(|ts| ts.div_euclid(DAY))))
    }
}
