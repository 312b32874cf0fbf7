//! Laws of each operator of the kernel, in circuits built without the planner.

use deltaic_testkit::{
    Epoch, Law, Query, Root, Subject, Tape, build_circuit, check_laws, draw_epochs, draw_query,
    integrate,
};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::strategy::Strategy;

use crate::runner::check;
use crate::{LawTest, Settings};

/// Bytes for the query, bytes per change and epoch, and a seed.
pub(crate) type Drawn = (Vec<u8>, Vec<Vec<Vec<u8>>>, u64);

pub(crate) fn drawn() -> impl Strategy<Value = Drawn> {
    (vec(any::<u8>(), 0..48), vec(vec(vec(any::<u8>(), 0..16), 0..8), 1..7), any::<u64>())
}

pub(crate) fn describe(query: &Query, epochs: &[Epoch]) -> String {
    let mut text = format!("{}\n", query.sql());
    for (i, epoch) in epochs.iter().enumerate() {
        for (name, delta) in epoch {
            let rows = deltaic_testkit::batch_rows(delta.rows()).unwrap_or_default();
            for (row, weight) in rows.iter().zip(delta.weights().iter()) {
                text.push_str(&format!("epoch {i} {name} {weight:+} {row:?}\n"));
            }
        }
    }
    text
}

pub(crate) fn laws() -> Vec<LawTest> {
    vec![
        LawTest { name: "filter", run: |settings| operator(settings, Root::Filter, 1) },
        LawTest { name: "project", run: |settings| operator(settings, Root::Project, 1) },
        LawTest { name: "set operation", run: |settings| operator(settings, Root::Set, 1) },
        LawTest { name: "join", run: |settings| operator(settings, Root::Join, 1) },
        LawTest { name: "aggregate", run: |settings| operator(settings, Root::Group, 1) },
        LawTest { name: "distinct", run: |settings| operator(settings, Root::Distinct, 1) },
        LawTest { name: "top-k", run: |settings| operator(settings, Root::TopK, 1) },
        LawTest { name: "operators", run: |settings| operator(settings, Root::Any, 3) },
    ]
}

/// All laws of a circuit of operators up to `depth` deep, with `root` on top.
fn operator(settings: Settings, root: Root, depth: usize) -> Result<(), String> {
    let query = |bytes: &[u8]| draw_query(&mut Tape::new(bytes), root, depth, false);
    let mut laws = Law::ALL.to_vec();
    if matches!(root, Root::Filter | Root::Project) {
        laws.push(Law::Linearity);
    }
    check(
        settings,
        &drawn(),
        |(plan, data, _)| describe(&query(plan), &draw_epochs(data).unwrap_or_default()),
        |(plan, data, seed)| {
            let query = query(plan);
            let epochs = draw_epochs(data)?;
            let subject = Subject {
                make: &|options| build_circuit(&query, options),
                output: "view",
                oracle: &|epochs| Ok(query.eval(&integrate(epochs)?)),
            };
            check_laws(&subject, &laws, &epochs, *seed)
        },
    )
}
