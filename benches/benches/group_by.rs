//! Count, sum, minimum and maximum per customer.

use criterion::{Criterion, criterion_group, criterion_main};
use deltaic_benches::bench::scenario;
use deltaic_benches::workload::Workload;

fn group_by(criterion: &mut Criterion) {
    scenario(criterion, &Workload::W1Lin);
    scenario(criterion, &Workload::W1);
}

criterion_group!(benches, group_by);
criterion_main!(benches);
