//! Laws of every operator and flow, as property tests.
