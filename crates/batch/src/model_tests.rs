//! Batches against plain maps, over random rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use proptest::prelude::*;

use crate::{ZBatch, hash_columns, hash128_rows, shard_of};

type Row = (Option<i64>, Option<String>);

fn batch(rows: &[(Row, i64)]) -> ZBatch {
    let schema = Schema::new(vec![
        Field::new("k", DataType::Int64, true),
        Field::new("s", DataType::Utf8, true),
    ]);
    let k: ArrayRef = Arc::new(Int64Array::from_iter(rows.iter().map(|r| r.0.0)));
    let s: ArrayRef = Arc::new(StringArray::from_iter(rows.iter().map(|r| r.0.1.clone())));
    let batch = RecordBatch::try_new(Arc::new(schema), vec![k, s]).unwrap();
    ZBatch::try_new(batch, rows.iter().map(|r| r.1).collect::<Vec<_>>()).unwrap()
}

fn rows(batch: &ZBatch) -> Vec<(Row, i64)> {
    let k = batch.rows().column(0).as_primitive::<Int64Type>();
    let s = batch.rows().column(1).as_string::<i32>();
    let row = |i: usize| {
        let text = s.is_valid(i).then(|| s.value(i).to_owned());
        ((k.is_valid(i).then(|| k.value(i)), text), batch.weights()[i])
    };
    (0..batch.num_rows()).map(row).collect()
}

fn any_rows() -> impl Strategy<Value = Vec<(Row, i64)>> {
    let text = prop_oneof![
        3 => (0..4).prop_map(|i| format!("s{i}")),
        1 => "[ a|\"\\n\u{e9}N#+]{0,9}",
        1 => Just("NULL".to_owned()),
    ];
    let key = proptest::option::weighted(0.8, prop_oneof![Just(i64::MIN), -2_i64..3]);
    let row = (key, proptest::option::weighted(0.8, text));
    proptest::collection::vec((row, -2_i64..3), 0..40)
}

proptest! {
    #[test]
    fn consolidation_sums_the_weights_of_each_row(all in any_rows(), cut in 0_usize..40) {
        let cut = cut.min(all.len());
        let consolidated = batch(&all).slice(cut, all.len() - cut).consolidate().unwrap();
        let mut sums: BTreeMap<Row, i64> = BTreeMap::new();
        all[cut..].iter().for_each(|(row, weight)| *sums.entry(row.clone()).or_default() += weight);
        sums.retain(|_, weight| *weight != 0);
        let found = rows(&consolidated);
        prop_assert_eq!(found.len(), sums.len());
        prop_assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), sums);
    }

    #[test]
    fn the_text_form_is_read_back(all in any_rows()) {
        let batch = batch(&all);
        let again = ZBatch::parse(&batch.schema(), &batch.to_string()).unwrap();
        prop_assert_eq!(rows(&again), all);
    }

    #[test]
    fn hashes_agree_exactly_for_equal_rows(all in any_rows()) {
        let batch = batch(&all);
        let hashes = hash_columns(batch.rows().columns(), all.len()).unwrap();
        let ids = hash128_rows(batch.rows()).unwrap();
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate() {
                prop_assert_eq!(a.0 == b.0, hashes[i] == hashes[j]);
                prop_assert_eq!(a.0 == b.0, ids[i] == ids[j]);
            }
        }
    }

    #[test]
    fn shards_hold_all_rows_in_order(all in any_rows(), shards in 1_usize..5) {
        let batch = batch(&all);
        let hashes = hash_columns(&batch.rows().columns()[..1], all.len()).unwrap();
        let of_row: Vec<u32> =
            hashes.iter().map(|&h| u32::try_from(shard_of(h, shards)).unwrap()).collect();
        for (shard, part) in (0..).zip(batch.partition(&of_row, shards).unwrap()) {
            let wanted: Vec<_> =
                all.iter().zip(&of_row).filter(|r| *r.1 == shard).map(|r| r.0.clone()).collect();
            prop_assert_eq!(rows(&part), wanted);
        }
    }
}
