//! Window functions: what is drawn, its SQL, and its value by definition.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::query::eval::{by_order, sum};
use crate::query::print::{key_list, order_by};
use crate::query::{Column, Kind, OrderKey};
use crate::{Bag, Row, Tape, Value, add_row};

/// Window functions over the same partitions, as last columns.
#[derive(Debug, Clone)]
pub struct Windows {
    /// Columns of the partitions; none: all rows are one.
    pub partition: Vec<usize>,
    /// The order within a partition. Calls that see more than peers see ties in the order of all
    /// columns.
    pub order: Vec<OrderKey>,
    /// Distances are in days.
    pub days: bool,
    /// The functions.
    pub calls: Vec<WindowCall>,
}

/// A window function.
#[derive(Debug, Clone, Copy)]
pub enum WindowCall {
    /// `row_number()`
    RowNumber,
    /// `rank()`
    Rank,
    /// `dense_rank()`
    DenseRank,
    /// `lag(c, n)`
    Lag(usize, usize),
    /// `lead(c, n)`
    Lead(usize, usize),
    /// `first_value(c)`
    First(usize, Frame),
    /// `last_value(c)`
    Last(usize, Frame),
    /// `count(*)`
    Count(Frame),
    /// `sum(c)`
    Sum(usize, Frame),
    /// `min(c)`
    Min(usize, Frame),
    /// `max(c)`
    Max(usize, Frame),
    /// `percent_rank()`
    PercentRank,
    /// `cume_dist()`
    CumeDist,
    /// `ntile(n)`
    Ntile(usize),
    /// `nth_value(c, n)`
    Nth(usize, usize, Frame),
    /// `count(*) FILTER (WHERE c IS NOT NULL)`
    CountKnown(usize, Frame),
}

/// Which rows of a partition a function reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// All up to the current row and its peers; all, without an order.
    Peers,
    /// So many rows before and after the current one; `None`: all.
    Rows(Option<usize>, Option<usize>),
    /// So many groups of peers before and after the current row's; `None`: all.
    Groups(Option<usize>, Option<usize>),
    /// Rows that are so much before and after the current one, by the only column of the order.
    Distance(Option<i64>, Option<i64>),
}

/// Frames that an order allows.
#[derive(Clone, Copy)]
struct Possible {
    groups: bool,
    distance: bool,
}

impl Possible {
    fn without_distance(self) -> Self {
        Self { distance: false, ..self }
    }
}

impl Windows {
    /// Over an input of these columns, to which those of the calls are added.
    pub(super) fn draw(tape: &mut Tape<'_>, columns: &mut Vec<Column>) -> Self {
        let mut partition: Vec<usize> =
            (0..tape.pick(&[1, 1, 1, 0, 2])).map(|_| tape.choose(columns.len())).collect();
        partition.sort_unstable();
        partition.dedup();
        let order = OrderKey::draw(tape, columns.len());
        let input = columns.clone();
        let distance = match order.as_slice() {
            [key] => matches!(
                input[key.column].kind,
                Kind::Int | Kind::Float | Kind::Decimal | Kind::Date
            ),
            _ => false,
        };
        let possible = Possible { groups: !order.is_empty(), distance };
        let days = distance && input[order[0].column].kind == Kind::Date;
        let mut calls = Vec::new();
        for _ in 0..=tape.choose(3) {
            let (call, column) = WindowCall::draw(tape, &input, possible);
            calls.push(call);
            columns.push(column);
        }
        Self { partition, order, days, calls }
    }

