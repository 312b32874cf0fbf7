//! Draws a query from a tape.

use crate::data::{constant_of, table_columns, table_names};
use crate::query::nested::draw_nested;
use crate::query::{
    Aggregate, Column, Compare, Expr, JoinKind, Kind, OrderKey, Predicate, Query, SetOperation,
    TopK, Windows,
};
use crate::{Tape, Value};

/// Columns a query may have; more are projected away.
const WIDTH_MAX: usize = 10;

/// The query at the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// Whatever is drawn.
    Any,
    /// A filter.
    Filter,
    /// A projection.
    Project,
    /// A set operation.
    Set,
    /// A join.
    Join,
    /// Groups and aggregates.
    Group,
    /// DISTINCT.
    Distinct,
    /// The first rows.
    TopK,
}

/// A query over the tables of [`crate::draw_epochs`], at most `depth` (1 or more) operators deep on
/// each path. With `planned`, also what only the planner can turn into a circuit: `NOT IN`, and
/// operators that have no incremental form.
pub fn draw_query(tape: &mut Tape<'_>, root: Root, depth: usize, planned: bool) -> Query {
    match root {
        Root::Any => draw(tape, depth, planned),
        Root::Filter => filter(tape, depth, planned),
        Root::Project => project(tape, depth, planned),
        Root::Set => set(tape, depth, planned),
        Root::Join => join(tape, depth, planned),
        Root::Group => group(tape, depth, planned),
        Root::Distinct => distinct(tape, depth, planned),
        Root::TopK => top_k(tape, depth, planned),
    }
    .0
}

pub(super) type Drawn = (Query, Vec<Column>);

pub(super) fn draw(tape: &mut Tape<'_>, depth: usize, planned: bool) -> Drawn {
    if depth == 0 {
        return table(tape);
    }
    match tape.choose(if planned { 22 } else { 14 }) {
        0 => table(tape),
        1 | 2 => filter(tape, depth, planned),
        3 | 4 => project(tape, depth, planned),
        5 => set(tape, depth, planned),
        6..=8 => join(tape, depth, planned),
        9 | 10 => group(tape, depth, planned),
        11 => distinct(tape, depth, planned),
        12 | 13 => top_k(tape, depth, planned),
        14 => grouping_sets(tape, depth),
        15..=17 => draw_nested(tape, depth),
        18 => closure(tape, depth),
        19 => explode(tape, depth),
        _ => {
            let (input, mut columns) = draw(tape, depth - 1, planned);
            let windows = Windows::draw(tape, &mut columns);
            narrowed(Query::Windows(Box::new(input), windows), columns)
        }
    }
}

impl OrderKey {
    /// Up to two keys.
    pub(super) fn draw(tape: &mut Tape<'_>, width: usize) -> Vec<Self> {
        let mut order: Vec<Self> = Vec::new();
        for _ in 0..tape.choose(3) {
            let column = tape.choose(width);
            if order.iter().all(|key| key.column != column) {
                let (descending, nulls_first) = (tape.choose(2) == 1, tape.choose(2) == 1);
                order.push(Self { column, descending, nulls_first });
            }
        }
        order
    }
}

/// Every other column of a query that has too many.
pub(super) fn narrowed(query: Query, columns: Vec<Column>) -> Drawn {
    if columns.len() <= WIDTH_MAX {
        return (query, columns);
    }
    let kept = (0..columns.len()).filter(|c| c % 2 == 0).take(WIDTH_MAX);
    let list: Vec<Expr> = kept.clone().map(Expr::Column).collect();
    (Query::Project(Box::new(query), list), kept.map(|c| columns[c]).collect())
}

fn top_k(tape: &mut Tape<'_>, depth: usize, planned: bool) -> Drawn {
    let (input, mut columns) = draw(tape, depth - 1, planned);
    let order = OrderKey::draw(tape, columns.len());
    let mut partition: Vec<usize> =
        (0..tape.choose(3)).map(|_| tape.choose(columns.len())).collect();
    partition.sort_unstable();
    partition.dedup();
    let offset = tape.pick(&[0, 0, 0, 1, 2]);
    let limit = tape.choose(5);
    let numbered = tape.choose(2) == 1;
    if numbered {
        columns.push(Column { kind: Kind::Int, summable: true });
    }
    (Query::TopK(Box::new(input), TopK { partition, order, offset, limit, numbered }), columns)
}

fn table(tape: &mut Tape<'_>) -> Drawn {
    let name = tape.pick(table_names());
    let columns = table_columns(name);
    let names = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    (Query::Table(name.to_owned(), names), columns.iter().map(|(_, column)| *column).collect())
}

