#!/usr/bin/env python3
"""Keeps the queries of TPC-H or TPC-DS as views over changing tables; compares each with DuckDB after every batch.

usage: tpc_equal_duckdb.py BIN h|ds [--scale 0.01] [--batches 3] [--seed 1] [--only 5,7] [--write FILE] [--explain FILE]
Data and query texts come from DuckDB's extensions, which are Python packages. A tenth of every table is held back.
Then every batch inserts some of what is missing, deletes rows of every table, and gives others the values of a
neighbour, small tables included. After each batch every view has the rows that DuckDB computes from the present
rows; where a query ends in a LIMIT whose order has ties, any rows that DuckDB may choose. With --write, a table of
what is maintained how, from `explain`, goes to FILE. With --explain, what `explain` says of all views is compared with
FILE, which is written where it is not there. Prints each difference; exits 1 if there was one, or a query that is refused.
"""
import argparse
import difflib
import importlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import duckdb

from views_equal_duckdb import cell, difference, samples

LIMIT = re.compile(r"\s+limit\s+(\d+)\s*;?\s*$", re.I)
# A quotient that DuckDB makes NULL and the SQL standard an error, where a class of items has sold nothing.
SHARE = re.compile(r"/sum\(sum\((\w+)\)\) OVER \(PARTITION BY i_class\)")
# Views that one call reads.
VIEWS = 12


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("benchmark", choices=["h", "ds"])
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="numbers of queries")
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--explain", type=pathlib.Path)
    return parser.parse_args()


