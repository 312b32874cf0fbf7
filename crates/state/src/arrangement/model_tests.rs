//! The arrangement against a plain map, over random deltas with hot keys, NULLs, strings,
//! retractions that come first, repeated rows and restores; and its rarer ways by example.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::*;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use deltaic_batch::ZBatch;
use proptest::prelude::*;

use super::*;

/// Key, string, float as bits; the model orders by these.
type Row = (Option<i64>, Option<String>, Option<i64>);
type Model = BTreeMap<Option<i64>, BTreeMap<Row, i64>>;

/// What the generators vary about an arrangement.
#[derive(Debug, Clone)]
struct Shape {
    strings: DataType,
    key: Vec<usize>,
    order: Vec<SortKey>,
    /// Bits of the hashes that are kept: few make different rows share one.
    hash_mask: u64,
}

impl Shape {
    fn open(&self, full: &Image, changes: &[Image]) -> Result<Arrangement> {
        // As `Arrangement::restore`, with masked hashes from the start.
        let mut arrangement = Arrangement::try_new(&self.spec())?;
        arrangement.layout.mask_hashes(self.hash_mask);
        arrangement.open(full, changes)?;
        Ok(arrangement)
    }

    fn spec(&self) -> ArrangementSpec {
        let schema = Arc::new(Schema::new(vec![
            Field::new("k", DataType::Int64, true),
            Field::new("s", self.strings.clone(), true),
            Field::new("f", DataType::Float64, true),
        ]));
        ArrangementSpec { schema, key: self.key.clone(), order: self.order.clone() }
    }

    fn batch(&self, rows: &[(Row, i64)]) -> ZBatch {
        let k: ArrayRef = Arc::new(Int64Array::from_iter(rows.iter().map(|r| r.0.0)));
        let s: ArrayRef = Arc::new(StringArray::from_iter(rows.iter().map(|r| r.0.1.clone())));
        let floats = rows.iter().map(|r| r.0.2.map(|v| v as f64 / 2.0));
        let f: ArrayRef = Arc::new(Float64Array::from_iter(floats));
        let columns = vec![k, cast(&s, &self.strings).unwrap(), f];
        let batch = RecordBatch::try_new(self.spec().schema, columns).unwrap();
        ZBatch::try_new(batch, rows.iter().map(|r| r.1).collect::<Vec<_>>()).unwrap()
    }
}

fn rows_of(columns: &[ArrayRef]) -> Vec<Row> {
    let strings = cast(&columns[1], &DataType::Utf8).unwrap();
    let floats = arrow::compute::kernels::numeric::add(&columns[2], &columns[2]).unwrap();
    let doubled = cast(&floats, &DataType::Int64).unwrap();
    let (k, f) = (columns[0].as_primitive::<Int64Type>(), doubled.as_primitive::<Int64Type>());
    let value = |i: usize| f.is_valid(i).then(|| f.value(i));
    let text = strings.as_string::<i32>();
    let string = |i: usize| text.is_valid(i).then(|| text.value(i).to_owned());
    (0..k.len()).map(|i| (k.is_valid(i).then(|| k.value(i)), string(i), value(i))).collect()
}

/// The spec's order, which knows no order of ties.
fn compare(shape: &Shape, a: &Row, b: &Row) -> Ordering {
    let column = |c: usize, descending: bool, nulls_first: bool| {
        fn directed<T: Ord>(a: &Option<T>, b: &Option<T>, down: bool, first: bool) -> Ordering {
            match (a, b) {
                (None, None) => Ordering::Equal,
                (None, _) => {
                    if first {
                        Ordering::Less
                    } else {
                        Ordering::Greater
                    }
                }
                (_, None) => {
                    if first {
                        Ordering::Greater
                    } else {
                        Ordering::Less
                    }
                }
                (Some(a), Some(b)) => {
                    if down {
                        b.cmp(a)
                    } else {
                        a.cmp(b)
                    }
                }
            }
        }
        match c {
            0 => directed(&a.0, &b.0, descending, nulls_first),
            1 => directed(&a.1, &b.1, descending, nulls_first),
            _ => directed(&a.2, &b.2, descending, nulls_first),
        }
    };
    shape.order.iter().fold(Ordering::Equal, |order, key| {
        order.then(column(key.column, key.descending, key.nulls_first))
    })
}