/// Whole numbers, by one of which rows follow each other.
fn closure(tape: &mut Tape<'_>, depth: usize) -> Drawn {
    let (input, columns) = draw(tape, depth - 1, true);
    let numbers: Vec<usize> =
        (0..columns.len()).filter(|&c| columns[c].kind == Kind::Int).collect();
    if numbers.is_empty() {
        return (input, columns);
    }
    let (from, to) = (tape.pick(&numbers), tape.pick(&numbers));
    let shown = vec![columns[from], columns[to]];
    (Query::Closure(Box::new(input), from, to), shown)
}

/// A list of columns of one type.
fn explode(tape: &mut Tape<'_>, depth: usize) -> Drawn {
    let (input, mut columns) = draw(tape, depth - 1, true);
    let c = tape.choose(columns.len());
    let same: Vec<usize> = (0..columns.len()).filter(|&d| columns[d] == columns[c]).collect();
    let list: Vec<usize> = (0..1 + tape.choose(3)).map(|_| tape.pick(&same)).collect();
    columns.push(columns[c]);
    narrowed(Query::Explode(Box::new(input), list), columns)
}

fn distinct(tape: &mut Tape<'_>, depth: usize, planned: bool) -> Drawn {
    let (input, columns) = draw(tape, depth - 1, planned);
    (Query::Distinct(Box::new(input)), columns)
}

fn filter(tape: &mut Tape<'_>, depth: usize, planned: bool) -> Drawn {
    let (input, columns) = draw(tape, depth - 1, planned);
    let condition = predicate(tape, &columns, 2);
    (Query::Filter(Box::new(input), condition), columns)
}

fn predicate(tape: &mut Tape<'_>, columns: &[Column], depth: usize) -> Predicate {
    let choice = tape.choose(if depth == 0 { 5 } else { 8 });
    let c = tape.choose(columns.len());
    let compare = tape.pick(&[Compare::Equal, Compare::NotEqual, Compare::Less, Compare::AtLeast]);
    match choice {
        0..=2 => Predicate::Constant(c, compare, constant_of(tape, columns[c])),
        3 => Predicate::IsNull(c),
        4 => {
            let same: Vec<usize> =
                (0..columns.len()).filter(|&d| columns[d].kind == columns[c].kind).collect();
            Predicate::Columns(c, compare, tape.pick(&same))
        }
        5 => Predicate::Not(Box::new(predicate(tape, columns, depth - 1))),
        n => {
            let a = Box::new(predicate(tape, columns, depth - 1));
            let b = Box::new(predicate(tape, columns, depth - 1));
            if n == 6 { Predicate::And(a, b) } else { Predicate::Or(a, b) }
        }
    }
}

fn project(tape: &mut Tape<'_>, depth: usize, planned: bool) -> Drawn {
    let (input, columns) = draw(tape, depth - 1, planned);
    let width = 1 + tape.choose(columns.len().min(5));
    let (expressions, out) = (0..width).map(|_| expression(tape, &columns)).unzip();
    (Query::Project(Box::new(input), expressions), out)
}

fn expression(tape: &mut Tape<'_>, columns: &[Column]) -> (Expr, Column) {
    let c = tape.choose(columns.len());
    let column = columns[c];
    match tape.choose(8) {
        3 => {
            let value = Value::Int(7);
            (Expr::Constant(value), Column { kind: Kind::Int, summable: true })
        }
        4 if column.kind == Kind::Int && column.summable => (Expr::Plus(c, 3), column),
        4 if column.kind == Kind::Float && column.summable => (Expr::Double(c), column),
        5 => (Expr::Coalesce(c, constant_of(tape, column)), column),
        6 => {
            let same: Vec<usize> = (0..columns.len()).filter(|&d| columns[d] == column).collect();
            let other = tape.pick(&same);
            (Expr::Case(Box::new(predicate(tape, columns, 1)), c, other), column)
        }
        _ => (Expr::Column(c), column),
    }
}

fn set(tape: &mut Tape<'_>, depth: usize, planned: bool) -> Drawn {
    let operation = tape.pick(&[
        SetOperation::UnionAll,
        SetOperation::UnionAll,
        SetOperation::Union,
        SetOperation::Intersect,
        SetOperation::Except,
    ]);
    let left = draw(tape, depth - 1, planned);
    let right = draw(tape, depth - 1, planned);
    // Both sides by columns of kinds that both have; a constant when there are none.
    let mut pairs = Vec::new();
    let mut used = vec![false; right.1.len()];
    for (l, column) in left.1.iter().enumerate().take(4) {
        if let Some(r) = (0..right.1.len()).find(|&r| !used[r] && right.1[r].kind == column.kind) {
            used[r] = true;
            pairs.push((l, r));
        }
    }
    let out: Vec<Column> = pairs
        .iter()
        .map(|&(l, r)| Column {
            kind: left.1[l].kind,
            summable: left.1[l].summable && right.1[r].summable,
        })
        .collect();
    let side = |query: Query, columns: Vec<usize>| {
        let mut list: Vec<Expr> = columns.into_iter().map(Expr::Column).collect();
        if list.is_empty() {
            list.push(Expr::Constant(Value::Int(1)));
        }
        Box::new(Query::Project(Box::new(query), list))
    };
    let l = side(left.0, pairs.iter().map(|&(l, _)| l).collect());
    let r = side(right.0, pairs.iter().map(|&(_, r)| r).collect());
    let out = if out.is_empty() { vec![Column { kind: Kind::Int, summable: true }] } else { out };
    (Query::Set(operation, l, r), out)
}

