#!/usr/bin/env python3
"""Change events merged into a dimension of type 2 on disk: deltaic beside DuckDB, delta-rs and Polars, in one run.

    benches/peers/dimension.py target/release/deltaic
    benches/peers/dimension.py target/release/deltaic --keys 100000 --systems deltaic duckdb

The dimension has ten columns. Batches touch 0.1, 1 and 10 % of the keys; a tenth of their keys is new, 5 % are deletes,
and 5 % come late and split the history of their key. Each system keeps one row per version with its end, commits
each batch, and in the end has the same versions. Without an engine that knows how, the merge is written by hand: DuckDB
by LEAD over the touched keys, Polars the same and the whole table anew, delta-rs by Polars for the new versions and its
MERGE. deltaic runs as its users run it: a project with one AUTO CDC flow, a new process for each batch. Times are those
of the process and its children; those of the others leave the start of Python out.
"""
import interpreter

interpreter.use(["numpy", "pyarrow", "duckdb", "polars", "deltalake"])

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import time

import dimension_data
from dimension_data import BATCHES, COLUMNS

CACHE = interpreter.CACHE
ALL = ["deltaic", "duckdb", "deltalake", "polars"]
KEPT = ["id", *COLUMNS, "seq"]
SQL = """
CREATE STREAMING TABLE dim;
CREATE FLOW into_dim AS AUTO CDC INTO dim
FROM STREAM read_files('landing', format => 'parquet')
KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2;
"""
RESULT = """
SELECT count(*) AS versions, count(*) FILTER (WHERE __END_AT IS NULL) AS open, CAST(sum(credit) AS BIGINT) AS credit
FROM dim
"""


class Deltaic:
    def __init__(self, folder, binary):
        self.folder, self.binary = folder, binary
        (folder / "landing").mkdir()
        (folder / "transformations").mkdir()
        (folder / "pipeline.yml").write_text("name: dimension\n")
        (folder / "transformations" / "dim.sql").write_text(SQL)

    def apply(self, batch):
        os.link(batch, self.folder / "landing" / batch.name)
        self.run("run")

    load = apply

    def run(self, *words):
        command = [str(self.binary), *words, "--project", str(self.folder)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=3600)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def result(self):
        return tuple(json.loads(self.run("query", RESULT, "--format", "json"))[0].values())


class DuckDb:
    def __init__(self, folder, _binary):
        import duckdb

        self.con = duckdb.connect(str(folder / "dim.db"))
        self.con.execute("SET preserve_insertion_order = false")

    def load(self, batch):
        self.con.execute(
            f"CREATE TABLE dim AS SELECT {', '.join(KEPT)}, false AS gone, NULL::TIMESTAMPTZ AS ends "
            f"FROM read_parquet('{batch}')"
        )

    def apply(self, batch):
        kept = ", ".join(KEPT)
        for statement in [
            "BEGIN",
            f"CREATE TEMP TABLE new AS SELECT {kept}, op = 'D' AS gone FROM read_parquet('{batch}')",
            f"""CREATE TEMP TABLE all_of AS
                SELECT *, lead(seq) OVER (PARTITION BY id ORDER BY seq) AS ends FROM (
                  SELECT {kept}, gone, ends AS ended, false AS is_new FROM dim WHERE id IN (SELECT id FROM new)
                  UNION ALL SELECT {kept}, gone, NULL, true FROM new)""",
            """UPDATE dim SET ends = a.ends FROM all_of a
               WHERE dim.id = a.id AND dim.seq = a.seq AND NOT a.is_new AND a.ends IS DISTINCT FROM a.ended""",
            f"INSERT INTO dim SELECT {kept}, gone, ends FROM all_of WHERE is_new",
            "DROP TABLE new",
            "DROP TABLE all_of",
            "COMMIT",
        ]:
            self.con.execute(statement)

    def result(self):
        return self.con.execute(
            "SELECT count(*), count(*) FILTER (WHERE ends IS NULL), sum(credit)::BIGINT FROM dim WHERE NOT gone"
        ).fetchone()


class Frames:
    """What Polars and delta-rs have in common: versions of the touched keys, with their ends."""

    def __init__(self, folder, _binary):
        import polars

        self.pl, self.path = polars, str(folder / "dim")

    def read(self, batch):
        pl = self.pl
        events = pl.read_parquet(batch)
        return events.select(*KEPT, (pl.col("op") == "D").alias("gone"))

    def versions(self, events, touched):
        """Old and new versions of the keys of `events`; `ended` is the end that old ones had."""
        pl = self.pl
        end = pl.lit(None, touched.schema["ends"])
        old = touched.rename({"ends": "ended"}).with_columns(pl.lit(False).alias("is_new"))
        new = events.with_columns(end.alias("ended"), pl.lit(True).alias("is_new"))
        both = pl.concat([old, new.select(old.columns)]).sort("id", "seq")
        return both.with_columns(pl.col("seq").shift(-1).over("id").alias("ends"))

    def counted(self, frame):
        pl = self.pl
        open_rows = pl.col("ends").is_null().sum()
        rows = frame.filter(~pl.col("gone")).select(pl.len(), open_rows.alias("open"), pl.col("credit").sum())
        return tuple(rows.collect().row(0))

    def first(self, batch):
        events = self.read(batch)
        return events.with_columns(self.pl.lit(None, events.schema["seq"]).alias("ends"))


