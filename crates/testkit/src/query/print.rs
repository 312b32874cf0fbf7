//! A query as SQL text.

use crate::Value;
use crate::query::{
    Aggregate, Compare, Expr, JoinKind, OrderKey, Predicate, Query, SetOperation, TopK,
};

impl Query {
    /// SQL text.
    pub fn sql(&self) -> String {
        match self {
            Self::Table(name, columns) => {
                let list: Vec<String> =
                    columns.iter().enumerate().map(|(i, c)| format!("{c} AS c{i}")).collect();
                format!("SELECT {} FROM {name}", list.join(", "))
            }
            Self::Filter(input, condition) => {
                format!("SELECT * FROM ({}) AS q WHERE {}", input.sql(), condition.sql(""))
            }
            Self::Project(input, expressions) => {
                let list: Vec<String> = expressions
                    .iter()
                    .enumerate()
                    .map(|(i, e)| format!("{} AS c{i}", e.sql()))
                    .collect();
                format!("SELECT {} FROM ({}) AS q", list.join(", "), input.sql())
            }
            Self::Set(operation, left, right) => {
                let word = match operation {
                    SetOperation::UnionAll => "UNION ALL",
                    SetOperation::Union => "UNION",
                    SetOperation::Intersect => "INTERSECT",
                    SetOperation::Except => "EXCEPT",
                };
                let side = |q: &Self| format!("SELECT * FROM ({}) AS q", q.sql());
                format!("{} {word} {}", side(left), side(right))
            }
            Self::Join(kind, left, right, l, r) => join_sql(*kind, left, right, *l, *r),
            Self::Group(input, keys, aggregates) => group_sql(input, keys, aggregates),
            Self::Distinct(input) => format!("SELECT DISTINCT * FROM ({}) AS q", input.sql()),
            Self::GroupingSets(input, keys, sets, aggregates) => {
                let select = select_sql(input, keys, aggregates);
                let set = |set: &Vec<usize>| {
                    let keys: Vec<String> =
                        set.iter().map(|&at| format!("q.c{}", keys[at])).collect();
                    format!("({})", keys.join(", "))
                };
                let sets: Vec<String> = sets.iter().map(set).collect();
                format!("{select} GROUP BY GROUPING SETS ({})", sets.join(", "))
            }
            Self::Windows(input, windows) => windows.sql(&input.sql(), input.width()),
            Self::TopK(input, top) => top_k_sql(input, top),
            Self::Nested(left, right, nested) => nested.sql(left, right),
            Self::Closure(input, from, to) => {
                let input = input.sql();
                // A name of its own: DataFusion refuses a WITH query within one of the same name.
                let walk = format!("walk{}", input.matches("WITH RECURSIVE").count());
                format!(
                    "WITH RECURSIVE {walk} AS (SELECT c{from} AS c0, c{to} AS c1 FROM ({input}) AS q \
                     UNION SELECT w.c0, q.c{to} FROM {walk} AS w JOIN ({input}) AS q \
                     ON w.c1 = q.c{from}) SELECT c0, c1 FROM {walk}"
                )
            }
            Self::Explode(input, list) => {
                let list: Vec<String> = list.iter().map(|c| format!("c{c}")).collect();
                format!(
                    "SELECT q.*, unnest(make_array({})) AS c{} FROM ({}) AS q",
                    list.join(", "),
                    input.width(),
                    input.sql()
                )
            }
        }
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        match self {
            Self::Table(_, columns) => columns.len(),
            Self::Filter(input, _) | Self::Distinct(input) => input.width(),
            Self::TopK(input, top) => input.width() + usize::from(top.numbered),
            Self::Project(_, expressions) => expressions.len(),
            Self::Set(_, left, _) => left.width(),
            Self::Join(kind, left, right, ..) => match kind {
                JoinKind::Semi | JoinKind::Anti | JoinKind::NotIn => left.width(),
                JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full => {
                    left.width() + right.width()
                }
            },
            Self::Group(_, keys, aggregates) | Self::GroupingSets(_, keys, _, aggregates) => {
                keys.len() + aggregates.len()
            }
            Self::Windows(input, windows) => input.width() + windows.calls.len(),
            Self::Nested(left, right, nested) => nested.width(left.width(), right.width()),
            Self::Closure(..) => 2,
            Self::Explode(input, _) => input.width() + 1,
        }
    }
}

