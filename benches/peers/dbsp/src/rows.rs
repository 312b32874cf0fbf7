//! Rows as dbsp has them, made from columns.

use dbsp::utils::{Tup2, Tup3, Tup4, Tup5};
use dbsp::{DBData, ZSetHandle, ZWeight};
use peers_harness::Column;

/// order, customer, status, amount, time
pub type Order = Tup5<i64, i64, i64, i64, i64>;
/// customer, tier, region
pub type Customer = Tup3<i64, i64, i64>;
/// customer, segment
pub type TpchCustomer = Tup2<i64, i64>;
/// order, customer, date, priority
pub type TpchOrder = Tup4<i64, i64, i64, i64>;
/// order, line, price, discount, date of shipping
pub type TpchLine = Tup5<i64, i64, i64, i64, i64>;

/// Hands rows over to an input; without weights each counts once.
pub type Feed = Box<dyn FnMut(&[Column], Option<&[i64]>)>;

/// A row that can be read from columns.
pub trait Row: DBData {
    /// Row `i`.
    fn at(columns: &[&[i64]], i: usize) -> Self;
}

impl Row for Tup2<i64, i64> {
    fn at(c: &[&[i64]], i: usize) -> Self {
        Tup2(c[0][i], c[1][i])
    }
}

impl Row for Tup3<i64, i64, i64> {
    fn at(c: &[&[i64]], i: usize) -> Self {
        Tup3(c[0][i], c[1][i], c[2][i])
    }
}

impl Row for Tup4<i64, i64, i64, i64> {
    fn at(c: &[&[i64]], i: usize) -> Self {
        Tup4(c[0][i], c[1][i], c[2][i], c[3][i])
    }
}

impl Row for Tup5<i64, i64, i64, i64, i64> {
    fn at(c: &[&[i64]], i: usize) -> Self {
        Tup5(c[0][i], c[1][i], c[2][i], c[3][i], c[4][i])
    }
}

/// The feed of an input.
pub fn feed<R: Row>(input: ZSetHandle<R>) -> Feed {
    Box::new(move |columns, weights| {
        let columns: Vec<&[i64]> = columns.iter().map(Column::ints).collect();
        let count = columns[0].len();
        let weight = |i: usize| -> ZWeight { weights.map_or(1, |weights| weights[i]) };
        let mut rows: Vec<_> = (0..count).map(|i| Tup2(R::at(&columns, i), weight(i))).collect();
        input.append(&mut rows);
    })
}
