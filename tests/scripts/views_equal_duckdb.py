#!/usr/bin/env python3
"""Keeps many views at once over changing tables and compares each with DuckDB after every update.

usage: views_equal_duckdb.py BIN [ROUNDS [SEED [RANDOM_VIEWS]]]
Each round makes a project of three keyed tables (AUTO CDC: inserts, updates, deletes), one that only
grows, the views of view_queries.NAMED and RANDOM_VIEWS random ones, some of them over other views.
After every update
- each view has the rows that DuckDB computes from the present rows of the sources,
- the change feed of each view adds up to its rows and is net: no version deletes and inserts one row,
- a full refresh of a random view changes nothing, and a run without input does nothing.
At the end `explain` and the event log are read for each view. Needs the Python package duckdb.
Prints each difference and keeps its project; exits 1 if there was one.
"""
import collections
import datetime
import decimal
import json
import math
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import duckdb

from view_queries import COLUMNS, NAMED, Draw

UPDATES = 5
VALUES = {
    "k": [None, None, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 5],
    "n": [None] + list(range(-20, 40)),
    "b": [None, 2**63 - 1, -2**63, 2**53 + 1, 2**53, 0, 1, 2, 42],
    "d": [None, "NaN", "Infinity", "-Infinity", 0.0, -0.0, 1.5, -2.25, 1e10, 0.1, 0.2, 0.3],
    "m": [None, "0.00", "0.10", "-0.01", "9999999999.99", "-9999999999.99", "12.50", "100.00"],
    "s": [None, "", " ", "a", "a", "A", "ab", "é", "e\u0301", "日本", "😀", "null", "O'Brien", "%_", "a" * 300],
    "dt": [None, "1969-12-31", "2024-02-29", "2024-03-01", "0001-01-01", "9999-12-31", "1582-10-10"],
    "ts": [None, "2024-02-29 23:59:59.999999", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2024-03-01 00:00:00.5"],
    "f": [None, True, True, False],
}


class Source:
    """A table of the project and its present rows, by key."""

    def __init__(self, root, name, keyed):
        self.root, self.name, self.keyed = root, name, keyed
        self.rows, self.sequence, self.files = {}, 0, 0
        (root / "landing" / name).mkdir(parents=True)

    def sql(self):
        columns = ", ".join("%s %s" % (c, t) for c, t, _ in COLUMNS)
        names = ", ".join(c for c, _, _ in COLUMNS)
        read = ("CREATE STREAMING TABLE %s AS SELECT * FROM STREAM read_files('landing/" + self.name +
                "', format => 'json', schema => '%s" + columns + "');\n")
        if not self.keyed:
            return read % (self.name, "")
        return (read % (self.name + "_raw", "id INT, _seq BIGINT, _op STRING, ")
                + "CREATE STREAMING TABLE %s;\nCREATE FLOW %s_flow AS AUTO CDC INTO %s FROM STREAM(%s_raw) KEYS (id) "
                  "APPLY AS DELETE WHEN _op = 'd' SEQUENCE BY _seq COLUMNS * EXCEPT (_seq, _op) STORED AS SCD TYPE 1;\n"
                  "CREATE TEMPORARY VIEW %s_ AS SELECT %s FROM %s;\n" % ((self.name,) * 4 + (self.name, names, self.name)))

    def row(self, r):
        return [r.choice(VALUES[c]) for c, _, _ in COLUMNS]

    def land(self, r, inserts, updates, deletes):
        events = []
        for _ in range(inserts):
            row = list(r.choice(list(self.rows.values()))) if self.rows and r.random() < 0.3 else self.row(r)
            events.append((len(self.rows) + 1 if not self.keyed else self.next_id(), "c", row))
            self.rows[events[-1][0]] = row
        for _ in range(updates if self.rows and self.keyed else 0):
            key = r.choice(list(self.rows))
            row, fresh = list(self.rows[key]), self.row(r)
            for i in r.sample(range(len(row)), r.choice([0, 1, 1, 2, len(row)])):
                row[i] = fresh[i]
            self.rows[key] = row
            events.append((key, "u", row))
        for _ in range(min(deletes, len(self.rows)) if self.keyed else 0):
            key = r.choice(list(self.rows))
            events.append((key, "d", self.rows.pop(key)))
        lines = []
        for key, op, row in events:
            self.sequence += 1
            record = dict(zip([c for c, _, _ in COLUMNS], row))
            if self.keyed:
                record.update(id=key, _seq=self.sequence, _op=op)
            lines.append(json.dumps(record) + "\n")
        if lines:
            self.files += 1
            (self.root / "landing" / self.name / ("%03d.jsonl" % self.files)).write_text("".join(lines))

    def next_id(self):
        self.last_id = getattr(self, "last_id", 0) + 1
        return self.last_id

    def into_duckdb(self, db):
        names = (["id"] if self.keyed else []) + [c for c, _, _ in COLUMNS]
        types = (["INTEGER"] if self.keyed else []) + [t.replace("TIMESTAMP_NTZ", "TIMESTAMP") for _, t, _ in COLUMNS]
        db.execute("CREATE TABLE IF NOT EXISTS %s (%s)" % (self.name, ", ".join(map(" ".join, zip(names, types)))))
        db.execute("DELETE FROM %s" % self.name)
        rows = [([key] if self.keyed else []) + row for key, row in self.rows.items()]
        if rows:
            db.executemany("INSERT INTO %s VALUES (%s)" % (self.name, ", ".join("?" * len(names))), rows)
        if self.keyed:
            db.execute("CREATE OR REPLACE VIEW %s_ AS SELECT %s FROM %s" % (self.name, ", ".join(names[1:]), self.name))


class Round:
    def __init__(self, binary, seed, random_views):
        self.binary, self.seed, self.r = binary, seed, random.Random(seed)
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="views_%d_" % seed))
        (self.root / "transformations").mkdir()
        (self.root / "pipeline.yml").write_text("name: views\nlibraries:\n  - glob:\n      include: transformations/**\n")
        self.sources = [Source(self.root, name, keyed) for name, keyed in [("t", 1), ("u", 1), ("w", 1), ("e", 0)]]
        self.db = duckdb.connect()
        self.db.execute("SET TimeZone = 'UTC'")
        for source in self.sources:
            source.into_duckdb(self.db)
        self.views, self.columns, self.failures, self.refused = {}, {}, [], []
        self.failed = set()
        self.define(random_views)

    def define(self, random_views):
        wanted = dict(NAMED)
        for name, sql in wanted.items():
            self.accept(name, sql)
        draw = Draw(self.r)
        while random_views:
            sql, columns = draw.relation(self.r.randint(1, 3))
            name = "random_%d" % random_views
            if self.accept(name, sql, quiet=True):
                random_views -= 1
                draw.relations.append((name, columns))
        while True:
            self.write_sql()
            refused = self.refusals()
            if not refused:
                break
            for name, why in refused.items():
                if name in self.views:
                    self.refused.append((name, why, self.views.pop(name)))

    def accept(self, name, sql, quiet=False):
        """Takes the view if DuckDB takes it."""
        try:
            self.db.execute("CREATE VIEW %s AS %s" % (name, sql))
        except duckdb.Error as error:
            if not quiet:
                raise SystemExit("DuckDB refuses %s: %s" % (name, error))
            return False
        self.columns[name] = [c[0] for c in self.db.execute("SELECT * FROM %s LIMIT 0" % name).description]
        self.views[name] = sql
        return True

    def write_sql(self):
        (self.root / "transformations" / "sources.sql").write_text("".join(s.sql() for s in self.sources))
        text = "".join("CREATE MATERIALIZED VIEW %s AS\n%s;\n\n" % view for view in self.views.items())
        (self.root / "transformations" / "views.sql").write_text(text)

    def refusals(self):
        check = self.call("dry-run")
        if check.returncode == 0:
            return {}
        found = dict((name, line.strip()) for line in check.stderr.splitlines()
                     for name in re.findall(r"error\[.*?dataset '(\w+)'", line))
        lines = [int(n) for n in re.findall(r"error\[.*?views\.sql:(\d+):", check.stderr)]
        text = (self.root / "transformations" / "views.sql").read_text().splitlines()
        for number, line in zip(lines, [l for l in check.stderr.splitlines() if re.match(r"error\[.*views\.sql", l)]):
            while not text[number - 1].startswith("CREATE"):
                number -= 1
            found.setdefault(text[number - 1].split()[3], line.strip())
        if not found:
            raise SystemExit("seed %d: dry-run fails: %s" % (self.seed, check.stderr[:3000]))
        return found

    def call(self, command, *arguments):
        return subprocess.run([self.binary, command, "--project", str(self.root), *arguments],
                              capture_output=True, text=True, timeout=600)

    def query(self, sql):
        answer = self.call("query", "--format", "json", sql)
        if answer.returncode != 0:
            raise SystemExit("seed %d: %s\nin %s\nproject %s; so far:\n%s" % (
                self.seed, answer.stderr[:600], sql[:300], self.root, "\n".join(self.failures)))
        return json.loads(answer.stdout or "[]")

    def fail(self, step, name, what):
        self.failed.add(name)
        self.failures.append("seed %d update %d: %s %s\n  %s\n  project %s"
                             % (self.seed, step, name, what, self.views.get(name), self.root))

    def stored(self, changes):
        """Rows, or changes, of every view as text, in one query."""
        width = max(len(c) for c in self.columns.values())
        parts = []
        for name in self.views:
            cells = ['CAST("%s" AS STRING) AS c%d' % (c, i) for i, c in enumerate(self.columns[name])]
            cells += ["NULL AS c%d" % i for i in range(len(cells), width)]
            read = ", _change_type AS ct, _commit_version AS cv FROM table_changes('%s', 0)" % name if changes else " FROM " + name
            parts.append("SELECT '%s' AS view_name, %s%s" % (name, ", ".join(cells), read))
        found = {name: [] for name in self.views}
        for start in range(0, len(parts), 20):
            for r in self.query(" UNION ALL ".join(parts[start:start + 20])):
                row = tuple(r["c%d" % i] for i in range(len(self.columns[r["view_name"]])))
                found[r["view_name"]].append((row, r.get("ct"), r.get("cv")))
        return found

    def run(self, step, *arguments):
        run = self.call("run", *arguments)
        if run.returncode != 0 or "panicked" in run.stderr:
            for line in (run.stdout + run.stderr).splitlines():
                name = re.search(r"(?:dataset|flow) '(\w+)'", line)
                if "error" in line and (name is None or name.group(1) not in self.failed):
                    self.fail(step, name.group(1) if name else "run", "failed: " + line[:600])
        return run

    def step(self, step):
        r = self.r
        for source in self.sources:
            if r.random() < 0.8 or step == 0:
                size = r.choice([3, 30]) if step == 0 else r.choice([0, 1, 3, 8])
                source.land(r, size, r.choice([0, 1, 4]), r.choice([0, 1, 5]) if r.random() < 0.9 else len(source.rows))
            source.into_duckdb(self.db)
        self.run(step)
        if r.random() < 0.5:
            before = self.stored(False)
            name = r.choice(list(self.views))
            self.run(step, "--full-refresh", name)
            after = self.stored(False)
            for other in self.views:
                if sorted(before[other], key=repr) != sorted(after[other], key=repr):
                    self.fail(step, other, "changed by a full refresh of %s" % name)
        rows, changes = self.stored(False), self.stored(True)
        for name in self.views:
            if name not in self.failed:
                self.compare(step, name, [row for row, _, _ in rows[name]])
                self.feed(step, name, [row for row, _, _ in rows[name]], changes[name])
        return sum(len(x) for x in rows.values())

    def compare(self, step, name, rows):
        try:
            want = self.db.execute("SELECT * FROM %s" % name).fetchall()
        except duckdb.Error as error:
            print("seed %d: DuckDB fails on %s: %s" % (self.seed, name, str(error)[:200]))
            self.failed.add(name)
            return
        got = [tuple(cell(text, sample) for text, sample in zip(row, samples(want))) for row in rows]
        only_got, only_want = difference(got, want)
        if only_got or only_want:
            self.fail(step, name, "has %s, DuckDB has %s instead (%d and %d rows differ of %d)"
                      % (only_got[:3], only_want[:3], len(only_got), len(only_want), len(want)))

    def feed(self, step, name, rows, changes):
        total, touched = collections.Counter(), collections.defaultdict(set)
        for row, kind, version in changes:
            sign = -1 if kind in ("delete", "update_preimage") else 1
            total[row] += sign
            touched[(version, row)].add(sign)
        if {r: c for r, c in total.items() if c} != dict(collections.Counter(rows)):
            self.fail(step, name, "has a change feed that does not add up to its rows")
        both = [key for key, signs in touched.items() if len(signs) > 1]
        if both:
            self.fail(step, name, "has a change feed that deletes and inserts one row: %s" % (both[:2],))

    def at_rest(self):
        run = json.loads(self.call("run", "--format", "json").stdout or "{}")
        busy = [f for f in run.get("flows", []) if f.get("technique") not in ("NO_OP", None) and f.get("dataset") not in self.failed]
        if busy:
            self.fail(UPDATES, "idle run", "did something: %s" % busy[:3])
        for name in self.views:
            explained = self.call("explain", name)
            if explained.returncode != 0 or "Technique:" not in explained.stdout:
                self.fail(UPDATES, name, "is not explained: %s" % (explained.stdout + explained.stderr)[:500])


