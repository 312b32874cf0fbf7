"""Tables of a run, in Markdown."""
import os
import platform
import statistics
import subprocess

TITLES = {
    "w1lin": "W1lin: count, sum per customer",
    "w1": "W1: count, sum, min, max per customer",
    "w2": "W2: orders LEFT JOIN customers, count and sum per day and tier",
    "w3": "W3: like TPC-H Q3, top 10",
    "w5": "W5: different customers per day",
    "w6": "W6: three largest orders per customer, numbered",
    "epochs": "Epochs: filter, then count and sum per customer",
    "idle": "Idle: twenty operators in a row",
}
LABELS = ["0.01", "0.1", "1", "10"]


def median(values):
    return statistics.median(values)


def of_system(lines, workload, peer, workers):
    return [e for e in lines if (e["workload"], e["peer"], e["workers"]) == (workload, peer, workers)]


def figures(entries):
    """The medians over all runs of a program: name of a column to value, wall times in ms with a `wall` before it."""
    result = {}
    first = entries[0]
    if first["peer"] == "duckdb":
        result["load"] = median([r["cpu_s"] * 1e3 for e in entries for r in e["runs"]])
        result["wall load"] = median([r["wall_s"] * 1e3 for e in entries for r in e["runs"]])
    else:
        result["load"] = median([e["load"]["cpu_s"] * 1e3 for e in entries])
        result["wall load"] = median([e["load"]["wall_s"] * 1e3 for e in entries])
        result["resident"] = median([e["load"]["resident_mib"] for e in entries])
        for label in first["deltas"]:
            result[label] = median([s["cpu_s"] * 1e3 for e in entries for s in e["deltas"][label]])
            result["wall " + label] = median([s["wall_s"] * 1e3 for e in entries for s in e["deltas"][label]])
        for name in ("single", "empty"):
            if name in first:
                result[name] = median([e[name]["cpu_s"] / e[name]["count"] * 1e3 for e in entries])
                result["wall " + name] = median([e[name]["median_us"] / 1e3 for e in entries])
                result[name + "/s"] = median([e[name]["count"] / e[name]["wall_s"] for e in entries])
        if "state_bytes" in first:
            result["state"] = median([e["state_bytes"] / 2**20 for e in entries])
    result["peak"] = median([e["peak_mib"] for e in entries])
    return result


def number(value):
    """Three digits that count."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}" if value >= 0.01 else f"{value:.4f}"


def pair(row, name):
    return f"{number(row[name])} / {number(row['wall ' + name])}" if name in row else ""


def systems(lines, workload):
    """Peer and workers, in the order of their first run."""
    return list(dict.fromkeys((e["peer"], e["workers"]) for e in lines if e["workload"] == workload))


def table(header, rows):
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *rows]) + "\n"


def of_workload(workload, lines):
    """CPU and wall medians of every system."""
    header = ["ms of CPU / wall", "load", *(f"{label} %" for label in LABELS), "one row", "no row", "resident MiB", "peak MiB", "state MiB"]
    rows = []
    for peer, workers in systems(lines, workload):
        row = figures(of_system(lines, workload, peer, workers))
        name = f"{peer}, {workers} thread{'s' if workers > 1 else ''}" + (" (full query)" if peer == "duckdb" else "")
        times = [pair(row, column) for column in ("load", *LABELS, "single", "empty")]
        rows.append([name, *times, *(number(row.get(column)) for column in ("resident", "peak", "state"))])
    return f"### {TITLES[workload]}\n\n" + table(header, rows)


def summary(workloads, lines):
    """How many times our CPU time (or memory) the others take, one thread each."""
    columns = ["load", *LABELS, "single", "empty", "resident"]
    titles = ["load", *(f"{label} %" for label in LABELS), "one row", "no row", "resident"]
    rows = []
    for workload in workloads:
        own = of_system(lines, workload, "ours", 1)
        if not own:
            continue
        own = figures(own)
        for peer, workers in systems(lines, workload):
            if peer == "ours" or workers != 1:
                continue
            other = figures(of_system(lines, workload, peer, 1))
            against = {column: other["load"] for column in ("load", *LABELS)} if peer == "duckdb" else other
            ratio = lambda c: f"{against[c] / own[c]:.2f}" if against.get(c) and own.get(c) else ""
            rows.append([f"{workload}, {peer}", *map(ratio, columns)])
    note = "Times our CPU time (memory), one thread; above 1 we are faster (smaller). DuckDB's full query stands against every column.\n\n"
    return "### Ratios\n\n" + note + table(["workload, system", *titles], rows)


def machine():
    with open("/proc/cpuinfo") as file:
        model = next((l.split(":", 1)[1].strip() for l in file if l.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout.strip()
    return f"{model}, {os.cpu_count()} CPUs, {memory:.0f} GiB, Linux {platform.release()}, {rustc}, load average {os.getloadavg()[0]:.1f}"


def document(args, lines):
    """docs/performance.md."""
    names = {"ours": "our kernel", "differential": "differential-dataflow", "dbsp": "dbsp", "duckdb": "DuckDB"}
    peers = ", ".join(names[p] for p in dict.fromkeys(e["peer"] for e in lines))
    strings = " Customers, status and tier are strings." if args.strings else ""
    parts = [
        "# Performance\n",
        f"This page is written by `benches/peers/run --write`. {peers} in one run over the same inputs, {args.rows:,} base"
        f" rows, {args.repeat} run{'s' if args.repeat > 1 else ''} of each program; all checksums agree.{strings}\n",
        f"Machine: {machine()}.\n",
        LIMITS,
        summary(args.workloads, lines),
        losses(args.workloads, lines),
        "## Figures\n",
        *(of_workload(workload, lines) for workload in args.workloads),
    ]
    return "\n".join(parts)


LIMITS = """\
## What is measured

- From columns in memory to the view's delta, drained into a checksum. Making rows from columns, or Arrow arrays, is part
  of it; reading files, planning and durability are not. DuckDB's figure is the full query over its tables in memory.
- The load is one epoch; then come deltas of 0.01, 0.1, 1 and 10 % of the base rows (60 % inserts, 20 % updates, 20 %
  deletes; an update is two rows), 20, 10, 5 and 3 of them; medians. Then rows one by one, each an epoch (mean CPU time,
  median wall time), and epochs without rows.
- CPU time is that of all threads of the process. It is the figure to compare when the machine does other work.
- Differential and dbsp may merge in the background between deltas, outside the clock.
- Our load holds all input columns until the epoch ends, so peak memory has them in it.
- Checksums are compared between the systems, and with DuckDB's over the final tables.
"""


def losses(workloads, lines):
    """Where another incremental system takes less CPU time or memory, one thread."""
    titles = {"load": "the load", "single": "one row", "empty": "no row", "resident": "memory after the load"}
    found = []
    for workload in workloads:
        own = of_system(lines, workload, "ours", 1)
        for peer, workers in systems(lines, workload):
            if not own or peer in ("ours", "duckdb") or workers != 1:
                continue
            ours, other = figures(own), figures(of_system(lines, workload, peer, 1))
            for column in ("load", *LABELS, "single", "empty", "resident"):
                if ours.get(column) and other.get(column) and other[column] < ours[column]:
                    title = titles.get(column, f"{column} %")
                    found.append(f"- {workload}, {title}: {peer} takes {other[column] / ours[column]:.2f} of ours\n")
    return "## Where we lose\n\n" + ("".join(found) or "Nowhere in this run.\n")
