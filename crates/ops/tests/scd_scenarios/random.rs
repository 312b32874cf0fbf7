//! Histories without a pattern.

use deltaic_ops::{ScdSpec, ScdType};

use crate::harness::{Random, Target, ignoring, shown, sorted, tracking, wide};

// Histories without a pattern.

/// Shuffled with duplicates in eight batches, and one by one in order: the same target.
fn converges(spec: &ScdSpec) {
    for seed in 0..10 {
        let mut random = Random(seed);
        let events = random.history(2);
        let mut in_order = Target::new(spec);
        for event in &events {
            in_order.batch(event);
        }
        let mut shuffled = Target::new(spec);
        for batch in random.shuffled(&events) {
            shuffled.batch(&batch);
        }
        assert!(!in_order.rows.is_empty(), "seed {seed}");
        assert_eq!(sorted(shown(&shuffled.rows)), sorted(shown(&in_order.rows)), "seed {seed}");
    }
}

#[test]
fn out_of_order_events_converge_in_type_1() {
    converges(&wide(ScdType::Type1));
    converges(&ignoring(ScdType::Type1, &[1, 2]));
}

#[test]
fn out_of_order_events_converge_in_type_2() {
    converges(&wide(ScdType::Type2));
    converges(&tracking(&[1]));
    converges(&ignoring(ScdType::Type2, &[1, 2]));
}

#[test]
fn type_1_rows_equal_the_open_versions_of_type_2() {
    let pairs = [
        (wide(ScdType::Type1), wide(ScdType::Type2)),
        (wide(ScdType::Type1), tracking(&[2])),
        (wide(ScdType::Type1), tracking(&[])),
        (ignoring(ScdType::Type1, &[1, 2]), ignoring(ScdType::Type2, &[1, 2])),
    ];
    for ((one, two), seed) in pairs.iter().flat_map(|pair| (0..10).map(move |seed| (pair, seed))) {
        let (mut one, mut two) = (Target::new(one), Target::new(two));
        let mut random = Random(seed);
        let events = random.history(1);
        for batch in random.shuffled(&events) {
            one.batch(&batch);
            two.batch(&batch);
        }
        let all = shown(&two.rows);
        let open = all.iter().filter_map(|row| row.strip_suffix(" | NULL"));
        let open = open.map(|row| row.rsplit_once(" | ").unwrap().0.to_owned()).collect();
        assert_eq!(sorted(shown(&one.rows)), sorted(open), "seed {seed}");
    }
}
