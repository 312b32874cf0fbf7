//! Stored state: what fits is restored, what does not is refused.

use deltaic_ops::JoinKind;

use super::{batch, columns, join, pairs};
use crate::{Circuit, CircuitBuilder, CircuitOptions, SlotImage};

fn circuit(shards: usize) -> Circuit {
    let mut builder = CircuitBuilder::new();
    let left = builder.source("left", pairs()).unwrap();
    let right = builder.source("right", pairs()).unwrap();
    let join = join(JoinKind::Inner, columns(&["k", "v", "k2", "v2"]));
    let node = builder.add(join, &[left, right]).unwrap();
    builder.output("view", node).unwrap();
    builder.build(CircuitOptions { shards, checks: true }).unwrap()
}

#[test]
fn full_image_and_changes_bring_the_state_back() {
    let mut a = circuit(2);
    a.step(vec![("left".into(), batch("+ 1 | 10\n+ 2 | 20"))]).unwrap();
    let full = a.write_full().unwrap();
    a.step(vec![("left".into(), batch("- 1 | 10\n+ 3 | 30"))]).unwrap();
    let change = a.write_changes().unwrap();
    assert!(change.images.len() < full.images.len(), "an untouched slot was written");
    a.step(Vec::new()).unwrap();
    let nothing = a.write_changes().unwrap();
    assert!(nothing.images.is_empty());

    let mut b = circuit(2);
    b.restore(&full, &[change, nothing]).unwrap();
    assert_eq!(b.epoch(), 3);
    let right = batch("+ 1 | 1\n+ 2 | 2\n+ 3 | 3");
    let out = b.step(vec![("right".into(), right.clone())]).unwrap();
    let mut lines: Vec<_> = out["view"].to_string().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["+ 2 | 20 | 2 | 2", "+ 3 | 30 | 3 | 3"]);
    assert!(!b.state_is_empty());
    assert!(b.state_bytes() > 0);
    b.step(vec![
        ("left".into(), batch("- 2 | 20\n- 3 | 30")),
        ("right".into(), right.negate().unwrap()),
    ])
    .unwrap();
    assert!(b.state_is_empty());
}

#[test]
fn state_of_another_circuit_is_refused() {
    let mut a = circuit(2);
    a.step(vec![("left".into(), batch("+ 1 | 10"))]).unwrap();
    let full = a.write_full().unwrap();
    let refused = |b: &mut Circuit, full: &crate::SlotImages, changes: &[crate::SlotImages]| {
        let error = b.restore(full, changes).unwrap_err();
        assert_eq!(error.code(), "STATE_MISMATCH");
    };
    refused(&mut circuit(3), &full, &[]);

    let mut b = circuit(2);
    let mut less = full.clone();
    less.images.pop();
    refused(&mut b, &less, &[]);
    let mut more = full.clone();
    more.images.push(SlotImage { node: 7, slot: 0, shard: 0, image: Vec::<u8>::new().into() });
    refused(&mut b, &more, &[]);
    let mut twice = full.clone();
    twice.images.push(full.images[0].clone());
    refused(&mut b, &twice, &[]);
    let mut older = full.clone();
    older.epoch = 0;
    refused(&mut b, &full, &[older]);

    assert_eq!(b.epoch(), 0);
    b.restore(&full, &[]).unwrap();
    assert_eq!(b.epoch(), 1);
}
