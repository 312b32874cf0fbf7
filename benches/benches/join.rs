//! Orders LEFT JOIN customers, by day and tier; both sides change.

use criterion::{Criterion, criterion_group, criterion_main};
use deltaic_benches::bench::scenario;
use deltaic_benches::workload::Workload;

fn join(criterion: &mut Criterion) {
    scenario(criterion, &Workload::W2);
}

criterion_group!(benches, join);
criterion_main!(benches);
