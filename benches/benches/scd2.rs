//! Change events merged into a wide dimension of type 2.

use criterion::{Criterion, criterion_group, criterion_main};
use deltaic_benches::bench::scenario;
use deltaic_benches::dimension::Scd2;

fn scd2(criterion: &mut Criterion) {
    scenario(criterion, &Scd2);
}

criterion_group!(benches, scd2);
criterion_main!(benches);
