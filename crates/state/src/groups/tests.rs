//! The group table against a `BTreeMap`, with good hashes and with hashes that all collide.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array,
    DictionaryArray, FixedSizeBinaryArray, Float64Array, Int64Array, ListArray, StringArray,
    StringViewArray, StructArray,
};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, i256};
use proptest::prelude::*;

use super::*;

type Key = (Option<i64>, Option<String>);

fn spec() -> GroupSpec {
    GroupSpec {
        key: vec![DataType::Int64, DataType::Utf8],
        accumulators: vec![
            AccumulatorType::I64,
            AccumulatorType::I128,
            AccumulatorType::I256,
            AccumulatorType::Exact,
        ],
    }
}

fn columns(keys: &[Key]) -> Vec<ArrayRef> {
    vec![
        Arc::new(Int64Array::from_iter(keys.iter().map(|key| key.0))),
        Arc::new(StringArray::from_iter(keys.iter().map(|key| key.1.as_deref()))),
    ]
}

fn add(table: &mut GroupTable, delta: &[(Key, i64)]) {
    let keys: Vec<Key> = delta.iter().map(|(key, _)| key.clone()).collect();
    let columns = columns(&keys);
    let groups = table.upsert(&columns, delta.len()).unwrap();
    for (&group, &(_, weight)) in groups.iter().zip(delta) {
        for column in table.accumulators_mut() {
            match column {
                AccumulatorColumn::I64(values) => values[group as usize] += weight,
                AccumulatorColumn::I128(sums) => sums.add(group, -i128::from(weight)),
                AccumulatorColumn::I256(values) => {
                    let at = group as usize;
                    values[at] = values[at].wrapping_add(i256::from_i128(weight.into()));
                }
                AccumulatorColumn::Exact(values) => {
                    // Some groups need more than a window on the way.
                    let sum = &mut values[group as usize];
                    let detour = if group % 2 == 0 { 1e300 } else { 0.0 };
                    [0.1, detour, -detour].into_iter().for_each(|x| sum.add(x, weight));
                }
            }
        }
    }
    table.settle().unwrap();
    assert!(table.touched().is_empty());
}

/// The groups, read through the public API.
fn content(table: &GroupTable) -> BTreeMap<Key, i64> {
    let live = |&group: &u32| table.marks[group as usize] & mark::LIVE != 0;
    let groups: Vec<u32> = (0_u32..).take(table.marks.len()).filter(live).collect();
    let keys = table.keys(&groups).unwrap();
    let (first, second) = (keys[0].as_primitive::<Int64Type>(), keys[1].as_string::<i32>());
    let [
        AccumulatorColumn::I64(counts),
        AccumulatorColumn::I128(negated),
        AccumulatorColumn::I256(same),
        AccumulatorColumn::Exact(sums),
    ] = table.accumulators()
    else {
        panic!("the spec's accumulators")
    };
    let content: BTreeMap<Key, i64> = groups
        .iter()
        .enumerate()
        .map(|(row, &group)| {
            let at = group as usize;
            assert_eq!(negated.get(group), -i128::from(counts[at]));
            assert_eq!(same[at], i256::from_i128(counts[at].into()));
            assert_eq!(sums[at].value(), (counts[at] as f64 * 0.1 * 2.0) / 2.0);
            let first = first.is_valid(row).then(|| first.value(row));
            let second = second.is_valid(row).then(|| second.value(row).to_owned());
            ((first, second), counts[at])
        })
        .collect();
    assert_eq!(content.len(), table.len());
    assert_eq!(table.heap_bytes, table.heap_bytes_of(&groups));
    content
}

fn any_key() -> impl Strategy<Value = Key> {
    let text = prop::sample::select(vec![
        None,
        Some(""),
        Some("a"),
        Some("twelve bytes"),
        Some("thirteen byte"),
        Some("thirteen bytf"),
        Some("a string that is too long to be kept in place"),
    ]);
    (prop::option::of(0_i64..3), text.prop_map(|text| text.map(str::to_owned)))
}

fn any_deltas() -> impl Strategy<Value = Vec<Vec<(Key, i64)>>> {
    let delta = prop::collection::vec((any_key(), -1_i64..=1), 0..20);
    prop::collection::vec(delta, 0..12)
}

proptest! {
    #[test]
    fn equals_a_map(deltas in any_deltas(), different_hashes in 0_u64..4) {
        let mut table = GroupTable::try_new(&spec()).unwrap();
        // Few hashes, so that keys collide, or all of them.
        table.different_hashes = different_hashes;
        let mut map = BTreeMap::new();
        for delta in &deltas {
            add(&mut table, delta);
            delta.iter().for_each(|(key, weight)| *map.entry(key.clone()).or_insert(0) += weight);
            map.retain(|_, count| *count != 0);
            prop_assert_eq!(&content(&table), &map);
        }
        for delta in deltas.iter().rev() {
            let undo: Vec<_> = delta.iter().map(|(key, weight)| (key.clone(), -weight)).collect();
            add(&mut table, &undo);
        }
        prop_assert!(table.is_empty());
    }

    #[test]
    fn images_restore(deltas in any_deltas(), writes in prop::collection::vec(0..4_u8, 12)) {
        let mut table = GroupTable::try_new(&spec()).unwrap();
        let (mut full, mut changes) = (table.write_full().unwrap(), Vec::<Vec<u8>>::new());
        for (delta, write) in deltas.iter().zip(writes) {
            add(&mut table, delta);
            match write {
                0 => (full, changes) = (table.write_full().unwrap(), Vec::new()),
                1 | 2 => changes.push(table.write_changes().unwrap()),
                _ => continue,
            }
            let parts: Vec<&[u8]> = changes.iter().map(Vec::as_slice).collect();
            let restored = GroupTable::restore(&spec(), &full, &parts).unwrap();
            prop_assert_eq!(content(&restored), content(&table));
            if write == 2 {
                table = restored;
            }
        }
        prop_assert!(table.write_changes().is_ok());
        prop_assert_eq!(table.write_changes().unwrap(), Vec::<u8>::new());
    }
}