fn add(model: &mut BTreeMap<Row, i64>, row: &Row, weight: i64) {
    let sum = model.entry(row.clone()).or_default();
    *sum += weight;
    if *sum == 0 {
        model.remove(row);
    }
}

/// Everything that can be asked must agree with the model. The key is column 0 or nothing. Only
/// keys whose bit of `probed` is set are probed: what is stored of the others stays there.
fn check(shape: &Shape, arrangement: &mut Arrangement, model: &BTreeMap<Row, i64>, probed: u16) {
    let mut by_key = Model::new();
    for (row, &weight) in model {
        let key = if shape.key.is_empty() { None } else { row.0 };
        by_key.entry(key).or_default().insert(row.clone(), weight);
    }
    assert_eq!(arrangement.is_empty(), model.is_empty());
    let scanned: BTreeMap<Row, i64> = arrangement
        .scan(7)
        .unwrap()
        .iter()
        .flat_map(|piece| {
            assert!(piece.num_rows() <= 7);
            rows_of(piece.rows().columns()).into_iter().zip(piece.weights().to_vec())
        })
        .collect();
    assert_eq!(&scanned, model);
    assert_eq!(arrangement.scan(1).unwrap().len(), model.len());

    let keys: Vec<Option<i64>> =
        if shape.key.is_empty() { vec![None] } else { (-2..12).map(Some).chain([None]).collect() };
    let is_probed = |(bit, _): &(usize, &Option<i64>)| probed >> bit & 1 == 1;
    let keys: Vec<Option<i64>> =
        keys.iter().enumerate().filter(is_probed).map(|(_, key)| *key).collect();
    if shape.key.is_empty() && keys.is_empty() {
        return;
    }
    let key: Vec<ArrayRef> =
        if shape.key.is_empty() { vec![] } else { vec![Arc::new(Int64Array::from(keys.clone()))] };
    for null_equals_null in [true, false] {
        let wanted_rows = |key: &Option<i64>| -> Vec<(Row, i64)> {
            if key.is_none() && !null_equals_null && !shape.key.is_empty() {
                return vec![];
            }
            let rows = by_key.get(key).cloned().unwrap_or_default();
            let mut rows: Vec<(Row, i64)> = rows.into_iter().collect();
            rows.sort_by(|a, b| compare(shape, &a.0, &b.0));
            rows
        };
        let matches = arrangement.probe(&key, null_equals_null).unwrap();
        let columns = arrangement.gather(&matches.rows, &[0, 1, 2]).unwrap();
        let found: Vec<(u32, (Row, i64))> = matches
            .probe
            .iter()
            .copied()
            .zip(rows_of(&columns).into_iter().zip(matches.weights.iter().copied()))
            .collect();
        assert!(matches.probe.is_sorted());
        for (i, key) in (0..).zip(&keys) {
            let mut found: Vec<(Row, i64)> =
                found.iter().filter(|f| f.0 == i).map(|f| f.1.clone()).collect();
            let mut wanted = wanted_rows(key);
            assert_eq!(found.len(), wanted.len());
            let same = |(a, b): (&(Row, i64), &(Row, i64))| compare(shape, &a.0, &b.0).is_eq();
            assert!(found.iter().zip(&wanted).all(same));
            found.sort();
            wanted.sort();
            assert_eq!(found, wanted);
        }
    }
}

fn any_row() -> impl Strategy<Value = Row> {
    let key = prop_oneof![4 => Just(Some(1)), 1 => Just(None), 5 => (0_i64..10).prop_map(Some)];
    let text = prop_oneof![
        1 => Just(None),
        1 => Just(Some(String::new())),
        6 => (0..40).prop_map(|i| Some(format!("s{i}"))),
        1 => (0..3).prop_map(|i| Some(format!("a string of more than twelve bytes {i}"))),
    ];
    (key, text, proptest::option::weighted(0.8, -2_i64..3))
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let strings = prop_oneof![
        Just(DataType::Utf8),
        Just(DataType::Utf8View),
        Just(DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into())),
    ];
    let sort = (0_usize..3, any::<bool>(), any::<bool>())
        .prop_map(|(column, descending, nulls_first)| SortKey { column, descending, nulls_first });
    let key = prop_oneof![4 => Just(vec![0]), 1 => Just(vec![])];
    // Ordering by the key alone orders nothing: the model needs another column.
    let order = proptest::collection::vec(sort, 0..3).prop_map(|order: Vec<SortKey>| {
        if order.iter().all(|o| o.column == 0) { vec![] } else { order }
    });
    let hash_mask = prop_oneof![2 => Just(u64::MAX), 1 => Just(1 << 62), 1 => Just(63 << 58)];
    let shape = |(strings, key, order, hash_mask)| Shape { strings, key, order, hash_mask };
    (strings, key, order, hash_mask).prop_map(shape)
}

