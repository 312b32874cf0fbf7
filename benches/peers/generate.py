#!/usr/bin/env python3
"""Writes the inputs of all systems: tables, and their deltas one after the other.

usage: generate.py --rows 1000000 --out DIR                 tables, the series of deltas, tables in the end
       generate.py --rows 1000000 --out DIR --shares 20 30  deltas of 20 and 30 % alone, each over the tables as loaded

<table>.parquet is for DuckDB, raw/<table>.<column>.bin (64-bit numbers; the code of a word) for the programs. A delta
has the columns of its table and a weight `w`: an update is a row of weight -1 and one of +1. Every random number is a
hash of its stream and its index, so that the files are the same on every machine. manifest.json, written at the end of
the first form, has the row counts.
"""
import argparse
import json
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from views import DELTAS

WORDS = {
    "status": ["OPEN", "PAID", "SHIPPED", "CLOSED", "CANCELLED"],
    "region": ["EMEA", "NORAM", "LATAM", "APAC", "AFRICA", "ANZ", "NORDICS", "CEE"],
    "c_mktsegment": ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"],
}
TIMES = {"ts"}
YEAR_START_US = 1_704_067_200_000_000
YEAR_SECONDS = 365 * 86_400


def bits(stream, count):
    """64-bit numbers of a stream (splitmix64)."""
    u64 = np.uint64
    with np.errstate(over="ignore"):
        z = (np.arange(count, dtype=u64) + u64(stream) * u64(0x632BE59BD9B4E019)) * u64(0x9E3779B97F4A7C15)
        z ^= z >> u64(30)
        z *= u64(0xBF58476D1CE4E5B9)
        z ^= z >> u64(27)
        z *= u64(0x94D049BB133111EB)
        z ^= z >> u64(31)
    return z