fn join(tape: &mut Tape<'_>, depth: usize, planned: bool) -> Drawn {
    let kinds = [
        JoinKind::Inner,
        JoinKind::Inner,
        JoinKind::Left,
        JoinKind::Semi,
        JoinKind::Anti,
        JoinKind::Right,
        JoinKind::Full,
        JoinKind::NotIn,
    ];
    let kind = tape.pick(if planned { &kinds } else { &kinds[..7] });
    let (left, left_columns) = draw(tape, depth - 1, planned);
    let (right, right_columns) = draw(tape, depth - 1, planned);
    let pairs: Vec<(usize, usize)> = (0..left_columns.len())
        .flat_map(|l| (0..right_columns.len()).map(move |r| (l, r)))
        .filter(|&(l, r)| left_columns[l].kind == right_columns[r].kind)
        .collect();
    if pairs.is_empty() {
        return (left, left_columns);
    }
    let (l, r) = tape.pick(&pairs);
    let query = Query::Join(kind, Box::new(left), Box::new(right), l, r);
    if matches!(kind, JoinKind::Semi | JoinKind::Anti | JoinKind::NotIn) {
        return (query, left_columns);
    }
    narrowed(query, left_columns.into_iter().chain(right_columns).collect())
}

fn group(tape: &mut Tape<'_>, depth: usize, planned: bool) -> Drawn {
    let (input, columns) = draw(tape, depth - 1, planned);
    let mut keys: Vec<usize> = (0..tape.choose(3)).map(|_| tape.choose(columns.len())).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut out: Vec<Column> = keys.iter().map(|&key| columns[key]).collect();
    let mut aggregates = Vec::new();
    for _ in 0..=tape.choose(3) {
        let (aggregate, column) = aggregate(tape, &columns, planned);
        aggregates.push(aggregate);
        out.push(column);
    }
    (Query::Group(Box::new(input), keys, aggregates), out)
}

fn grouping_sets(tape: &mut Tape<'_>, depth: usize) -> Drawn {
    let (Query::Group(input, keys, aggregates), columns) = group(tape, depth, true) else {
        return table(tape);
    };
    // Each key is in one of them at least.
    let mut sets: Vec<Vec<usize>> = vec![(0..keys.len()).collect()];
    for _ in 0..tape.choose(3) {
        sets.push((0..keys.len()).filter(|_| tape.choose(2) == 1).collect());
    }
    (Query::GroupingSets(input, keys, sets, aggregates), columns)
}

pub(super) fn aggregate(
    tape: &mut Tape<'_>,
    columns: &[Column],
    planned: bool,
) -> (Aggregate, Column) {
    let c = tape.choose(columns.len());
    let column = columns[c];
    let count = Column { kind: Kind::Int, summable: true };
    let numeric = matches!(column.kind, Kind::Int | Kind::Float);
    match tape.choose(if planned { 15 } else { 8 }) {
        1 => (Aggregate::Count(c), count),
        2 => (Aggregate::CountDistinct(c), count),
        3 | 4 if column.summable && (numeric || column.kind == Kind::Decimal) => {
            let kind = match column.kind {
                Kind::Decimal => Kind::DecimalSum,
                other => other,
            };
            (Aggregate::Sum(c), Column { kind, summable: false })
        }
        5 if column.summable && numeric => {
            (Aggregate::Avg(c), Column { kind: Kind::Float, summable: false })
        }
        6 => (Aggregate::Min(c), column),
        7 => (Aggregate::Max(c), column),
        8 if column.kind == Kind::Int => {
            (Aggregate::BitXor(c), Column { kind: Kind::Int, summable: false })
        }
        9 => (Aggregate::First(c), column),
        10 if column.kind == Kind::Int => {
            (Aggregate::BitAnd(c), Column { kind: Kind::Int, summable: false })
        }
        11 if column.kind == Kind::Int => {
            (Aggregate::BitOr(c), Column { kind: Kind::Int, summable: false })
        }
        12 if column.kind == Kind::Int && column.summable => {
            (Aggregate::SumDistinct(c), Column { kind: Kind::Int, summable: false })
        }
        13 => (Aggregate::CountNull(c), count),
        14 if column.kind == Kind::Text => (Aggregate::Joined(c), column),
        _ => (Aggregate::CountRows, count),
    }
}
