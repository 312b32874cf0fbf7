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
}

/// Which rows of a partition a function reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// All up to the current row and its peers; all, without an order.
    Peers,
    /// So many rows before and after the current one; `None`: all.
    Rows(Option<usize>, Option<usize>),
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
        let mut calls = Vec::new();
        for _ in 0..=tape.choose(3) {
            let (call, column) = WindowCall::draw(tape, &input);
            calls.push(call);
            columns.push(column);
        }
        Self { partition, order, calls }
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
            if let Some(Frame::Rows(before, after)) = call.frame() {
                let bound = |rows: Option<usize>, word: &str| match rows {
                    Some(rows) => format!("{rows} {word}"),
                    None => format!("UNBOUNDED {word}"),
                };
                let (before, after) = (bound(before, "PRECEDING"), bound(after, "FOLLOWING"));
                over.push(format!("ROWS BETWEEN {before} AND {after}"));
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
        let frame = |frame: Frame| match frame {
            Frame::Rows(before, after) => {
                let start = before.map_or(0, |before| at.saturating_sub(before));
                let end = after.map_or(rows.len(), |after| (at + after + 1).min(rows.len()));
                &rows[start..end]
            }
            Frame::Peers if call.sees_ties() => {
                let end = (at..rows.len()).take_while(|&other| rows[other] == rows[at]).count();
                &rows[..at + end]
            }
            Frame::Peers => {
                let end = (at..rows.len()).take_while(|&other| !is_before(at, other)).count();
                &rows[..at + end]
            }
        };
        let known = |c: usize, of: Frame| {
            frame(of).iter().map(move |row| &row[c]).filter(|value| !value.is_null())
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
            WindowCall::First(c, of) => frame(of)[0][c].clone(),
            WindowCall::Last(c, of) => frame(of)[frame(of).len() - 1][c].clone(),
            WindowCall::Count(of) => number(frame(of).len()),
            WindowCall::Sum(c, of) => sum(known(c, of).map(|value| (value, 1))),
            WindowCall::Min(c, of) => known(c, of).min().cloned().unwrap_or(Value::Null),
            WindowCall::Max(c, of) => known(c, of).max().cloned().unwrap_or(Value::Null),
        }
    }
}

impl WindowCall {
    fn draw(tape: &mut Tape<'_>, columns: &[Column]) -> (Self, Column) {
        let c = tape.choose(columns.len());
        let column = columns[c];
        let count = Column { kind: Kind::Int, summable: true };
        match tape.choose(11) {
            0 => (Self::RowNumber, count),
            1 => (Self::Rank, count),
            2 => (Self::DenseRank, count),
            3 => (Self::Lag(c, 1 + tape.choose(2)), column),
            4 => (Self::Lead(c, 1 + tape.choose(2)), column),
            5 => (Self::First(c, Frame::draw(tape)), column),
            6 => (Self::Last(c, Frame::draw(tape)), column),
            7 if column.summable && matches!(column.kind, Kind::Int | Kind::Decimal) => {
                let kind = match column.kind {
                    Kind::Decimal => Kind::DecimalSum,
                    other => other,
                };
                (Self::Sum(c, Frame::draw(tape)), Column { kind, summable: false })
            }
            8 => (Self::Min(c, Frame::draw(tape)), column),
            9 => (Self::Max(c, Frame::draw(tape)), column),
            _ => (Self::Count(Frame::draw(tape)), count),
        }
    }

    fn frame(self) -> Option<Frame> {
        match self {
            Self::First(_, frame)
            | Self::Last(_, frame)
            | Self::Count(frame)
            | Self::Sum(_, frame)
            | Self::Min(_, frame)
            | Self::Max(_, frame) => Some(frame),
            Self::RowNumber | Self::Rank | Self::DenseRank | Self::Lag(_, _) | Self::Lead(_, _) => {
                None
            }
        }
    }

    /// The order of ties shows in the value.
    fn sees_ties(self) -> bool {
        match self {
            Self::Rank | Self::DenseRank => false,
            Self::RowNumber
            | Self::Lag(_, _)
            | Self::Lead(_, _)
            | Self::First(_, _)
            | Self::Last(_, _) => true,
            Self::Count(frame)
            | Self::Sum(_, frame)
            | Self::Min(_, frame)
            | Self::Max(_, frame) => frame != Frame::Peers,
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
        }
    }
}

impl Frame {
    fn draw(tape: &mut Tape<'_>) -> Self {
        let bound = |tape: &mut Tape<'_>| tape.pick(&[None, Some(0), Some(1), Some(2)]);
        match tape.choose(2) {
            0 => Self::Peers,
            _ => Self::Rows(bound(tape), bound(tape)),
        }
    }
}