def unit(stream, count):
    """Numbers from 0 up to 1."""
    return (bits(stream, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def below(stream, count, limit):
    return (unit(stream, count) * limit).astype(np.int64)


def skewed(stream, count, keys):
    """Keys of which the most frequent has 1 % of the rows at a million keys, and the k-th about k^(-2/3) as many."""
    rank = np.minimum((unit(stream, count) ** 3 * keys).astype(np.int64), keys - 1)
    return (rank * 611_953 + 7) % keys


def shuffled(stream, count):
    return np.argsort(bits(stream, count), kind="stable")


def length(table):
    return len(next(iter(table.values())))


def rows(table, places):
    return {name: column[places].copy() for name, column in table.items()}


def appended(table, more):
    return {name: np.concatenate([column, more[name]]) for name, column in table.items()}


def split(count, per_cent):
    """Inserts, updates and deletes in a delta of so many per cent."""
    changes = int(count * (per_cent / 100))
    return changes * 6 // 10, changes * 2 // 10, changes * 2 // 10


def delta(deleted, before, after, inserted):
    parts = [(deleted, -1), (before, -1), (after, 1), (inserted, 1)]
    columns = {name: np.concatenate([part[name] for part, _ in parts]) for name in before}
    return columns | {"w": np.concatenate([np.full(length(part), weight, np.int64) for part, weight in parts])}


class Output:
    """A folder of tables."""

    def __init__(self, folder):
        self.folder = folder
        self.counts = {}
        (folder / "raw").mkdir(parents=True, exist_ok=True)

    def put(self, table, columns):
        arrays = []
        for name, column in columns.items():
            column = np.ascontiguousarray(column, dtype=np.int64)
            column.tofile(self.folder / "raw" / f"{table}.{name}.bin")
            if name in WORDS:
                codes = pa.array(column.astype(np.int32))
                arrays.append(pa.DictionaryArray.from_arrays(codes, pa.array(WORDS[name])).cast(pa.string()))
            else:
                arrays.append(pa.array(column).cast(pa.timestamp("us")) if name in TIMES else pa.array(column))
        whole = pa.table(arrays, names=list(columns))
        pq.write_table(whole, self.folder / f"{table}.parquet", compression="zstd", compression_level=1, row_group_size=1 << 20)
        self.counts[table] = length(columns)


class Changing:
    """A table whose rows come and go."""

    def __init__(self, table):
        self.table = table
        self.alive = np.ones(length(table), bool)

    def apply(self, updated, after, deleted, inserted):
        for name, column in self.table.items():
            column[updated] = after[name]
        self.alive[deleted] = False
        self.table = appended(self.table, inserted)
        self.alive = np.concatenate([self.alive, np.ones(length(inserted), bool)])

    def present(self):
        return {name: column[self.alive] for name, column in self.table.items()}


class Shop:
    """Orders, and customers of whom 2 % are missing."""

    def __init__(self, count):
        self.order_count, self.customer_count = count, count // 10
        self.next_order = count
        self.orders = Changing(self.new_orders(np.arange(count, dtype=np.int64), 1))
        ids = (np.arange(self.customer_count, dtype=np.int64) * 314_159 + 11) % self.customer_count
        present = int(self.customer_count * 0.98)
        self.customers = Changing(self.new_customers(ids[:present].copy(), 10))
        self.missing = list(ids[present:])
        self.next_customer = self.customer_count

    def new_orders(self, ids, stream):
        n = len(ids)
        return {
            "order_id": ids,
            "customer_id": skewed(stream, n, self.customer_count),
            "status": below(stream + 1, n, 5),
            "amount": 100 + below(stream + 2, n, 1_000_000),
            "ts": YEAR_START_US + below(stream + 3, n, YEAR_SECONDS) * 1_000_000,
        }

    @staticmethod
    def new_customers(ids, stream):
        return {"customer_id": ids, "tier": below(stream, len(ids), 4), "region": below(stream + 1, len(ids), 8)}

    def change_orders(self, per_cent, stream):
        """The next delta of orders; it is applied."""
        inserts, updates, deletes = split(self.order_count, per_cent)
        touched = updates + deletes
        places = np.flatnonzero(self.orders.alive)
        if inserts + touched > 200_000:
            picked = places[shuffled(stream, len(places))[:touched]]
        else:
            picked = np.unique(places[below(stream, touched * 2, len(places))])
            picked = picked[np.argsort(bits(stream + 1, len(picked)))[:touched]] if len(picked) > touched else picked
        updated, deleted = picked[:updates], picked[updates:touched]
        ids = np.arange(self.next_order, self.next_order + inserts)
        inserted = self.new_orders(ids, stream + 2)
        self.next_order += inserts
        before = rows(self.orders.table, updated)
        after = before | {"status": (before["status"] + 1) % 5, "amount": 100 + below(stream + 6, len(updated), 1_000_000)}
        changes = delta(rows(self.orders.table, deleted), before, after, inserted)
        self.orders.apply(updated, after, deleted, inserted)
        return changes

    def change_customers(self, per_cent, stream):
        """The next delta of customers; half of the new ones have orders already. It is applied."""
        inserts, updates, deletes = split(self.customer_count, per_cent)
        places = np.flatnonzero(self.customers.alive)
        picked = places[shuffled(stream + 7, len(places))[: updates + deletes]]
        updated, deleted = picked[:updates], picked[updates : updates + deletes]
        found = min(inserts // 2, len(self.missing))
        new = range(self.next_customer, self.next_customer + inserts - found)
        inserted = self.new_customers(np.array([*self.missing[:found], *new], dtype=np.int64), stream + 8)
        self.next_customer += inserts - found
        before, gone = rows(self.customers.table, updated), rows(self.customers.table, deleted)
        after = before | {"tier": (before["tier"] + 1) % 4}
        self.missing = self.missing[found:] + list(gone["customer_id"])
        self.customers.apply(updated, after, deleted, inserted)
        return delta(gone, before, after, inserted)


class Tpch:
    """Customers, orders and their lines, in the proportions of TPC-H."""

    def __init__(self, count):
        self.customer_count, self.order_count = int(150_000 * (count / 10_000_000)), int(1_500_000 * (count / 10_000_000))
        self.customers = {"c_custkey": np.arange(self.customer_count), "c_mktsegment": below(1001, self.customer_count, 5)}
        self.orders, self.lines = self.new(1010, np.arange(self.order_count, dtype=np.int64))
        keys = np.arange(self.order_count)
        self.first_line = np.searchsorted(self.lines["l_orderkey"], keys)
        self.last_line = np.append(self.first_line[1:], length(self.lines))
        # Each order is touched at most once.
        self.untouched = shuffled(1999, self.order_count)
        self.next_order = self.order_count

    def new(self, stream, keys):
        """Orders with one to seven lines each."""
        n = len(keys)
        orders = {
            "o_orderkey": keys,
            "o_custkey": below(stream, n, self.customer_count),
            "o_orderdate": 8035 + below(stream + 1, n, 2405),
            "o_shippriority": np.zeros(n, np.int64),
        }
        per_order = 1 + below(stream + 2, n, 7)
        of = np.repeat(np.arange(n), per_order)
        total = len(of)
        lines = {
            "l_orderkey": keys[of],
            "l_linenumber": np.arange(total) - np.repeat(np.cumsum(per_order) - per_order, per_order),
            "l_extendedprice": 90_000 + below(stream + 3, total, 10_000_000),
            "l_discount": below(stream + 4, total, 11),
            "l_shipdate": orders["o_orderdate"][of] + 1 + below(stream + 5, total, 121),
        }
        return orders, lines

    def lines_of(self, orders):
        ranges = [np.arange(self.first_line[order], self.last_line[order]) for order in orders]
        return rows(self.lines, np.concatenate(ranges) if ranges else np.zeros(0, np.int64))

    def change(self, per_cent, stream):
        """The next delta of orders, and that of their lines."""
        inserts, updates, deletes = split(self.order_count, per_cent)
        updated, deleted = self.untouched[:updates], self.untouched[updates : updates + deletes]
        self.untouched = self.untouched[updates + deletes :]
        new_orders, new_lines = self.new(stream, np.arange(self.next_order, self.next_order + inserts, dtype=np.int64))
        self.next_order += inserts
        before = rows(self.orders, updated)
        after = before | {"o_shippriority": np.ones(updates, np.int64)}
        orders = delta(rows(self.orders, deleted), before, after, new_orders)
        before = self.lines_of(updated)
        after = before | {"l_extendedprice": 90_000 + below(stream + 10, length(before), 10_000_000)}
        return orders, delta(self.lines_of(deleted), before, after, new_lines)


def series(output, count):
    """The tables, all deltas in a row, and the tables in the end."""
    shop = Shop(count)
    output.put("orders", shop.orders.table)
    output.put("customers", shop.customers.table)
    steps = [(label, float(label), number) for label, deltas in DELTAS.items() for number in range(deltas)]
    for place, (label, per_cent, number) in enumerate(steps, 1):
        output.put(f"orders_d{label}_{number}", shop.change_orders(per_cent, 100 + 20 * place))
        output.put(f"customers_d{label}_{number}", shop.change_customers(per_cent, 100 + 20 * place))
    output.put("orders_final", shop.orders.present())
    output.put("customers_final", shop.customers.present())
    tpch = Tpch(count)
    output.put("tpch_customer", tpch.customers)
    output.put("tpch_orders", tpch.orders)
    output.put("tpch_lineitem", tpch.lines)
    for place, (label, per_cent, number) in enumerate(steps, 1):
        orders, lines = tpch.change(per_cent, 2000 + 20 * place)
        output.put(f"tpch_orders_d{label}_{number}", orders)
        output.put(f"tpch_lineitem_d{label}_{number}", lines)
    (output.folder / "manifest.json").write_text(json.dumps(output.counts, indent=0))


def alone(output, count, per_cent):
    """One delta of this size over the tables as loaded."""
    stream = 10_000 + 20 * per_cent
    shop = Shop(count)
    output.put(f"customers_d{per_cent}_0", shop.change_customers(per_cent, stream))
    output.put(f"orders_d{per_cent}_0", shop.change_orders(per_cent, stream))
    orders, lines = Tpch(count).change(per_cent, stream + 5_000)
    output.put(f"tpch_orders_d{per_cent}_0", orders)
    # Last, as the sign that all are there.
    output.put(f"tpch_lineitem_d{per_cent}_0", lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, required=True, help="orders in the beginning")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--shares", type=int, nargs="+", help="deltas of so many per cent alone")
    args = parser.parse_args()
    output = Output(args.out)
    if args.shares:
        for per_cent in args.shares:
            alone(output, args.rows, per_cent)
    else:
        series(output, args.rows)


if __name__ == "__main__":
    main()
