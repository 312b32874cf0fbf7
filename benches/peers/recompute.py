#!/usr/bin/env python3
"""The views in DuckDB, computed anew from tables in memory.

usage: recompute.py DATA THREADS REPEATS WORKLOAD [check]
One line of JSON per run. Time is that of the query into a temporary table over the base rows;
the first of several runs is not counted. With `check`, rows and checksum of the view over the final tables instead.
"""
import json
import resource
import sys
import time

import duckdb

DAY = 86_400_000_000
QUERIES = {
    "w1lin": "SELECT customer_id, count(*) AS n, sum(amount) AS s FROM {orders} GROUP BY 1",
    "w1": "SELECT customer_id, count(*) AS n, sum(amount) AS s, min(amount) AS lo, max(amount) AS hi FROM {orders} GROUP BY 1",
    "w2": f"SELECT epoch_us(ts) // {DAY} AS day, tier, count(*) AS n, sum(amount) AS s"
    " FROM {orders} LEFT JOIN {customers} USING (customer_id) GROUP BY 1, 2",
    "w3": "SELECT l_orderkey, sum(l_extendedprice * (100 - l_discount)) AS revenue, o_orderdate, o_shippriority"
    " FROM {tpch_customer} JOIN {tpch_orders} ON c_custkey = o_custkey JOIN {tpch_lineitem} ON l_orderkey = o_orderkey"
    " WHERE c_mktsegment = 'BUILDING' AND o_orderdate < 9204 AND l_shipdate > 9204"
    " GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10",
    "w5": f"SELECT epoch_us(ts) // {DAY} AS day, count(DISTINCT customer_id) AS n FROM {{orders}} GROUP BY 1",
    "w6": "SELECT customer_id, amount, order_id, row_number() OVER (PARTITION BY customer_id ORDER BY amount DESC, order_id) AS place"
    " FROM {orders} QUALIFY place <= 3",
}
HASHED = {
    "w1lin": ("customer_id", "n", "s"),
    "w1": ("customer_id", "n", "s", "lo", "hi"),
    "w2": ("day * 16 + coalesce(tier, -1)", "n", "s"),
    "w3": ("l_orderkey", "revenue", "o_orderdate", "o_shippriority"),
    "w5": ("day", "n"),
    "w6": ("customer_id", "place", "amount", "order_id"),
}
TABLES = {"w2": ("orders", "customers"), "w3": ("tpch_customer", "tpch_orders", "tpch_lineitem")}
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


def check(data, final, workload):
    names = {table: parquet(data, table + final if table in ("orders", "customers") else table) for table in tables(workload)}
    if workload == "w3":
        names.update({table: changed(data, table) for table in ("tpch_orders", "tpch_lineitem")})
    view = QUERIES[workload].format(**names)
    factors = zip((11, 1, 3, 5, 7), HASHED[workload])
    hashed = " + ".join(f"({column})::HUGEINT * {factor}" for factor, column in factors)
    rows, total = duckdb.execute(f"SELECT count(*), sum({hashed}) FROM ({view})").fetchone()
    return {"rows": rows, "sum": (int(total) + 2**63) % 2**64 - 2**63}


def changed(data, table):
    """The base table and all deltas, summed up."""
    columns = [row[0] for row in duckdb.execute(f"DESCRIBE FROM {parquet(data, table)}").fetchall()]
    names = ", ".join(columns)
    base = f"SELECT *, 1 AS w FROM {parquet(data, table)}"
    deltas = f"SELECT * FROM read_parquet('{data}/{table}_d*.parquet')"
    summed = f"SELECT {names}, sum(w) AS w FROM ({base} UNION ALL BY NAME {deltas}) GROUP BY ALL HAVING sum(w) <> 0"
    return f"(SELECT {names} FROM ({summed}), range(w::BIGINT))"


def main():
    data, threads, repeats, workload, *flags = sys.argv[1:]
    result = {"peer": "duckdb", "workload": workload, "workers": int(threads), "strings": "strings" in flags}
    if "check" in flags:
        result["check"] = check(data, "_final", workload)
    else:
        result.update(measure(data, threads, int(repeats), workload, "strings" in flags))
    print(json.dumps(result))


main()
