#!/usr/bin/env python3
"""Lands the flights month by month and compares every view with the same query in DuckDB.

usage: flights_equal_duckdb.py BIN [MONTHS]
After each month every view of examples/flights must hold the rows that DuckDB computes from the
landed files (DOUBLE with a relative tolerance of 1e-9, since DuckDB sums floats in some order).
Needs the Python package duckdb. Exits 1 at the first difference.
"""
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import duckdb

REPO = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = REPO / "examples" / "flights"
TYPES = {"STRING": "VARCHAR", "INT": "INTEGER", "TIMESTAMP": "TIMESTAMP"}


def tables():
    """Name to column definitions, from the example's own read_files calls."""
    text = (EXAMPLE / "transformations" / "tables.sql").read_text()
    found = re.findall(r"STREAMING TABLE (\w+) AS.*?schema => '(.*?)'\)", text, re.S)
    return {name: [column.split() for column in schema.replace("\n", " ").split(",")] for name, schema in found}


def views():
    """Name and query of each view, in the order of the file."""
    text = (EXAMPLE / "transformations" / "views.sql").read_text()
    return re.findall(r"MATERIALIZED VIEW (\w+)\s+COMMENT '[^']*'\s+AS (SELECT.*?);", text, re.S)


def define_in_duckdb(connection, root):
    for name, columns in tables().items():
        typed = ", ".join("'%s': '%s'" % (c, TYPES.get(t, t)) for c, t in columns)
        connection.execute(
            "CREATE OR REPLACE VIEW %s AS SELECT * FROM read_csv('%s/landing/%s/*.csv', header = true, "
            "nullstr = 'NA', columns = {%s})" % (name, root, name, typed))
    for name, query in views():
        connection.execute("CREATE OR REPLACE VIEW %s AS %s" % (name, query))


def same(a, b):
    if isinstance(a, float) or isinstance(b, float):
        if a is None or b is None:
            return a is b
        return math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-12)
    return a == b


def sort_key(row):
    return tuple("" if v is None else "%.6g" % v if isinstance(v, float) else str(v) for v in row)


def main():
    binary, months = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 12
    root = pathlib.Path(tempfile.mkdtemp(prefix="flights_"))
    shutil.copytree(EXAMPLE / "transformations", root / "transformations")
    shutil.copy(EXAMPLE / "pipeline.yml", root)
    connection, compared, seconds = duckdb.connect(), 0, 0.0
    for month in range(1, months + 1):
        subprocess.run([sys.executable, str(EXAMPLE / "land.py"), "--into", str(root), str(month)], check=True)
        started = time.monotonic()
        run = subprocess.run([binary, "run", "--project", str(root)], capture_output=True, text=True, timeout=900)
        seconds += time.monotonic() - started
        if run.returncode != 0:
            raise SystemExit("month %d: run failed: %s" % (month, run.stderr[-2000:]))
        define_in_duckdb(connection, root)
        for name, _ in views():
            cursor = connection.execute("SELECT * FROM %s" % name)
            columns = [c[0] for c in cursor.description]
            want = sorted((tuple(r) for r in cursor.fetchall()), key=sort_key)
            answer = subprocess.run([binary, "query", "--project", str(root), "--format", "json", "SELECT * FROM %s" % name],
                                    capture_output=True, text=True, timeout=300)
            if answer.returncode != 0:
                raise SystemExit("month %d: query of %s failed: %s" % (month, name, answer.stderr[-2000:]))
            got = sorted((tuple(r[c] for c in columns) for r in json.loads(answer.stdout or "[]")), key=sort_key)
            if len(got) != len(want):
                raise SystemExit("month %d: %s has %d rows, DuckDB has %d" % (month, name, len(got), len(want)))
            for g, w in zip(got, want):
                if not all(same(x, y) for x, y in zip(g, w)):
                    raise SystemExit("month %d: %s: got %s, DuckDB has %s" % (month, name, g, w))
            compared += len(want)
    shutil.rmtree(root)
    print("flights: %d months, %d views, %d rows compared, all equal DuckDB's; %.1f s in runs"
          % (months, len(views()), compared, seconds))


if __name__ == "__main__":
    main()