class Polars(Frames):
    def write(self, frame):
        frame.write_parquet(self.path + ".new", compression="zstd", compression_level=1, row_group_size=1 << 18)
        os.replace(self.path + ".new", self.path)

    def load(self, batch):
        self.write(self.first(batch))

    def apply(self, batch):
        events, dim = self.read(batch), self.pl.read_parquet(self.path)
        touched = dim.join(events.select("id"), on="id", how="semi")
        rest = dim.join(events.select("id"), on="id", how="anti")
        self.write(self.pl.concat([rest, self.versions(events, touched).select(dim.columns)]))

    def result(self):
        return self.counted(self.pl.scan_parquet(self.path))


class DeltaLake(Frames):
    def load(self, batch):
        self.first(batch).write_delta(self.path)

    def apply(self, batch):
        from deltalake import DeltaTable

        pl, events = self.pl, self.read(batch)
        keys = events.lazy().select("id")
        touched = pl.scan_delta(self.path).join(keys, on="id", how="semi").collect(engine="streaming")
        changed = self.versions(events, touched.select(*KEPT, "gone", "ends"))
        changed = changed.filter(pl.col("is_new") | pl.col("ends").ne_missing(pl.col("ended")))
        source = changed.select(*KEPT, "gone", "ends", "is_new").to_arrow(compat_level=pl.CompatLevel.oldest())
        merge = DeltaTable(self.path).merge(
            source, "t.id = s.id AND t.seq = s.seq AND s.is_new = false", source_alias="s", target_alias="t"
        )
        merge = merge.when_matched_update({"ends": "s.ends"})
        merge.when_not_matched_insert({name: f"s.{name}" for name in [*KEPT, "gone", "ends"]}).execute()

    def result(self):
        return self.counted(self.pl.scan_delta(self.path))


SYSTEMS = {"deltaic": Deltaic, "duckdb": DuckDb, "deltalake": DeltaLake, "polars": Polars}


def cpu_seconds():
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def timed(action, *arguments):
    wall, cpu = time.perf_counter(), cpu_seconds()
    action(*arguments)
    return 1000 * (time.perf_counter() - wall), 1000 * (cpu_seconds() - cpu)


def size_on_disk(folder):
    files = [path for path in folder.rglob("*") if path.is_file() and "landing" not in path.parts]
    return sum(path.stat().st_size for path in files)


def measure(name, binary, data, scratch):
    """Times of the load and of the batches, the size on disk, and the result."""
    folder = scratch / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    system = SYSTEMS[name](folder, binary)
    times = {"load": [timed(system.load, data / "load.parquet")]}
    for share, count in BATCHES.items():
        times[share] = [timed(system.apply, data / f"{share}_{n}.parquet") for n in range(count)]
    found = {"times": times, "bytes": size_on_disk(folder), "result": system.result()}
    shutil.rmtree(folder, ignore_errors=True)
    return found


def table(results, kind):
    at = {"CPU": 1, "wall": 0}[kind]
    lines = [f"| {kind} ms | load | 0.1 % | 1 % | 10 % | MiB on disk |", "|---|---:|---:|---:|---:|---:|"]
    for name, found in results.items():
        medians = [statistics.median(run[at] for run in runs) for runs in found["times"].values()]
        cells = " | ".join(f"{median:,.0f}" for median in medians)
        lines.append(f"| {name} | {cells} | {found['bytes'] / 2**20:,.0f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--keys", type=int, default=5_000_000)
    parser.add_argument("--systems", nargs="+", choices=ALL, default=ALL)
    args = parser.parse_args()
    data = pathlib.Path(os.environ.get("PEERS_DATA", CACHE / "data")) / f"dimension-{args.keys}"
    if not (data / "done").exists():
        dimension_data.write(data, args.keys)
    scratch = pathlib.Path(os.environ.get("PEERS_SCRATCH", CACHE / "scratch"))
    results = {}
    for name in args.systems:
        results[name] = measure(name, args.binary.resolve(), data, scratch)
        print(name, results[name]["result"], file=sys.stderr, flush=True)
    print(f"{args.keys:,} keys; batches of {', '.join(BATCHES)} % of them\n")
    print(table(results, "CPU"), table(results, "wall"), sep="\n\n")
    if len({found["result"] for found in results.values()}) > 1:
        sys.exit("THE RESULTS DIFFER: " + str({name: found["result"] for name, found in results.items()}))
    print("\nall results agree")


if __name__ == "__main__":
    main()
