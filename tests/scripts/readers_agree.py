#!/usr/bin/env python3
"""Polars and deltalake read the tables of both examples as the command line does, at every stage.

usage: readers_agree.py BIN [MONTHS]
Runs examples/medallion over its three batches (inserts, updates, deletes) and examples/flights over
MONTHS months (2 unless given) in temporary folders, and after each run compares rows and change
feeds of every table with check_readers.py.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

SCRIPTS = pathlib.Path(__file__).resolve().parent
EXAMPLES = SCRIPTS.parents[1] / "examples"


def run(binary, root):
    subprocess.run([binary, "run", "--project", str(root)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def check(binary, root):
    subprocess.run([sys.executable, str(SCRIPTS / "check_readers.py"), str(root / "storage" / "tables"), binary, "--project", str(root)], check=True)


def medallion(binary, root):
    shutil.copytree(EXAMPLES / "medallion", root, ignore=shutil.ignore_patterns("storage"))
    for batch in (None, "batch-2.jsonl", "batch-3.jsonl"):
        for table in ("customers", "orders") if batch else ():
            shutil.copy(root / "later" / table / batch, root / "landing" / table / batch)
        run(binary, root)
        check(binary, root)


def flights(binary, root, months):
    shutil.copytree(EXAMPLES / "flights", root, ignore=shutil.ignore_patterns("storage", "landing"))
    for month in range(1, months + 1):
        subprocess.run([sys.executable, str(root / "land.py"), str(month)], check=True)
        run(binary, root)
    check(binary, root)


def main():
    binary, months = str(pathlib.Path(sys.argv[1]).resolve()), int(sys.argv[2]) if len(sys.argv) > 2 else 2
    with tempfile.TemporaryDirectory(prefix="readers_") as folder:
        medallion(binary, pathlib.Path(folder) / "medallion")
        flights(binary, pathlib.Path(folder) / "flights", months)


if __name__ == "__main__":
    main()
