"""The page docs/performance.md."""
import os
import pathlib
import platform
import subprocess
import textwrap
import tomllib

from tables import NAMES, Results
from views import QUERIES, SHARES

HERE = pathlib.Path(__file__).resolve().parent


def command(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, cwd=HERE).stdout.strip()
    except FileNotFoundError:
        return ""


def machine():
    """The machine, and how busy it is before the run."""
    with open("/proc/cpuinfo") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    model = models[0] if models else platform.machine()
    busy = f"{os.getloadavg()[0]:.1f}"
    return f"{model}, {os.cpu_count()} CPUs, {memory:.0f} GiB of memory, Linux {platform.release()}; load average before the run {busy}"


def locked(lock, package):
    """The version of a package in a lock file."""
    with open(lock, "rb") as file:
        return next((p["version"] for p in tomllib.load(file)["package"] if p["name"] == package), "?")


def versions(results):
    lock = HERE / "Cargo.lock"
    commit = command("git", "describe", "--always", "--dirty", "--exclude", "*")
    found = [f"deltaic {locked(lock, 'deltaic-exec')}" + (f" (commit {commit})" if commit else "") + f" on arrow {locked(lock, 'arrow')}"]
    if results.has("differential", 1):
        found.append(f"differential-dataflow {locked(lock, 'differential-dataflow')} on timely {locked(lock, 'timely')}")
    if results.has("dbsp", 1):
        found.append(f"dbsp {locked(HERE / 'dbsp' / 'Cargo.lock', 'dbsp')}")
    found += sorted({f"DuckDB {entry['version']}" for entry in results.lines if entry["peer"] == "duckdb"})
    return ", ".join([*found, command("rustc", "--version").split(" (")[0]])


def listed(names):
    """Names as a sentence has them: a, b and c."""
    if not names:
        return "nothing else"
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


class Page:
    """What is written about a run."""

    def __init__(self, args, machine, results: Results):
        self.args, self.machine, self.results = args, machine, results
        self.peers = [NAMES[peer] for peer in ("differential", "dbsp") if results.has(peer, 1)]
        # The results of the same run with strings, if there was one.
        self.strings = None

    def summary(self):
        """The ratios, and where they are not what they should be."""
        parts = []
        if self.peers:
            better = f"the better of {' and '.join(self.peers)}" if len(self.peers) > 1 else self.peers[0]
            parts += [RATIOS.format(better=better), self.results.ratios(1)]
            if self.results.has("ours", 2):
                parts += ["The same with two threads, in wall time:\n", self.results.ratios(2, "wall ")]
        if self.results.has("duckdb", 1):
            parts += [AGAINST_RECOMPUTE, self.results.against_recompute()]
        if self.peers:
            losses = [self.results.shortfalls(1), self.results.shortfalls(2, "wall ")]
            parts += [LOSSES, *[table for table in losses if table]] if any(losses) else [LOSSES, "Nowhere in this run.\n"]
        return "\n".join(parts)

    def with_strings(self):
        """What there is to say of the run with strings."""
        results = self.strings
        if results is None:
            return []
        parts = [STRINGS, results.ratios(1)]
        if results.has("ours", 2):
            parts += ["With two threads, in wall time:\n", results.ratios(2, "wall ")]
        losses = [table for table in (results.shortfalls(1), results.shortfalls(2, "wall ")) if table]
        parts += ["Below the aim:\n", *losses] if losses else []
        return [*parts, *(results.times(workload) for workload in results.workloads)]

    def text(self):
        results, args = self.results, self.args
        systems = ["differential-dataflow" if peer == "differential" else peer for peer in self.peers]
        systems += ["DuckDB"] if results.has("duckdb", 1) else []
        parts = [
            INTRODUCTION.format(systems=listed(systems)),
            f"- Machine: {self.machine}\n- Versions: {versions(results)}\n- Size: {args.rows:,} orders, {args.rows // 10:,} customers;"
            f" in W3 {args.rows * 3 // 20:,} orders and about four times as many lines"
            + ("\n- Customers, status and tier are strings" if args.strings else "")
            + f"\n- {'One run' if args.repeat == 1 else f'{args.repeat} runs'} of each program\n",
            self.summary(),
        ]
        if any("share" in entry for entry in results.lines):
            parts += [CROSSOVER, results.crossover(SHARES)]
        parts += [MEMORY, results.memory(), THROUGHPUT, results.throughput(), TIMES]
        for workload in results.workloads:
            parts += [results.times(workload), self.view(workload)]
        return "\n".join([*parts, *self.with_strings(), METHOD])

    def view(self, workload):
        """The view's query, and its size in the end."""
        checks = [entry["check"] for entry in self.results.lines if entry["workload"] == workload and "check" in entry and "share" not in entry]
        size = f"The view has {checks[0]['rows']:,} rows in the end; checksum {checks[0]['sum']}.\n" if checks else ""
        if workload not in QUERIES:
            return size
        names = {name: name for name in ("orders", "customers", "tpch_customer", "tpch_orders", "tpch_lineitem")}
        query = textwrap.fill(QUERIES[workload].format(**names), 110, initial_indent="    ", subsequent_indent="      ")
        return f"{query}\n\n{size}"


