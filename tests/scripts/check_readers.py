#!/usr/bin/env python3
"""Compares what Polars and deltalake read of a pipeline's tables with what the command line says.

usage: check_readers.py STORAGE BIN [--project DIR]
For every Delta table below STORAGE: Polars `scan_delta`, deltalake's query engine and
`BIN query 'SELECT * FROM t'` give the same multiset of rows; deltalake's change feed and
`BIN query "SELECT * FROM table_changes('t', 0)"` give the same changes of every version.
The project is the nearest folder above STORAGE with a pipeline file, unless given. Tables whose
name starts with `_` or `.` are the engine's own and are left out.
Needs the Python packages polars, deltalake and pyarrow. Prints one line per table and exits 1 when
any reader disagrees.
"""
import argparse
import collections
import datetime
import decimal
import json
import pathlib
import struct
import subprocess
import sys

import deltalake
import polars
import pyarrow

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
MICROSECOND = datetime.timedelta(microseconds=1)
SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
SHOWN = 5


def instant(value):
    """Microseconds since 1970 of a time stamp or of its text; without a zone it counts as UTC."""
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value)
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.timezone.utc)
    return (value - EPOCH) // MICROSECOND


def number(value, single):
    """A float as text, so that NaN equals NaN and -0.0 equals 0.0."""
    value = float(value)
    if single:
        value = struct.unpack("f", struct.pack("f", value))[0]
    return repr(value + 0.0)


def pairs(value):
    """The entries of a map, whichever way a reader hands them out."""
    if isinstance(value, dict):
        return list(value.items())
    return [(e["key"], e["value"]) if isinstance(e, dict) else tuple(e) for e in value]


def canonical(value, kind):
    """A value in a form in which equal values are equal, whoever read them."""
    if value is None:
        return None
    if isinstance(kind, dict):
        if kind["type"] == "struct":
            return tuple(canonical(value.get(f["name"]), f["type"]) for f in kind["fields"])
        if kind["type"] == "array":
            return tuple(canonical(v, kind["elementType"]) for v in value)
        entries = [(canonical(k, kind["keyType"]), canonical(v, kind["valueType"])) for k, v in pairs(value)]
        return tuple(sorted(entries, key=repr))
    if kind in ("float", "double"):
        return number(value, kind == "float")
    if kind.startswith("decimal"):
        return decimal.Decimal(str(value)).normalize() + 0
    if kind == "binary":
        return bytes.fromhex(value) if isinstance(value, str) else bytes(value)
    if kind.startswith("timestamp"):
        return instant(value)
    if kind == "date":
        return str(value)[:10]
    if kind in ("byte", "short", "integer", "long"):
        return int(value)
    return value


def bag(rows, schema):
    """Rows (mappings) as a multiset."""
    return collections.Counter(canonical(row, schema) for row in rows)


def changes(rows, schema):
    """Changes as net weights per version and row."""
    net = collections.Counter()
    for row in rows:
        net[(int(row["_commit_version"]), canonical(row, schema))] += SIGNS[row["_change_type"]]
    return {change: weight for change, weight in net.items() if weight}


def arrow_rows(reader):
    """Rows of an Arrow stream."""
    return pyarrow.RecordBatchReader.from_stream(reader).read_all().to_pylist()


class CommandLine:
    """Rows as the binary prints them."""

    def __init__(self, binary, project):
        self.binary, self.project = str(pathlib.Path(binary).resolve()), project

    def query(self, sql):
        command = [self.binary, "query", "--project", str(self.project), "--format", "json", sql]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode:
            sys.exit("%s\nfailed: %s" % (" ".join(command), done.stderr or done.stdout))
        return json.loads(done.stdout or "[]", parse_float=decimal.Decimal)


def differences(what, ours, theirs):
    """Lines about what only one side has."""
    if ours == theirs:
        return []
    lines = ["  %s differ" % what]
    for name, left, right in (("deltaic", ours, theirs), ("the reader", theirs, ours)):
        only = [(key, n) for key, n in left.items() if right.get(key, 0) != n]
        lines += ["    only %s has %d x %r" % (name, n, key) for key, n in only[:SHOWN]]
        lines += ["    and %d more" % (len(only) - SHOWN)] if len(only) > SHOWN else []
    return lines


def check(folder, name, command_line):
    """Compares one table; returns lines about what is wrong, and counts."""
    table = deltalake.DeltaTable(str(folder))
    schema = json.loads(table.schema().to_json())
    ours = bag(command_line.query('SELECT * FROM "%s"' % name), schema)
    wrong = differences("rows of polars.scan_delta", ours, bag(polars.scan_delta(str(folder)).collect().to_dicts(), schema))
    queried = deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t")
    wrong += differences("rows of deltalake", ours, bag(arrow_rows(queried), schema))
    feed = changes(command_line.query("SELECT * FROM table_changes('%s', 0)" % name), schema)
    wrong += differences("changes of deltalake", feed, changes(arrow_rows(table.load_cdf(starting_version=0)), schema))
    return wrong, sum(ours.values()), len(feed)


def tables(storage):
    """Folders of tables below a folder."""
    logs = sorted(storage.rglob("_delta_log"))
    return [log.parent for log in logs if not log.parent.name.startswith(("_", "."))]


def project_of(storage):
    """The nearest folder above with a pipeline file."""
    for folder in (storage, *storage.parents):
        if any((folder / name).exists() for name in ("pipeline.yml", "spark-pipeline.yml")):
            return folder
    sys.exit("no pipeline.yml above %s; give --project" % storage)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("storage", type=pathlib.Path)
    parser.add_argument("binary")
    parser.add_argument("--project", type=pathlib.Path)
    args = parser.parse_args()
    storage = args.storage.resolve()
    command_line = CommandLine(args.binary, args.project or project_of(storage))
    found, failed = tables(storage), 0
    for folder in found:
        wrong, rows, net = check(folder, folder.name, command_line)
        failed += bool(wrong)
        print("%s: %d rows, %d net changes, %s" % (folder.name, rows, net, "DIFFER" if wrong else "readers agree"))
        print("\n".join(wrong), end="\n" if wrong else "")
    print("%d of %d tables agree" % (len(found) - failed, len(found)))
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
