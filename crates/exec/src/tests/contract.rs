//! Wiring, the order of calls, checks, errors.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema};
use deltaic_batch::{Error, ZBatch};
use deltaic_ops::{Algebra, Exchange, Filter, Join, JoinKind, JoinSpec, Project, UnionAll};

use super::{Even, Stub, True, batch, columns, pairs, rows};
use crate::{Circuit, CircuitBuilder, CircuitOptions};

fn options(shards: usize) -> CircuitOptions {
    CircuitOptions { shards, checks: true }
}

/// One source, one stub, one output.
fn circuit(stub: Arc<Stub>, shards: usize) -> Circuit {
    let mut builder = CircuitBuilder::new();
    let source = builder.source("t", pairs()).unwrap();
    let node = builder.add(stub, &[source]).unwrap();
    builder.output("view", node).unwrap();
    builder.build(options(shards)).unwrap()
}

fn step(circuit: &mut Circuit, delta: ZBatch) -> deltaic_batch::Result<ZBatch> {
    Ok(circuit.step(vec![("t".into(), delta)])?.remove("view").unwrap())
}

#[test]
fn one_node_feeds_several_and_a_source_is_an_output() {
    let mut builder = CircuitBuilder::new();
    let t = builder.source("t", pairs()).unwrap();
    let filter = |b: &mut CircuitBuilder| {
        let filter = Filter::try_new(pairs(), Arc::new(Even), "v even".into()).unwrap();
        b.add(Arc::new(filter), &[t]).unwrap()
    };
    let (a, b) = (filter(&mut builder), filter(&mut builder));
    let both = builder.add(Arc::new(UnionAll::try_new(pairs(), 3).unwrap()), &[a, b, t]).unwrap();
    for (name, node) in [("source", t), ("even", a), ("all", both)] {
        builder.output(name, node).unwrap();
    }
    let mut circuit = builder.build(options(2)).unwrap();
    let out = circuit.step(vec![("t".into(), batch("+ 1 | 2\n+ 1 | 3\n+ 1 | 3"))]).unwrap();
    assert_eq!(out["source"].to_string(), "+ 1 | 2\n+2 1 | 3\n");
    assert_eq!(out["even"].to_string(), "+ 1 | 2\n");
    assert_eq!(out["all"].to_string(), "+3 1 | 2\n+2 1 | 3\n");
    let metrics = circuit.metrics();
    let counts: Vec<_> = metrics.iter().map(|m| (m.name, m.rows_in, m.rows_out)).collect();
    assert_eq!(counts, [("Source", 3, 3), ("Filter", 3, 1), ("Filter", 3, 1), ("UnionAll", 5, 5)]);
}

#[test]
fn deltas_of_one_source_add_up_and_missing_ones_are_empty() {
    let mut circuit = circuit(
        Stub::new(Exchange::Any, Algebra::Linear, false, |inputs, _, out| {
            out.push(inputs[0].clone())
        }),
        2,
    );
    let twice = vec![("t".into(), batch("+ 1 | 1\n+ 2 | 2")), ("t".into(), batch("- 1 | 1"))];
    assert_eq!(circuit.step(twice).unwrap()["view"].to_string(), "+ 2 | 2\n");
    assert!(circuit.step(Vec::new()).unwrap()["view"].is_empty());
    assert_eq!(circuit.epoch(), 2);
}

#[test]
fn a_large_load_in_several_batches_is_one_delta() {
    for shards in [1, 2, 3] {
        let mut circuit = circuit(
            Stub::new(Exchange::Any, Algebra::Linear, false, |inputs, _, out| {
                out.push(inputs[0].clone())
            }),
            shards,
        );
        let part = |n: i64| rows(&(0..n).map(|i| (i, n, 1)).collect::<Vec<_>>());
        let parts = [5, 20_000, 1, 9_000, 5];
        let inputs = parts.map(|n| ("t".to_owned(), part(n))).into();
        let out = circuit.step(inputs).unwrap().remove("view").unwrap();
        assert_eq!(out.num_rows(), 29_006);
        assert_eq!(out.weights().iter().sum::<i64>(), 29_011);
    }
}

#[test]
fn the_first_epoch_calls_every_operator_in_every_shard_and_later_ones_only_with_input() {
    let stub = || {
        Stub::new(Exchange::ByKey(vec![0]), Algebra::NonLinear, false, |inputs, cx, out| {
            if cx.is_first() && cx.shard == 0 {
                out.push(rows(&[(0, 0, 1)]))?;
            }
            // The idle check calls with nothing; the driver itself does not.
            out.push(inputs[0].clone())
        })
    };
    for shards in [1, 2, 5] {
        let mut circuit = circuit(stub(), shards);
        assert_eq!(step(&mut circuit, batch("")).unwrap().to_string(), "+ 0 | 0\n");
        assert!(step(&mut circuit, batch("")).unwrap().is_empty());
        assert_eq!(step(&mut circuit, batch("+ 4 | 4")).unwrap().to_string(), "+ 4 | 4\n");
    }
}

