//! Benchmarks of the kernel and of whole refreshes.
