//! Benchmarks of the kernel and of whole refreshes.
//!
//! Every workload has one definition here: its data ([`orders`], [`dimension`]), its circuit and
//! its meaning in plain loops ([`workload`], [`dimension`]). The bench targets first run a workload once over its
//! whole schedule of changes and print what it cost ([`schedule`]), then hand single steps to
//! criterion. The number of rows is `DELTAIC_BENCH_ROWS`, 100,000 by default.
//!
//! ```text
//! cargo bench -p deltaic-benches --bench group_by -- --test        # once each, as a smoke test
//! DELTAIC_BENCH_ROWS=10000000 cargo bench -p deltaic-benches
//! ```

pub mod bench;
pub mod clock;
pub mod dimension;
pub mod orders;
pub mod random;
pub mod schedule;
pub mod workload;

/// Rows of the base table: `DELTAIC_BENCH_ROWS`, or 100,000.
pub fn rows() -> usize {
    std::env::var("DELTAIC_BENCH_ROWS").ok().and_then(|n| n.parse().ok()).unwrap_or(ROWS_SMALL)
}

/// State partitions: `DELTAIC_BENCH_SHARDS`, or 2.
pub fn shards() -> usize {
    std::env::var("DELTAIC_BENCH_SHARDS").ok().and_then(|n| n.parse().ok()).unwrap_or(2)
}

/// The smallest size, at which every result is compared with its definition.
pub const ROWS_SMALL: usize = 100_000;
