//! A query evaluated by its definition, over sorted maps.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::query::{
    Aggregate, Compare, Expr, JoinKind, OrderKey, Predicate, Query, SetOperation, TopK,
};
use crate::{Bag, Row, Value, add_bag, add_row};

impl Query {
    /// The result over `tables`.
    pub fn eval(&self, tables: &BTreeMap<String, Bag>) -> Bag {
        let mut out = Bag::new();
        match self {
            Self::Table(name, _) => out = tables.get(name).cloned().unwrap_or_default(),
            Self::Filter(input, condition) => {
                out = input.eval(tables);
                out.retain(|row, _| condition.eval(row) == Some(true));
            }
            Self::Project(input, expressions) => {
                for (row, n) in input.eval(tables) {
                    add_row(&mut out, expressions.iter().map(|e| e.eval(&row)).collect(), n);
                }
            }
            Self::Set(operation, left, right) => {
                out = set(*operation, left.eval(tables), &right.eval(tables));
            }
            Self::Join(kind, left, right, l, r) => {
                let widths = (left.width(), right.width());
                out = join(*kind, &left.eval(tables), &right.eval(tables), *l, *r, widths);
            }
            Self::Group(input, keys, aggregates) => {
                out = group(&input.eval(tables), keys, aggregates);
            }
            Self::Distinct(input) => {
                out = input.eval(tables);
                out.values_mut().for_each(|n| *n = 1);
            }
            Self::GroupingSets(input, keys, sets, aggregates) => {
                out = grouping_sets(&input.eval(tables), keys, sets, aggregates);
            }
            Self::Windows(input, windows) => out = windows.eval(&input.eval(tables)),
            Self::TopK(input, top) => out = top_k(&input.eval(tables), top),
            Self::Nested(left, right, nested) => {
                let widths = (left.width(), right.width());
                out = nested.eval(&left.eval(tables), &right.eval(tables), widths);
            }
            Self::Closure(input, from, to) => out = closure(&input.eval(tables), *from, *to),
            Self::Explode(input, list) => {
                for (row, n) in input.eval(tables) {
                    for c in list {
                        add_row(&mut out, row.iter().chain([&row[*c]]).cloned().collect(), n);
                    }
                }
            }
        }
        out
    }
}

fn set(operation: SetOperation, left: Bag, right: &Bag) -> Bag {
    let mut out = left;
    match operation {
        SetOperation::UnionAll => {
            add_bag(&mut out, right);
            return out;
        }
        SetOperation::Union => add_bag(&mut out, right),
        SetOperation::Intersect => out.retain(|row, _| right.contains_key(row)),
        SetOperation::Except => out.retain(|row, _| !right.contains_key(row)),
    }
    out.values_mut().for_each(|n| *n = 1);
    out
}

fn join(
    kind: JoinKind,
    left: &Bag,
    right: &Bag,
    l: usize,
    r: usize,
    (left_width, right_width): (usize, usize),
) -> Bag {
    let mut out = Bag::new();
    let matches = |a: &Row, b: &Row| !a[l].is_null() && a[l] == b[r];
    let pair = |a: &[Value], b: &[Value]| -> Row { a.iter().chain(b).cloned().collect() };
    for (a, n) in left {
        let found: Vec<(&Row, &i64)> = right.iter().filter(|(b, _)| matches(a, b)).collect();
        match kind {
            JoinKind::Semi if !found.is_empty() => add_row(&mut out, a.clone(), *n),
            JoinKind::Anti if found.is_empty() => add_row(&mut out, a.clone(), *n),
            JoinKind::NotIn => {
                let unknown = a[l].is_null() || right.keys().any(|b| b[r].is_null());
                if right.is_empty() || (found.is_empty() && !unknown) {
                    add_row(&mut out, a.clone(), *n);
                }
            }
            JoinKind::Semi | JoinKind::Anti => {}
            JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full => {
                for (b, m) in &found {
                    add_row(&mut out, pair(a, b), n * *m);
                }
                if found.is_empty() && matches!(kind, JoinKind::Left | JoinKind::Full) {
                    add_row(&mut out, pair(a, &vec![Value::Null; right_width]), *n);
                }
            }
        }
    }
    if matches!(kind, JoinKind::Right | JoinKind::Full) {
        for (b, m) in right.iter().filter(|(b, _)| !left.keys().any(|a| matches(a, b))) {
            add_row(&mut out, pair(&vec![Value::Null; left_width], b), *m);
        }
    }
    out
}