class Tpc:
    def __init__(self, args):
        self.args, self.failures = args, []
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="tpc%s_" % args.benchmark))
        (self.root / "transformations").mkdir()
        (self.root / "pipeline.yml").write_text("name: tpc\nlibraries:\n  - glob:\n      include: transformations/**\n")
        self.db = duckdb.connect()
        importlib.import_module("duckdb_extension_tpc" + args.benchmark)
        self.load()
        self.tables = self.generate()
        self.queries = self.texts()
        self.write_sql()
        self.sequence = 0
        for name in self.tables:
            self.land(name, "c", "present")

    def load(self):
        """The extension, as its package has it."""
        name = "tpc" + self.args.benchmark
        package = importlib.import_module("duckdb_extension_" + name)
        found = list(pathlib.Path(package.__file__).parent.rglob("%s.duckdb_extension*" % name))
        try:
            self.db.execute("LOAD '%s'" % found[0]) if found else self.db.execute("LOAD " + name)
        except duckdb.Error as error:
            sys.exit("DuckDB's extension %s does not load: %s" % (name, error))

    def generate(self):
        call = "dbgen" if self.args.benchmark == "h" else "dsdgen"
        self.db.execute("CALL %s(sf = %s)" % (call, self.args.scale))
        self.db.execute("SELECT setseed(%f)" % (self.args.seed % 1000 / 1000))
        tables = {}
        for (name,) in self.db.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall():
            columns = [row[0] for row in self.db.execute("DESCRIBE %s" % name).fetchall()]
            self.db.execute("CREATE TABLE all_%s AS SELECT row_number() OVER () AS _id, random() > 0.1 AS present, * FROM %s" % (name, name))
            self.db.execute("DROP TABLE %s" % name)
            self.db.execute("CREATE VIEW %s AS SELECT %s FROM all_%s WHERE present" % (name, ", ".join(columns), name))
            tables[name] = columns
            (self.root / "landing" / name).mkdir(parents=True)
        return tables

    def texts(self):
        rows = self.db.execute("FROM tpc%s_queries()" % self.args.benchmark).fetchall()
        only = {int(n) for n in self.args.only.split(",") if n}
        guarded = lambda text: SHARE.sub(r"/nullif(sum(sum(\1)) OVER (PARTITION BY i_class), 0)", text)
        return {"q%02d" % number: guarded(text.strip().rstrip(";")) for number, text in rows if not only or number in only}

    def write_sql(self):
        folder, parts = self.root / "transformations", []
        for name, columns in self.tables.items():
            parts.append(
                "CREATE STREAMING TABLE raw_{0} AS SELECT * FROM STREAM read_files('landing/{0}', format => 'parquet');\n"
                "CREATE STREAMING TABLE keyed_{0};\n"
                "CREATE FLOW flow_{0} AS AUTO CDC INTO keyed_{0} FROM STREAM(raw_{0}) KEYS (_id) APPLY AS DELETE WHEN _op = 'd' "
                "SEQUENCE BY _seq COLUMNS * EXCEPT (_seq, _op) STORED AS SCD TYPE 1;\n"
                "CREATE TEMPORARY VIEW {0} AS SELECT {1} FROM keyed_{0};\n".format(name, ", ".join(columns)))
        (folder / "sources.sql").write_text("".join(parts))
        for name, text in self.queries.items():
            (folder / (name + ".sql")).write_text("CREATE MATERIALIZED VIEW %s AS\n%s;\n" % (name, text))

    def call(self, command, *words):
        return subprocess.run([str(self.args.bin.resolve()), command, "--project", str(self.root), *words], capture_output=True, text=True, timeout=3600)

    def land(self, name, op, condition):
        """Changes of rows of a table that are in the table `changed`."""
        self.sequence += 1
        target = self.root / "landing" / name / ("%06d.parquet" % self.sequence)
        columns = ", ".join(self.tables[name])
        self.db.execute("COPY (SELECT _id, %s, %d::BIGINT AS _seq, '%s' AS _op FROM all_%s WHERE %s) TO '%s' (FORMAT parquet)"
                        % (columns, self.sequence, op, name, condition, target))

    def change(self, name):
        """Some inserts, updates and deletes of a table."""
        rows = self.db.execute("SELECT count(*) FROM all_%s" % name).fetchone()[0]
        chosen = "SELECT _id FROM all_%s WHERE %s AND random() < %f"
        for op, present, share in [("c", "NOT present", 0.2), ("u", "present", 0.02), ("d", "present", 0.02)]:
            self.db.execute("CREATE OR REPLACE TEMP TABLE changed AS " + chosen % (name, present, max(share, 0.3 / max(rows, 1))))
            if op == "u":
                values = ", ".join("%s = other.%s" % (c, c) for c in self.tables[name])
                self.db.execute("UPDATE all_%s AS own SET %s FROM all_%s AS other WHERE own._id IN (FROM changed) AND other._id = own._id %% %d + 1"
                                % (name, values, name, rows))
            elif op == "c":
                self.db.execute("UPDATE all_%s SET present = true WHERE _id IN (FROM changed)" % name)
            self.land(name, op, "_id IN (FROM changed)")
            if op == "d":
                self.db.execute("UPDATE all_%s SET present = false WHERE _id IN (FROM changed)" % name)

    def refused(self):
        """Views that do not pass the check, which are left out."""
        found = {}
        while True:
            check = self.call("dry-run")
            if check.returncode == 0:
                return found
            names = set(re.findall(r"transformations/(q\d+)\.sql|dataset '(q\d+)'", check.stderr))
            names = {a or b for a, b in names} & set(self.queries)
            if not names:
                sys.exit("dry-run fails: " + check.stderr[:3000])
            for name in names:
                found[name] = next(line for line in check.stderr.splitlines() if name in line)[:300]
                del self.queries[name]
                (self.root / "transformations" / (name + ".sql")).unlink()

    def stored(self, names):
        """Rows of some views as text, in one call."""
        widths = {name: len(self.db.execute("DESCRIBE " + self.queries[name]).fetchall()) for name in names}
        parts = []
        for name in names:
            cells = ["CAST(x%d AS STRING) AS c%d" % (i, i) for i in range(widths[name])]
            cells += ["CAST(NULL AS STRING) AS c%d" % i for i in range(widths[name], max(widths.values()))]
            # By place, since systems name columns without a name differently.
            columns = ", ".join("x%d" % i for i in range(widths[name]))
            parts.append("SELECT '%s' AS view_name, %s FROM %s AS t(%s)" % (name, ", ".join(cells), name, columns))
        answer = self.call("query", "--format", "json", " UNION ALL ".join(parts))
        if answer.returncode != 0:
            return None if len(names) == 1 else {k: v for name in names for k, v in (self.stored([name]) or {}).items()}
        found = {name: [] for name in names}
        for row in json.loads(answer.stdout or "[]"):
            name = row["view_name"]
            found[name].append(tuple(row["c%d" % i] for i in range(widths[name])))
        return found

    def compare(self, batch):
        names, stored = list(self.queries), {}
        for start in range(0, len(names), VIEWS):
            stored.update(self.stored(names[start:start + VIEWS]) or {})
        for name, text in self.queries.items():
            if name not in stored:
                self.failures.append("batch %d: %s cannot be read" % (batch, name))
                continue
            got, want = stored[name], self.db.execute(text).fetchall()
            more, less = self.differ(got, want)
            if (more or less) and not self.chosen(text, got, len(want)):
                self.failures.append("batch %d: %s: has %s, DuckDB has %s instead (%d and %d rows differ of %d)"
                                     % (batch, name, more[:2], less[:2], len(more), len(less), len(want)))

    def differ(self, got, want):
        kinds = list(samples(want))[:len(want and want[0])] if want else []
        rows = [tuple(map(cell, row, kinds)) for row in got] if want else got
        return difference(rows, want)

    def chosen(self, text, got, count):
        """True when the rows are some of those without the LIMIT, and as many as there should be."""
        if not LIMIT.search(text) or len(got) != count:
            return False
        more, _ = self.differ(got, self.db.execute(LIMIT.sub("", text)).fetchall())
        return not more

    def explained(self):
        """Per query: technique, incremental and hybrid nodes, and why."""
        found = {}
        shown = []
        for part in self.call("explain").stdout.split("-- ")[1:]:
            name, _, text = part.partition("\n")
            if name not in self.queries:
                continue
            # The tree alone: what a refresh costs depends on the data.
            shown.append("-- %s\n%s\n" % (name, text.partition("\n\n")[0].strip()))
            lines = [line.strip(" │├└─") for line in text.splitlines()]
            technique = next((line.split(": ")[1] for line in lines if line.startswith("Technique:")), "?")
            nodes = [line for line in lines if re.match(r"[A-Z][A-Za-z]+( |$)", line) and not line.startswith("Technique")]
            reasons = [line.split(": ", 1)[1] for line in lines if line.startswith("PLAN_NOT_INCREMENTALIZABLE")]
            found[name] = (technique, len(nodes), sum("HYBRID:" in node for node in nodes), reasons)
        if self.args.explain:
            self.compare_explained("\n".join(shown))
        return found

    def compare_explained(self, text):
        if not self.args.explain.exists():
            self.args.explain.write_text(text)
        known = self.args.explain.read_text()
        if text != known:
            lines = difflib.unified_diff(known.splitlines(), text.splitlines(), str(self.args.explain), "explain now", lineterm="", n=1)
            self.failures.append("\n".join(list(lines)[:60]) + "\nIf this is meant, remove the file and run once more.")

    def run(self):
        refused = self.refused()
        for batch in range(self.args.batches + 1):
            if batch:
                for name in self.tables:
                    self.change(name)
            start = time.monotonic()
            run = self.call("run")
            spent = time.monotonic() - start
            if run.returncode != 0:
                self.failures.append("batch %d: run fails:\n%s" % (batch, (run.stdout + run.stderr)[-3000:]))
            self.compare(batch)
            print("batch %d: run in %.1f s, %d views compared, %d failures" % (batch, spent, len(self.queries), len(self.failures)), flush=True)
        explained = self.explained()
        for name, (technique, _, _, reasons) in explained.items():
            for reason in reasons:
                print("%s: %s: %s" % (name, technique, reason[:200]))
        for name, why in refused.items():
            print("%s is refused: %s" % (name, why))
        print("\n".join(self.failures))
        print(self.summary(explained, refused))
        if self.args.write:
            self.document(explained, refused)
        return not refused

    def summary(self, explained, refused):
        nodes, hybrid = sum(x[1] for x in explained.values()), sum(x[2] for x in explained.values())
        return ("TPC-%s: %d of %d queries are views, %d of %d nodes are hybrid, %d differences from DuckDB in %d batches"
                % (self.args.benchmark.upper(), len(explained), len(explained) + len(refused), hybrid, nodes, len(self.failures), self.args.batches + 1))

    def document(self, explained, refused):
        """Puts the section of this benchmark into the page."""
        title = "## TPC-" + self.args.benchmark.upper()
        rows = ["| query | technique | nodes | hybrid | why |", "| --- | --- | ---: | ---: | --- |"]
        for name, (technique, nodes, hybrid, reasons) in explained.items():
            why = "; ".join(sorted({reason.rsplit(": ", 1)[0].split(": ", 1)[-1] for reason in reasons}))
            rows.append("| %s | %s | %d | %d | %s |" % (name[1:].lstrip("0"), technique, nodes, hybrid, why))
        rows += ["| %s | refused | | | %s |" % item for item in refused.items()]
        words = "`%s`\n\n%s: scale %g, seed %d." % (
            " ".join(["tests/scripts/tpc_equal_duckdb.py target/debug/deltaic"] + sys.argv[2:]), self.summary(explained, refused), self.args.scale, self.args.seed)
        text = self.args.write.read_text() if self.args.write.exists() else HEAD
        before, _, after = text.partition(title + "\n")
        after = after[after.find("\n## "):] if "\n## " in after else ""
        self.args.write.write_text("%s\n\n%s\n\n%s\n\n%s\n%s" % (before.rstrip(), title, words, "\n".join(rows), after))


HEAD = """\
# Coverage

How the queries of two benchmarks are maintained as views, and that they equal DuckDB's answer after every batch of
inserts, updates and deletes of every table. Each section is written by the command above it. A *node* is one line of
`deltaic explain`; a *hybrid* one is recomputed from all of its input when that changes, all others do work in proportion
to the change or, for windows and generic aggregates, to the groups that it touches.
"""


def main():
    tpc = Tpc(arguments())
    is_complete = tpc.run()
    if tpc.failures:
        print("project: %s" % tpc.root)
    else:
        shutil.rmtree(tpc.root)
    sys.exit(1 if tpc.failures or not is_complete else 0)


if __name__ == "__main__":
    main()