#[derive(Debug, Clone)]
enum Step {
    Apply(Vec<(Row, i64)>),
    /// As many rows as force a fold.
    Bulk(i64),
    Fold,
    WriteFull,
    WriteChanges,
    MergeChanges,
    Restore,
}

fn any_step() -> impl Strategy<Value = Step> {
    let rows = |n| proptest::collection::vec((any_row(), -2_i64..3), 0..n);
    prop_oneof![
        8 => rows(12).prop_map(Step::Apply),
        2 => rows(60).prop_map(Step::Apply),
        1 => (1_i64..3).prop_map(Step::Bulk),
        1 => Just(Step::Fold),
        1 => Just(Step::WriteFull),
        1 => Just(Step::WriteChanges),
        1 => Just(Step::MergeChanges),
        2 => Just(Step::Restore),
    ]
}

proptest! {
    // Rows that tie are looked through one by one.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 8))]

    #[test]
    fn agrees_with_a_map(
        shape in any_shape(),
        steps in proptest::collection::vec((any_step(), any::<u16>()), 1..14),
    ) {
        let nothing = Image::from(Vec::<u8>::new());
        let mut arrangement = shape.open(&nothing, &[]).unwrap();
        arrangement.log = None;
        let mut model = BTreeMap::new();
        let (mut full, mut changes) = (nothing, Vec::<Image>::new());
        for (step, probed) in steps {
            match step {
                Step::Apply(rows) => {
                    arrangement.apply(&shape.batch(&rows)).unwrap();
                    rows.iter().for_each(|(row, weight)| add(&mut model, row, *weight));
                }
                // Comparing thousands of rows of one hash one by one takes long.
                Step::Bulk(_) if shape.hash_mask.count_ones() < 6 => {}
                Step::Bulk(weight) => {
                    let row = |i: i64| ((Some(20 + i % 50), Some(i.to_string()), Some(0)), weight);
                    let rows: Vec<(Row, i64)> = (0..1_100).map(row).collect();
                    arrangement.apply(&shape.batch(&rows)).unwrap();
                    rows.iter().for_each(|(row, weight)| add(&mut model, row, *weight));
                }
                Step::Fold => arrangement.fold(None).unwrap(),
                Step::WriteFull => {
                    full = arrangement.write_full().unwrap();
                    changes.clear();
                }
                Step::WriteChanges => changes.push(arrangement.write_changes().unwrap()),
                Step::MergeChanges => changes = crate::merge_changes(changes).unwrap(),
                Step::Restore => {
                    changes.push(arrangement.write_changes().unwrap());
                    arrangement = shape.open(&full, &changes).unwrap();
                    prop_assert!(arrangement.write_changes().unwrap().is_empty());
                }
            }
            check(&shape, &mut arrangement, &model, probed);
        }
        // Undo: nothing must be left.
        let undo: Vec<(Row, i64)> = model.iter().map(|(row, w)| (row.clone(), -w)).collect();
        arrangement.apply(&shape.batch(&undo)).unwrap();
        check(&shape, &mut arrangement, &BTreeMap::new(), u16::MAX);
    }
}

fn by_float() -> Shape {
    let order = vec![SortKey { column: 2, descending: false, nulls_first: false }];
    Shape { strings: DataType::Utf8, key: vec![0], order, hash_mask: u64::MAX }
}