    pub(super) fn sql(&self, input: &str, width: usize) -> String {
        let mut list = vec!["q.*".to_owned()];
        for (i, call) in self.calls.iter().enumerate() {
            let mut over = Vec::new();
            if !self.partition.is_empty() {
                let partition: Vec<String> =
                    self.partition.iter().map(|column| format!("c{column}")).collect();
                over.push(format!("PARTITION BY {}", partition.join(", ")));
            }
            let mut order = key_list(&self.order);
            if call.sees_ties() {
                order.push(order_by(width));
            }
            if !order.is_empty() {
                over.push(format!("ORDER BY {}", order.join(", ")));
            }
            let rows = |n: usize| n.to_string();
            let far = |n: i64| match self.days {
                true => format!("INTERVAL '{n}' DAY"),
                false => n.to_string(),
            };
            match call.frame() {
                None | Some(Frame::Peers) => {}
                Some(Frame::Rows(before, after)) => {
                    over.push(format!("ROWS {}", between(before, after, rows)));
                }
                Some(Frame::Groups(before, after)) => {
                    over.push(format!("GROUPS {}", between(before, after, rows)));
                }
                Some(Frame::Distance(before, after)) => {
                    over.push(format!("RANGE {}", between(before, after, far)));
                }
            }
            list.push(format!("{} OVER ({}) AS c{}", call.sql(), over.join(" "), width + i));
        }
        format!("SELECT {} FROM ({input}) AS q", list.join(", "))
    }

    pub(super) fn eval(&self, input: &Bag) -> Bag {
        let mut partitions: BTreeMap<Vec<&Value>, Vec<&Row>> = BTreeMap::new();
        for (row, n) in input {
            let key = self.partition.iter().map(|&column| &row[column]).collect();
            partitions.entry(key).or_default().extend((0..*n).map(|_| row));
        }
        let mut out = Bag::new();
        for mut rows in partitions.into_values() {
            rows.sort_by(|a, b| by_order(&self.order, a, b).then_with(|| a.cmp(b)));
            for at in 0..rows.len() {
                let mut row = rows[at].clone();
                row.extend(self.calls.iter().map(|call| self.value(*call, &rows, at)));
                add_row(&mut out, row, 1);
            }
        }
        out
    }

    fn value(&self, call: WindowCall, rows: &[&Row], at: usize) -> Value {
        let is_before =
            |a: usize, b: usize| by_order(&self.order, rows[a], rows[b]) == Ordering::Less;
        let number = |n: usize| Value::Int(i128::try_from(n).unwrap_or(i128::MAX));
        let frame = |frame: Frame| self.frame(call, frame, rows, at);
        let known = |c: usize, of: Frame| {
            frame(of).into_iter().map(move |row| &row[c]).filter(|value| !value.is_null())
        };
        match call {
            WindowCall::RowNumber => number(at + 1),
            WindowCall::Rank => number((0..at).filter(|&other| is_before(other, at)).count() + 1),
            WindowCall::DenseRank => {
                let steps = (1..=at).filter(|&other| is_before(other - 1, other));
                number(steps.count() + 1)
            }
            WindowCall::Lag(c, n) => at.checked_sub(n).map_or(Value::Null, |i| rows[i][c].clone()),
            WindowCall::Lead(c, n) => rows.get(at + n).map_or(Value::Null, |row| row[c].clone()),
            WindowCall::First(c, of) => frame(of).first().map_or(Value::Null, |row| row[c].clone()),
            WindowCall::Last(c, of) => frame(of).last().map_or(Value::Null, |row| row[c].clone()),
            WindowCall::Count(of) => number(frame(of).len()),
            WindowCall::Sum(c, of) => sum(known(c, of).map(|value| (value, 1))),
            WindowCall::Min(c, of) => known(c, of).min().cloned().unwrap_or(Value::Null),
            WindowCall::Max(c, of) => known(c, of).max().cloned().unwrap_or(Value::Null),
            WindowCall::PercentRank => {
                let before = (0..at).filter(|&other| is_before(other, at)).count();
                ratio(before, rows.len() - 1)
            }
            WindowCall::CumeDist => {
                let up_to = (0..rows.len()).filter(|&other| !is_before(at, other)).count();
                ratio(up_to, rows.len())
            }
            WindowCall::Ntile(n) => {
                // The first tiles have one row more.
                let (size, longer) = (rows.len() / n, rows.len() % n);
                let tile = match at < longer * (size + 1) {
                    true => at / (size + 1),
                    false => longer + (at - longer * (size + 1)) / size.max(1),
                };
                number(tile + 1)
            }
            WindowCall::Nth(c, n, of) => {
                frame(of).get(n - 1).map_or(Value::Null, |row| row[c].clone())
            }
            WindowCall::CountKnown(c, of) => number(known(c, of).count()),
        }
    }