fn join_sql(kind: JoinKind, left: &Query, right: &Query, l: usize, r: usize) -> String {
    let (a, b) = (left.sql(), right.sql());
    let word = match kind {
        JoinKind::Inner => "INNER",
        JoinKind::Left => "LEFT",
        JoinKind::Right => "RIGHT",
        JoinKind::Full => "FULL",
        JoinKind::Semi | JoinKind::Anti => {
            let not = if kind == JoinKind::Anti { "NOT " } else { "" };
            return format!(
                "SELECT * FROM ({a}) AS l WHERE {not}EXISTS \
                 (SELECT 1 FROM ({b}) AS r WHERE r.c{r} = l.c{l})"
            );
        }
        JoinKind::NotIn => {
            return format!(
                "SELECT * FROM ({a}) AS l WHERE l.c{l} NOT IN (SELECT r.c{r} FROM ({b}) AS r)"
            );
        }
    };
    let width = left.width();
    let mine = (0..width).map(|i| format!("l.c{i} AS c{i}"));
    let its = (0..right.width()).map(|i| format!("r.c{i} AS c{}", width + i));
    let list: Vec<String> = mine.chain(its).collect();
    format!("SELECT {} FROM ({a}) AS l {word} JOIN ({b}) AS r ON l.c{l} = r.c{r}", list.join(", "))
}

fn group_sql(input: &Query, keys: &[usize], aggregates: &[Aggregate]) -> String {
    let select = select_sql(input, keys, aggregates);
    if keys.is_empty() {
        return select;
    }
    let keys: Vec<String> = keys.iter().map(|key| format!("q.c{key}")).collect();
    format!("{select} GROUP BY {}", keys.join(", "))
}

/// Keys and aggregates, without GROUP BY.
fn select_sql(input: &Query, keys: &[usize], aggregates: &[Aggregate]) -> String {
    let mut list: Vec<String> =
        keys.iter().enumerate().map(|(i, key)| format!("q.c{key} AS c{i}")).collect();
    for (i, aggregate) in aggregates.iter().enumerate() {
        list.push(format!("{} AS c{}", aggregate.sql(input.width()), keys.len() + i));
    }
    format!("SELECT {} FROM ({}) AS q", list.join(", "), input.sql())
}

/// With LIMIT where it can say it, else by the row number.
fn top_k_sql(input: &Query, top: &TopK) -> String {
    let (width, sql) = (input.width(), input.sql());
    // Columns that nobody reads are pruned, so that SQL must name all of them to break ties alike.
    let mut keys = key_list(&top.order);
    keys.push(order_by(width));
    let order = format!(" ORDER BY {}", keys.join(", "));
    let TopK { offset, limit, .. } = top;
    if top.partition.is_empty() && !top.numbered {
        return format!("SELECT * FROM ({sql}) AS q{order} LIMIT {limit} OFFSET {offset}");
    }
    let partition: Vec<String> = top.partition.iter().map(|column| format!("c{column}")).collect();
    let partition = match partition.is_empty() {
        true => String::new(),
        false => format!("PARTITION BY {}", partition.join(", ")),
    };
    let shown: Vec<String> =
        (0..width + usize::from(top.numbered)).map(|column| format!("c{column}")).collect();
    format!(
        "SELECT {} FROM (SELECT q.*, row_number() OVER ({partition}{order}) AS c{width} \
         FROM ({sql}) AS q) AS r WHERE c{width} > {offset} AND c{width} <= {}",
        shown.join(", "),
        offset + limit
    )
}