#[test]
fn an_operator_and_a_shard_without_input_are_not_called() {
    let stub = Stub::new(Exchange::ByKey(vec![0]), Algebra::NonLinear, false, |inputs, cx, out| {
        if inputs[0].is_empty() && !cx.is_first() {
            return Err(Error::internal("CALLED", "with nothing"));
        }
        out.push(inputs[0].clone())
    });
    let mut builder = CircuitBuilder::new();
    let t = builder.source("t", pairs()).unwrap();
    let other = builder.source("other", pairs()).unwrap();
    for (name, source) in [("view", t), ("idle", other)] {
        let node = builder.add(stub.clone(), &[source]).unwrap();
        builder.output(name, node).unwrap();
    }
    let mut circuit = builder.build(CircuitOptions { shards: 3, checks: false }).unwrap();
    for delta in ["", "+ 1 | 1", "", "+ 2 | 2\n- 1 | 1"] {
        let delta = batch(delta);
        assert_eq!(step(&mut circuit, delta.clone()).unwrap().num_rows(), delta.num_rows());
    }
}

#[test]
fn equal_keys_meet_in_one_shard_whatever_the_size_of_the_delta() {
    // Sums the weights of each key of the delta.
    let stub = Stub::new(Exchange::ByKey(vec![0]), Algebra::NonLinear, false, |inputs, _, out| {
        let keys = inputs[0].project(&[0, 0])?.consolidate()?;
        let batch = RecordBatch::try_new(pairs(), keys.rows().columns().to_vec())?;
        out.push(ZBatch::try_new(batch, vec![1_i64; keys.num_rows()])?)
    });
    for shards in [1, 3] {
        let mut circuit = circuit(stub.clone(), shards);
        let many: Vec<_> = (0..40_000).map(|i| (i % 1000, i, 1)).collect();
        let out = step(&mut circuit, rows(&many)).unwrap();
        assert_eq!(out.num_rows(), 1000);
        assert!(out.weights().iter().all(|&w| w == 1), "a key was seen in two shards");
    }
}

#[test]
fn rows_that_cancel_out_reach_no_function() {
    // The first operator makes up a row and takes it back; the second one fails on it.
    let fan = Stub::new(Exchange::ByKey(vec![0]), Algebra::NonLinear, false, |inputs, _, out| {
        out.push(rows(&[(13, 13, 1)]))?;
        out.push(inputs[0].clone())?;
        out.push(rows(&[(13, 13, -1)]))
    });
    let picky = Stub::new(Exchange::Any, Algebra::Linear, false, |inputs, _, out| {
        if inputs[0].to_string().contains("13") {
            return Err(Error::data("THIRTEEN", "a row that never was"));
        }
        out.push(inputs[0].clone())
    });
    let mut builder = CircuitBuilder::new();
    let t = builder.source("t", pairs()).unwrap();
    let fan = builder.add(fan, &[t]).unwrap();
    let picky = builder.add(picky, &[fan]).unwrap();
    builder.output("view", picky).unwrap();
    let mut circuit = builder.build(CircuitOptions { shards: 1, checks: false }).unwrap();
    assert_eq!(step(&mut circuit, batch("+ 1 | 1")).unwrap().to_string(), "+ 1 | 1\n");
}

#[test]
fn rows_without_columns_flow_and_join() {
    let none = columns(&[]);
    let rows = |weights: Vec<i64>| {
        let options = RecordBatchOptions::new().with_row_count(Some(weights.len()));
        let rows = RecordBatch::try_new_with_options(none.clone(), Vec::new(), &options).unwrap();
        ZBatch::try_new(rows, weights).unwrap()
    };
    for shards in [1, 3] {
        let mut builder = CircuitBuilder::new();
        let left = builder.source("left", none.clone()).unwrap();
        let right = builder.source("right", none.clone()).unwrap();
        let filter = Filter::try_new(none.clone(), Arc::new(True), "true".into()).unwrap();
        let filtered = builder.add(Arc::new(filter), &[left]).unwrap();
        let project = Project::try_new(none.clone(), Vec::new(), String::new()).unwrap();
        let projected = builder.add(Arc::new(project), &[filtered]).unwrap();
        for kind in [JoinKind::Inner, JoinKind::Full, JoinKind::LeftAnti] {
            let join = Join::try_new(JoinSpec {
                left: none.clone(),
                right: none.clone(),
                kind,
                on: Vec::new(),
                null_equals_null: false,
                residual: None,
                columns: Vec::new(),
                output: none.clone(),
                detail: String::new(),
            });
            let node = builder.add(Arc::new(join.unwrap()), &[projected, right]).unwrap();
            builder.output(format!("{kind:?}"), node).unwrap();
        }
        let mut circuit = builder.build(options(shards)).unwrap();
        let mut step = |left: Vec<i64>, right: Vec<i64>| -> Vec<i64> {
            let inputs = vec![("left".to_owned(), rows(left)), ("right".to_owned(), rows(right))];
            let out = circuit.step(inputs).unwrap();
            ["Inner", "Full", "LeftAnti"].map(|name| out[name].weights().iter().sum()).into()
        };
        assert_eq!(step(vec![1; 20], vec![]), [0, 20, 20]);
        assert_eq!(step(vec![], vec![1, 2]), [60, 40, -20]);
        assert_eq!(step(vec![-15], vec![-3]), [-60, -55, 5]);
    }
}

