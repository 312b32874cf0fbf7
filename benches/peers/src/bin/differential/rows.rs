//! Rows as differential has them, made from columns.

use std::hash::Hash;
use std::ops::Range;

use differential_dataflow::input::InputSession;
use differential_dataflow::{Data, ExchangeData};
use peers_harness::{Column, Texts, text_customer, text_word};

/// A customer, a status or a tier: a number, or a string.
pub trait Word: ExchangeData + Hash {
    /// Values in a column.
    type Column<'a>: Copy;

    /// The values of a column.
    fn column(column: &Column) -> Self::Column<'_>;

    /// Value `i`.
    fn at(column: Self::Column<'_>, i: usize) -> Self;

    /// Stands for a tier that is not there.
    fn missing() -> Self;

    /// The number of a customer.
    fn customer(&self) -> i64;

    /// The code of a tier.
    fn tier(&self) -> i64;

    /// Is this the status of an order that is dropped?
    fn is_cancelled(&self) -> bool;
}

impl Word for i64 {
    type Column<'a> = &'a [i64];

    fn column(column: &Column) -> &[i64] {
        column.ints()
    }

    fn at(column: &[i64], i: usize) -> Self {
        column[i]
    }

    fn missing() -> Self {
        -1
    }

    fn customer(&self) -> i64 {
        *self
    }

    fn tier(&self) -> i64 {
        *self
    }

    fn is_cancelled(&self) -> bool {
        *self == peers_harness::CANCELLED
    }
}

impl Word for String {
    type Column<'a> = &'a Texts;

    fn column(column: &Column) -> &Texts {
        column.texts()
    }

    fn at(column: &Texts, i: usize) -> Self {
        column.get(i).to_owned()
    }

    fn missing() -> Self {
        String::new()
    }

    fn customer(&self) -> i64 {
        text_customer(self)
    }

    fn tier(&self) -> i64 {
        text_word(self)
    }

    fn is_cancelled(&self) -> bool {
        self == "CANCELLED"
    }
}

/// order, customer, status, amount, time
pub type Order<W> = (i64, W, W, i64, i64);
/// customer, tier, region
pub type Customer<W> = (W, W, W);
/// customer, segment
pub type TpchCustomer = (i64, i64);
/// order, customer, date, priority
pub type TpchOrder = (i64, i64, i64, i64);
/// order, line, price, discount, date of shipping
pub type TpchLine = (i64, i64, i64, i64, i64);

/// A row that can be read from columns.
pub trait Row: Data {
    /// Calls `each` with the rows of a range and their numbers.
    fn read(columns: &[Column], range: Range<usize>, each: impl FnMut(usize, Self));
}

impl<W: Word> Row for Order<W> {
    fn read(columns: &[Column], range: Range<usize>, mut each: impl FnMut(usize, Self)) {
        let [order, customer, status, amount, time] = columns else { return };
        let (customer, status) = (W::column(customer), W::column(status));
        let (order, amount, time) = (order.ints(), amount.ints(), time.ints());
        for i in range {
            each(i, (order[i], W::at(customer, i), W::at(status, i), amount[i], time[i]));
        }
    }
}

impl<W: Word> Row for Customer<W> {
    fn read(columns: &[Column], range: Range<usize>, mut each: impl FnMut(usize, Self)) {
        let [customer, tier, region] = columns else { return };
        let (customer, tier, region) = (W::column(customer), W::column(tier), W::column(region));
        for i in range {
            each(i, (W::at(customer, i), W::at(tier, i), W::at(region, i)));
        }
    }
}

impl Row for TpchCustomer {
    fn read(columns: &[Column], range: Range<usize>, mut each: impl FnMut(usize, Self)) {
        let [customer, segment] = columns else { return };
        let (customer, segment) = (customer.ints(), segment.ints());
        range.for_each(|i| each(i, (customer[i], segment[i])));
    }
}

impl Row for TpchOrder {
    fn read(columns: &[Column], range: Range<usize>, mut each: impl FnMut(usize, Self)) {
        let [order, customer, date, priority] = columns else { return };
        let (order, customer) = (order.ints(), customer.ints());
        let (date, priority) = (date.ints(), priority.ints());
        range.for_each(|i| each(i, (order[i], customer[i], date[i], priority[i])));
    }
}

/// An input of whatever rows.
pub trait Feed {
    /// Hands over the rows of a range.
    fn push(&mut self, columns: &[Column], weights: Option<&[i64]>, range: Range<usize>);

    /// Ends the epochs before this one.
    fn advance(&mut self, epoch: u64);
}

impl<D: Row> Feed for InputSession<u64, D, isize> {
    fn push(&mut self, columns: &[Column], weights: Option<&[i64]>, range: Range<usize>) {
        match weights {
            None => D::read(columns, range, |_, row| self.update(row, 1)),
            Some(weights) => {
                D::read(columns, range, |i, row| self.update(row, weights[i] as isize))
            }
        }
    }

    fn advance(&mut self, epoch: u64) {
        self.advance_to(epoch);
        self.flush();
    }
}
