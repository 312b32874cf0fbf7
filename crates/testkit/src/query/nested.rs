//! Subqueries and joins by any condition: what is drawn, its SQL, and its value by definition.

use crate::query::draw::{Drawn, aggregate, draw, narrowed};
use crate::query::print::order_by;
use crate::query::{Aggregate, Column, Compare, JoinKind, Kind, Query};
use crate::{Bag, Row, Tape, Value, add_row};

/// Two inputs; for each row of the first, those rows of the second count that correlate with it.
#[derive(Debug, Clone)]
pub struct Nested {
    /// Column of the first, comparison, column of the second; all of them must be true.
    pub correlation: Vec<(usize, Compare, usize)>,
    /// What becomes of them.
    pub form: Form,
}

/// What a row of the first input becomes with the rows that correlate with it.
#[derive(Debug, Clone)]
pub enum Form {
    /// Joined with them.
    Join(JoinKind),
    /// `(SELECT aggregate …)` as last column.
    Scalar(Aggregate),
    /// Kept if its column compares so with `(SELECT aggregate …)`.
    Compared(usize, Compare, Aggregate),
    /// Kept if there are some (or, negated, none) or the column is NULL.
    ExistsOr(bool, usize),
    /// A last column, 1 if there are some, else 0.
    Mark,
    /// A last column, 1 if column `.0` is in column `.1` of them, 0 if not, NULL if unknown.
    In(usize, usize),
    /// `LATERAL`: column `.0` of the first `.1` of them, in the order of all columns.
    First(usize, usize),
}

pub(super) fn draw_nested(tape: &mut Tape<'_>, depth: usize) -> Drawn {
    let (left, left_columns) = draw(tape, depth - 1, true);
    let (right, right_columns) = draw(tape, depth - 1, true);
    let pairs: Vec<(usize, usize)> = (0..left_columns.len())
        .flat_map(|l| (0..right_columns.len()).map(move |r| (l, r)))
        .filter(|&(l, r)| left_columns[l].kind == right_columns[r].kind)
        .collect();
    if pairs.is_empty() {
        return (left, left_columns);
    }
    let compares =
        [Compare::Equal, Compare::Equal, Compare::Less, Compare::AtLeast, Compare::NotEqual];
    let correlation = (0..tape.pick(&[1, 1, 2, 0]))
        .map(|_| {
            let (l, r) = tape.pick(&pairs);
            (l, tape.pick(&compares), r)
        })
        .collect();
    let number = Column { kind: Kind::Int, summable: true };
    let mut columns = left_columns;
    let form = match tape.choose(10) {
        0..=2 => {
            let kind = tape.pick(&[
                JoinKind::Inner,
                JoinKind::Left,
                JoinKind::Right,
                JoinKind::Full,
                JoinKind::Semi,
                JoinKind::Anti,
            ]);
            if !matches!(kind, JoinKind::Semi | JoinKind::Anti) {
                columns.extend(right_columns);
            }
            Form::Join(kind)
        }
        3 | 4 => {
            let (aggregate, column) = aggregate(tape, &right_columns, true);
            columns.push(column);
            Form::Scalar(aggregate)
        }
        5 => {
            let (aggregate, column) = aggregate(tape, &right_columns, true);
            let same = (0..columns.len()).find(|&l| columns[l].kind == column.kind);
            match same {
                Some(l) => Form::Compared(l, tape.pick(&compares), aggregate),
                None => {
                    columns.push(column);
                    Form::Scalar(aggregate)
                }
            }
        }
        6 => Form::ExistsOr(tape.choose(2) == 1, tape.choose(columns.len())),
        7 => {
            columns.push(number);
            Form::Mark
        }
        8 => {
            let (l, r) = tape.pick(&pairs);
            columns.push(number);
            Form::In(l, r)
        }
        _ => {
            let r = tape.choose(right_columns.len());
            columns.push(right_columns[r]);
            Form::First(r, 1 + tape.choose(3))
        }
    };
    let nested = Nested { correlation, form };
    narrowed(Query::Nested(Box::new(left), Box::new(right), nested), columns)
}

impl Nested {
    /// Number of columns.
    pub(super) fn width(&self, left: usize, right: usize) -> usize {
        match self.form {
            Form::Join(JoinKind::Semi | JoinKind::Anti)
            | Form::Compared(..)
            | Form::ExistsOr(..) => left,
            Form::Join(_) => left + right,
            Form::Scalar(_) | Form::Mark | Form::In(..) | Form::First(..) => left + 1,
        }
    }

