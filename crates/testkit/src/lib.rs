//! Generators, oracles and the law suite (for tests only).
