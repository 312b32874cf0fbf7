#!/usr/bin/env python3
"""kill -9 at random moments of a run, then rerun: the tables must be as without the kill.

usage: kill_and_rerun.py BIN [KILLS [SEED]]
Drives examples/medallion. Each round starts from a fresh folder, runs the first batch, lands the
second, kills the run after a random part of its usual time, runs again, and compares every dataset
and the change feeds' sums with a run that was never killed. Half of the rounds kill the first run.
"""
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "medallion"
DATASETS = ["customers_bronze", "orders_bronze", "customers", "orders", "daily_revenue"]


def project():
    root = pathlib.Path(tempfile.mkdtemp(prefix="kill_"))
    shutil.copytree(EXAMPLE, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("storage"))
    return root


def land_second(root):
    for table in ("customers", "orders"):
        shutil.copy(root / "later" / table / "batch-2.jsonl", root / "landing" / table / "batch-2.jsonl")


def command(binary, root):
    return [binary, "run", "--project", str(root)]


def run(binary, root):
    done = subprocess.run(command(binary, root), capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise SystemExit("run failed: " + done.stderr[-2000:])


def query(binary, root, sql):
    done = subprocess.run([binary, "query", "--project", str(root), "--format", "json", sql],
                          capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise SystemExit("query failed: %s: %s" % (sql, done.stderr[-2000:]))
    return json.loads(done.stdout or "[]")


def multiset(rows):
    counts = {}
    for row in rows:
        key = json.dumps(row, sort_keys=True)
        counts[key] = counts.get(key, 0) + 1
    return counts


def contents(binary, root):
    """Rows of each dataset; the sum of each change feed must be the same rows."""
    found = {}
    for name in DATASETS:
        rows = multiset(query(binary, root, "SELECT * FROM %s" % name))
        total = {}
        for change in query(binary, root, "SELECT * FROM table_changes('%s', 0)" % name):
            kind = change.pop("_change_type")
            change = {k: v for k, v in change.items() if not k.startswith("_commit_")}
            key = json.dumps(change, sort_keys=True)
            total[key] = total.get(key, 0) + (1 if kind in ("insert", "update_postimage") else -1)
        total = {k: n for k, n in total.items() if n}
        if total != rows:
            raise SystemExit("%s: the change feed does not add up to the table" % name)
        found[name] = rows
    return found


def main():
    binary = sys.argv[1]
    kills, seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20, int(sys.argv[3]) if len(sys.argv) > 3 else 7
    chance = random.Random(seed)

    calm = project()
    started = time.monotonic()
    run(binary, calm)
    usual = time.monotonic() - started
    first = contents(binary, calm)
    land_second(calm)
    run(binary, calm)
    second = contents(binary, calm)

    hit = 0
    for n in range(kills):
        root, in_first = project(), n % 2 == 0
        if not in_first:
            run(binary, root)
            land_second(root)
        victim = subprocess.Popen(command(binary, root), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.random() * usual)
        hit += victim.poll() is None
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        run(binary, root)
        if contents(binary, root) != (first if in_first else second):
            raise SystemExit("round %d (seed %d): tables differ after a kill; see %s" % (n, seed, root))
        if in_first:
            land_second(root)
            run(binary, root)
            if contents(binary, root) != second:
                raise SystemExit("round %d (seed %d): tables differ one run after a kill; see %s" % (n, seed, root))
        shutil.rmtree(root)
    shutil.rmtree(calm)
    print("kill -9: %d rounds, %d hit a running process, all tables as without (seed %d)" % (kills, hit, seed))


if __name__ == "__main__":
    main()