    /// The rows that a call sees at a row.
    fn frame<'a>(
        &self,
        call: WindowCall,
        frame: Frame,
        rows: &[&'a Row],
        at: usize,
    ) -> Vec<&'a Row> {
        let is_before =
            |a: usize, b: usize| by_order(&self.order, rows[a], rows[b]) == Ordering::Less;
        // Number of steps to another row: between different rows, where ties show, else by peers.
        let is_step = |a: usize, b: usize| match call.sees_ties() {
            true => rows[a] != rows[b],
            false => is_before(a, b),
        };
        let steps = |other: usize| {
            let (from, to) = (at.min(other), at.max(other));
            (from..to).filter(|&row| is_step(row, row + 1)).count()
        };
        let is_in = |other: usize| match frame {
            Frame::Rows(before, after) => match other < at {
                true => before.is_none_or(|before| at - other <= before),
                false => after.is_none_or(|after| other - at <= after),
            },
            Frame::Peers => other < at || steps(other) == 0,
            Frame::Groups(before, after) => match other < at {
                true => before.is_none_or(|before| steps(other) <= before),
                false => after.is_none_or(|after| steps(other) <= after),
            },
            Frame::Distance(before, after) => {
                let bound = if other < at { before } else { after };
                let column = self.order[0].column;
                bound.is_none_or(|most| within(&rows[other][column], &rows[at][column], most))
            }
        };
        (0..rows.len()).filter(|&other| is_in(other)).map(|other| rows[other]).collect()
    }
}

/// `BETWEEN … AND …`; `None` is unbounded.
fn between<T>(before: Option<T>, after: Option<T>, shown: impl Fn(T) -> String) -> String {
    let bound = |by: Option<T>| by.map_or_else(|| "UNBOUNDED".to_owned(), &shown);
    format!("BETWEEN {} PRECEDING AND {} FOLLOWING", bound(before), bound(after))
}

fn ratio(part: usize, whole: usize) -> Value {
    let float = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    Value::Float(if part == 0 { 0.0 } else { float(part) / float(whole) })
}

/// At most so far apart; NULL is near NULL alone, NaN and the infinities near their like.
fn within(a: &Value, b: &Value, most: i64) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => (a - b).abs() <= i128::from(most),
        (Value::Decimal(a, scale), Value::Decimal(b, _)) => {
            let unit = 10_i128.pow(u32::from(scale.unsigned_abs()));
            (a - b).abs() <= i128::from(most) * unit
        }
        (Value::Date(a), Value::Date(b)) => i64::from(a.abs_diff(*b)) <= most,
        (Value::Float(x), Value::Float(y)) => {
            a == b || (x - y).abs() <= f64::from(i32::try_from(most).unwrap_or(i32::MAX))
        }
        (a, b) => a == b,
    }
}

