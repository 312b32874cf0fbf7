#!/usr/bin/env bash
# The whole test run, on a clean clone with Rust and Python 3 alone: formatting, lints, unit, property
# and doc tests, the recorded cases through the binary, independent readers of our tables, DuckDB
# beside the flights example, kills in the middle of runs, each benchmark once at its smallest size, and
# the kernel beside differential-dataflow.
set -euo pipefail
cd "$(dirname "$0")/.."
step() { printf '\n== %s (after %d s)\n' "$1" "$SECONDS"; }

step "format"
cargo fmt --all --check

step "lints"
# A lock file that lacks a dependency fails here.
cargo clippy --locked --workspace --all-targets --quiet -- -D warnings

# One selection of packages for everything that follows: cargo unifies features over the selection,
# and another one would compile DataFusion anew. This also runs each benchmark once.
step "unit, property and integration tests, benchmarks once each at the smallest size"
cargo test --workspace --all-targets --quiet

step "doc tests"
cargo test --workspace --doc --quiet

step "the library example"
cargo build --workspace --examples --quiet
target/debug/examples/view

step "the kernel without DataFusion"
cargo run --quiet -p deltaic --no-default-features --example circuit

bin=$PWD/target/debug/deltaic

step "recorded cases through the command line"
python3 tests/scripts/recorded_cases.py "$bin"
python3 tests/tools/golden_runner.py "$bin" tests/golden/auto-cdc

step "Python packages of the independent readers"
python=${DELTAIC_TEST_VENV:-target/test-venv}/bin/python
if ! "$python" -c 'import duckdb, duckdb_extension_tpch, duckdb_extension_tpcds, polars, deltalake, pyarrow, numpy' 2>/dev/null; then
  python3 -m venv "$(dirname "$(dirname "$python")")"
  "$python" -m pip install --quiet --disable-pip-version-check -r tests/scripts/requirements.txt
fi

# A workspace of its own, with other features of the same crates: a target folder of its own as well.
step "the kernel beside differential-dataflow: equal checksums"
CARGO_TARGET_DIR=target/peers PEERS_DATA=target/peers-data "$python" benches/peers/run --short

step "flights: every view equals DuckDB's"
"$python" tests/scripts/flights_equal_duckdb.py "$bin" 12

step "views over random changes: every view equals DuckDB's, every change feed adds up"
"$python" -u tests/scripts/views_equal_duckdb.py "$bin" 1 1 8

step "TPC-H and TPC-DS: every query as a view, equal to DuckDB after each batch of changes"
"$python" -u tests/scripts/tpc_equal_duckdb.py "$bin" h --batches 2 --explain tests/golden/explain/tpch.txt
"$python" -u tests/scripts/tpc_equal_duckdb.py "$bin" ds --batches 1

# Files of the sqllogictest format that are no part of this repository, in the folder $SLT_CORPUS.
if [ -n "${SLT_CORPUS:-}" ]; then
  step "one query in a thousand of a sqllogictest corpus"
  cargo build --workspace --bin corpus --quiet
  target/debug/corpus --every 1000 --seed "$RANDOM" "$SLT_CORPUS"
fi

step "kill -9 and rerun"
python3 tests/scripts/kill_and_rerun.py "$bin" 20

step "Polars and deltalake read the same rows and changes"
"$python" tests/scripts/readers_agree.py "$bin"

step "all passed"