/// One key with many rows, retracted one by one from its front.
#[test]
fn a_hot_key_is_drained_in_order() {
    let shape = by_float();
    let mut arrangement = Arrangement::try_new(&shape.spec()).unwrap();
    let row = |i: i64| (Some(7), None, Some(i));
    let rows: Vec<(Row, i64)> = (0..2_000).rev().map(|i| (row(i), 1)).collect();
    arrangement.apply(&shape.batch(&rows)).unwrap();
    let key: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    for i in 0..2_000_i64 {
        let matches = arrangement.probe(std::slice::from_ref(&key), false).unwrap();
        assert_eq!(matches.rows.len(), usize::try_from(2_000 - i).unwrap());
        let first = arrangement.gather(&matches.rows[..1], &[0, 1, 2]).unwrap();
        assert_eq!(rows_of(&first), [row(i)]);
        arrangement.apply(&shape.batch(&[(row(i), -1)])).unwrap();
    }
    assert!(arrangement.is_empty());
}

/// A row that comes and goes leaves nothing behind that grows.
#[test]
fn churn_does_not_grow_the_state() {
    let shape = by_float();
    let mut arrangement = Arrangement::try_new(&shape.spec()).unwrap();
    let row = |i: i64| (Some(i % 10), Some("a".to_owned()), Some(i));
    for i in 0..2_000 {
        arrangement.apply(&shape.batch(&[(row(i), 1), (row(i - 5), -1)])).unwrap();
    }
    let before = arrangement.memory_bytes();
    for i in 2_000..10_000 {
        arrangement.apply(&shape.batch(&[(row(i), 1), (row(i - 5), -1)])).unwrap();
    }
    assert!(arrangement.memory_bytes() < 2 * before + 100_000);
    assert!(arrangement.base.len() + arrangement.overlay.len() < 3_000);
}

#[test]
fn damaged_bytes_are_an_error() {
    let shape = by_float();
    let mut arrangement = Arrangement::try_new(&shape.spec()).unwrap();
    let rows = |i: i64| ((Some(i % 5), Some(format!("row number {i}")), Some(i)), 1 + i % 2);
    let many: Vec<(Row, i64)> = (0..400).map(rows).collect();
    arrangement.apply(&shape.batch(&many)).unwrap();
    let full = arrangement.write_full().unwrap().bytes().unwrap().into_owned();
    assert!(full.len() > 8_192, "one block");
    let read = |bytes: &[u8], shape: &Shape| -> Result<usize> {
        let mut opened = Arrangement::restore(&shape.spec(), &bytes.to_vec().into(), &[])?;
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5));
        Ok(opened.probe(&[keys], false)?.rows.len())
    };
    assert_eq!(read(&full, &shape).unwrap(), 400);
    for at in (0..full.len()).step_by(7) {
        let mut damaged = full.clone();
        damaged[at] ^= 4;
        assert_eq!(read(&damaged, &shape).unwrap_err().code(), "STATE_CORRUPT", "byte {at}");
    }
    for cut in [0, 1, 31, 32, 40, 5_000, full.len() - 1] {
        assert!(cut == 0 || read(&full[..cut], &shape).is_err());
    }
    // Bytes of another kind, or of an arrangement of other columns.
    assert!(read(&crate::frame::seal(*b"TEST", &[0; 40]), &shape).is_err());
    let other = Shape { strings: DataType::LargeUtf8, ..shape.clone() };
    assert_eq!(read(&full, &other).unwrap_err().code(), "STATE_CORRUPT");
}

