//! Columnar incremental view maintenance: SQL views over Arrow change batches, and whole pipelines.
