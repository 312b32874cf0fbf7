//! [`Query`]: a query that is drawn at random, printed as SQL and evaluated naively.

mod draw;
mod eval;
mod nested;
mod print;
mod window;

pub use draw::{Root, draw_query};
pub use nested::{Form, Nested};
pub use window::{Frame, WindowCall, Windows};

use crate::Value;

/// Type of a column, as far as drawing a query needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// BIGINT.
    Int,
    /// DOUBLE.
    Float,
    /// TEXT.
    Text,
    /// DECIMAL(12, 2).
    Decimal,
    /// A sum of such, with more digits: another type, which no column of the first kind meets.
    DecimalSum,
    /// DATE.
    Date,
}

/// A column of a query's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its type.
    pub kind: Kind,
    /// Small enough to be added up without overflow or rounding.
    pub summable: bool,
}

/// A scalar expression over one row.
#[derive(Debug, Clone)]
pub enum Expr {
    /// A column.
    Column(usize),
    /// A constant.
    Constant(Value),
    /// Integer column plus constant.
    Plus(usize, i64),
    /// Float column times two.
    Double(usize),
    /// First argument that is not NULL.
    Coalesce(usize, Value),
    /// `CASE WHEN p THEN a ELSE b END`.
    Case(Box<Predicate>, usize, usize),
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `>=`
    AtLeast,
}

/// A condition, three-valued.
#[derive(Debug, Clone)]
pub enum Predicate {
    /// Column against constant.
    Constant(usize, Compare, Value),
    /// Column against column.
    Columns(usize, Compare, usize),
    /// `IS NULL`.
    IsNull(usize),
    /// `AND`.
    And(Box<Self>, Box<Self>),
    /// `OR`.
    Or(Box<Self>, Box<Self>),
    /// `NOT`.
    Not(Box<Self>),
}

/// How two inputs are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Matches.
    Inner,
    /// Matches and the left rows without one.
    Left,
    /// Matches and the right rows without one.
    Right,
    /// Matches and the rows of either side without one.
    Full,
    /// Left rows with a match.
    Semi,
    /// Left rows without a match.
    Anti,
    /// `NOT IN`.
    NotIn,
}

/// An aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// `count(*)`
    CountRows,
    /// `count(c)`
    Count(usize),
    /// `count(DISTINCT c)`
    CountDistinct(usize),
    /// `sum(c)`
    Sum(usize),
    /// `avg(c)`
    Avg(usize),
    /// `min(c)`
    Min(usize),
    /// `max(c)`
    Max(usize),
    /// `bit_xor(c)`
    BitXor(usize),
    /// `first_value(c)` in the order of all columns
    First(usize),
    /// `bit_and(c)`
    BitAnd(usize),
    /// `bit_or(c)`
    BitOr(usize),
    /// `sum(DISTINCT c)`
    SumDistinct(usize),
    /// `count(*) FILTER (WHERE c IS NULL)`
    CountNull(usize),
    /// `string_agg(c, ',')` in the order of all columns
    Joined(usize),
}

/// A set operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOperation {
    /// `UNION ALL`
    UnionAll,
    /// `UNION`
    Union,
    /// `INTERSECT`
    Intersect,
    /// `EXCEPT`
    Except,
}

/// A query; its columns are named `c0`, `c1`, ….
#[derive(Debug, Clone)]
pub enum Query {
    /// All of a table, by the names of its columns.
    Table(String, Vec<String>),
    /// Rows for which the condition is true.
    Filter(Box<Self>, Predicate),
    /// Expressions.
    Project(Box<Self>, Vec<Expr>),
    /// Two inputs with columns of the same types.
    Set(SetOperation, Box<Self>, Box<Self>),
    /// Equality of a column of each side.
    Join(JoinKind, Box<Self>, Box<Self>, usize, usize),
    /// Groups (none: one group of everything) and aggregates.
    Group(Box<Self>, Vec<usize>, Vec<Aggregate>),
    /// Each row once.
    Distinct(Box<Self>),
    /// Groups by some of the keys at a time, as positions among them; NULL in the others.
    GroupingSets(Box<Self>, Vec<usize>, Vec<Vec<usize>>, Vec<Aggregate>),
    /// Window functions.
    Windows(Box<Self>, Windows),
    /// The rows in some places of an order.
    TopK(Box<Self>, TopK),
    /// Subqueries, and joins by any condition.
    Nested(Box<Self>, Box<Self>, Nested),
    /// `WITH RECURSIVE … UNION`: from each value of the first column, what the second leads to.
    Closure(Box<Self>, usize, usize),
    /// Each row once per element of a list of the columns, which is a last column.
    Explode(Box<Self>, Vec<usize>),
}

/// One key of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderKey {
    /// The column.
    pub column: usize,
    /// Greatest first.
    pub descending: bool,
    /// NULL first.
    pub nulls_first: bool,
}

/// Which rows of a query to take.
#[derive(Debug, Clone)]
pub struct TopK {
    /// Columns of the groups that have places of their own.
    pub partition: Vec<usize>,
    /// Ties in the order of all columns.
    pub order: Vec<OrderKey>,
    /// Places that are passed over.
    pub offset: usize,
    /// Places taken.
    pub limit: usize,
    /// The place is a last column.
    pub numbered: bool,
}

#[cfg(test)]
mod tests {
    use super::{Root, draw_query};
    use crate::Tape;

    #[test]
    fn every_form_is_drawn() {
        let mut seed = 1_u64;
        let mut drawn = String::new();
        for _ in 0..4000 {
            let bytes: Vec<u8> = (0..40)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    seed.to_le_bytes()[7]
                })
                .collect();
            drawn += &draw_query(&mut Tape::new(&bytes), Root::Any, 3, true).sql();
            drawn.push('\n');
        }
        for form in [
            "WITH RECURSIVE",
            "unnest(",
            "LATERAL",
            "NOT EXISTS",
            "CASE WHEN EXISTS",
            " IN (SELECT",
            "NOT IN (SELECT",
            "GROUPING SETS",
            "FULL JOIN",
            "INTERSECT",
            "LIMIT",
            "ntile(",
            "percent_rank()",
            "cume_dist()",
            "nth_value(",
            "GROUPS BETWEEN",
            "RANGE BETWEEN",
            "ROWS BETWEEN",
            "FILTER (WHERE",
            "bit_and(",
            "sum(DISTINCT",
            "string_agg(",
        ] {
            let times = drawn.lines().filter(|query| query.contains(form)).count();
            assert!(times > 20, "{form} is in {times} of 4000 queries");
        }
    }
}