impl WindowCall {
    fn draw(tape: &mut Tape<'_>, columns: &[Column], possible: Possible) -> (Self, Column) {
        let c = tape.choose(columns.len());
        let column = columns[c];
        let count = Column { kind: Kind::Int, summable: true };
        match tape.choose(16) {
            0 => (Self::RowNumber, count),
            1 => (Self::Rank, count),
            2 => (Self::DenseRank, count),
            3 => (Self::Lag(c, 1 + tape.choose(2)), column),
            4 => (Self::Lead(c, 1 + tape.choose(2)), column),
            5 => (Self::First(c, Frame::draw(tape, possible.without_distance())), column),
            6 => (Self::Last(c, Frame::draw(tape, possible.without_distance())), column),
            7 if column.summable && matches!(column.kind, Kind::Int | Kind::Decimal) => {
                let kind = match column.kind {
                    Kind::Decimal => Kind::DecimalSum,
                    other => other,
                };
                (Self::Sum(c, Frame::draw(tape, possible)), Column { kind, summable: false })
            }
            8 => (Self::Min(c, Frame::draw(tape, possible)), column),
            9 => (Self::Max(c, Frame::draw(tape, possible)), column),
            11 => (Self::PercentRank, Column { kind: Kind::Float, summable: false }),
            12 => (Self::CumeDist, Column { kind: Kind::Float, summable: false }),
            13 => (Self::Ntile(1 + tape.choose(4)), count),
            14 => (
                Self::Nth(c, 1 + tape.choose(3), Frame::draw(tape, possible.without_distance())),
                column,
            ),
            15 => (Self::CountKnown(c, Frame::draw(tape, possible)), count),
            _ => (Self::Count(Frame::draw(tape, possible)), count),
        }
    }

    fn frame(self) -> Option<Frame> {
        match self {
            Self::First(_, frame)
            | Self::Last(_, frame)
            | Self::Count(frame)
            | Self::Sum(_, frame)
            | Self::Min(_, frame)
            | Self::Max(_, frame)
            | Self::Nth(_, _, frame)
            | Self::CountKnown(_, frame) => Some(frame),
            Self::RowNumber
            | Self::Rank
            | Self::DenseRank
            | Self::Lag(_, _)
            | Self::Lead(_, _)
            | Self::PercentRank
            | Self::CumeDist
            | Self::Ntile(_) => None,
        }
    }

    /// The order of ties shows in the value.
    fn sees_ties(self) -> bool {
        match self {
            Self::Rank | Self::DenseRank | Self::PercentRank | Self::CumeDist => false,
            Self::RowNumber
            | Self::Ntile(_)
            | Self::Nth(_, _, _)
            | Self::Lag(_, _)
            | Self::Lead(_, _)
            | Self::First(_, _)
            | Self::Last(_, _) => true,
            Self::Count(frame)
            | Self::Sum(_, frame)
            | Self::Min(_, frame)
            | Self::Max(_, frame)
            | Self::CountKnown(_, frame) => matches!(frame, Frame::Rows(..)),
        }
    }

    fn sql(self) -> String {
        match self {
            Self::RowNumber => "row_number()".to_owned(),
            Self::Rank => "rank()".to_owned(),
            Self::DenseRank => "dense_rank()".to_owned(),
            Self::Lag(c, n) => format!("lag(c{c}, {n})"),
            Self::Lead(c, n) => format!("lead(c{c}, {n})"),
            Self::First(c, _) => format!("first_value(c{c})"),
            Self::Last(c, _) => format!("last_value(c{c})"),
            Self::Count(_) => "count(*)".to_owned(),
            Self::Sum(c, _) => format!("sum(c{c})"),
            Self::Min(c, _) => format!("min(c{c})"),
            Self::Max(c, _) => format!("max(c{c})"),
            Self::PercentRank => "percent_rank()".to_owned(),
            Self::CumeDist => "cume_dist()".to_owned(),
            Self::Ntile(n) => format!("ntile({n})"),
            Self::Nth(c, n, _) => format!("nth_value(c{c}, {n})"),
            Self::CountKnown(c, _) => format!("count(*) FILTER (WHERE c{c} IS NOT NULL)"),
        }
    }
}

impl Frame {
    fn draw(tape: &mut Tape<'_>, possible: Possible) -> Self {
        let bound = |tape: &mut Tape<'_>| tape.pick(&[None, Some(0), Some(1), Some(2)]);
        match tape.choose(6) {
            0..=1 => Self::Peers,
            2..=3 => Self::Rows(bound(tape), bound(tape)),
            4 if possible.distance => {
                let far = [Some(0), Some(1), Some(2), Some(50), None];
                Self::Distance(tape.pick(&far), tape.pick(&far))
            }
            4..=5 if possible.groups => Self::Groups(bound(tape), bound(tape)),
            _ => Self::Peers,
        }
    }
}