fn group(input: &Bag, keys: &[usize], aggregates: &[Aggregate]) -> Bag {
    let mut groups: BTreeMap<Row, Vec<(&Row, i64)>> = BTreeMap::new();
    if keys.is_empty() {
        groups.insert(Row::new(), Vec::new());
    }
    for (row, n) in input {
        let key = keys.iter().map(|&key| row[key].clone()).collect();
        groups.entry(key).or_default().push((row, *n));
    }
    let mut out = Bag::new();
    for (mut key, rows) in groups {
        key.extend(aggregates.iter().map(|aggregate| aggregate.eval(&rows)));
        add_row(&mut out, key, 1);
    }
    out
}

fn grouping_sets(
    input: &Bag,
    keys: &[usize],
    sets: &[Vec<usize>],
    aggregates: &[Aggregate],
) -> Bag {
    let mut out = Bag::new();
    for set in sets {
        let kept: Vec<usize> = set.iter().map(|&at| keys[at]).collect();
        for (row, n) in group(input, &kept, aggregates) {
            let key = |at: usize| match set.iter().position(|&other| other == at) {
                Some(place) => row[place].clone(),
                None => Value::Null,
            };
            let keys = (0..keys.len()).map(key);
            add_row(&mut out, keys.chain(row[set.len()..].iter().cloned()).collect(), n);
        }
    }
    out
}

/// How two rows compare in an order.
pub(super) fn by_order(order: &[OrderKey], a: &Row, b: &Row) -> Ordering {
    let keys = order.iter().map(|key| {
        let (a, b) = (&a[key.column], &b[key.column]);
        match (a.is_null(), b.is_null()) {
            (false, false) if key.descending => b.cmp(a),
            (false, false) => a.cmp(b),
            (a, b) if key.nulls_first => b.cmp(&a),
            (a, b) => a.cmp(&b),
        }
    });
    keys.fold(Ordering::Equal, Ordering::then)
}

fn top_k(input: &Bag, top: &TopK) -> Bag {
    let mut groups: BTreeMap<Vec<&Value>, Vec<&Row>> = BTreeMap::new();
    for (row, n) in input {
        let key = top.partition.iter().map(|&column| &row[column]).collect();
        groups.entry(key).or_default().extend((0..*n).map(|_| row));
    }
    let mut out = Bag::new();
    for mut rows in groups.into_values() {
        rows.sort_by(|a, b| by_order(&top.order, a, b).then_with(|| a.cmp(b)));
        let places = rows.into_iter().enumerate().skip(top.offset).take(top.limit);
        for (place, row) in places {
            let mut row = row.clone();
            if top.numbered {
                row.push(Value::Int(i128::try_from(place + 1).unwrap_or(i128::MAX)));
            }
            add_row(&mut out, row, 1);
        }
    }
    out
}

fn closure(input: &Bag, from: usize, to: usize) -> Bag {
    let mut pairs: BTreeSet<Row> =
        input.keys().map(|row| vec![row[from].clone(), row[to].clone()]).collect();
    loop {
        let next = |pair: &Row| {
            let follow = input.keys().filter(|row| !row[from].is_null() && row[from] == pair[1]);
            follow.map(|row| vec![pair[0].clone(), row[to].clone()]).collect::<Vec<Row>>()
        };
        let reached: Vec<Row> = pairs.iter().flat_map(next).collect();
        let before = pairs.len();
        pairs.extend(reached);
        if pairs.len() == before {
            return pairs.into_iter().map(|pair| (pair, 1)).collect();
        }
    }
}

