//! The views, and what they read.

use std::path::PathBuf;

use crate::Result;

/// A view that every system maintains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// Count and sum of the amounts per customer.
    W1Lin,
    /// The same, with minimum and maximum.
    W1,
    /// Orders LEFT JOIN customers; count and sum per day and tier.
    W2,
    /// Like TPC-H Q3: customers of a segment, their orders before and lines shipped after a date; the
    /// ten orders of most revenue.
    W3,
    /// Different customers per day.
    W5,
    /// The three largest orders of each customer, numbered.
    W6,
    /// Orders that are not cancelled; count and sum per customer. For epochs of one row.
    Epochs,
    /// Twenty operators in a row. For epochs of no row.
    Idle,
}

/// A table that a view reads.
#[derive(Debug)]
pub struct Input {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static [&'static str],
    /// There are deltas of it.
    pub changes: bool,
}

const ORDERS: Input = Input {
    name: "orders",
    columns: &["order_id", "customer_id", "status", "amount", "ts"],
    changes: true,
};
const CUSTOMERS: Input =
    Input { name: "customers", columns: &["customer_id", "tier", "region"], changes: true };
const TPCH_CUSTOMER: Input =
    Input { name: "tpch_customer", columns: &["c_custkey", "c_mktsegment"], changes: false };
const TPCH_ORDERS: Input = Input {
    name: "tpch_orders",
    columns: &["o_orderkey", "o_custkey", "o_orderdate", "o_shippriority"],
    changes: true,
};
const TPCH_LINEITEM: Input = Input {
    name: "tpch_lineitem",
    columns: &["l_orderkey", "l_linenumber", "l_extendedprice", "l_discount", "l_shipdate"],
    changes: true,
};

impl Workload {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::W1Lin, Self::W1, Self::W2, Self::W3, Self::W5, Self::W6, Self::Epochs, Self::Idle];

    /// As arguments and reports have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::W1Lin => "w1lin",
            Self::W1 => "w1",
            Self::W2 => "w2",
            Self::W3 => "w3",
            Self::W5 => "w5",
            Self::W6 => "w6",
            Self::Epochs => "epochs",
            Self::Idle => "idle",
        }
    }

    /// Its inputs, in the order in which they are loaded.
    pub fn inputs(self) -> &'static [Input] {
        match self {
            Self::W2 => &[ORDERS, CUSTOMERS],
            Self::W3 => &[TPCH_CUSTOMER, TPCH_ORDERS, TPCH_LINEITEM],
            _ => &[ORDERS],
        }
    }

    /// The most rows of an input that are loaded.
    pub(crate) fn load_rows_max(self) -> usize {
        if self == Self::Idle { 100_000 } else { usize::MAX }
    }

    /// Deltas of many rows are part of it.
    pub(crate) fn has_deltas(self) -> bool {
        !matches!(self, Self::Epochs | Self::Idle)
    }

    /// Rows that come, and go again, each in an epoch of its own.
    pub(crate) fn single_rows(self) -> usize {
        match self {
            Self::Epochs => 20_000,
            Self::W3 | Self::Idle => 0,
            _ => 500,
        }
    }
}

/// What a program is asked to do.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// The view.
    pub workload: Workload,
    /// Threads.
    pub workers: usize,
    /// Customers, status and tier are strings.
    pub strings: bool,
    /// Where the generated data are.
    pub data: PathBuf,
    /// Labels of the deltas, and how many there are of each.
    pub deltas: Vec<(String, usize)>,
}

impl Arguments {
    /// `<workload> <workers> <data> [--strings] [label:count …]`
    pub fn from_command_line() -> Result<Self> {
        let mut words: Vec<String> = std::env::args().skip(1).collect();
        let strings = words.iter().any(|word| word == "--strings");
        words.retain(|word| word != "--strings");
        let [workload, workers, data, deltas @ ..] = words.as_slice() else {
            return Err("usage: <workload> <workers> <data> [--strings] [label:count ...]".into());
        };
        let named = |candidate: &Workload| candidate.name() == workload;
        let workload = Workload::ALL.into_iter().find(named).ok_or("no such workload")?;
        let delta = |word: &String| -> Result<(String, usize)> {
            let (label, count) = word.split_once(':').ok_or("a delta is label:count")?;
            Ok((label.to_owned(), count.parse()?))
        };
        let deltas = deltas.iter().map(delta).collect::<Result<_>>()?;
        Ok(Self { workload, workers: workers.parse()?, strings, data: data.into(), deltas })
    }
}