#[test]
fn slots_are_used_again() {
    let mut table = GroupTable::try_new(&spec()).unwrap();
    for i in 0..100 {
        let key = (Some(i), Some(format!("a long string with number {i}")));
        add(&mut table, &[(key.clone(), 1)]);
        add(&mut table, &[(key, -1)]);
    }
    assert_eq!(table.marks.len(), 1);
    assert_eq!(table.dirty.len(), 1);
}

#[test]
fn the_arena_forgets_dropped_strings() {
    let mut table = GroupTable::try_new(&spec()).unwrap();
    let key = |i| (Some(i), Some("x".repeat(1000)));
    for i in 0..1000 {
        add(&mut table, &[(key(i), 1)]);
        if i > 0 {
            add(&mut table, &[(key(i - 1), -1)]);
        }
    }
    assert!(table.memory_bytes() < 300_000, "{}", table.memory_bytes());
    assert_eq!(content(&table), BTreeMap::from([(key(999), 1)]));
}

#[test]
fn changes_hold_only_what_was_touched() {
    let mut table = GroupTable::try_new(&spec()).unwrap();
    let many: Vec<_> = (0..1000).map(|i| ((Some(i), None), 1)).collect();
    add(&mut table, &many);
    let full = table.write_full().unwrap();
    add(&mut table, &[((Some(3), None), -1), ((Some(4), None), 1)]);
    let changes = table.write_changes().unwrap();
    assert!(changes.len() * 4 < full.len(), "{} of {}", changes.len(), full.len());
    let restored = GroupTable::restore(&spec(), &full, &[&changes]).unwrap();
    assert_eq!(content(&restored), content(&table));
    assert_eq!(content(&restored).get(&(Some(3), None)), None);
}

#[test]
fn damaged_images_are_refused() {
    let mut table = GroupTable::try_new(&spec()).unwrap();
    add(&mut table, &[((Some(1), None), 1)]);
    let full = table.write_full().unwrap();
    let code =
        |spec: &GroupSpec, bytes: &[u8]| GroupTable::restore(spec, bytes, &[]).unwrap_err().code();
    assert_eq!(code(&spec(), &full[..full.len() - 1]), "STATE_CORRUPT");
    assert_eq!(code(&spec(), &[]), "STATE_CORRUPT");
    assert_eq!(code(&spec(), &crate::frame::seal(*b"GRPS", b"no stream")), "STATE_CORRUPT");
    let mut other = spec();
    other.accumulators.pop();
    assert_eq!(code(&other, &full), "STATE_CORRUPT");
}

/// Three values of every type that can be a key, the last one NULL.
fn keys_of_all_types() -> Vec<ArrayRef> {
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>([
        Some(vec![Some(1), None]),
        Some(vec![]),
        None,
    ]);
    let strings: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), Some("b"), None]));
    let field = Arc::new(Field::new("x", DataType::Utf8, true));
    let decimals = Decimal128Array::from(vec![Some(1), Some(-1), None]);
    let dictionary: DictionaryArray<Int32Type> =
        vec![Some("a"), Some("b"), None].into_iter().collect();
    let fixed: Vec<Option<&[u8]>> = vec![Some(b"abc"), Some(b"abd"), None];
    vec![
        Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
        Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(0), None])),
        Arc::new(Float64Array::from(vec![Some(f64::NAN), Some(0.0), None])),
        Arc::new(Date32Array::from(vec![Some(1), Some(0), None])),
        Arc::new(decimals.with_precision_and_scale(20, 2).unwrap()),
        strings.clone(),
        Arc::new(StringViewArray::from(vec![Some("a"), Some("longer than twelve"), None])),
        Arc::new(BinaryArray::from(vec![Some(&b"a"[..]), Some(b""), None])),
        Arc::new(
            FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed.into_iter(), 3).unwrap(),
        ),
        Arc::new(dictionary),
        Arc::new(list),
        Arc::new(StructArray::from(vec![(field, strings)])),
    ]
}

#[test]
fn keys_of_every_type_come_back() {
    for array in keys_of_all_types() {
        let data_type = array.data_type().clone();
        let accumulators = vec![AccumulatorType::I64];
        let spec = GroupSpec { key: vec![data_type.clone()], accumulators };
        let mut table = GroupTable::try_new(&spec).unwrap();
        let column = std::slice::from_ref(&array);
        let groups = table.upsert(column, 3).unwrap();
        assert_eq!(groups, [0, 1, 2], "{data_type}");
        assert_eq!(&table.keys(&groups).unwrap()[0], &array, "{data_type}");
        // The same keys again, from a sliced array.
        let tail = [array.slice(1, 2)];
        assert_eq!(table.upsert(&tail, 2).unwrap(), [1, 2], "{data_type}");
        let image = table.write_full().unwrap();
        let restored = GroupTable::restore(&spec, &image, &[]).unwrap();
        assert_eq!(restored.keys(&[0, 1, 2]).unwrap()[0].as_ref(), array.as_ref(), "{data_type}");
    }
}

#[test]
fn no_key_is_one_group() {
    let spec = GroupSpec { key: vec![], accumulators: vec![AccumulatorType::I64] };
    let mut table = GroupTable::try_new(&spec).unwrap();
    let groups = table.upsert(&[], 3).unwrap();
    assert_eq!(groups, [0, 0, 0]);
    assert_eq!(table.len(), 1);
}