def samples(rows):
    """For each column, a value that is not NULL, if there is one."""
    return [next((v for v in column if v is not None), None) for column in zip(*rows)] if rows else iter(lambda: None, 0)


def cell(text, sample):
    """The text of a cell as a value of the type that DuckDB has in that column."""
    if text is None or sample is None or isinstance(sample, str):
        return text
    if isinstance(sample, bool):
        return {"true": True, "false": False}.get(text, text)
    if isinstance(sample, (int, float, decimal.Decimal)):
        try:
            return float(text) if isinstance(sample, float) else decimal.Decimal(text)
        except (ValueError, decimal.InvalidOperation):
            return text
    if isinstance(sample, datetime.datetime):
        text = text.replace("T", " ").rstrip("Z")
        return datetime.datetime.fromisoformat(text) if text[4:5] == "-" else text
    if isinstance(sample, datetime.date):
        return datetime.date.fromisoformat(text[:10])
    return text


def key(row):
    """What rows are compared by. Floats have six digits, so that the order of summation does not matter."""
    return tuple(map(normal, row))


def normal(value):
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return "'%s'" % value
    if isinstance(value, float):
        return "%.6g" % (value + 0.0)
    if isinstance(value, (int, decimal.Decimal)):
        return str(decimal.Decimal(value).normalize() + 0)
    return repr(value)


