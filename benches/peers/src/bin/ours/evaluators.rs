//! The expressions of the views.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use deltaic_batch::Result;
use deltaic_ops::Evaluator;
use peers_harness::{CANCELLED, DAY};

/// Days since 1970 of a column of microseconds.
#[derive(Debug)]
pub struct DayOf(pub usize);

/// A comparison of a column of numbers with a constant.
#[derive(Debug)]
pub enum Compare {
    /// `column < constant`
    Less(usize, i64),
    /// `column > constant`
    Greater(usize, i64),
    /// `column = constant`
    Equal(usize, i64),
}

/// `price * (100 - discount)`, both columns.
#[derive(Debug)]
pub struct Revenue {
    /// The price's column.
    pub price: usize,
    /// The discount's column.
    pub discount: usize,
}

/// `status <> 'CANCELLED'`, by string or code.
#[derive(Debug)]
pub struct NotCancelled(pub usize);

fn ints(batch: &RecordBatch, column: usize) -> &Int64Array {
    batch.column(column).as_primitive()
}

impl Evaluator for DayOf {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let days = ints(batch, self.0).unary::<_, Int64Type>(|time| time.div_euclid(DAY));
        Ok(Arc::new(days))
    }

    fn cannot_fail(&self) -> bool {
        true
    }
}

impl Evaluator for Compare {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let compare = |column: usize, is: &dyn Fn(i64) -> bool| {
            BooleanArray::from_unary(ints(batch, column), is)
        };
        Ok(Arc::new(match *self {
            Self::Less(column, bound) => compare(column, &|value| value < bound),
            Self::Greater(column, bound) => compare(column, &|value| value > bound),
            Self::Equal(column, bound) => compare(column, &|value| value == bound),
        }))
    }

    fn cannot_fail(&self) -> bool {
        true
    }
}

impl Evaluator for Revenue {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let (prices, discounts) = (ints(batch, self.price), ints(batch, self.discount));
        let pairs = prices.values().iter().zip(discounts.values());
        let revenues = pairs.map(|(price, discount)| price * (100 - discount));
        Ok(Arc::new(Int64Array::from_iter_values(revenues)))
    }

    fn cannot_fail(&self) -> bool {
        true
    }
}

impl Evaluator for NotCancelled {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let column = batch.column(self.0);
        let kept = match column.as_any().downcast_ref::<StringArray>() {
            Some(texts) => BooleanArray::from_unary(texts, |status| status != "CANCELLED"),
            None => BooleanArray::from_unary(ints(batch, self.0), |status| status != CANCELLED),
        };
        Ok(Arc::new(kept))
    }

    fn cannot_fail(&self) -> bool {
        true
    }
}
