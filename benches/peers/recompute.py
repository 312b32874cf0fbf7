#!/usr/bin/env python3
"""The views in DuckDB, computed anew from tables in memory.

usage: recompute.py DATA THREADS REPEATS WORKLOAD [strings]
       recompute.py DATA check WORKLOAD [LABEL]
One line of JSON. The first form measures the query into a temporary table over the tables as loaded; a first run is not
counted. The second has rows and checksum of the view after the whole series of deltas, or after the one delta alone
whose label is given.
"""
import json
import resource
import sys
import time

import duckdb

from views import DELTAS, HASHED, QUERIES, TABLES

CUSTOMER_TEXT = "printf('%016x', ((customer_id::HUGEINT * 11400714819323198485) % 18446744073709551616)::UBIGINT)"
TIERS = "['bronze', 'silver', 'gold', 'platinum'][tier + 1]"


def tables(workload):
    return TABLES.get(workload, ("orders",))


def parquet(data, table):
    return f"read_parquet('{data}/{table}.parquet')"


def with_strings(table, source):
    """The table with customers and tiers as strings."""
    replaced = {"orders": f"{CUSTOMER_TEXT} AS customer_id", "customers": f"{CUSTOMER_TEXT} AS customer_id, {TIERS} AS tier"}
    return f"SELECT * REPLACE ({replaced[table]}) FROM {source}" if table in replaced else f"FROM {source}"


def measure(data, threads, repeats, workload, strings):
    con = duckdb.connect()
    con.execute(f"SET threads = {threads}; SET preserve_insertion_order = false")
    for table in tables(workload):
        source = parquet(data, table)
        con.execute(f"CREATE TABLE {table} AS {with_strings(table, source) if strings else 'FROM ' + source}")
    query = QUERIES[workload].format(**{table: table for table in tables(workload)})
    runs = []
    for _ in range(repeats + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        con.execute(f"CREATE OR REPLACE TEMP TABLE result AS {query}")
        runs.append({"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu})
    rows = sum(con.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables(workload))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"rows": rows, "runs": runs[1:], "peak_mib": peak}


def check(data, workload, label):
    changing = [table for table in tables(workload) if table != "tpch_customer"]
    names = {table: parquet(data, table) for table in tables(workload)}
    for table in changing:
        if label is None and table in ("orders", "customers"):
            names[table] = parquet(data, f"{table}_final")
        else:
            names[table] = changed(data, table, DELTAS if label is None else [label])
    view = QUERIES[workload].format(**names)
    factors = zip((11, 1, 3, 5, 7), HASHED[workload])
    hashed = " + ".join(f"({column})::HUGEINT * {factor}" for factor, column in factors)
    rows, total = duckdb.execute(f"SELECT count(*), sum({hashed}) FROM ({view})").fetchone()
    return {"rows": rows, "sum": (int(total) + 2**63) % 2**64 - 2**63}


def changed(data, table, labels):
    """The table as loaded and deltas, summed up."""
    columns = [row[0] for row in duckdb.execute(f"DESCRIBE FROM {parquet(data, table)}").fetchall()]
    names = ", ".join(columns)
    base = f"SELECT *, 1 AS w FROM {parquet(data, table)}"
    files = ", ".join(f"'{data}/{table}_d{label}_*.parquet'" for label in labels)
    summed = f"SELECT {names}, sum(w) AS w FROM ({base} UNION ALL BY NAME FROM read_parquet([{files}])) GROUP BY ALL HAVING sum(w) <> 0"
    return f"(SELECT {names} FROM ({summed}), range(w::BIGINT))"


def main():
    data, *words = sys.argv[1:]
    if words[0] == "check":
        _, workload, *labels = words
        result = {"workload": workload, "check": check(data, workload, *(labels or [None]))}
    else:
        threads, repeats, workload, *flags = words
        result = {"peer": "duckdb", "version": duckdb.__version__, "workload": workload, "workers": int(threads)}
        result |= {"strings": "strings" in flags} | measure(data, threads, int(repeats), workload, "strings" in flags)
    print(json.dumps(result))


main()