#[test]
fn wiring_is_checked() {
    let mut builder = CircuitBuilder::new();
    let t = builder.source("t", pairs()).unwrap();
    let one = builder.source("one", columns(&["k"])).unwrap();
    assert!(builder.source("t", pairs()).is_err(), "same name twice");
    let union = || Arc::new(UnionAll::try_new(pairs(), 2).unwrap());
    assert!(builder.add(union(), &[t]).is_err(), "too few inputs");
    assert!(builder.add(union(), &[t, one]).is_err(), "other columns");
    assert!(builder.output("view", crate::NodeId(9)).is_err(), "no such node");
    builder.output("view", t).unwrap();
    assert!(builder.output("view", t).is_err(), "same name twice");
    assert!(builder.build(CircuitOptions { shards: 0, checks: true }).is_err());
}

#[test]
fn wrong_input_is_refused_and_does_no_harm() {
    let stub = || {
        Stub::new(Exchange::Any, Algebra::Linear, false, |inputs, _, out| {
            out.push(inputs[0].clone())
        })
    };
    let mut circuit = circuit(stub(), 1);
    assert!(circuit.step(vec![("x".into(), batch(""))]).is_err());
    let other = ZBatch::empty(columns(&["k"]));
    assert!(step(&mut circuit, other).is_err());
    assert_eq!(circuit.epoch(), 0);
    assert_eq!(step(&mut circuit, batch("+ 1 | 1")).unwrap().num_rows(), 1);
}

#[test]
fn a_failed_step_poisons_the_circuit() {
    let stub = Stub::new(Exchange::Any, Algebra::Linear, false, |inputs, _, out| {
        if inputs[0].num_rows() > 1 {
            return Err(Error::data("DIVIDE_BY_ZERO", "v is zero"));
        }
        out.push(inputs[0].clone())
    });
    let mut circuit = circuit(stub, 1);
    step(&mut circuit, batch("+ 1 | 1")).unwrap();
    let stored = circuit.write_full().unwrap();
    assert_eq!(step(&mut circuit, batch("+ 1 | 1\n+ 2 | 0")).unwrap_err().code(), "DIVIDE_BY_ZERO");
    let error = step(&mut circuit, batch("+ 1 | 1")).unwrap_err();
    assert_eq!(error.code(), "CIRCUIT_POISONED");
    assert!(error.to_string().contains("restore"), "{error}");
    assert!(circuit.write_full().is_err());
    assert!(circuit.write_changes().is_err());
    circuit.restore(&stored, &[]).unwrap();
    assert_eq!(circuit.epoch(), 1);
    assert_eq!(step(&mut circuit, batch("+ 1 | 1")).unwrap().num_rows(), 1);
}

/// What the checks say of a stub.
fn broken(stub: Arc<Stub>, deltas: &[&str]) -> String {
    let mut circuit = circuit(stub, 1);
    for delta in deltas {
        if let Err(error) = step(&mut circuit, batch(delta)) {
            assert_eq!(error.code(), "OPERATOR_CONTRACT");
            return error.message().to_owned();
        }
    }
    panic!("the checks found nothing");
}

#[test]
fn checks_find_an_operator_that_breaks_its_contract() {
    let set = Stub::new(Exchange::Any, Algebra::Linear, true, |i, _, out| out.push(i[0].clone()));
    assert!(broken(set.clone(), &["+ 1 | 1", "+ 1 | 1"]).contains("2 times"));
    assert!(broken(set, &["- 1 | 1"]).contains("-1 times"));

    let zero =
        Stub::new(Exchange::Any, Algebra::Linear, false, |_, _, out| out.push(rows(&[(1, 1, 0)])));
    assert!(broken(zero, &["+ 1 | 1"]).contains("weight zero"));

    let restless = Stub::new(Exchange::Any, Algebra::NonLinear, false, |_, _, out| {
        out.push(rows(&[(1, 1, 1)]))
    });
    assert!(broken(restless, &["", ""]).contains("empty delta gave output"));

    let foreign = Stub::new(Exchange::Any, Algebra::Linear, false, |i, _, out| {
        out.push(i[0].project(&[1, 0])?)
    });
    assert!(broken(foreign, &["+ 1 | 1"]).contains("the output is"));
}

#[test]
fn sources_are_made_canonical() {
    let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Float64, true)]));
    let mut builder = CircuitBuilder::new();
    let t = builder.source("t", schema.clone()).unwrap();
    builder.output("view", t).unwrap();
    let mut circuit = builder.build(options(2)).unwrap();
    let x: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN]));
    let delta = ZBatch::inserts(RecordBatch::try_new(schema, vec![x]).unwrap());
    assert_eq!(step(&mut circuit, delta).unwrap().weights().as_ref(), &[2, 2]);
}

#[test]
fn a_circuit_can_move_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Circuit>();
}
