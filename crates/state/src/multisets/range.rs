//! The rows of one group between two values of the leading columns.

use arrow::array::ArrayRef;
use deltaic_batch::Result;

use super::found::Found;
use super::rows::Rows;
use super::tiers::Tiers;
use super::{GroupRows, Multisets, Store, decoded};

/// The ends of a range, encoded, in as many words as they have.
struct Ends<'a, R> {
    from: Option<&'a R>,
    to: Option<&'a R>,
    words: usize,
}

impl Multisets {
    /// All rows of a group from the first one whose leading columns are not before `from` on, to the
    /// last one whose leading columns are not behind `to`, and maybe some before and behind; without
    /// an end, from or to that of the group. An end is as many columns of one value each as are given.
    /// O(log + rows found).
    pub fn between(
        &self,
        group: u32,
        from: Option<&[ArrayRef]>,
        to: Option<&[ArrayRef]>,
    ) -> Result<GroupRows> {
        macro_rules! between {
            ($codec:expr, $tiers:expr, $encode:expr, $words:expr, $decode:expr) => {{
                let encode = |end: &[ArrayRef]| ($encode)(end);
                let (from, width) = (from.map(encode).transpose()?, to.map_or(0, <[_]>::len));
                let to = to.map(encode).transpose()?;
                let ends = Ends { from: from.as_ref(), to: to.as_ref(), words: ($words)(width) };
                decoded($tiers.between(group, &ends), $decode)
            }};
        }
        macro_rules! of_words {
            ($codec:expr, $tiers:expr) => {
                between!(
                    $codec,
                    $tiers,
                    |end| $codec.encode(end, 1),
                    |width| $codec.words_of(width),
                    |rows, _| $codec.decode(rows)
                )
            };
        }
        match &self.store {
            Store::One(codec, tiers) => of_words!(codec, tiers),
            Store::Two(codec, tiers) => of_words!(codec, tiers),
            Store::Three(codec, tiers) => of_words!(codec, tiers),
            Store::Four(codec, tiers) => of_words!(codec, tiers),
            Store::Bytes(codec, tiers) => {
                between!(codec, tiers, |end| codec.encode_leading(end), |_| 0, |rows, count| codec
                    .decode(rows, count))
            }
        }
    }
}

impl<R: Rows> Tiers<R> {
    fn between(&self, group: u32, ends: &Ends<'_, R>) -> Found<R> {
        let Some(blocks) = self.blocks_of(group) else {
            // Few rows, if any.
            return self.all(&[group]);
        };
        let mut place = match ends.from {
            Some(from) => blocks.seek(group, from, 0).0,
            None => blocks.start_of(group),
        };
        let mut found = Found::default();
        while let Some(next) = blocks.read(group, place, &mut found) {
            place = next;
            if let Some(to) = ends.to
                && is_behind(&found.rows, found.weights.len() - 1, to, ends.words)
            {
                break;
            }
        }
        found.end_group();
        found
    }
}

/// A row comes after all rows with the leading columns of `end`.
fn is_behind<R: Rows>(rows: &R, at: usize, end: &R, words: usize) -> bool {
    rows.compare(at, end, 0).is_gt() && !rows.begins_with(at, end, 0, words)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int64Array, StringArray};
    use arrow::compute::SortOptions;
    use arrow::datatypes::{DataType, Int64Type};
    use proptest::prelude::*;

    use super::*;
    use crate::{MultisetColumn, MultisetSpec};

    fn column(data_type: DataType) -> MultisetColumn {
        MultisetColumn { data_type, options: SortOptions::default() }
    }

    proptest! {
        #[test]
        fn nothing_between_the_ends_is_missed(
            rows in prop::collection::vec((0..40_i64, 0..3_i64, 0..2_u32), 0..300),
            ends in (prop::option::of(-1..42_i64), prop::option::of(-1..42_i64)),
            with_text in any::<bool>(),
        ) {
            let second = if with_text { DataType::Utf8 } else { DataType::Int64 };
            let spec = MultisetSpec { columns: vec![column(DataType::Int64), column(second)] };
            let mut multisets = Multisets::try_new(&spec).unwrap();
            let first: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.0)));
            let second: ArrayRef = match with_text {
                true => Arc::new(StringArray::from_iter_values(rows.iter().map(|r| r.1.to_string()))),
                false => Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.1))),
            };
            let groups: Vec<u32> = rows.iter().map(|r| r.2).collect();
            multisets.apply(&groups, &[first, second], &vec![1; rows.len()]).unwrap();
            let end = |value: Option<i64>| {
                value.map(|value| vec![Arc::new(Int64Array::from(vec![value])) as ArrayRef])
            };
            let (from, to) = (end(ends.0), end(ends.1));
            for group in 0..2 {
                let found = multisets.between(group, from.as_deref(), to.as_deref()).unwrap();
                prop_assert_eq!(&found.ends, &vec![u32::try_from(found.weights.len()).unwrap()]);
                let is_in = |value: i64| {
                    ends.0.is_none_or(|from| value >= from) && ends.1.is_none_or(|to| value <= to)
                };
                let values = found.columns[0].as_primitive::<Int64Type>().values();
                let inside = values.iter().zip(&found.weights).filter(|(v, _)| is_in(**v));
                let inside: i64 = inside.map(|(_, weight)| *weight).sum();
                let expected = rows.iter().filter(|r| r.2 == group && is_in(r.0)).count();
                prop_assert_eq!(inside, i64::try_from(expected).unwrap());
            }
        }
    }
}