def difference(got, want):
    left = collections.Counter(map(key, got))
    left.subtract(map(key, want))
    more = [k for k, c in left.items() for _ in range(c)]
    less = [k for k, c in left.items() for _ in range(-c)]
    for row in list(more):
        twin = next((w for w in less if len(w) == len(row) and all(map(near, row, w))), None)
        if twin is not None:
            more.remove(row)
            less.remove(twin)
    return more, less


def near(a, b):
    if a == b:
        return True
    try:
        return math.isclose(float(a), float(b), rel_tol=1e-5, abs_tol=1e-4) and "'" not in a
    except ValueError:
        return False


def main():
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    random_views = int(sys.argv[4]) if len(sys.argv) > 4 else 30
    failures, compared, views, refused, started = [], 0, 0, collections.Counter(), time.monotonic()
    for number in range(seed, seed + rounds):
        one = Round(binary, number, random_views)
        for step in range(UPDATES):
            compared += one.step(step)
        one.at_rest()
        views += len(one.views)
        for name, why, sql in one.refused:
            refused[re.sub(r"'.*?'|\d+", "_", why)[:160]] += 1
            if name in NAMED:
                print("seed %d: %s is refused: %s\n  %s" % (number, name, why, sql))
            elif refused[re.sub(r"'.*?'|\d+", "_", why)[:160]] == 1:
                print("seed %d: a random view is refused: %s\n  %s" % (number, why, sql))
        for failure in one.failures:
            print(failure, flush=True)
        failures += one.failures
        if not one.failures:
            shutil.rmtree(one.root)
    print("views: %d rounds, %d views, %d rows compared after %d updates each, %d random views refused, %d failures; %.0f s"
          % (rounds, views, compared, UPDATES, sum(refused.values()), len(failures), time.monotonic() - started))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