pub(super) fn key_list(order: &[OrderKey]) -> Vec<String> {
    let key = |key: &OrderKey| {
        let direction = if key.descending { "DESC" } else { "ASC" };
        let nulls = if key.nulls_first { "FIRST" } else { "LAST" };
        format!("c{} {direction} NULLS {nulls}", key.column)
    };
    order.iter().map(key).collect()
}

/// All columns, as keys.
pub(super) fn order_by(width: usize) -> String {
    let list: Vec<String> = (0..width).map(|i| format!("c{i} ASC NULLS FIRST")).collect();
    list.join(", ")
}

impl Aggregate {
    /// A call over the columns of `q`, of which there are `width`.
    pub(super) fn sql(&self, width: usize) -> String {
        match self {
            Self::CountRows => "count(*)".to_owned(),
            Self::Count(c) => format!("count(q.c{c})"),
            Self::CountDistinct(c) => format!("count(DISTINCT q.c{c})"),
            Self::Sum(c) => format!("sum(q.c{c})"),
            Self::Avg(c) => format!("avg(q.c{c})"),
            Self::Min(c) => format!("min(q.c{c})"),
            Self::Max(c) => format!("max(q.c{c})"),
            Self::BitXor(c) => format!("bit_xor(q.c{c})"),
            Self::First(c) => format!("first_value(q.c{c} ORDER BY {})", order_by(width)),
            Self::BitAnd(c) => format!("bit_and(q.c{c})"),
            Self::BitOr(c) => format!("bit_or(q.c{c})"),
            Self::SumDistinct(c) => format!("sum(DISTINCT q.c{c})"),
            Self::CountNull(c) => format!("count(*) FILTER (WHERE q.c{c} IS NULL)"),
            Self::Joined(c) => format!("string_agg(q.c{c}, ',' ORDER BY {})", order_by(width)),
        }
    }
}

impl Expr {
    fn sql(&self) -> String {
        match self {
            Self::Column(c) => format!("c{c}"),
            Self::Constant(value) => constant(value),
            Self::Plus(c, by) => format!("c{c} + {by}"),
            Self::Double(c) => format!("c{c} * 2.0"),
            Self::Coalesce(c, value) => format!("coalesce(c{c}, {})", constant(value)),
            Self::Case(condition, a, b) => {
                format!("CASE WHEN {} THEN c{a} ELSE c{b} END", condition.sql(""))
            }
        }
    }
}

impl Predicate {
    /// SQL text; `of` goes before each column.
    pub fn sql(&self, of: &str) -> String {
        match self {
            Self::Constant(c, compare, value) => {
                format!("{of}c{c} {} {}", compare.sql(), constant(value))
            }
            Self::Columns(a, compare, b) => format!("{of}c{a} {} {of}c{b}", compare.sql()),
            Self::IsNull(c) => format!("{of}c{c} IS NULL"),
            Self::And(a, b) => format!("({} AND {})", a.sql(of), b.sql(of)),
            Self::Or(a, b) => format!("({} OR {})", a.sql(of), b.sql(of)),
            Self::Not(a) => format!("(NOT {})", a.sql(of)),
        }
    }
}

impl Compare {
    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::AtLeast => ">=",
        }
    }
}

fn constant(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => format!("CAST({i} AS BIGINT)"),
        Value::Float(f) => format!("CAST('{f}' AS DOUBLE)"),
        Value::Decimal(unscaled, scale) => {
            let factor = 10_i128.pow(u32::from(scale.unsigned_abs()));
            let (sign, size) = (if *unscaled < 0 { "-" } else { "" }, unscaled.unsigned_abs());
            let factor = factor.unsigned_abs();
            format!("CAST('{sign}{}.{:02}' AS DECIMAL(12, 2))", size / factor, size % factor)
        }
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Date(days) => format!("CAST({days} AS DATE)"),
        Value::Timestamp(_) | Value::Other(_) => "NULL".to_owned(),
    }
}