impl Aggregate {
    pub(super) fn eval(&self, rows: &[(&Row, i64)]) -> Value {
        let column = |c: usize| {
            rows.iter().map(move |(row, n)| (&row[c], *n)).filter(|(value, _)| !value.is_null())
        };
        let count = |c: usize| column(c).map(|(_, n)| i128::from(n)).sum::<i128>();
        match *self {
            Self::CountRows => Value::Int(rows.iter().map(|(_, n)| i128::from(*n)).sum()),
            Self::Count(c) => Value::Int(count(c)),
            Self::CountDistinct(c) => {
                let distinct: BTreeSet<&Value> = column(c).map(|(value, _)| value).collect();
                Value::Int(i128::try_from(distinct.len()).unwrap_or(i128::MAX))
            }
            Self::Sum(c) => sum(column(c)),
            Self::Avg(c) => average(&sum(column(c)), count(c)),
            Self::Min(c) => column(c).map(|(value, _)| value.clone()).min().unwrap_or(Value::Null),
            Self::Max(c) => column(c).map(|(value, _)| value.clone()).max().unwrap_or(Value::Null),
            Self::BitXor(c) => column(c).fold(Value::Null, |all, (value, n)| match (all, value) {
                (Value::Null, Value::Int(v)) => Value::Int(v * i128::from(n % 2)),
                (Value::Int(all), Value::Int(v)) => Value::Int(all ^ (v * i128::from(n % 2))),
                (all, _) => all,
            }),
            Self::BitAnd(c) | Self::BitOr(c) => {
                column(c).fold(Value::Null, |all, (value, _)| match (all, value) {
                    (Value::Int(all), Value::Int(v)) => Value::Int(match self {
                        Self::BitAnd(_) => all & v,
                        _ => all | v,
                    }),
                    (Value::Null, value) => value.clone(),
                    (all, _) => all,
                })
            }
            Self::SumDistinct(c) => {
                let distinct: BTreeSet<&Value> = column(c).map(|(value, _)| value).collect();
                sum(distinct.into_iter().map(|value| (value, 1)))
            }
            Self::CountNull(c) => {
                let null = rows.iter().filter(|(row, _)| row[c].is_null());
                Value::Int(null.map(|(_, n)| i128::from(*n)).sum())
            }
            Self::Joined(c) => {
                let texts = column(c).flat_map(|(value, n)| (0..n).map(move |_| value));
                let texts: Vec<&str> = texts
                    .map(|value| match value {
                        Value::Text(text) => text.as_str(),
                        _ => "",
                    })
                    .collect();
                if texts.is_empty() { Value::Null } else { Value::Text(texts.join(",")) }
            }
            Self::First(c) => rows.first().map_or(Value::Null, |(row, _)| row[c].clone()),
        }
    }
}

/// Floats are drawn so that every partial sum is exact.
pub(super) fn sum<'a>(values: impl Iterator<Item = (&'a Value, i64)>) -> Value {
    let mut total = Value::Null;
    for (value, n) in values {
        total = match (total, value) {
            (Value::Null, Value::Int(v)) => Value::Int(v * i128::from(n)),
            (Value::Int(t), Value::Int(v)) => Value::Int(t + v * i128::from(n)),
            (Value::Null, Value::Decimal(v, s)) => Value::Decimal(v * i128::from(n), *s),
            (Value::Decimal(t, s), Value::Decimal(v, _)) => {
                Value::Decimal(t + v * i128::from(n), s)
            }
            (Value::Null, Value::Float(v)) => Value::Float(v * times(n)),
            (Value::Float(t), Value::Float(v)) => Value::Float(t + v * times(n)),
            (total, _) => total,
        };
    }
    total
}

fn average(sum: &Value, count: i128) -> Value {
    let count = times(i64::try_from(count).unwrap_or(i64::MAX));
    match sum {
        Value::Int(sum) => Value::Float(times(i64::try_from(*sum).unwrap_or(i64::MAX)) / count),
        Value::Float(sum) => Value::Float(sum / count),
        _ => Value::Null,
    }
}

/// Exact for the small numbers that are drawn.
fn times(n: i64) -> f64 {
    n.to_string().parse().unwrap_or(f64::NAN)
}

impl Expr {
    /// The value for a row.
    pub fn eval(&self, row: &Row) -> Value {
        match self {
            Self::Column(c) => row[*c].clone(),
            Self::Constant(value) => value.clone(),
            Self::Plus(c, by) => match &row[*c] {
                Value::Int(i) => Value::Int(i + i128::from(*by)),
                _ => Value::Null,
            },
            Self::Double(c) => match &row[*c] {
                Value::Float(f) => Value::Float(f * 2.0),
                _ => Value::Null,
            },
            Self::Coalesce(c, value) if row[*c].is_null() => value.clone(),
            Self::Coalesce(c, _) => row[*c].clone(),
            Self::Case(condition, a, b) => {
                row[if condition.eval(row) == Some(true) { *a } else { *b }].clone()
            }
        }
    }
}

impl Predicate {
    /// TRUE, FALSE or (`None`) unknown for a row.
    pub fn eval(&self, row: &Row) -> Option<bool> {
        match self {
            Self::Constant(c, compare, value) => compare.eval(&row[*c], value),
            Self::Columns(a, compare, b) => compare.eval(&row[*a], &row[*b]),
            Self::IsNull(c) => Some(row[*c].is_null()),
            Self::And(a, b) => match (a.eval(row), b.eval(row)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Self::Or(a, b) => match (a.eval(row), b.eval(row)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Self::Not(a) => a.eval(row).map(|b| !b),
        }
    }
}

impl Compare {
    pub(super) fn eval(self, a: &Value, b: &Value) -> Option<bool> {
        if a.is_null() || b.is_null() {
            return None;
        }
        Some(match self {
            Self::Equal => a == b,
            Self::NotEqual => a != b,
            Self::Less => a < b,
            Self::AtLeast => a >= b,
        })
    }
}