    /// SQL text; the second input is `q`, the first has a name of its own, since DataFusion takes a
    /// reference to it for one to what stands before a derived table that all of this is in.
    pub(super) fn sql(&self, left: &Query, right: &Query) -> String {
        let (a, b) = (left.sql(), right.sql());
        let l = format!("l{}", (a.clone() + &b).matches("SELECT").count());
        let conditions: Vec<String> = (self.correlation.iter())
            .map(|(c, compare, r)| format!("{l}.c{c} {} q.c{r}", compare.sql()))
            .collect();
        let holds = match conditions.is_empty() {
            true => "TRUE".to_owned(),
            false => conditions.join(" AND "),
        };
        let width = left.width();
        let of = |list: &str| format!("SELECT {list} FROM ({b}) AS q WHERE {holds}");
        match &self.form {
            Form::Join(kind) => {
                let word = match kind {
                    JoinKind::Inner => "INNER",
                    JoinKind::Left => "LEFT",
                    JoinKind::Right => "RIGHT",
                    JoinKind::Full => "FULL",
                    JoinKind::Semi | JoinKind::Anti | JoinKind::NotIn => {
                        let not = if *kind == JoinKind::Semi { "" } else { "NOT " };
                        return format!(
                            "SELECT * FROM ({a}) AS {l} WHERE {not}EXISTS ({})",
                            of("1")
                        );
                    }
                };
                let mine = (0..width).map(|i| format!("{l}.c{i} AS c{i}"));
                let its = (0..right.width()).map(|i| format!("q.c{i} AS c{}", width + i));
                let list: Vec<String> = mine.chain(its).collect();
                format!(
                    "SELECT {} FROM ({a}) AS {l} {word} JOIN ({b}) AS q ON {holds}",
                    list.join(", ")
                )
            }
            Form::Scalar(aggregate) => {
                let value = of(&aggregate.sql(right.width()));
                format!("SELECT {l}.*, ({value}) AS c{width} FROM ({a}) AS {l}")
            }
            Form::Compared(c, compare, aggregate) => {
                let value = of(&aggregate.sql(right.width()));
                format!("SELECT * FROM ({a}) AS {l} WHERE {l}.c{c} {} ({value})", compare.sql())
            }
            Form::ExistsOr(negated, c) => {
                let not = if *negated { "NOT " } else { "" };
                let some = of("1");
                format!("SELECT * FROM ({a}) AS {l} WHERE {not}EXISTS ({some}) OR {l}.c{c} IS NULL")
            }
            Form::Mark => {
                let mark = format!("CASE WHEN EXISTS ({}) THEN 1 ELSE 0 END", of("1"));
                format!("SELECT {l}.*, CAST({mark} AS BIGINT) AS c{width} FROM ({a}) AS {l}")
            }
            Form::In(c, r) => {
                let is_in = format!("{l}.c{c} IN ({})", of(&format!("q.c{r}")));
                let mark = format!("CASE {is_in} WHEN TRUE THEN 1 WHEN FALSE THEN 0 END");
                format!("SELECT {l}.*, CAST({mark} AS BIGINT) AS c{width} FROM ({a}) AS {l}")
            }
            Form::First(c, limit) => {
                let order = order_by(right.width());
                let first = format!("{} ORDER BY {order} LIMIT {limit}", of("q.*"));
                format!(
                    "SELECT {l}.*, f.c{c} AS c{width} FROM ({a}) AS {l} CROSS JOIN LATERAL ({first}) AS f"
                )
            }
        }
    }

    pub(super) fn eval(&self, left: &Bag, right: &Bag, widths: (usize, usize)) -> Bag {
        let holds = |a: &Row, b: &Row| {
            let mut all = self.correlation.iter();
            all.all(|(l, compare, r)| compare.eval(&a[*l], &b[*r]) == Some(true))
        };
        let mut out = Bag::new();
        for (a, n) in left {
            let found: Vec<(&Row, i64)> =
                right.iter().filter(|(b, _)| holds(a, b)).map(|(b, m)| (b, *m)).collect();
            self.row(&mut out, (a, *n), &found, widths.1);
        }
        if let Form::Join(JoinKind::Right | JoinKind::Full) = self.form {
            for (b, m) in right.iter().filter(|(b, _)| !left.keys().any(|a| holds(a, b))) {
                let nothing = vec![Value::Null; widths.0];
                add_row(&mut out, nothing.into_iter().chain(b.iter().cloned()).collect(), *m);
            }
        }
        out
    }

    /// What becomes of one row of the first input.
    fn row(&self, out: &mut Bag, (a, n): (&Row, i64), found: &[(&Row, i64)], right: usize) {
        let with = |value: Value| -> Row { a.iter().cloned().chain([value]).collect() };
        let number = |n: i128| Value::Int(n);
        match &self.form {
            Form::Join(JoinKind::Semi) if !found.is_empty() => add_row(out, a.clone(), n),
            Form::Join(JoinKind::Anti) if found.is_empty() => add_row(out, a.clone(), n),
            Form::Join(JoinKind::Semi | JoinKind::Anti | JoinKind::NotIn) => {}
            Form::Join(kind) => {
                for (b, m) in found {
                    add_row(out, a.iter().chain(*b).cloned().collect(), n * m);
                }
                if found.is_empty() && matches!(kind, JoinKind::Left | JoinKind::Full) {
                    let nothing = vec![Value::Null; right];
                    add_row(out, a.iter().cloned().chain(nothing).collect(), n);
                }
            }
            Form::Scalar(aggregate) => add_row(out, with(aggregate.eval(found)), n),
            Form::Compared(c, compare, aggregate) => {
                if compare.eval(&a[*c], &aggregate.eval(found)) == Some(true) {
                    add_row(out, a.clone(), n);
                }
            }
            Form::ExistsOr(negated, c) => {
                if found.is_empty() == *negated || a[*c].is_null() {
                    add_row(out, a.clone(), n);
                }
            }
            Form::Mark => add_row(out, with(number(i128::from(!found.is_empty()))), n),
            Form::In(c, r) => {
                let value = match found {
                    [] => number(0),
                    _ if a[*c].is_null() => Value::Null,
                    _ if found.iter().any(|(b, _)| b[*r] == a[*c]) => number(1),
                    _ if found.iter().any(|(b, _)| b[*r].is_null()) => Value::Null,
                    _ => number(0),
                };
                add_row(out, with(value), n);
            }
            Form::First(c, limit) => {
                let copies = found.iter().flat_map(|(b, m)| (0..*m).map(move |_| b));
                for b in copies.take(*limit) {
                    add_row(out, with(b[*c].clone()), n);
                }
            }
        }
    }
}