/// Opening reads the directory, a probe the blocks of its keys.
#[test]
fn stored_rows_are_read_by_key() {
    #[derive(Debug)]
    struct Counted(Image, Arc<std::sync::atomic::AtomicUsize>);
    impl crate::Stored for Counted {
        fn size(&self) -> u64 {
            self.0.size()
        }
        fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
            self.1.fetch_add(into.len(), std::sync::atomic::Ordering::Relaxed);
            self.0.read(at, into)
        }
    }
    let shape = by_float();
    let mut arrangement = Arrangement::try_new(&shape.spec()).unwrap();
    let rows: Vec<(Row, i64)> =
        (0..50_000).map(|i| ((Some(i), Some(format!("row number {i}")), None), 1)).collect();
    arrangement.apply(&shape.batch(&rows)).unwrap();
    let full = arrangement.write_full().unwrap();
    let (size, read) = (full.size(), Arc::new(std::sync::atomic::AtomicUsize::new(0)));
    let image = Image::new(Counted(full, read.clone()));
    let mut opened = Arrangement::restore(&shape.spec(), &image, &[]).unwrap();
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![7, 49_999, 60_000]));
    for _ in 0..2 {
        let matches = opened.probe(std::slice::from_ref(&keys), false).unwrap();
        let found = opened.gather(&matches.rows, &[0, 1, 2]).unwrap();
        assert_eq!(rows_of(&found), [rows[7].0.clone(), rows[49_999].0.clone()]);
        let read = read.load(std::sync::atomic::Ordering::Relaxed);
        assert!(size > 2_000_000 && read < 150_000, "{read} bytes of {size}");
    }
    opened.apply(&shape.batch(&[(rows[8].0.clone(), -1)])).unwrap();
    assert_eq!(opened.scan(ROWS_MAX).unwrap().iter().map(ZBatch::num_rows).sum::<usize>(), 49_999);
    assert!(!opened.is_empty());
}

#[test]
fn rows_without_columns_are_counted() {
    let schema = Arc::new(Schema::empty());
    let spec = ArrangementSpec { schema: schema.clone(), key: vec![], order: vec![] };
    let mut arrangement = Arrangement::try_new(&spec).unwrap();
    arrangement.apply(&ZBatch::parse(&schema, "+\n+2\n-").unwrap()).unwrap();
    assert_eq!(arrangement.probe(&[], false).unwrap().weights, [2]);
    let full = arrangement.write_full().unwrap();
    let mut arrangement = Arrangement::restore(&spec, &full, &[]).unwrap();
    assert_eq!(arrangement.probe(&[], false).unwrap().weights, [2]);
    arrangement.apply(&ZBatch::parse(&schema, "-2").unwrap()).unwrap();
    assert!(arrangement.is_empty() && arrangement.scan(10).unwrap().is_empty());
}

#[test]
fn wrong_columns_and_weights_are_errors() {
    let shape = by_float();
    let mut arrangement = Arrangement::try_new(&shape.spec()).unwrap();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
    assert_eq!(arrangement.probe(&[text], false).unwrap_err().code(), "ARRANGEMENT_TYPES");
    let row = (Some(1), None, None);
    for _ in 0..2 {
        // First in the overlay, then in the base.
        arrangement.apply(&shape.batch(&[(row.clone(), i64::MAX)])).unwrap();
        let error = arrangement.apply(&shape.batch(&[(row.clone(), 1)])).unwrap_err();
        assert_eq!(error.code(), "WEIGHT_OVERFLOW");
        arrangement = Arrangement::try_new(&shape.spec()).unwrap();
    }
    let spec = ArrangementSpec { key: vec![3], ..shape.spec() };
    assert_eq!(Arrangement::try_new(&spec).unwrap_err().code(), "ARRANGEMENT_SPEC");
}

/// A list whose element field has another name and cannot be NULL is a list all the same.
#[test]
fn nested_names_and_nullability_do_not_count() {
    let list = |name: &str, nullable: bool, values: Vec<i64>| -> ArrayRef {
        let field = Arc::new(Field::new(name, DataType::Int64, nullable));
        let offsets = arrow::buffer::OffsetBuffer::from_lengths([1, 2]);
        Arc::new(ListArray::new(field, offsets, Arc::new(Int64Array::from(values)), None))
    };
    let (item, element) =
        (list("item", true, vec![1, 2, 3]), list("element", false, vec![4, 2, 3]));
    let schema = Arc::new(Schema::new(vec![Field::new("l", item.data_type().clone(), true)]));
    let spec = ArrangementSpec { schema, key: vec![0], order: vec![] };
    let mut arrangement = Arrangement::try_new(&spec).unwrap();
    let batch = |list: &ArrayRef| RecordBatch::try_from_iter([("l", list.clone())]).unwrap();
    arrangement.apply(&ZBatch::inserts(batch(&item))).unwrap();
    arrangement.apply(&ZBatch::deletes(batch(&element))).unwrap();
    assert_eq!(arrangement.probe(std::slice::from_ref(&element), false).unwrap().weights, [-1]);
}
