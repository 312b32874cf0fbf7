//! The `deltaic` binary.

fn main() {}