INTRODUCTION = """\
# Performance

The kernel beside {systems}: the same inputs, one clock, one run.
In the end the rows and the checksum of every view were the same in all systems, and for W1 to W6 the same as DuckDB
computes from the final tables.
`benches/peers/run --crossover --write` writes this page; [Benchmarks](benchmarks.md) says what else there is.
"""

RATIOS = """\
## Ratios

How many times our CPU time {better} takes, with one thread; above 1
we are faster. In the last column, how many times our resident memory at rest after the load. Bold is below the aim in
the first line (without an aim: below 1).
"""

AGAINST_RECOMPUTE = """\
How many times our CPU time DuckDB takes to compute the view anew, from its own tables in memory, with one thread. Its
query keeps no state and says nothing of what has changed, so that it may well be faster than our load:
"""

LOSSES = """\
## Where we lose

Every figure below its aim, the worst first. Bold means that the peer is better than we are. With one thread these are
CPU times, with two wall times.
"""

CROSSOVER = """\
## Recompute or increment

Our CPU time by the share of the rows that a delta changes, and the share at which it reaches that of DuckDB's query (on
straight lines between the points). Deltas of 20 % and more come alone, straight after the load. An engine that
knows this point computes anew beyond it; [How a refresh is chosen](refresh-decision.md) has the rule.
"""

MEMORY = """\
## Memory

*State* is what our operators count at the end. *Resident* is what the process holds at rest after the load: merges have
had their time, and the allocator has given back what is free. *Peak* is the most that it ever held, input included: our
load holds every column of the input until its epoch ends, the other programs half a million rows at a time. DuckDB's
peak has its tables in it.
"""

THROUGHPUT = """\
## Rows per second
"""

TIMES = """\
## Times

Medians. *One row* is the mean CPU time and the median wall time of epochs with a single row, *no row* that of epochs
without any.
"""

STRINGS = """\
## With strings

The same with customers as strings of 16 bytes, status, tier and region as words, in all systems; dbsp's views are over
numbers alone, so that differential is the peer here. First the ratios:
"""

METHOD = """\
## How it is measured

- The clock runs from columns in memory to the view's delta, drained into a checksum. Making rows out of columns, or Arrow
  arrays, is inside it; reading files, planning, and durability are not.
- The load is one epoch. Then come 20 deltas of 0.01 %, 10 of 0.1 %, 5 of 1 % and 3 of 10 % of the loaded rows, each an
  epoch: 60 % inserts, 20 % updates, 20 % deletes. An update is two rows. In W2 both tables change, in W3 orders and
  lines. The figure of a size is the median over its deltas and all runs.
- Then single rows come, and go again, each in an epoch of its own; then come 2,000 epochs without a row.
- CPU time is that of all threads of the process, and the figure to compare when the machine has other work. Wall time of
  two threads means something only when it has none.
- Customers are skewed: the most frequent has about 1 % of the orders.
- All programs use mimalloc as it comes, give back what is free before their resident memory is read, and are built with
  `opt-level = 3`, ours and differential's with thin LTO as well.
- The systems take turns within a workload. DuckDB's query runs four times in a process; the first does not count.

## Limits

- Everything is in memory, and nothing is durable. A refresh of a pipeline also reads and writes tables.
- Words such as the status are numbers, but for the tables with strings, which cost every system more.
- Differential-dataflow and dbsp may merge their state between deltas, outside the clock, as they do when they wait for
  input.
- Differential's programs are written by us: linear aggregates in the weights (`explode`, `count_total`), generic `reduce`
  where there is no better operator, top-k of W3 in two levels. An expert may find faster ones.
- DuckDB's query is over the tables as loaded, while the later deltas of a series meet tables up to 15 % larger.
- Ratios below 1.3 either way are within what two runs differ on a shared machine.
"""
